"""Which factors can be read off activations of yours, of any model, and does success go with it?

    compgen-jax probe --activations=FILE.npz

Writes probe.json, probe.png and probe.pdf beside the file, or into --workdir. What the file holds
is in docs/how_to/probe.md.
"""

from pathlib import Path

import numpy as np
from absl import flags

from compgen_jax import cli
from compgen_jax.config import ConfigError
from compgen_jax.metrics import decodability, text
from compgen_jax.runs import directory

from . import probe_figure

ACTIVATIONS = flags.DEFINE_string("activations", None, "The file of activations, a .npz.")
WORKDIR = cli.define_workdir()

FOLDS, LEAST_GROUPS = 5, 10
NEEDED, OPTIONAL = ("factors", "held_out"), ("groups", "success", "names", "classes")
TITLES = {"r2": "R2", "auc": "AUC"}


def read(path: Path) -> dict:
    """{'layers': {name: (B, ...)}, 'factors', 'held_out', 'groups', 'success', 'names', 'classes'}
    of a file, checked; None for what is optional and missing, but names are made up. Raises
    ConfigError."""
    arrays = directory.read_npz(path, "--activations=")
    layers = {n.removeprefix("layers."): v for n, v in arrays.items() if n.startswith("layers.")}
    given = {name: value for name, value in arrays.items() if not name.startswith("layers.")}
    stacked = given.pop("layers", None)
    missing = [name for name in NEEDED if name not in given]
    if not layers and stacked is None:
        missing.insert(0, "layers.NAME")
    _require(not missing, f"lacks {', '.join(missing)}; it holds {', '.join(arrays) or 'nothing'}")
    unknown = [name for name in given if name not in (*NEEDED, *OPTIONAL)]
    allowed = ("layers.NAME", *NEEDED, *OPTIONAL)
    _require(not unknown, f"{', '.join(unknown)}: no such array; allowed: {', '.join(allowed)}")
    _require(not layers or stacked is None, "holds both layers and layers.NAME; give one of them")
    if stacked is not None:
        _require(stacked.ndim > 2 and len(stacked), f"layers {stacked.shape}: must be (L, B, D)")
        layers = {f"layer_{index:02d}": layer for index, layer in enumerate(stacked)}
    factors = _numbers("factors", given["factors"])
    _require(factors.ndim == 2 and factors.size, f"factors {factors.shape}: must be (B, F)")
    rows = len(factors)
    for name, layer in layers.items():
        _numbers(f"layers.{name}", layer)
        _require(layer.ndim > 1 and layer.size, f"layers.{name} {layer.shape}: must be (B, ...)")
        _require(len(layer) == rows, f"layers.{name} has {len(layer)} rows, factors has {rows}")
    names = given.get("names", np.array([f"factor_{f}" for f in range(factors.shape[1])]))
    _require(names.dtype.kind == "U", "names: must be text")
    names = _shaped("names", names, factors.shape[1], "factors")
    _require(len(set(names.tolist())) == len(names), "names: two factors have the same name")
    found = {"layers": layers, "factors": factors.astype(np.float64), "names": names.tolist()}
    found["held_out"] = _shaped("held_out", _marks("held_out", given["held_out"]), rows)
    classes, groups, success = (given.get(name) for name in ("classes", "groups", "success"))
    if classes is not None:
        classes = _shaped("classes", _marks("classes", classes), factors.shape[1], "factors")
    if groups is not None:
        groups = _shaped("groups", groups if groups.dtype.kind in "US" else
                         _numbers("groups", groups), rows)  # fmt: skip
    if success is not None:
        success = _shaped("success", _numbers("success", success), rows).astype(np.float64)
        _require(((success >= 0) & (success <= 1)).all(), "success: must be from 0 to 1")
    _check_split(groups, found)
    return found | {"classes": classes, "groups": groups, "success": success}


def _check_split(groups, found):
    held_out = found["held_out"]
    _require(held_out.any(), "held_out: no row is held out")
    rows = np.arange(len(held_out)) if groups is None else groups
    both = np.intersect1d(rows[held_out], rows[~held_out])
    _require(not both.size, f"group {both[:1].tolist()} has held-out rows and others")
    count = len(np.unique(rows[~held_out]))
    _require(
        count >= LEAST_GROUPS,
        f"{count} groups that are not held out (a row alone is one): at least {LEAST_GROUPS}",
    )
    seen = found["factors"][~held_out]
    varies = np.ptp(seen, axis=0) > decodability.CONSTANT * np.abs(seen).max(axis=0)
    _require(varies.any(), "factors: every one is constant over the rows that are not held out")


def _numbers(name, array):
    _require(array.dtype.kind in "biuf", f"{name}: holds {array.dtype}, not real numbers")
    finite = np.isfinite(array)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        raise _Refused(f"{name}: NaN or infinite in row {row}")
    return array


def _marks(name, array):
    _require(np.isin(_numbers(name, array), (0, 1)).all(), f"{name}: must be booleans, or 0 and 1")
    return array.astype(bool)


def _shaped(name, array, count, per="rows"):
    _require(array.shape == (count,), f"{name} {array.shape}: must be ({count},), one for each of "
             f"the {count} {per}")  # fmt: skip
    return array


class _Refused(ConfigError):
    """Of a file whose path is yet to be named."""


def _require(holds, message):
    if not holds:
        raise _Refused(message)


def measure(given: dict) -> tuple[decodability.Decoded, dict]:
    """What `decodability.decode` finds, and all of it as probe.json has it."""
    found = decodability.decode(
        given["layers"], given["factors"], given["held_out"], given["groups"], FOLDS,
        classes=given["classes"],
    )  # fmt: skip
    held_out, groups = given["held_out"], given["groups"]
    groups = np.arange(len(held_out)) if groups is None else groups
    kinds = [name for name in TITLES if name in found.measures]
    parts = ("id", "ood", "shuffled.id", "shuffled.ood")
    means = {k: {part: decodability.means(found, part, k) for part in parts} for k in kinds}
    report = {
        "rows": {"id": int((~held_out).sum()), "ood": int(held_out.sum())},
        "groups": {
            "id": len(np.unique(groups[~held_out])), "ood": len(np.unique(groups[held_out])),
        },
        "chosen": found.chosen,
        "layers": {
            name: {
                "mean": {
                    kind: {part: values[index] for part, values in means[kind].items()}
                    for kind in kinds
                },
                "factors": {
                    factor: {"measure": kind} | {part: _score(found, part, index, f)
                                                 for part in parts}
                    for f, (factor, kind) in enumerate(
                        zip(given["names"], found.measures, strict=True))
                },
            }
            for index, name in enumerate(found.layers)
        },
    }  # fmt: skip
    if given["success"] is not None:
        for name, quality_B in zip(found.layers, found.quality, strict=True):
            report["layers"][name]["success"] = decodability.success_correlation(
                quality_B, given["success"], held_out, given["groups"]
            )
        report["success"] = report["layers"][found.chosen]["success"]
    return found, report


def _score(found, part, layer, factor) -> dict:
    ends = found.intervals[part][layer, factor].tolist() if part in found.intervals else [None] * 2
    return {"value": float(found.scores[part][layer, factor]), "ci95": ends}


def table(report: dict) -> list[str]:
    """The lines that are printed."""
    chosen = report["chosen"]
    kinds = list(report["layers"][chosen]["mean"])
    width = max(14, *(len(name) + 2 for name in report["layers"]))
    columns = [f"{TITLES[kind]:>9} ID{'OOD':>9}{'shuffled':>10}" for kind in kinds]
    columns += [f"{'success':>12}"] * ("success" in report)
    lines = [f"{'mean of factors':{width}}" + "".join(columns)]
    for name, layer in report["layers"].items():
        cells = [
            f"{_number(mean['id']):>12}{_number(mean['ood']):>9}{_number(mean['shuffled.id']):>10}"
            for mean in layer["mean"].values()
        ]
        if "success" in layer:
            cells.append(f"{_number(layer['success']):>12}")
        lines.append(f"{name + ' *' * (name == chosen):{width}}" + "".join(cells))
    lines.append(
        f"* {chosen}: the earliest layer whose mean over all factors on ID rows is within "
        f"{decodability.TIED:g} of the best; 95% intervals over groups:"
    )
    factors = report["layers"][chosen]["factors"]
    width = max(14, *(len(name) for name in factors))
    lines += [
        f"{name:{width}}  {TITLES[factor['measure']]:3}  ID {_interval(factor['id']):24}"
        f"OOD {_interval(factor['ood'])}"
        for name, factor in factors.items()
    ]
    if "success" in report:
        found = _interval(report["success"])
        lines.append(f"success of held-out rows with their decodability there: Spearman {found}")
    return lines


def _number(measured) -> str:
    return _text(measured["value"])


def _text(value) -> str:
    return text.UNKNOWN if value is None or value != value else f"{value:.3f}"


def _interval(measured) -> str:
    low, high = (_text(end) for end in measured["ci95"])
    known = text.UNKNOWN not in (low, high)
    return _number(measured) + (f" [{low}, {high}]" if known else "")


def main():
    path = Path(cli.require(ACTIVATIONS))
    workdir = Path(WORKDIR.value) if WORKDIR.value else path.parent
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"--workdir={workdir}: is a file, not a directory")
    try:
        given = read(path)
    except _Refused as error:
        raise ConfigError(f"--activations={path}: {error}") from error
    found, report = measure(given)
    pictures = probe_figure.draw(found, report, given["success"], given["held_out"])
    directory.write_json(workdir / "probe.json", report)
    for suffix, content in pictures.items():
        directory.write_bytes(workdir / f"probe.{suffix}", content)
    print("\n".join(table(report)))
    print(f"wrote {workdir / 'probe.json'}, probe.png and probe.pdf")


if __name__ == "__main__":
    cli.run(main)
