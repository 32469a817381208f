"""Which factors can be read off activations of yours, of any model, and does success go with it?

    compgen-jax probe --activations=FILE.npz

Writes probe.json, probe.png and probe.pdf beside the file, or into --workdir. What the file holds
is in docs/how_to/probe.md.
"""

from pathlib import Path

import numpy as np
import pandas
from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError
from compgen_jax.metrics import decodability, text
from compgen_jax.runs import directory
from compgen_jax.settings import demand

from . import probe_figure

ACTIVATIONS = flags.DEFINE_string("activations", None, "The file of activations, a .npz.")
WORKDIR = cli.define_workdir()

FOLDS = 5
NEEDED, OPTIONAL = ("factors", "held_out"), ("groups", "success", "names", "classes")
PARTS = ("id", "ood", "shuffled.id", "shuffled.ood")
TITLES = {"r2": "R2", "auc": "AUC"}


def checked(arrays: dict) -> dict:
    """{'layers': {name: (B, ...)}, 'factors', 'held_out', 'groups', 'success', 'names', 'classes'}
    of a file's arrays; None for what is optional and missing, but names are made up. ValueError for
    what `decodability.decode` could not refuse."""
    given = {name: value for name, value in arrays.items() if not name.startswith("layers.")}
    layers = {n.removeprefix("layers."): v for n, v in arrays.items() if n.startswith("layers.")}
    stacked = given.pop("layers", None)
    missing = ["layers.NAME"] if not layers and stacked is None else []
    missing += [name for name in NEEDED if name not in given]
    demand(not missing, f"lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
    unknown = [name for name in given if name not in (*NEEDED, *OPTIONAL)]
    allowed = ("layers.NAME", *NEEDED, *OPTIONAL)
    demand(not unknown, f"{', '.join(unknown)}: no such array; allowed: {', '.join(allowed)}")
    demand(not layers or stacked is None, "holds both layers and layers.NAME; give one of them")
    for name, array in arrays.items():
        is_text = name == "names" or (name == "groups" and array.dtype.kind in "US")
        demand(is_text or array.dtype.kind in "biuf", f"{name}: {array.dtype}, not real numbers")
        if name in ("held_out", "classes"):
            demand(np.isin(array, (0, 1)).all(), f"{name}: must be booleans, or 0 and 1")
            given[name] = array.astype(bool)
    if stacked is not None:
        demand(stacked.ndim > 2, f"layers {stacked.shape}: must be (L, B, D)")
        layers = {f"layer_{index:02d}": layer for index, layer in enumerate(stacked)}
    factors = given["factors"]
    demand(factors.ndim == 2, f"factors {factors.shape}: must be (B, F)")
    rows, columns = factors.shape
    names = given.get("names", np.array([f"factor_{f}" for f in range(columns)]))
    demand(names.dtype.kind == "U", "names: must be text")
    once = names.shape == (columns,) == np.unique(names).shape
    demand(once, f"names {names.shape}: must be ({columns},), another one for each factor")
    success = given.get("success", np.zeros(rows))
    demand(((success >= 0) & (success <= 1)).all(), "success: must be from 0 to 1")
    others = {"layers": layers, "names": names.tolist()}
    return dict.fromkeys(OPTIONAL) | given | others


def measure(given: dict) -> tuple[decodability.Decoded, dict]:
    """What `decodability.decode` finds, and all of it as probe.json has it. Raises ValueError."""
    held_out, groups = given["held_out"], given["groups"]
    decoded = decodability.decode(
        given["layers"], given["factors"], held_out, groups, FOLDS, classes=given["classes"]
    )
    kinds = [kind for kind in TITLES if kind in decoded.measures]
    means = {k: {part: decodability.means(decoded, part, k) for part in PARTS} for k in kinds}
    unknown = np.full((len(decoded.layers), len(given["names"]), 2), None)
    layers = {}
    for index, name in enumerate(decoded.layers):
        factors = {}
        for f, (factor, kind) in enumerate(zip(given["names"], decoded.measures, strict=True)):
            factors[factor] = {"measure": kind}
            for part in PARTS:
                ends = decoded.intervals.get(part, unknown)[index, f].tolist()
                value = float(decoded.scores[part][index, f])
                factors[factor][part] = {"value": value, "ci95": ends}
        of_kinds = {k: {part: means[k][part][index] for part in PARTS} for k in kinds}
        layers[name] = {"mean": of_kinds, "factors": factors}
        if given["success"] is not None:
            layers[name]["success"] = decodability.success_correlation(
                decoded.quality[index], given["success"], held_out, groups
            )
    groups = np.arange(len(held_out)) if groups is None else groups
    regions = {"id": ~held_out, "ood": held_out}
    report = {
        "rows": {region: int(rows.sum()) for region, rows in regions.items()},
        "groups": {region: len(np.unique(groups[rows])) for region, rows in regions.items()},
        "chosen": decoded.chosen,
        "layers": layers,
    }
    if given["success"] is not None:
        report["success"] = layers[decoded.chosen]["success"]
    return decoded, report


def table(report: dict) -> list[str]:
    """The lines that are printed."""
    chosen, number = report["chosen"], lambda measured: text.number(measured["value"])
    columns = {"ID": "id", "OOD": "ood", "shuffled": "shuffled.id"}
    by_layer = {}
    for name, layer in report["layers"].items():
        row = {
            f"{TITLES[kind]} {title}": number(mean[part])
            for kind, mean in layer["mean"].items()
            for title, part in columns.items()
        }
        if "success" in layer:
            row["success"] = number(layer["success"])
        by_layer[f"{name} *" if name == chosen else name] = row
    of_factors = {
        name: {"": TITLES[factor["measure"]]}
        | {title: text.with_interval(factor[columns[title]]) for title in ("ID", "OOD")}
        for name, factor in report["layers"][chosen]["factors"].items()
    }
    lines = [
        "mean of factors",
        *pandas.DataFrame(by_layer).T.to_string().splitlines(),
        f"* {chosen}: the earliest layer whose mean over all factors on ID rows is within "
        f"{decodability.TIED:g} of the best; 95% intervals over groups:",
        *pandas.DataFrame(of_factors).T.to_string(justify="left").splitlines(),
    ]
    if "success" in report:
        spearman = text.with_interval(report["success"])
        lines.append(f"success of held-out rows with their decodability there: Spearman {spearman}")
    return lines


def main():
    path = Path(cli.require(ACTIVATIONS))
    workdir = Path(WORKDIR.value) if WORKDIR.value else path.parent
    usable = workdir.is_dir() or not workdir.exists()
    demand(usable, f"--workdir={workdir}: is a file, not a directory")
    arrays = directory.read_npz(path, "--activations=")
    try:
        given = checked(arrays)
        decoded, report = measure(given)
    except ValueError as error:
        raise ConfigError(f"--activations={path}: {error}") from error
    pictures = probe_figure.draw(decoded, report, given["success"], given["held_out"])
    directory.write_json(workdir / "probe.json", report)
    for suffix, content in pictures.items():
        directory.write_bytes(workdir / f"probe.{suffix}", content)
    print("\n".join(table(report)))
    print(f"wrote {workdir / 'probe.json'}, probe.png and probe.pdf")


if __name__ == "__main__":
    cli.run(main)
