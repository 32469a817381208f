"""The explorer: one page, that opens from disk and asks nothing of a network, of finished runs."""

import base64
import io
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup

from compgen_jax.runs import directory
from compgen_jax.statistics import LEVEL
from compgen_jax.tasks import task as tasks

from .. import plotting
from .payload import payload

HERE = Path(__file__).parent
# columns of claims.json that the page shows
SHOWN = ("claim", "case", "statement", "figure", "verdict", "reason", "seeds", "conditions",
         "notes", "runs")  # fmt: skip
MODULES = ("main", "controls", "views", "rules", "layers", "live", "verdicts", "data", "numbers",
           "pictures", "network", "arrays")  # fmt: skip


def write(runs: dict, path, verdicts=(), seeds=()) -> Path:
    """Writes the explorer of finished runs, by name, and returns its path.

    Args:
      runs: `Run`s; the first is shown first.
      path: of the page, which appears atomically.
      verdicts: rows of claims.json.
      seeds: those to show, by default all, 8 at most.

    Raises RunError for a seed that a run lacks, and as `Run` explains.
    """
    verdicts = [{name: row[name] for name in SHOWN if name in row} for row in verdicts]
    content = payload(runs, verdicts, seeds)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # in their order
    template = environment.from_string((HERE / "page.html.jinja").read_text())
    page = template.render(
        names=list(runs),
        css=Markup((HERE / "style.css").read_text()),
        stills=[_still(run) for run in runs.values()],
        payload=directory.clean(content),
        importmap={"imports": {name: _as_url(name) for name in MODULES}},
        verdicts=verdicts,
        percent=round(100 * LEVEL),
    )
    directory.write_text(Path(path), page)
    return Path(path)


def _as_url(module: str) -> str:
    """A module's text as an address, under which others in the page import it."""
    text = (HERE / f"{module}.js").read_bytes()
    return f"data:text/javascript;base64,{base64.b64encode(text).decode()}"


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
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    plotting.close(figure)
    sentence = f"{run.name} at {where}. The mean {cells.error} is {' and '.join(means)}."
    return {"png": base64.b64encode(content.getvalue()).decode(), "sentence": sentence}
