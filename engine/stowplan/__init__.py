"""stowplan: a Kubernetes scheduler whose behaviour is YAML.

The names below are the whole public interface, together with `stowplan.plugins.plugin` for plugins outside the tree.
They are imported on first use, so that `import stowplan` and small commands start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.edge.load import ClusterError, load_cluster, load_policy
    from stowplan.loop.compare import Wanted, compare
    from stowplan.loop.simulate import simulate
    from stowplan.policy.compile import PolicyError
    from stowplan.policy.explain import explain

__version__ = "0.1.0.dev0"

__all__ = [
    "ClusterError",
    "PolicyError",
    "Wanted",
    "__version__",
    "compare",
    "explain",
    "load_cluster",
    "load_policy",
    "simulate",
]

_HOMES = {
    "ClusterError": "stowplan.edge.load",
    "PolicyError": "stowplan.policy.compile",
    "Wanted": "stowplan.loop.compare",
    "compare": "stowplan.loop.compare",
    "explain": "stowplan.policy.explain",
    "load_cluster": "stowplan.edge.load",
    "load_policy": "stowplan.edge.load",
    "simulate": "stowplan.loop.simulate",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
