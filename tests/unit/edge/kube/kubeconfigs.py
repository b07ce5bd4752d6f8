"""Kubeconfigs, good ones and others, and what becomes of them."""

import asyncio

import pytest
import yaml

from stowplan.edge.kube.credentials import obtain
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError

VERSION = "client.authentication.k8s.io/v1"
TOKEN = {"token": "t"}
SERVER = "https://127.0.0.1:6443"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    for name in ("KUBERNETES_SERVICE_HOST", "KUBECONFIG", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


def document(cluster=None, user=None):
    return {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }


@pytest.fixture
def written(tmp_path):
    """Writes a kubeconfig, and returns its name."""

    def write(content):
        file = tmp_path / "config"
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(file)

    return write


def found(file, context=None):
    return asyncio.run(obtain(Whereabouts(file, context)))


def refused(file, context=None):
    """The text of the error, which starts alike for all and names the file."""
    with pytest.raises(WhereaboutsError) as caught:
        found(file, context)
    text = str(caught.value)
    assert text.startswith("no connection to an API server: ")
    assert file in text
    assert "\n" not in text
    return text


WITHOUT = object()


def changed(*path, to=WITHOUT):
    """A good kubeconfig with one thing changed or left out."""
    whole = document()
    at = whole
    for step in path[:-1]:
        at = at[step]
    if to is WITHOUT:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return whole


CLUSTER, USER, CONTEXT = ("clusters", 0, "cluster"), ("users", 0, "user"), ("contexts", 0, "context")
