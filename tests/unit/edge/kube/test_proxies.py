"""Which servers are reached over the proxy that the environment names."""

import pytest

from stowplan.edge.kube.proxies import proxy_of

PROXY = "http://proxy:3128"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_this_host_is_reached_without_one(host):
    assert proxy_of(f"https://{host}:6443", {"HTTPS_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("name", "url", "proxy"),
    [
        ("HTTPS_PROXY", "https://a", PROXY),
        ("https_proxy", "https://a", PROXY),
        ("HTTP_PROXY", "https://a", None),
        ("HTTP_PROXY", "http://a", PROXY),
        ("ALL_PROXY", "http://a", None),
    ],
)
def test_the_scheme_decides(name, url, proxy):
    assert proxy_of(url, {name: PROXY}) == proxy


def test_a_proxy_without_scheme_speaks_http():
    assert proxy_of("https://a", {"HTTPS_PROXY": "proxy:3128"}) == PROXY


@pytest.mark.parametrize(
    ("entries", "url", "exempt"),
    [
        ("*", "https://a", True),
        ("x, 10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("10.0.0.0/99", "https://10.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("10.1.2.3:6443", "https://10.1.2.3:6443", True),
        ("10.1.2.3:6443", "https://10.1.2.3", False),
        ("10.1.2.3:443", "https://10.1.2.3", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]", True),
        ("Example.com", "https://api.example.COM", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://myexample.com", False),
        (".example.com", "https://example.com", False),
        (".example.com", "https://api.example.com", True),
        ("*.example.com", "https://api.example.com", True),
        (",,", "https://a", False),
    ],
)
def test_what_no_proxy_names_is_reached_without_one(entries, url, exempt):
    assert proxy_of(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": entries}) == (None if exempt else PROXY)
