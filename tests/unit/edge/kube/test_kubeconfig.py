"""Mistakes in kubeconfigs, each told with its place, and what may be in good ones."""

import base64
import os

import pytest
import yaml

from stowplan.edge.kube.whereabouts import WhereaboutsError
from unit.edge.kube.kubeconfigs import CLUSTER, CONTEXT, USER, VERSION, changed, document, found, nowhere, refused, written

__all__ = ["nowhere", "written"]
NOT_PEM = base64.b64encode(b"hello").decode()
NO_CERTIFICATE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ("a: [", "is no YAML: line 2, column"),
        ("- a\n", "it is a list, where clusters"),
        ("just words", "it is text, where clusters"),
        ("a: 2001-99-99", "is no YAML"),
        ("[" * 5000, "is no YAML"),
        (changed("current-context"), "has no current-context; name one with --context: c"),
        (changed("current-context", to="x"), 'has no context "x"; name another one with --context: c'),
        (changed("current-context", to=5), "current-context is a number, not text; put it in quotes"),
        (changed("contexts"), "there are none"),
        (changed("contexts", to="c"), "contexts is text, not a list"),
        (changed("contexts", 0, "name"), "contexts[0] has no name"),
        (changed("clusters", to=[{"name": "k"}, {"name": "k"}]), 'two entries of the name "k"'),
        (changed(*CONTEXT, to=None), 'context "c" is empty, not a mapping'),
        (changed(*CONTEXT, "cluster"), 'context "c" names no cluster'),
        (changed(*CONTEXT, "cluster", to="x"), 'names the cluster "x", which is not among the clusters: k'),
        (changed(*CONTEXT, "user", to="x"), 'names the user "x", which is not among the users: u'),
        (changed(*CLUSTER, to=[]), 'cluster "k" is a list, not a mapping'),
        (changed(*CLUSTER, "server"), 'cluster "k" has no server'),
        (changed(*CLUSTER, "server", to=8080), "server is a number, not text"),
        (changed(*CLUSTER, "server", to="10.0.0.1:6443"), "is no URL such as"),
        (changed(*CLUSTER, "server", to="https://h:99999"), "is no URL such as"),
        (changed(*CLUSTER, "server", to="https://a..b:6443"), "is no URL such as"),
        (changed(*CLUSTER, "server", to=f"https://{'a' * 64}:6443"), "is no URL such as"),
        (changed(*CLUSTER, "tls-server-name", to="a..b"), "tls-server-name 'a..b' is no name"),
        (changed(*CLUSTER, "proxy-url", to="socks5://h:1"), "no URL of an HTTP proxy"),
        (changed(*CLUSTER, "proxy-url", to="http://"), "no URL of an HTTP proxy"),
        (changed(*CLUSTER, "insecure-skip-tls-verify", to="yes"), "is text, not true or false"),
        (changed(*CLUSTER, "certificate-authority", to="missing.crt"), "missing.crt cannot be read: No such file"),
        (changed(*CLUSTER, "certificate-authority", to="."), "cannot be read: Is a directory"),
        (changed(*CLUSTER, "certificate-authority-data", to="%%%"), "certificate-authority-data is no base64"),
        (changed(*CLUSTER, "certificate-authority-data", to=NOT_PEM), "it has no -----BEGIN"),
        (changed(*CLUSTER, "certificate-authority-data", to=NO_CERTIFICATE), "is no certificate in PEM"),
        (changed(*USER, to={"client-certificate-data": NO_CERTIFICATE}), "has a client-certificate and no client-key"),
        (
            changed(*USER, to={"client-certificate-data": NO_CERTIFICATE, "client-key-data": NO_CERTIFICATE}),
            "are no certificate and its key",
        ),
        (changed(*USER, to={"token": 5}), "token is a number, not text; put it in quotes"),
        (changed(*USER, to={"token": "a\nb"}), "the token is none"),
        (changed(*USER, to={"tokenFile": "missing"}), "missing cannot be read"),
        (changed(*USER, to={"token": "t", "as": "admin"}), "to impersonate others is not supported"),
        (changed(*USER, to={"exec": {"command": "x"}}), "exec has no apiVersion"),
        (changed(*USER, to={"exec": {"command": "x", "apiVersion": VERSION, "args": [1]}}), "args are not all text"),
        (
            changed(*USER, to={"exec": {"command": "x", "apiVersion": VERSION, "env": ["A=b"]}}),
            "env is no list of a name and a value",
        ),
        (changed(*USER, to={"auth-provider": {"name": "oidc"}}), 'user "u": oidc'),
    ],
)
def test_a_mistake_is_told_with_its_place(written, content, told):
    assert told in refused(written(content))


def test_files_that_cannot_be_read(tmp_path, written):
    assert "does not exist" in refused(str(tmp_path / "none"))
    assert "cannot be read: Is a directory" in refused(str(tmp_path))
    file = written(document())
    (tmp_path / "config").write_bytes(b"\xff\xfe\x00")
    assert "is no text in UTF-8" in refused(file)
    assert 'has no context "other"' in refused(written(document()), "other")


def test_without_any_kubeconfig_all_ways_to_name_one_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "a"))
    with pytest.raises(WhereaboutsError, match=r"there is no kubeconfig .*/a; name one with --kubeconfig"):
        found("")


def test_of_several_kubeconfigs_the_first_one_counts(tmp_path, monkeypatch):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"token": "first"}}], "current-context": ""}))
    second.write_text(yaml.safe_dump(document()))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join((str(tmp_path / "none"), str(first), str(second))))
    assert found("").authorization == "Bearer first"


def test_of_several_kubeconfigs_empty_ones_are_passed_over(tmp_path, monkeypatch):
    for name, text in (("a", ""), ("b", "# nothing yet\n"), ("c", yaml.safe_dump(document()))):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(tmp_path / name) for name in "abc"))
    assert found("").authorization == "Bearer t"


def test_a_user_may_be_nobody(written):
    assert found(written(changed(*USER, to=None))).authorization == ""


def test_a_plugin_may_be_given_nothing_in_a_variable(written, tmp_path):
    plugin = tmp_path / "plugin"
    answer = f'{{"kind": "ExecCredential", "apiVersion": "{VERSION}", "status": {{"token": "t%s"}}}}'
    plugin.write_text(f"#!/bin/sh\nprintf '{answer}' \"${{A-unset}}${{B-unset}}\"\n")
    plugin.chmod(0o755)
    run = {"command": str(plugin), "apiVersion": VERSION, "env": [{"name": "A"}, {"name": "B", "value": None}]}
    assert found(written(document(user={"exec": run}))).authorization == "Bearer t"


def test_what_users_may_be(written, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    for user, authorization in (
        ({"token": "t", "tokenFile": "token"}, "Bearer t"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"username": "a", "password": "b"}, "Basic YTpi"),
    ):
        assert found(written(document(user=user))).authorization == authorization
    assert found(written(changed(*CONTEXT, "user"))).authorization == ""


def test_a_pod_uses_its_service_account(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr("stowplan.edge.kube.whereabouts.SERVICE_ACCOUNT", str(tmp_path))
    with pytest.raises(WhereaboutsError, match=r"the service account of this pod: certificate-authority .*ca\.crt cannot be read"):
        found("")


def test_a_pod_with_a_kubeconfig_in_its_environment_uses_that(written, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(WhereaboutsError, match='has no contexts, so none "c"; leave --context out'):
        found("", "c")
    monkeypatch.setenv("KUBECONFIG", written(document()))
    assert found("").authorization == "Bearer t"
    assert found("", "c").context == "c"
