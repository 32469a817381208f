"""The benchmark's table, of runs whose shares are known."""

from types import SimpleNamespace

import pytest

from compgen_jax.studies.benchmark.benchmark_presets import runs
from figures.benchmark import benchmark_tables


def run(name, ood, seen=1.0, half=0.1, **kernels):
    """A finished run with these shares and intervals of half this width."""
    config = runs("quick")[name]
    score = benchmark_tables.score_of(config)
    shares = {f"ood.{score}": ood, f"id.{config.task.make().accuracy}": seen}
    for kernel, share in kernels.items():
        shares[f"ood.{kernel}_{score}"] = share
    mean = {key: {"value": v, "ci95": [v - half, v + half]} for key, v in shares.items()}
    return SimpleNamespace(config=config, summary={"mean": mean})


def test_the_table_has_who_learnt_and_who_composes():
    shown = {
        "league_bumps_block_conv": dict(ood=0.9, seen=0.94, wide_network=0.3),
        # A mixture of the images beside a single missing angle is right as often.
        "league_rotation_random_mlp": dict(ood=0.9),
        "league_sizes_block_mlp": dict(ood=1.0, half=0, interpolator=0.99),
    }
    finished = {name: run(name, **shares) for name, shares in shown.items()}
    head, _, *rows = benchmark_tables.lines(finished | {"bump_cnn": None})
    assert head.split(" | ")[1:3] == ["bumps: x, y; block", "bumps: x, y, size; block"]
    assert rows == [
        "| conv | 0.9 † |  |  |",
        "| MLP |  | **1** | 0.9 |",
        "| *best trivial predictor* | 0 | 0.33 | 0.83 |",
        "| *interpolation, best code* | – | 0.99 | – |",
        "| *wide network, best code* | 0.3 | – | – |",
    ]
    assert benchmark_tables.lines({}) == []


@pytest.mark.parametrize("kernels", [{"interpolator": 0.999}, {"wide_network": 0.999}])
def test_no_interval_is_narrower_than_one_and_a_half_combinations(kernels):
    net = run("league_sizes_block_mlp", 1.0, half=0, **kernels)
    assert not benchmark_tables.cell(net, 300, 0.0)["composes"]
