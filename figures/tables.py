"""Tables in Markdown: any, and one of RESULTS.md that several papers have."""

from compgen_jax.metrics import text


def table(head, rows) -> list[str]:
    """The lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


SHARES = "rendered", "interpolator_rendered", "wide_network_rendered"
ERRORS = "mse", "best_constant_mse", "nearest_seen_mse"
ACCURACIES = "exact_accuracy", "position_accuracy"


def errors_of_images(summaries: dict[str, dict]) -> list[str]:
    """Lines on runs that draw images: shares rendered, errors by region beside trivial predictors,
    accuracies."""
    lines = []
    for name, summary in summaries.items():
        for region in ("id", "ood"):
            cells = []
            for score in (*SHARES, *ERRORS, *ACCURACIES):
                number, cell = summary["mean"].get(f"{region}.{score}"), text.UNKNOWN
                if score not in ERRORS and number:
                    cell = text.with_interval(number)
                # the nearest ID cell of an ID cell is the cell itself
                elif number and (region, score) != ("id", "nearest_seen_mse"):
                    blank = summary["mean"][f"{region}.blank_mse"]
                    cell = text.number(number["value"] / blank["value"])
                cells.append(cell)
            lines.append(f"| {' | '.join((name, region.upper(), *cells))} |")
    return lines and [
        "Rendered: the share of images that show what is asked, at any level (squared correlation "
        "at least .75, gain between .5 and 2, and more like the asked image than like that of the "
        "nearest ID cell). By interpolation: the same of a kernel ridge regression on the codes "
        "and images that a seed was shown; by a wide network: the same with the kernel of a "
        "network that learns no features. MSE over the image, divided by the MSE of a blank "
        "image; *best constant* and *nearest seen* (the true image of the nearest ID cell) are "
        "trivial predictors. Exact accuracy: the extreme pixel is the requested one; ±1: within "
        "one pixel on both axes. For a turned digit, exact means the digit, within 5 degrees, and "
        "an error below a twentieth of a blank image's.",
        "",
        "| network | region | rendered | by interpolation | by a wide network | MSE / blank "
        "| best constant | nearest seen | exact | ±1 pixel |",
        "|---" * 10 + "|",
        *lines,
    ]
