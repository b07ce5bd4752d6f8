"""Where a thing was written and what is wrong with it; this room knows no YAML, no Kubernetes and no scheduler."""

from stowplan.text.diagnostic import Code, Diagnostic, Edit, Severity, has_errors
from stowplan.text.field import (
    ZERO_MEANS_DEFAULT,
    Int32,
    Kind,
    Path,
    Problem,
    parse_path,
    show_path,
    unsupported,
    within,
    written_as,
)
from stowplan.text.listing import counted, some
from stowplan.text.near import closest, did_you_mean
from stowplan.text.render import render, render_all, to_json
from stowplan.text.source import Source, Span

__all__ = [
    "ZERO_MEANS_DEFAULT",
    "Code",
    "Diagnostic",
    "Edit",
    "Int32",
    "Kind",
    "Path",
    "Problem",
    "Severity",
    "Source",
    "Span",
    "closest",
    "counted",
    "did_you_mean",
    "has_errors",
    "parse_path",
    "render",
    "render_all",
    "show_path",
    "some",
    "to_json",
    "unsupported",
    "within",
    "written_as",
]
