"""Activations of any network, probed: checked, and reported as numbers, text and a table."""

from dataclasses import dataclass

import numpy as np
import pandas

from compgen_jax.metrics import decodability, text
from compgen_jax.settings import demand

NEEDED, OPTIONAL = ("factors", "held_out"), ("groups", "success", "names", "classes")
PARTS = ("id", "ood", "shuffled.id", "shuffled.ood")
TITLES = {"r2": "R2", "auc": "AUC"}
COLUMNS = {"ID": "id", "OOD": "ood", "shuffled": "shuffled.id"}


@dataclass(frozen=True, repr=False)
class ProbeReport:
    """How well the factors can be read from each layer; prints as tables.

    rows, groups: their numbers by region, id and ood.  chosen: see `decodability.Decoded`.
    layers: {layer: {'mean': by measure, 'factors': by name, 'success'}}, of numbers {'value',
        'ci95'} by region.
    success: Spearman's correlation at the chosen layer, see `decodability.success_correlation`;
        None where no success is known.
    """

    rows: dict
    groups: dict
    chosen: str
    layers: dict
    success: dict | None = None

    def __repr__(self) -> str:
        layers = {}
        for name, layer in self.layers.items():
            row = {
                f"{TITLES[kind]} {title}": text.number(mean[part]["value"])
                for kind, mean in layer["mean"].items()
                for title, part in COLUMNS.items()
            }
            if "success" in layer:
                row["success"] = text.number(layer["success"]["value"])
            layers[f"{name} *" if name == self.chosen else name] = row
        factors = {
            name: {"": TITLES[factor["measure"]]}
            | {title: text.with_interval(factor[COLUMNS[title]]) for title in ("ID", "OOD")}
            for name, factor in self.layers[self.chosen]["factors"].items()
        }
        lines = [
            "mean of factors",
            pandas.DataFrame(layers).T.to_string(),
            f"* {self.chosen}: the earliest layer whose mean over all factors on ID rows is within "
            f"{decodability.TIED:g} of the best; 95% intervals over groups:",
            pandas.DataFrame(factors).T.to_string(justify="left"),
        ]
        if self.success:
            about = "success of held-out rows with their decodability there: Spearman"
            lines.append(f"{about} {text.with_interval(self.success)}")
        return "\n".join(lines)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each layer, factor and region (`shuffled.` ones are the control): the
        `measure`, r2 or auc, its `value`, and a 95% interval from `low` to `high`."""
        rows = [
            (layer, name, part, factor["measure"], factor[part]["value"], *factor[part]["ci95"])
            for layer, numbers in self.layers.items()
            for name, factor in numbers["factors"].items()
            for part in PARTS
        ]
        columns = ["layer", "factor", "region", "measure", "value", "low", "high"]
        return pandas.DataFrame(rows, columns=columns)


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


def columns_of(frame: pandas.DataFrame) -> dict[str, np.ndarray]:
    """The arrays `factors`, `names` and `classes` of a DataFrame: a column of text, or of two
    values, has labels."""
    columns, classes = [], []
    demand(frame.size, "factors: must have at least one column and row")
    for name, column in frame.items():
        demand(not column.isna().any(), f"factors: {name} has missing values")
        is_text = column.dtype.kind not in "biuf"
        values = np.asarray(column, str if is_text else np.float64)
        kinds, index = np.unique(values, return_inverse=True)
        columns.append(index if is_text else values)
        classes.append(is_text or len(kinds) == 2)
    names = np.array([str(name) for name in frame])
    return {"factors": np.stack(columns, axis=1), "names": names, "classes": np.array(classes)}


def probe(arrays: dict) -> ProbeReport:
    """The report on `checked` arrays. Raises ValueError."""
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
    return ProbeReport(
        rows={region: int(mask.sum()) for region, mask in regions.items()},
        groups={region: len(np.unique(groups[mask])) for region, mask in regions.items()},
        chosen=decoded.chosen,
        layers=layers,
        success=layers[decoded.chosen].get("success"),
    )
