"""Claims at every setting of their base networks, as a picture."""

import re
import textwrap

from compgen_jax import claims
from compgen_jax.claims import BASE, CONTRADICTED, FRESH, INCONCLUSIVE, REPRODUCED

from . import plotting
from .figure import figure

NOT_TRAINED, NO_BREAK = "did not learn", "\N{NO-BREAK SPACE}"
COLORS = {REPRODUCED: "#a6dba0", CONTRADICTED: "#c2a5cf", INCONCLUSIVE: "#f0e2a8"}
COLORS[NOT_TRAINED] = "#d9d9d9"
SYMBOLS = {REPRODUCED: "✓", CONTRADICTED: "✗", INCONCLUSIVE: "–", NOT_TRAINED: "·"}
CELL, SHARE, LINE, LETTER = 0.19, 0.5, 0.12, 0.052  # inches


@figure("robustness", runs=(), scale="quick", by_default=False, of_settings=True)
def draw(rows):
    """Most verdicts stay the same whatever is changed in what the papers leave open. Rows: claims.
    Columns: one setting that is changed alone around a claim's base networks; empty where these
    lack it. Right: at how many of the settings whose networks learned the verdict is that of the
    base. Networks of four seeds; bumps on a grid of 16, sprites of 32 pixels, students of 8
    modules."""
    rows, asked = [row for row in rows if row["setting"] != FRESH], {}
    for row in rows:
        if row["setting"] != BASE:
            asked[_key(row)] = (*asked.get(_key(row), ()), row["setting"])
    rows = [row for row in claims.with_settings(rows) if _key(row) in asked]
    sentences = {_key(row): row["statement"] for row in rows if row["setting"] == BASE}
    shares = {_key(row): row["settings"] for row in rows if row["setting"] == BASE}
    outcomes = {}
    for row in map(claims.at_base, rows):
        trained = not row["reason"].startswith(claims.NOT_TRAINED)
        outcomes[_key(row), row["setting"]] = row["verdict"] if trained else NOT_TRAINED
    blocks = {}  # claims that were asked at the same settings, or at some of these
    for key in sorted(sentences, key=lambda key: -len(asked[key])):
        among = (settings for settings in blocks if {*asked[key]} <= {*settings})
        blocks.setdefault(next(among, asked[key]), []).append(key)
    drawn = plotting.new_figure(plotting.WIDTH, 1)
    axis = plotting.axis_at(drawn, 0, 0, plotting.WIDTH, 1)
    kept = sum(one["agree"] == one["trained"] for one in shares.values())
    title = f"{kept} of {len(shares)} verdicts are the same at every setting where networks learned"
    axis.text(0.05, 0.12, title, va="center", fontsize=plotting.STYLE["figure.titlesize"])
    y = 0.25
    for settings, keys in blocks.items():
        y, places = _write_settings(axis, y, settings)
        letters = int((places[BASE] - 0.23) / LETTER)
        for key in keys:
            name = " ".join(key).strip() if key[1] not in sentences[key] else key[0]
            lines = textwrap.wrap(f"{sentences[key]} ({name.replace(' ', NO_BREAK)})", letters)
            height = LINE * max(len(lines), 1.4) + 0.06
            write = {"y": y + height / 2, "va": "center", "fontsize": plotting.SMALL}
            axis.text(0.05, s="\n".join(lines), **write)
            for setting, x in places.items():
                if outcome := outcomes.get((key, setting)):
                    axis.plot(x, y + height / 2, "s", color=COLORS[outcome], markersize=12)
                    axis.text(x, s=SYMBOLS[outcome], ha="center", **write)
            words = "{agree} of {trained}".format(**shares[key])
            axis.text(plotting.WIDTH - 0.05, s=words, ha="right", **write)
            y += height
    for outcome, color in COLORS.items():
        axis.plot([], [], "s", color=color, markersize=6, label=f"{SYMBOLS[outcome]} {outcome}")
    axis.legend(loc="lower center", ncols=4, **plotting.LEGEND)
    drawn.set_figheight(y + 0.35)
    axis.set(xlim=(0, plotting.WIDTH), ylim=(y + 0.35, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    return drawn


def _key(row: dict) -> tuple:
    return row["claim"], row["case"]


def _write_settings(axis, y: float, settings) -> tuple[float, dict[str, float]]:
    """Names settings below y, those of one quantity together. Returns where the rows begin, and the
    middle of each setting's column."""
    groups = {}
    for setting in settings:
        parts = re.fullmatch(r"(.+?)(?: =)? (x[\d/.]+|\d+)", setting)
        name, value = parts.groups() if parts else (setting, "")
        groups.setdefault(name, {})[setting] = re.sub(r"^x", "×", value)
    letters = {name: max(len(name) // 3, *map(len, name.split())) for name in groups}
    widths = {name: max(1.15 * CELL * len(of), LETTER * letters[name] + 0.05)
              for name, of in groups.items()}  # fmt: skip
    left = plotting.WIDTH - SHARE - sum(widths.values())
    lines = {name: textwrap.wrap(name, letters[name]) for name in groups}
    y += LINE * (max(map(len, lines.values())) + 2)
    style = {"va": "bottom", "fontsize": plotting.SMALL}
    axis.text(left - CELL, y, "base", ha="center", **style)
    axis.text(plotting.WIDTH - 0.05, y, "as at\nthe base", ha="right", **style)
    places = {BASE: left - CELL}
    for name, of in groups.items():
        step = widths[name] / len(of)
        above = LINE * any(of.values())
        axis.text(left + widths[name] / 2, y - above, "\n".join(lines[name]), ha="center", **style)
        for setting, value in of.items():
            places[setting] = left + step / 2
            axis.text(places[setting], y, value, ha="center", **style)
            left += step
    return y + 0.02, places
