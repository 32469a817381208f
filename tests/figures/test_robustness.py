"""The picture of claims at settings."""

import numpy as np

from figures import robustness


def row(claim, setting, verdict="reproduced", reason=""):
    return {"claim": claim, "case": "bump", "statement": f"{claim} holds", "setting": setting,
            "verdict": verdict, "reason": reason}  # fmt: skip


def test_cells_show_verdicts_and_the_share_of_trained_settings(drawn):
    rows = [
        row("X1", "base"), row("X1", "upright"), row("X1", "width x2", "contradicted"),
        row("X1", "corner", "inconclusive", "not trained: 0.5"),
        row("X2", "base", "inconclusive"), row("X2", "corner", "inconclusive"),
        row("X3", "base"),  # was asked at no setting
    ]  # fmt: skip
    (axis,) = drawn(robustness.draw, rows).axes
    columns = [label.get_text() for label in axis.get_xticklabels()]
    assert columns == ["base", "upright", "width x2", "corner"]
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["X1 bump: X1 holds", "X2 bump: X2 holds"]
    texts = {tuple(np.round(text.get_position(), 2)): text.get_text() for text in axis.texts}
    assert [texts[column, 0] for column in range(4)] == ["✓", "✓", "✗", "·"]
    assert (0, 1) in texts and (1, 1) not in texts  # not asked at that setting
    assert [texts[3.7, at] for at in (0, 1)] == ["1 of 2", "1 of 1"]
    assert len(axis.patches) == len(rows) - 1
