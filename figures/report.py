"""RESULTS.md: the numbers and verdicts in words."""

from typing import NamedTuple

from compgen_jax.analysis import text
from compgen_jax.claims.verdicts import READINGS

NOT_RUN = "What of this scale nothing is said of above, and its cost, all seeds together:"


class Part(NamedTuple):
    """What a paper says on the page: lines on its `runs`, a `note` above the verdicts, the rows of
    claims.json, and lines of `conclusions` below them."""

    title: str
    runs: list
    note: str
    claims: list
    conclusions: list


def render(scale: str, parts: list[Part], figures: list, not_run: dict) -> str:
    """The page. `not_run` has what of this scale was not trained, and what each costs."""
    names = ",".join(name.removesuffix(".png") for name in figures)
    lines = [
        f"# Results at {scale} scale",
        "",
        "Means over seeds with 95% intervals (Student's t), computed by `figures.make` from the "
        "runs in `trained/`. All of it again, with the pictures below, is made by",
        "",
        f"    python -m figures.make --scale={scale} --workdir=DIR --only={names}",
    ]
    for part in parts:
        lines += _part(part)
    if not_run:
        lines += ["", "## Not run", "", NOT_RUN, ""]
        lines += [f"- {name}: {cost}" for name, cost in not_run.items()]
    for name in figures:
        lines += ["", f"![{name}](figures/{name})"]
    return "\n".join(lines) + "\n"


def errors_of_images(summaries: dict) -> list[str]:
    """Lines on runs that draw images: errors by region beside trivial predictors, accuracies."""
    lines = [
        "MSE over the image, divided by the MSE of a blank image; *best constant* and *nearest "
        "seen* (the true image of the nearest seen cell) are trivial baselines. Exact accuracy: "
        "the extreme pixel is the requested one; ±1: within one pixel on both axes. Of a turned "
        "digit, exact: the digit, within 5 degrees, and an error below a twentieth of a blank's.",
        "",
        "| network | region | MSE / blank | best constant | nearest seen | exact | ±1 pixel |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, summary in summaries.items():
        lines += [_error_row(name, region, summary["mean"]) for region in ("id", "ood")]
    return lines if summaries else []


def _part(part: Part) -> list[str]:
    lines = ["", f"## {part.title}: errors and baselines", "", *part.runs] if part.runs else []
    lines += [
        "",
        f"## {part.title}: claims",
        "",
        part.note,
        "",
        "| claim | code | reading | condition | measured | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for entry in part.claims:
        head = entry["claim"], entry["code"]
        same = entry["as_stated"]["conditions"] == entry["stricter"]["conditions"]
        for name in READINGS[-1:] if same else READINGS:
            title = "both" if same else name.replace("_", " ")
            lines += _reading_rows(*head, title, entry[name])
            head = "", ""
    lines += ["", "What was claimed, and what else was measured:", ""]
    for entry in part.claims:
        details = "; ".join(
            f"{name} {text.with_interval(number)}" for name, number in entry["details"].items()
        )
        lines.append(f"- {entry['claim']}: {entry['statement']}. {details}.")
    return lines + part.conclusions


def _reading_rows(claim: str, code: str, title: str, reading: dict):
    verdict = f"**{reading['verdict']}**"
    verdict += f" ({reading['reason']})" if reading["reason"] else ""
    for name, number in reading["conditions"].items():
        shown = text.with_interval(number)
        yield f"| {claim} | {code} | {title} | {name} {number['must be']} | {shown} | {verdict} |"
        claim = code = title = verdict = ""


def _error_row(name: str, region: str, mean: dict) -> str:
    blank = mean[f"{region}.blank_mse"]["value"]

    def relative(score):
        number = mean.get(f"{region}.{score}", {"value": None})["value"]
        if score == "nearest_seen_mse" and region == "id":
            number = None  # a seen cell's nearest seen cell is itself
        return text.number(None if number is None else number / blank)

    names = [f"{region}.{score}" for score in ("exact_accuracy", "position_accuracy")]
    shown = [text.with_interval(mean[name]) if name in mean else text.UNKNOWN for name in names]
    return (
        f"| {name} | {region.upper()} | {relative('mse')} | {relative('best_constant_mse')} "
        f"| {relative('nearest_seen_mse')} | {shown[0]} | {shown[1]} |"
    )
