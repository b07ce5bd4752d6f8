"""Where an API server is, and which of its users we are: what a command line says, a kubeconfig, the cluster this runs in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds the token and the authority of its service account."""


class WhereaboutsError(Exception):
    """No API server is known, or no credentials for it; the text says why, and what to mend."""

    def __init__(self, text: str) -> None:
        super().__init__(f"no connection to an API server: {text}")


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the API server is. Without a kubeconfig, and one in the environment: in the cluster this process runs in, else the
    user's default one.

    `master` takes the place of the kubeconfig's server.
    """

    kubeconfig: str = ""
    context: str | None = None
    master: str = ""

    @property
    def inside(self) -> bool:
        """Is it the cluster that this process runs in?"""
        return not self.kubeconfig and not _listed() and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))

    @property
    def files(self) -> tuple[str, ...]:
        """The kubeconfigs, of which the first one with a name has it (upstream: `ClientConfigLoadingRules`)."""
        if self.kubeconfig:
            return (self.kubeconfig,)
        return _listed() or (str(Path("~/.kube/config").expanduser()),)


def _listed() -> tuple[str, ...]:
    """The kubeconfigs that the environment names."""
    return tuple(each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each)


@dataclass(frozen=True, slots=True)
class Part:
    """A cluster or a user, with the fields that are set; `where`: the file and what it is there, for messages."""

    where: str
    values: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    """what relative paths are relative to"""

    def path(self, name: str) -> str:
        """The file that a field names, "" for none."""
        given = self.values.get(name, "")
        return self.resolved(given) if given else ""

    def resolved(self, path: str) -> str:
        """A path that stands in this file."""
        return os.path.normpath(Path(self.folder) / path)


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and who we are there; `context`: its name in the kubeconfig, None where there is none."""

    cluster: Part
    user: Part
    context: str | None = None


def service_account() -> Place:
    """The cluster that this process runs in, as a kubeconfig would say it (upstream: `InClusterConfig`). WhereaboutsError."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not port:
        raise WhereaboutsError("KUBERNETES_SERVICE_HOST is set and KUBERNETES_SERVICE_PORT is not")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    where = "the service account of this pod"
    cluster = {"server": server, "certificate-authority": f"{SERVICE_ACCOUNT}/ca.crt"}
    return Place(Part(where, cluster), Part(where, {"tokenFile": f"{SERVICE_ACCOUNT}/token"}))
