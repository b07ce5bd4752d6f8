"""Kubeconfigs: read, put together, and looked through, so that what is wrong is said with the file and what to mend."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stowplan.edge.kube.whereabouts import Part, Place, Whereabouts, WhereaboutsError, service_account

CLUSTER = {
    **dict.fromkeys(("server", "certificate-authority", "certificate-authority-data", "tls-server-name", "proxy-url"), str),
    "insecure-skip-tls-verify": bool,
}
USER = {
    **dict.fromkeys(("token", "tokenFile", "username", "password", "as"), str),
    **dict.fromkeys(("client-certificate", "client-certificate-data", "client-key", "client-key-data"), str),
    **dict.fromkeys(("exec", "auth-provider", "as-user-extra"), dict),
    "as-groups": list,
}
EXEC = {
    "command": str,
    "apiVersion": str,
    "args": list,
    "env": list,
    "interactiveMode": str,
    "installHint": str,
    "provideClusterInfo": bool,
}
WORDS = {str: "text", bool: "true or false", dict: "a mapping", list: "a list"}
PROXIES = ("http", "https")


def place(whereabouts: Whereabouts) -> Place:
    """The cluster and the user that are meant. Raises WhereaboutsError; reads files, which may take its time."""
    if whereabouts.inside and whereabouts.context:
        raise WhereaboutsError(
            f'a pod\'s service account has no contexts, so none "{whereabouts.context}"; leave --context out, or name a kubeconfig'
            " with --kubeconfig or the environment's KUBECONFIG"
        )
    found = service_account() if whereabouts.inside else _chosen(_merged(whereabouts), whereabouts)
    _check_cluster(found.cluster, known=bool(whereabouts.master))
    _check_user(found.user)
    return found


@dataclass(frozen=True, slots=True)
class _Merged:
    """The entries of all kubeconfigs, each with its file."""

    files: str
    current: str
    lists: Mapping[str, Mapping[str, tuple[str, Any]]]


def _merged(whereabouts: Whereabouts) -> _Merged:
    lists: dict[str, dict[str, tuple[str, Any]]] = {"clusters": {}, "contexts": {}, "users": {}}
    current, read = "", []
    for file in whereabouts.files:
        document = _document(file, must=bool(whereabouts.kubeconfig), alone=len(whereabouts.files) == 1)
        if document is None:
            continue
        read.append(file)
        current = current or _typed(f"kubeconfig {file}", document, {"current-context": str}).get("current-context", "")
        for name, known in lists.items():
            for entry_name, value in _entries(file, name, document.get(name)).items():
                known.setdefault(entry_name, (file, value))
    if not read:
        raise WhereaboutsError(
            f"there is no kubeconfig {' or '.join(whereabouts.files)}; name one with --kubeconfig, clientConnection.kubeconfig or "
            "the environment's KUBECONFIG"
        )
    return _Merged(", ".join(read), current, lists)


def _document(file: str, *, must: bool, alone: bool) -> Mapping[str, Any] | None:
    """What a file holds; None where there is none and there need not be. WhereaboutsError, also for an empty one that is alone."""
    import yaml

    where = f"kubeconfig {file}"
    try:
        text = Path(file).expanduser().read_text("utf-8-sig")
        found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except FileNotFoundError:
        if must:
            raise WhereaboutsError(f"{where} does not exist") from None
        return None
    except UnicodeDecodeError:
        raise WhereaboutsError(f"{where} is no text in UTF-8") from None
    except OSError as error:
        raise WhereaboutsError(f"{where} cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WhereaboutsError(f"{where} is no YAML: {_first(error)}") from None
    if found is None:
        if alone:
            raise WhereaboutsError(f"{where} is empty")
        return {}
    if not isinstance(found, dict):
        raise WhereaboutsError(f"{where} is no kubeconfig: it is {_kind(found)}, where clusters, contexts and users should be")
    return found


def _first(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark is not None else problem


def _entries(file: str, name: str, listed: Any) -> dict[str, Any]:
    """A list of a kubeconfig by the names of its entries. WhereaboutsError."""
    found: dict[str, Any] = {}
    if not isinstance(listed, list | None):
        raise WhereaboutsError(f"kubeconfig {file}: {name} is {_kind(listed)}, not a list")
    for number, entry in enumerate(listed or ()):
        own = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(own, str):
            raise WhereaboutsError(f"kubeconfig {file}: {name}[{number}] has no name, or one that is no text")
        if own in found:
            raise WhereaboutsError(f'kubeconfig {file}: {name} has two entries of the name "{own}"')
        found[own] = entry.get(name.removesuffix("s"))
    return found


def _chosen(merged: _Merged, whereabouts: Whereabouts) -> Place:
    """The cluster and the user of the context. WhereaboutsError."""
    name = whereabouts.context or merged.current
    contexts = ", ".join(sorted(merged.lists["contexts"])) or "there are none"
    if not name:
        raise WhereaboutsError(f"kubeconfig {merged.files} has no current-context; name one with --context: {contexts}")
    if name not in merged.lists["contexts"]:
        raise WhereaboutsError(f'kubeconfig {merged.files} has no context "{name}"; name another one with --context: {contexts}')
    file, value = merged.lists["contexts"][name]
    where = f'kubeconfig {file}: context "{name}"'
    context = _typed(where, value, {"cluster": str, "user": str})
    if "cluster" not in context:
        raise WhereaboutsError(f"{where} names no cluster")
    cluster = _part(merged, where, "cluster", context["cluster"], CLUSTER)
    user = _part(merged, where, "user", context["user"], USER) if "user" in context else Part(f"{where}, which has no user")
    return Place(cluster, user, name)


def _part(merged: _Merged, where: str, kind: str, name: str, types: Mapping[str, type]) -> Part:
    if name not in merged.lists[f"{kind}s"]:
        known = ", ".join(sorted(merged.lists[f"{kind}s"])) or "none"
        raise WhereaboutsError(f'{where} names the {kind} "{name}", which is not among the {kind}s: {known}')
    file, value = merged.lists[f"{kind}s"][name]
    own = f'kubeconfig {file}: {kind} "{name}"'
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(file)))  # noqa: PTH100, PTH111, PTH120 - links stay as they are
    return Part(own, _typed(own, {} if value is None else value, types), folder)


def _typed(where: str, value: Any, types: Mapping[str, type]) -> dict[str, Any]:
    """The fields that are known and set. WhereaboutsError for one of another type than it should be."""
    if not isinstance(value, dict):
        raise WhereaboutsError(f"{where} is {_kind(value)}, not a mapping")
    found = {}
    for name, kind in types.items():
        given = value.get(name)
        if given is None or given == "":
            continue
        if not isinstance(given, kind):
            quoted = "; put it in quotes" if kind is str and not isinstance(given, dict | list) else ""
            raise WhereaboutsError(f"{where}: {name} is {_kind(given)}, not {WORDS[kind]}{quoted}")
        found[name] = given
    return found


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    return {str: "text", bool: "true or false", int: "a number", float: "a number", dict: "a mapping", list: "a list"}.get(
        type(value), "something else"
    )


def _check_cluster(cluster: Part, *, known: bool) -> None:
    """`known`: the server is, from elsewhere."""
    server = cluster.values.get("server", "")
    if not server and not known:
        raise WhereaboutsError(f"{cluster.where} has no server; write its URL there, or give it with --master")
    if server:
        check_url(f"{cluster.where}: server", server)
    name = cluster.values.get("tls-server-name", "")
    if name and not _is_host(name):
        raise WhereaboutsError(f"{cluster.where}: tls-server-name {name!r} is no name that a server can have")
    check_proxy(f"{cluster.where}: proxy-url", cluster.values.get("proxy-url", ""))
    _check_material(cluster, "certificate-authority", pem=True)


def check_url(where: str, url: str) -> None:
    """Raises WhereaboutsError where that is no URL of an API server."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and _is_host(parts.hostname or "") and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not url.isascii() or not url.isprintable() or " " in url:
        raise WhereaboutsError(f"{where} {url!r} is no URL such as https://10.0.0.1:6443")


def _is_host(name: str) -> bool:
    """Can a server have this name: no label empty or longer than 63 characters?"""
    try:
        return bool(name.encode("idna").strip(b"."))
    except UnicodeError:
        return False


def check_proxy(where: str, url: str) -> None:
    """Raises WhereaboutsError for a proxy that requests cannot go through."""
    try:
        parts = urlsplit(url)
        fine = not url or (parts.scheme in PROXIES and _is_host(parts.hostname or "") and parts.port != 0)
    except ValueError:
        fine = False
    if not fine:
        raise WhereaboutsError(f"{where} {url!r} is no URL of an HTTP proxy; others, such as SOCKS, are not supported")


def _check_user(user: Part) -> None:
    for name in ("as", "as-groups", "as-user-extra"):
        if user.values.get(name):
            raise WhereaboutsError(f"{user.where}: {name}: to impersonate others is not supported; name a user without it")
    for name in ("client-certificate", "client-key"):
        _check_material(user, name, pem=True)
    certificate, key = (
        any(field in user.values for field in (name, f"{name}-data")) for name in ("client-certificate", "client-key")
    )
    if certificate != key:
        has, lacks = ("client-certificate", "client-key") if certificate else ("client-key", "client-certificate")
        raise WhereaboutsError(f"{user.where} has a {has} and no {lacks}")
    if "token" not in user.values:
        _check_material(user, "tokenFile", pem=False)
    if "exec" in user.values:
        _check_exec(f"{user.where}: exec", user.values["exec"])


def _check_material(part: Part, name: str, *, pem: bool) -> None:
    """A certificate, a key or a token, given in base64 or as a file. WhereaboutsError."""
    given = part.values.get(f"{name}-data")
    if given is not None:
        where = f"{part.where}: {name}-data"
        try:
            content = base64.b64decode("".join(given.split()), validate=True)
        except (binascii.Error, ValueError):
            raise WhereaboutsError(f"{where} is no base64") from None
    elif name in part.values:
        where = f"{part.where}: {name} {part.path(name)}"
        try:
            content = Path(part.path(name)).read_bytes()
        except (OSError, ValueError) as error:
            raise WhereaboutsError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    else:
        return
    if not content.strip():
        raise WhereaboutsError(f"{where} is empty")
    if pem and b"-----BEGIN " not in content:
        raise WhereaboutsError(f"{where} is nothing in PEM: it has no -----BEGIN")


def _check_exec(where: str, given: Any) -> None:
    values = _typed(where, given, EXEC)
    for name in ("command", "apiVersion"):
        if name not in values:
            raise WhereaboutsError(f"{where} has no {name}")
    if not all(isinstance(each, str) for each in values.get("args", ())):
        raise WhereaboutsError(f"{where}: args are not all text; put them in quotes")
    for entry in values.get("env", ()):
        if not (isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("value"), str | None)):
            raise WhereaboutsError(f"{where}: env is no list of a name and a value each, both text")
    if values.get("interactiveMode", "Never") not in ("Never", "IfAvailable", "Always"):
        raise WhereaboutsError(f"{where}: interactiveMode is none of Never, IfAvailable and Always")
