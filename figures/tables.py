"""Tables in Markdown: any, and one of RESULTS.md that several papers have."""

from compgen_jax.metrics import text


def table(head, rows) -> list[str]:
    """The lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


# title -> score; errors are over a blank image's
OF_IMAGES = {
    "rendered ID": "id.rendered",
    "OOD": "ood.rendered",
    "interpolated OOD": "ood.interpolator_rendered",
    "by a wide network": "ood.wide_network_rendered",
    "exact ID": "id.exact_accuracy",
    "exact OOD": "ood.exact_accuracy",
    "±1 pixel OOD": "ood.position_accuracy",
    "MSE ID": "id.mse",
    "MSE OOD": "ood.mse",
    "best constant OOD": "ood.best_constant_mse",
    "nearest seen OOD": "ood.nearest_seen_mse",
}
WITH_INTERVAL = "ood.rendered", "ood.exact_accuracy"


def errors_of_images(summaries: dict[str, dict]) -> list[str]:
    """Lines on runs that draw images: shares rendered, accuracies, errors beside trivial
    predictors."""
    rows = []
    for name, summary in summaries.items():
        mean, cells = summary["mean"], []
        for score in OF_IMAGES.values():
            number, cell = mean.get(score), text.UNKNOWN
            if number and score in WITH_INTERVAL:
                cell = text.with_interval(number)
            elif number:
                is_error = score.endswith("mse")
                blank = mean[f"{score.partition('.')[0]}.blank_mse"]["value"] if is_error else 1
                cell = text.number(number["value"] / blank)
            cells.append(cell)
        rows.append((name, *cells))
    return rows and [
        "Rendered: the share of images that show what is asked, at any level (squared correlation "
        "at least .75, gain between .5 and 2, and more like the asked image than like that of the "
        "nearest ID cell). Interpolated: the same of a kernel ridge regression on the codes and "
        "images that a seed was shown; by a wide network: with the kernel of a network that learns "
        "no features. Exact accuracy: the extreme pixel is the requested one; ±1: within one pixel "
        "on both axes. For a turned digit, exact means the digit, within 5 degrees, and an error "
        "below a twentieth of a blank image's. MSE over the image, divided by that of a blank "
        "image; *best constant* and *nearest seen* (the true image of the nearest ID cell) are "
        "trivial predictors.",
        "",
        *table(("network", *OF_IMAGES), rows),
    ]
