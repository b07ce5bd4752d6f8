"""The chart of the live benchmark: pods a second of both schedulers by workload, as SVG for light and dark pages."""

from html import escape

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 760, 190, 90, 11, 14, 78
STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .note { font-size: 11px; fill: #57606a }
  .ours { fill: #0b7285 } .theirs { fill: #adb5bd }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .note { fill: #9198a1 } .ours { fill: #3bc9db } .theirs { fill: #6c757d }
  }
"""


def draw(about, rows) -> str:
    """Rows of the most nodes there are. `about` has the machine, the date and the number of rounds."""
    nodes = max(row["nodes"] for row in rows)
    shown = [row for row in rows if row["nodes"] == nodes and row["stowplan"]]
    most = max(side["podsPerSecond"] for row in shown for side in (row["stowplan"], row["peer"]) if side)
    height = TOP + len(shown) * (2 * BAR + GAP) + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Pods bound a second, stowplan beside kube-scheduler</title>",
        f"<style>{STYLE}</style>",
        text(16, 26, f"Pods bound a second, {nodes:,} nodes", "title"),
        f'<rect class="ours" x="16" y="42" width="11" height="11"/>{text(32, 52, "stowplan")}',
        f'<rect class="theirs" x="110" y="42" width="11" height="11"/>{text(126, 52, "kube-scheduler 1.37.2")}',
    ]
    for place, row in enumerate(shown):
        parts += bars(row, TOP + place * (2 * BAR + GAP), (WIDTH - LEFT - RIGHT) / most)
    rounds = "one round" if about["rounds"] == 1 else f"median of {about['rounds']} rounds"
    note = f"{about['machine']}; {about['date']}; {rounds}, one API server, the same run"
    parts += [text(16, height - 10, note, "note"), "</svg>"]
    return "\n".join(parts) + "\n"


def bars(row, top: float, scale: float) -> list[str]:
    """The two bars of a workload, and how many times as fast."""
    parts = [text(LEFT - 10, top + BAR + 4, row["workload"], anchor="end")]
    for at, (name, side) in enumerate((("ours", row["stowplan"]), ("theirs", row["peer"]))):
        if side:
            width = side["podsPerSecond"] * scale
            y = top + at * BAR
            parts.append(f'<rect class="{name}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 1}"/>')
            ratio = f"  ({row['ratio']:.1f} ×)" if at == 0 and row["ratio"] else ""
            parts.append(text(LEFT + width + 5, y + BAR - 2, f"{side['podsPerSecond']:.0f}{ratio}", "note"))
    return parts


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'
