"""The presets as a page: `docs/presets.md`, which a test compares.

python -m launch.presets > docs/presets.md
"""

from compgen_jax.papers.preset import Preset
from compgen_jax.papers.presets import PAPERS

HEAD = """# Presets

`--config=launch/config.py:NAME`; `--config.KEY=VALUE` changes a field. Times are of all seeds on 2
CPU cores, unless they say otherwise; results are means over seeds with 95% intervals. This page is
printed by `python -m launch.presets`."""
COLUMNS = ("preset", "command", "time on 2 cores", "result")


def table(papers: dict[str, dict[str, Preset]]) -> str:
    """A markdown table of every paper's presets, under the paper's name."""
    parts = []
    for paper, presets in papers.items():
        lines = [COLUMNS, ["---"] * len(COLUMNS)]
        lines += [
            (f"`{name}`", f"`{preset.command}`", preset.takes, preset.result)
            for name, preset in presets.items()
        ]
        rows = (f"| {' | '.join(line)} |" for line in lines)
        parts.append("\n".join([f"## {paper}", "", *rows]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(HEAD, table(PAPERS), sep="\n\n")
