"""The tables of docs/findings/papers.md: what came out for each panel of the papers' figures, from
panels.toml and the committed numbers."""

from compgen_jax.claims import TRAINED

from . import committed, quoted
from .forced_rendering import authors
from .tables import table

HEAD = "panel", "the paper says", "measure, and where it should lie"
HEAD += "papers' size", "quick", "network", "picture"


def lines(rows: dict, runs: dict) -> list[str]:
    """The tables of docs/findings/papers.md.

    Args: rows: those of `quoted.by_key`; runs: those at the papers' size, by name.
    """
    lines, drawn = [], {*committed.drawn("quick"), *committed.drawn("paper")}
    for paper in quoted.read("panels")["paper"]:
        lines_of_paper = []
        for panel in paper["panel"]:
            numbers = [quoted.printed(name, rows) for name in panel.get("quotes", ())]
            says, see = panel["says"].format(*numbers), panel.get("see", "")
            see = f"[{see}](gallery.md#{see})" if see in drawn else see
            results = [result(panel, scale, rows) for scale in ("paper", "quick")]
            line = panel["figure"], says, panel["measure"], *results, panel["network"], see
            lines_of_paper.append(line)
        lines += ["", f"## {paper['title']}", "", *table(HEAD, lines_of_paper)]
        if paper["title"] == "Forced rendering":
            lines += authors.table(runs)
    return lines[1:]


def result(panel: dict, scale: str, rows: dict) -> str:
    """'4% [2, 6] **✓**', – where a panel's `gate` says that the network has not learnt."""
    name = panel.get(scale, panel["paper"])
    if not name:
        return "not run"
    number = quoted.number(f"{scale} {name}", rows, panel.get("must", ""))
    if "gate" in panel and quoted.number(f"{scale} {panel['gate']}", rows)["value"] < TRAINED:
        number = number | {"holds": None}
    known = number["value"] is not None
    value = quoted.formatted(number, panel["how"]) if known else "not identified"
    return f"{value} **{quoted.formatted(number, 'sign')}**"
