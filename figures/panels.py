"""The tables of docs/findings/papers.md and of README: what came out for each panel of the papers'
figures, from panels.toml and the committed numbers."""

from compgen_jax.claims import INCONCLUSIVE, TRAINED

from . import committed, quoted
from .forced_rendering import authors
from .tables import table

HEAD = "Figure", "The paper says", "Here", "Same?", "Network"  # of the table of README


def lines(rows: dict, runs: dict) -> list[str]:
    """The tables of docs/findings/papers.md.

    Args: rows: those of `quoted.by_key`; runs: those at the papers' size, by name.
    """
    head = "panel", "the paper says", "measure, and where it should lie"
    lines, drawn = [], {*committed.drawn("quick"), *committed.drawn("paper")}
    for paper in quoted.read("panels")["paper"]:
        lines_of_paper = []
        for panel in paper["panel"]:
            numbers = [quoted.printed(name, rows) for name in panel.get("quotes", ())]
            says, see = panel["says"].format(*numbers), panel.get("see", "")
            see = f"[{see}](gallery.md#{see})" if see in drawn else see
            results = [_result(panel, scale, rows) for scale in ("paper", "quick")]
            line = panel["figure"], says, panel["measure"], *results, panel["network"], see
            lines_of_paper.append(line)
        head_of_paper = *head, "papers' size", "quick", "network", "picture"
        lines += ["", f"## {paper['title']}", "", *table(head_of_paper, lines_of_paper)]
        if paper["title"] == "Forced rendering":
            lines += authors.table(runs)
    return lines[1:]


def _name(panel: dict, scale: str) -> str:
    """What a panel quotes at a scale, '' for nothing."""
    name = panel.get(scale, panel["paper"])
    return f"{scale} {name}" if name else ""


def _result(panel: dict, scale: str, rows: dict) -> str:
    """'4% [2, 6] **✓**'."""
    name = _name(panel, scale)
    if not name:
        return "not run"
    number = quoted.number(name, rows)
    known = number["value"] is not None
    value = quoted.formatted(number, panel["how"]) if known else "not identified"
    return f"{value} **{_sign(panel, scale, rows)}**"


def _sign(panel: dict, scale: str, rows: dict) -> str:
    """The sign of a panel's number, – where its `gate` says that the network has not learnt."""
    if "gate" in panel and quoted.number(f"{scale} {panel['gate']}", rows)["value"] < TRAINED:
        return quoted.SYMBOLS[INCONCLUSIVE]
    return quoted.sign(_name(panel, scale), rows, panel.get("must", ""))


def readme_table(rows: dict) -> list[str]:
    """The lines of README's table."""
    data = quoted.read("panels")
    by_name = {panel["id"]: panel for paper in data["paper"] for panel in paper["panel"]}
    lines = []
    for row in data["readme"]:
        panels = [by_name[name] for name in row["panels"]]
        scales = ["paper" if panel["paper"] else "quick" for panel in panels]
        values, signs = [], []
        for panel, scale in zip(panels, scales, strict=True):
            number = quoted.number(_name(panel, scale), rows)
            if number["value"] is not None:
                values.append(quoted.formatted(number, f"{panel['how']}.").removesuffix("%"))
            signs.append(_sign(panel, scale, rows))
        lines.append(
            (
                row["figure"],
                row["says"],
                row["here"].format(*values),
                "; ".join(signs),
                panels[0]["network"].partition(",")[0],
            )
        )
    return table(HEAD, lines)
