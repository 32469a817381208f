"""Claims at every setting of their base networks, as a picture."""

import textwrap

from compgen_jax import claims
from compgen_jax.claims import BASE, CONTRADICTED, FRESH, INCONCLUSIVE, REPRODUCED

from . import plotting
from .figure import figure

NOT_TRAINED = "did not learn"
COLORS = {REPRODUCED: "#7fbf9f", CONTRADICTED: "#e0795b", INCONCLUSIVE: "#f0e2a8"}
COLORS[NOT_TRAINED] = "#d9d9d9"
SYMBOLS = {REPRODUCED: "✓", CONTRADICTED: "✗", INCONCLUSIVE: "–", NOT_TRAINED: "·"}
LETTERS = 54  # of a claim's sentence in a line


@figure("robustness", runs=(), scale="quick", by_default=False, of_settings=True)
def draw(rows):
    """Claims at every setting of their base networks: one setting at a time is changed in what the
    papers leave open. The first column is the base, whatever its settings say. An empty place is a
    claim whose networks lack the setting. Right: at how many of the settings whose networks learned
    the verdict is that of the base. Networks of four seeds; bumps on a grid of 16, sprites of 32
    pixels, students of 8 modules."""
    rows = [row for row in rows if row["setting"] != FRESH]
    asked = {_key(row) for row in rows if row["setting"] != BASE}
    rows = [claims.at_base(row) for row in rows if _key(row) in asked]
    sentences = {_key(row): row["statement"] for row in rows if row["setting"] == BASE}
    keys = list(sentences)
    settings = list(dict.fromkeys([BASE, *(row["setting"] for row in rows)]))
    found = {}
    for row in rows:
        trained = not row["reason"].startswith(claims.NOT_TRAINED)
        found[_key(row), row["setting"]] = row["verdict"] if trained else NOT_TRAINED
    drawn = plotting.new_figure(plotting.WIDTH, 2.0 + 0.25 * len(keys))
    axis = drawn.subplots()
    for (key, setting), outcome in found.items():
        place = settings.index(setting), keys.index(key)
        corner = place[0] - 0.47, place[1] - 0.47
        axis.add_patch(plotting.plt.Rectangle(corner, 0.94, 0.94, color=COLORS[outcome], lw=0))
        axis.text(*place, SYMBOLS[outcome], ha="center", va="center", fontsize=plotting.SMALL)
    kept = []
    for row, key in enumerate(keys):
        text = _share(found, key, settings)
        kept.append(len(set(text.split(" of "))) == 1)
        axis.text(len(settings) - 0.3, row, text, va="center", fontsize=plotting.SMALL)
    axis.text(len(settings) - 0.3, -0.75, "as at\nthe base", va="bottom", fontsize=plotting.SMALL)
    axis.set_xticks(range(len(settings)), settings, rotation=90)
    lines = [f"{' '.join(key).strip()}: {sentences[key]}" for key in keys]
    lines = ["\n".join(textwrap.wrap(line, LETTERS, max_lines=2, placeholder=" …"))
             for line in lines]  # fmt: skip
    axis.set_yticks(range(len(keys)), lines)
    axis.set(xlim=(-0.6, len(settings) + 1.6), ylim=(len(keys) - 0.5, -0.5))
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.axvline(0.5, color="0.3", linewidth=0.8)
    for outcome, color in COLORS.items():
        axis.plot([], [], "s", color=color, markersize=6, label=f"{SYMBOLS[outcome]} {outcome}")
    plotting.legend_below(drawn)
    title = f"{sum(kept)} of {len(keys)} verdicts are the same wherever the networks learned"
    drawn.suptitle(title, x=0.01, ha="left")
    return drawn


def _key(row: dict) -> tuple:
    return row["claim"], row["case"]


def _share(outcomes: dict, key: tuple, settings: list[str]) -> str:
    """'12 of 15' settings where networks learned, which give the verdict of the base."""
    at = [outcomes.get((key, setting)) for setting in settings if setting != BASE]
    trained = [outcome for outcome in at if outcome not in (None, NOT_TRAINED)]
    return f"{trained.count(outcomes[key, BASE])} of {len(trained)}"
