"""The explorer: one page, that opens from disk and asks nothing of a network, of finished runs."""

import base64
import json
import re
from pathlib import Path

import jinja2
import numpy as np
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from compgen_jax.claims import BASE
from compgen_jax.runs import directory
from compgen_jax.statistics import LEVEL, in_range
from compgen_jax.tasks import task as tasks

from .. import plotting
from .payload import payload

HERE = Path(__file__).parent
# columns of claims.json that the page shows
SHOWN = ("claim", "case", "statement", "figure", "verdict", "reason", "seeds",
         "conditions", "notes", "runs")  # fmt: skip
MODULES = ("main", "controls", "guess", "views", "rules", "layers", "live", "verdicts", "data",
           "numbers", "pictures", "network", "arrays")  # fmt: skip


def write(runs: dict, path, verdicts=(), seeds=(), about=()) -> Path:
    """Writes the explorer of finished runs, by name, and returns its path.

    Args:
      runs: `Run`s; the first is shown first.
      path: of the page, which appears atomically.
      verdicts: rows of claims.json.
      seeds: those to show, by default all, 8 at most.
      about: a dict, by a run's name a sentence on it.

    Raises RunError for a seed that a run lacks, and as `Run` explains.
    """
    rows = _shown(verdicts)
    content = payload(runs, len(str(rows)), seeds)
    for network in content["networks"]:
        network["about"] = dict(about).get(network["name"], "")
    text_of = lambda module: base64.b64encode((HERE / f"{module}.js").read_bytes()).decode()
    # a module's text as an address, under which others in the page import it
    urls = {name: f"data:text/javascript;base64,{text_of(name)}" for name in MODULES}
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string((HERE / "page.html.jinja").read_text())
    page = template.render(
        names=list(runs),
        css=Markup((HERE / "style.css").read_text()),
        stills=[_still(run) for run in runs.values()],
        payload=_as_json(content),
        importmap=_as_json({"imports": urls}),
        rows=_as_json(rows),
        percent=round(100 * LEVEL),
    )
    directory.write_text(Path(path), page)
    return Path(path)


def with_verdicts(page: str, verdicts) -> str:
    """The text of a page whose verdicts are those of rows of claims.json, on its networks."""
    element = r'(?<=<script type="application/json" id="%s">).*?(?=</script>)'
    networks = json.loads(re.search(element % "payload", page)[0])["networks"]
    rows = _as_json(_shown(on(verdicts, [network["name"] for network in networks])))
    return re.sub(element % "rows", lambda _: rows, page)


def on(verdicts, names) -> list[dict]:
    """The rows of claims.json, at the base, that judge one of these runs."""
    return [row for row in verdicts if row["setting"] == BASE and {*row["runs"]} & {*names}]


def _shown(verdicts) -> list[dict]:
    """The rows as the page has them; some are of a version that did not cut the intervals of
    shares."""
    cut = lambda notes: {name: in_range(name, number) for name, number in notes.items()}
    rows = [row | {"notes": cut(row["notes"])} if "notes" in row else row for row in verdicts]
    return [{name: row[name] for name in SHOWN if name in row} for row in rows]


def _as_json(value) -> Markup:
    """JSON for a script element; NaN is null."""
    return htmlsafe_json_dumps(directory.clean(value), separators=(",", ":"))


def _still(run) -> dict:
    """The picture and the sentence of a network for readers without JavaScript: the error at every
    cell, and what is asked and drawn at the held-out cell with the largest."""
    cells = run.cells
    errors_B = cells.scores[cells.error].mean(axis=0)
    regions = {"in": cells.held_out, "outside": ~cells.held_out}
    means = [
        f"{errors_B[mask].mean():.3g} on combinations {name} the held-out region"
        for name, mask in regions.items()
        if mask.any()
    ]
    chosen = int(np.argmax(np.where(cells.held_out, errors_B, -1)))
    where = tasks.in_words(run.task.factors, cells.factors[chosen])
    images = [cells.truths[chosen], *cells.predictions[:4, chosen]]
    figure = plotting.new_figure(6.75, 1.7)
    names = ["asked", *(f"seed {seed}" for seed in run.seeds[:4])]
    for axis, image, name in zip(figure.subplots(1, len(images), squeeze=False)[0], images, names,
                                 strict=True):  # fmt: skip
        if plotting.is_image(image.shape):
            shown = image if image.ndim == 2 else np.clip(image, 0, 1)
            plotting.show_signal(axis, shown, float(cells.truths.max()))
            if run.task.origin == "upper":
                axis.invert_yaxis()
        else:
            axis.plot(np.ravel(image))
        axis.set_title(name)
    png = base64.b64encode(plotting.as_file(figure, "png", dpi=110)).decode()
    sentence = f"{run.name} at {where}. The mean {cells.error} is {' and '.join(means)}."
    return {"png": png, "sentence": sentence}
