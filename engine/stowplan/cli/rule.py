"""`stowplan rule`: what a code of a finding means."""

from __future__ import annotations

import click


@click.command("rule")
@click.option("-o", "--output", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.argument("code", required=False, metavar="[CODE]")
def command(code: str | None, form: str) -> None:
    """Explain a finding by its code (STW234, or 234), with its remedy and an example; without a code, list all of them.

    \b
      stowplan rule STW234
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.rule_texts import TEXTS
    from stowplan.text import Code

    known = {kind.value: kind for kind in Code}
    code = None if code is None else f"STW{code}" if code.isdecimal() else code.upper()
    if code is not None and code not in known:
        raise click.BadParameter(f"no finding has this code; they are {', '.join(known)}", param_hint="CODE")
    chosen = [known[code]] if code else list(Code)
    if form == "json":
        import json

        entries = [
            {"code": kind.value, "title": text.title, "why": text.why, "remedy": text.remedy, "example": text.example}
            for kind, text in ((kind, TEXTS[kind]) for kind in chosen)
        ]
        click.echo(json.dumps(entries[0] if code else entries, indent=2, ensure_ascii=False))
        return
    if code is None:
        click.echo("\n".join(f"{kind.value}  {TEXTS[kind].title}" for kind in chosen))
        return
    text = TEXTS[chosen[0]]
    click.echo(f"{chosen[0].value}: {text.title}\n\n{text.why}\n\nRemedy: {text.remedy}")
    if text.example:
        click.echo("\nFor example:\n\n" + "\n".join(f"  {line}" for line in text.example.splitlines()))
