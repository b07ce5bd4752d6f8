"""Entry point of `stowplan` and `kubectl-stowplan`: finds the verb, and turns failures into exit codes.

0 fine, 1 some pod does not fit (or a finding, or a failed test), 2 wrong usage, 3 unreadable input or unwritable output, 4
internal error. Verbs are imported when they are called, and they import the engine when they run.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys

import click

from stowplan import __version__

VERBS = (
    *("explain", "simulate", "diff", "run", "why", "queue", "policy", "shadow", "eval", "test"),
    *("validate", "convert", "schema", "rule", "version"),
)
UNREADABLE, INTERNAL, INTERRUPTED, BROKEN_PIPE = 3, 4, 130, 141
"""Exit codes; the last two are those that shells use for SIGINT and SIGPIPE."""
DEBUG = "STOWPLAN_DEBUG"


class Verbs(click.Group):
    """Commands in modules of their own name, imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"stowplan.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, 1)
            ctx.fail(
                f"there is no command {args[0]}" + (f"; did you mean {near[0]}?" if near else f"; commands: {', '.join(VERBS)}")
            )
        return super().resolve_command(ctx, args)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stowplan", message="%(prog)s %(version)s")
def stowplan() -> None:
    """Why a pod goes to a node, and where pending pods would go, from a cluster dump and a scheduler configuration; and the
    scheduler itself.

    \b
      kubectl get nodes,pods,services,replicasets,statefulsets,namespaces,priorityclasses -A -o json > dump.json
      stowplan simulate --cluster dump.json
      stowplan explain --cluster dump.json web/api-7d9
      stowplan run --policy scheduler.yaml

    Exit codes: 0 fine, 1 some pod does not fit (or a finding, or a failed test), 2 wrong usage, 3 unreadable input, 4 internal
    error.
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    gc.set_threshold(200_000)  # imports and facts are many objects and no cycles: the collector would only look at them
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the terminal's encoding does not
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        code = BROKEN_PIPE
    except OSError as error:
        code = _unwritable(error)
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """The exit code of one call; messages about failures go to standard error. BrokenPipeError passes through."""
    try:
        # not click's main(), which leaves with 1 when a pipe breaks: that code means something else here
        with stowplan.make_context("stowplan", sys.argv[1:] if arguments is None else arguments) as context:
            return stowplan.invoke(context) or 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        return _unwritable(error)
    except Exception as error:  # noqa: BLE001 - the last resort
        return _failed(error)


def _unwritable(error: OSError) -> int:
    """Report a file or standard output that cannot be written; what cannot be read has findings instead."""
    with contextlib.suppress(OSError):
        click.echo(f"Error: cannot write {error.filename or 'the output'}: {error.strerror or error}", err=True)
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
    return UNREADABLE


def _failed(error: Exception) -> int:
    """Report an exception: the findings of unreadable input, one line for everything else."""
    if getattr(error, "diagnostics", None):  # PolicyError or ClusterError, whose text is the findings, rendered
        click.echo(str(error), err=True)
        return UNREADABLE
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
    hint = "" if os.environ.get(DEBUG) else f" (set {DEBUG}=1 for a traceback)"
    click.echo(f"stowplan: internal error: {type(error).__name__}: {error}{hint}", err=True)
    return INTERNAL
