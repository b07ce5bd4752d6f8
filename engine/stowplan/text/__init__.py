"""Where a thing was written and what is wrong with it; this room knows no YAML, no Kubernetes and no scheduler."""

from stowplan.text.diagnostic import Code, Diagnostic, Edit, Severity, has_errors
from stowplan.text.field import ZERO_MEANS_DEFAULT, Int32, Kind, Path, Problem, parse_path, show_path, within, written_as
from stowplan.text.listing import some
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
    "has_errors",
    "parse_path",
    "render",
    "render_all",
    "show_path",
    "some",
    "to_json",
    "within",
    "written_as",
]
