"""Tables in Markdown: any, and one of RESULTS.md that several papers have."""

from compgen_jax.metrics import text


def table(head, rows) -> list[str]:
    """The lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def errors_of_images(summaries: dict[str, dict]) -> list[str]:
    """Lines on runs that draw images: shares rendered, errors by region beside trivial predictors,
    accuracies."""
    if not summaries:
        return []
    return [
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
        *(
            _error_line(name, region, summary["mean"])
            for name, summary in summaries.items()
            for region in ("id", "ood")
        ),
    ]


def _error_line(name: str, region: str, mean: dict) -> str:
    blank = mean[f"{region}.blank_mse"]["value"]

    def relative(score):
        number = mean.get(f"{region}.{score}", {"value": None})["value"]
        if score == "nearest_seen_mse" and region == "id":
            number = None  # the nearest ID cell of an ID cell is the cell itself
        return text.number(None if number is None else number / blank)

    def share(score):
        number = mean.get(f"{region}.{score}")
        return text.with_interval(number) if number else text.UNKNOWN

    errors = map(relative, ("mse", "best_constant_mse", "nearest_seen_mse"))
    rendered = map(share, ("rendered", "interpolator_rendered", "wide_network_rendered"))
    accuracies = map(share, ("exact_accuracy", "position_accuracy"))
    return f"| {' | '.join((name, region.upper(), *rendered, *errors, *accuracies))} |"
