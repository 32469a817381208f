"""Which factors can be read off activations of yours, of any model, and does success go with it?

    compgen-jax probe --activations=FILE.npz

Writes probe.json beside the file, or into --workdir. What the file holds, and how to draw the
report, is in docs/how_to/probe.md.
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

ACTIVATIONS = flags.DEFINE_string("activations", None, "The file of activations, a .npz.")
WORKDIR = cli.define_workdir()

NEEDED, OPTIONAL = ("factors", "held_out"), ("groups", "success", "names", "classes")
PARTS = ("id", "ood", "shuffled.id", "shuffled.ood")
TITLES = {"r2": "R2", "auc": "AUC"}


def checked(arrays: dict) -> dict:
    """A file's arrays by name, 'layers' a dict of (B, ...); None for what is optional and missing,
    but names are made up. ValueError for what `decodability.decode` could not refuse."""
    layers, others, allowed = {}, {}, ("layers.NAME", *NEEDED, *OPTIONAL)
    for name, array in arrays.items():
        if name == "layers":
            demand(array.ndim > 2, f"layers {array.shape}: must be (L, B, D)")
            layers |= {f"layer_{k:02d}": layer for k, layer in enumerate(array)}
        elif name.startswith("layers."):
            layers[name.removeprefix("layers.")] = array
        else:
            demand(name in allowed, f"{name}: no such array; allowed: {', '.join(allowed)}")
            others[name] = array
        is_text = name == "names" or (name == "groups" and array.dtype.kind in "US")
        demand(is_text or array.dtype.kind in "biuf", f"{name}: {array.dtype}, not real numbers")
        if name in ("held_out", "classes"):
            demand(np.isin(array, (0, 1)).all(), f"{name}: must be booleans, or 0 and 1")
            others[name] = array.astype(bool)
    missing = ([] if layers else ["layers.NAME"]) + [n for n in NEEDED if n not in others]
    demand(not missing, f"lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
    factors = others["factors"]
    demand(factors.ndim == 2, f"factors {factors.shape}: must be (B, F)")
    rows, columns = factors.shape
    names = others.get("names", np.array([f"factor_{f}" for f in range(columns)]))
    distinct = names.shape == (columns,) == np.unique(names).shape
    demand(distinct, f"names {names.shape}: must be ({columns},), another one for each factor")
    success = others.get("success", np.zeros(rows))
    demand(((success >= 0) & (success <= 1)).all(), "success: must be from 0 to 1")
    names = [str(name) for name in names]
    return dict.fromkeys(OPTIONAL) | others | {"layers": layers, "names": names}


def measure(arrays: dict) -> dict:
    """What probe.json holds of `checked` arrays. Raises ValueError."""
    held_out, groups, success = (arrays[name] for name in ("held_out", "groups", "success"))
    decoded = decodability.decode(
        arrays["layers"], arrays["factors"], held_out, groups, classes=arrays["classes"]
    )

    def by_layer(factors) -> list[dict]:
        parts = [decodability.means(decoded, part, factors) for part in PARTS]
        return [dict(zip(PARTS, of_layer, strict=True)) for of_layer in zip(*parts, strict=True)]

    of_kind = {
        kind: by_layer([measure == kind for measure in decoded.measures])
        for kind in TITLES
        if kind in decoded.measures
    }
    of_factor = {name: by_layer([f]) for f, name in enumerate(arrays["names"])}
    layers = {}
    for index, name in enumerate(decoded.layers):
        factors = {
            factor: {"measure": kind} | numbers[index]
            for kind, (factor, numbers) in zip(decoded.measures, of_factor.items(), strict=True)
        }
        mean = {kind: numbers[index] for kind, numbers in of_kind.items()}
        layers[name] = {"mean": mean, "factors": factors}
        if success is not None:
            quality = decoded.quality[index]
            correlation = decodability.success_correlation(quality, success, held_out, groups)
            layers[name]["success"] = correlation
    groups = np.arange(len(held_out)) if groups is None else groups
    regions = {"id": ~held_out, "ood": held_out}
    report = {
        "rows": {region: int(mask.sum()) for region, mask in regions.items()},
        "groups": {region: len(np.unique(groups[mask])) for region, mask in regions.items()},
        "chosen": decoded.chosen,
        "layers": layers,
    }
    if success is not None:
        report["success"] = layers[decoded.chosen]["success"]
    return report


def main():
    path = Path(cli.require(ACTIVATIONS))
    workdir = Path(WORKDIR.value or path.parent)
    arrays = directory.read_npz(path, "--activations=")
    try:
        report = measure(checked(arrays))
    except ValueError as error:
        raise ConfigError(f"--activations={path}: {error}") from error
    directory.write_json(workdir / "probe.json", report)

    chosen, layers = report["chosen"], {}
    columns = {"ID": "id", "OOD": "ood", "shuffled": "shuffled.id"}
    for name, layer in report["layers"].items():
        row = {
            f"{TITLES[kind]} {title}": text.number(mean[part]["value"])
            for kind, mean in layer["mean"].items()
            for title, part in columns.items()
        }
        if "success" in layer:
            row["success"] = text.number(layer["success"]["value"])
        layers[f"{name} *" if name == chosen else name] = row
    factors = {
        name: {"": TITLES[factor["measure"]]}
        | {title: text.with_interval(factor[columns[title]]) for title in ("ID", "OOD")}
        for name, factor in report["layers"][chosen]["factors"].items()
    }
    print("mean of factors")
    print(pandas.DataFrame(layers).T.to_string())
    print(
        f"* {chosen}: the earliest layer whose mean over all factors on ID rows is within "
        f"{decodability.TIED:g} of the best; 95% intervals over groups:"
    )
    print(pandas.DataFrame(factors).T.to_string(justify="left"))
    if "success" in report:
        about = "success of held-out rows with their decodability there: Spearman"
        print(about, text.with_interval(report["success"]))
    print(f"wrote {workdir / 'probe.json'}")


if __name__ == "__main__":
    cli.run(main)
