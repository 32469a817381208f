"""docs/reference/presets.md: the page of all presets."""

from compgen_jax.papers.preset import Preset
from compgen_jax.papers.presets import PAPERS

HEAD = """# Presets

Which runs come with the package, how long do they take, and what came out?

`--config=NAME` takes a preset from any directory, `--config.KEY=VALUE` changes a field. Times are
of all seeds on 2 CPU cores, unless the row says otherwise. Results are means over seeds with 95%
intervals. `python -m figures.pages` writes this page."""
COLUMNS = ("preset", "command", "time on 2 cores", "result")


def page(papers: dict[str, dict[str, Preset]] = PAPERS) -> str:
    """The page: under the name of each paper a table of its presets."""
    parts = [HEAD]
    for paper, presets in papers.items():
        rows = [COLUMNS, ["---"] * len(COLUMNS)]
        rows += [(f"`{n}`", f"`{p.command}`", p.takes, p.result) for n, p in presets.items()]
        parts.append("\n".join([f"## {paper}", "", *(f"| {' | '.join(row)} |" for row in rows)]))
    return "\n\n".join(parts) + "\n"
