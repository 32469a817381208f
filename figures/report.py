"""RESULTS.md: the numbers and verdicts in words."""


def render(scale: str, claims: list, summaries: dict) -> str:
    lines = [
        f"# Results at {scale} scale",
        "",
        "Means over seeds with 95% bootstrap intervals, computed by `figures.make` from the runs "
        "in `trained/`.",
        "",
        "## Errors and baselines",
        "",
        "MSE over the image, divided by the MSE of a blank image; *best constant* and *nearest "
        "seen* (the true image of the nearest seen cell) are trivial baselines. Exact accuracy: "
        "the extreme pixel is the requested one; ±1: within one pixel on both axes.",
        "",
        "| code | region | MSE / blank | best constant | nearest seen | exact | ±1 pixel |",
        "|---|---|---|---|---|---|---|",
    ]
    for code, summary in summaries.items():
        lines += [_error_row(code, region, summary["mean"]) for region in ("id", "ood")]
    lines += ["", "## Claims", ""]
    lines += [
        "| claim | code | measured | 95% interval | seeds | verdict |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c['claim']} | {c['code']} | {_number(c['measured'])} | {_interval(c['ci95'])} "
        f"| {len(c['seeds'])} | **{c['verdict']}** |"
        for c in claims
    ]
    criteria = {c["claim"]: c["criterion"] for c in reversed(claims)}
    lines += ["", "Criteria, fixed beforehand (the first quantity is the one measured above):", ""]
    lines += [f"- {claim}: {criteria[claim]}" for claim in sorted(criteria)]
    lines += ["", "Details:", ""]
    for entry in claims:
        details = "; ".join(
            f"{name.replace('_', ' ')} {_number(number['value'])} {_interval(number['ci95'])}"
            for name, number in entry["details"].items()
        )
        lines.append(f"- {entry['claim']}, {entry['code']}: {details}")
    return "\n".join(lines) + "\n"


def _error_row(code: str, region: str, mean: dict) -> str:
    blank = mean[f"{region}.blank_mse"]["value"]

    def relative(name):
        number = mean.get(f"{region}.{name}")
        return "–" if number is None else _number(number["value"] / blank)

    accuracies = [mean[f"{region}.{name}"] for name in ("exact_accuracy", "position_accuracy")]
    shown = [f"{_number(a['value'])} {_interval(a['ci95'])}" for a in accuracies]
    return (
        f"| {code} | {region.upper()} | {relative('mse')} | {relative('best_constant_mse')} "
        f"| {relative('nearest_seen_mse')} | {shown[0]} | {shown[1]} |"
    )


def _number(value) -> str:
    return "–" if value is None or value != value else f"{value:.3g}"


def _interval(ends) -> str:
    return f"[{_number(ends[0])}, {_number(ends[1])}]"
