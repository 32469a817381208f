"""Rows of claims.json beside each other: the same claim before and after, and at other settings."""

from collections.abc import Iterable

from compgen_jax.claims import BASE, FRESH, INCONCLUSIVE, NOT_TRAINED


def key_of(row: dict) -> tuple:
    return row["claim"], row["case"], row["scale"], row["setting"]


def merged(before: Iterable[dict], rows: list[dict]) -> list[dict]:
    """The rows, and those of other settings from before whose base is among them with the same
    bounds."""

    def bounds(row):
        return [condition["must be"] for condition in row["conditions"].values()]

    base = {key_of(row)[:3]: bounds(row) for row in rows if row["setting"] == BASE}
    keys = {key_of(row) for row in rows}
    return rows + [
        row
        for row in before
        if key_of(row) not in keys and base.get(key_of(row)[:3]) == bounds(row)
    ]


def at_settings(row: dict, rows: Iterable[dict]) -> dict[str, list[str]]:
    """The other settings of a base's claim and case at its scale, by what came out: 'agree',
    'differ' or 'untrained'. `FRESH` is among them."""
    settings = {"agree": [], "differ": [], "untrained": []}
    for other in rows:
        if key_of(other)[:3] == key_of(row)[:3] and other["setting"] != BASE:
            same = "agree" if other["verdict"] == row["verdict"] else "differ"
            trained = not other["reason"].startswith(NOT_TRAINED)
            settings[same if trained else "untrained"].append(other["setting"])
    return settings


def replications(rows: list[dict]) -> list[bool]:
    """Whether fresh seeds gave the verdict of the base, for every decided one that they judged."""
    base = {key_of(row)[:3]: row["verdict"] for row in rows if row["setting"] == BASE}
    fresh = {key_of(row)[:3]: row["verdict"] for row in rows if row["setting"] == FRESH}
    decided = [key for key in fresh if base.get(key, INCONCLUSIVE) != INCONCLUSIVE]
    return [base[key] == fresh[key] for key in decided]
