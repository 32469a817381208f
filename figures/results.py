"""Takes the results of a finished `figures.make` into the documentation.

    python -m figures.results --workdir=runs/quick

Copies RESULTS.md, claims.json and the pictures to docs/results/SCALE, and writes the README's table
of verdicts from the quick ones.
"""

import json
import re
import shutil
from pathlib import Path

from compgen_jax.claims.verdicts import READINGS
from compgen_jax.config import ConfigError
from figures import report
from launch import cli

ROOT = Path(__file__).parents[1]
WORKDIR = cli.define_workdir()
MARKS = "<!-- verdicts: python -m figures.results -->", "<!-- end of verdicts -->"
SYMBOLS = {"reproduced": "✓ reproduced", "contradicted": "✗ contradicted", "inconclusive": "–"}


def table(claims: list[dict]) -> list[str]:
    """The README's: a row for each claim, a verdict for each reading."""
    lines = ["| claim | code | statement | as stated | stricter |", "|---|---|---|---|---|"]
    for row in claims:
        statement = re.sub(r"^with the \w+ code, ", "", row["statement"])
        shown = " | ".join(_verdict(row[reading]) for reading in READINGS)
        lines.append(f"| {row['claim']} | {row['code']} | {statement} | {shown} |")
    return lines


def _verdict(reading: dict) -> str:
    return f"{SYMBOLS[reading['verdict']]} {reading['reason'].partition(':')[0]}".rstrip()


def with_table(page: str, claims: list[dict]) -> str:
    """The page with the table between its two marks."""
    return report.between(page, MARKS, table(claims))


def main():
    workdir = Path(cli.require(WORKDIR))
    if not (workdir / "claims.json").exists():
        raise ConfigError(f"--workdir={workdir}: holds no claims.json; figures.make writes it")
    scale = (workdir / "scale").read_text().strip()
    target = ROOT / "docs" / "results" / scale
    (target / "figures").mkdir(parents=True, exist_ok=True)
    for name in ("RESULTS.md", "claims.json"):
        shutil.copy(workdir / name, target / name)
    for picture in (workdir / "figures").glob("*.png"):
        shutil.copy(picture, target / "figures" / picture.name)
    if scale == "quick":
        page = ROOT / "README.md"
        claims = json.loads((target / "claims.json").read_text())
        page.write_text(with_table(page.read_text(), claims))
    print(f"wrote {target.relative_to(ROOT)}")


if __name__ == "__main__":
    cli.run(main)
