"""The figures of "Compositional Generalization via Forced Rendering of Disentangled Latents", and
which networks each of them shows."""

from functools import partial

from compgen_jax.papers.forced_rendering import runs as networks
from compgen_jax.papers.forced_rendering.runs import BOTH, EPOCHS, HOLDOUT_MAP, SCALING, having
from figures.forced_rendering import (
    codes,
    controls,
    depth,
    embeddings,
    encoders,
    fig1,
    fig9,
    holdout,
    layers,
    lowrank,
    mechanism,
    pixels,
    scaling,
    stripes,
    three_factors,
    units,
    verdicts,
)
from figures.paper import Figure, Paper


def _volumes(code: str, model: str) -> Figure:
    return Figure(
        partial(layers.draw_volumes, code=code, model=model),
        having(group="bumps", code=code, model=model),
    )


def _is_control_or_base(role) -> bool:
    shown = having(group="control", control=tuple(controls.TITLES))
    return shown(role) or having(**(BASE | {"code": "bump"}))(role)


def _is_of_layers(role) -> bool:
    """Of every depth, and what the claims compare their layers with."""
    return of_every_depth(role) or having(control=("random", "random_ramp"))(role)


def _is_of_the_papers_epochs(role) -> bool:
    return having(group="paper_epochs")(role) or having(**BASE, code="bump")(role)


BASE = {"group": "bumps", "model": "conv", "base": True}
of_both = having(**BASE, code=BOTH)
of_every_depth = having(group="bumps", model="conv", code=BOTH)
of_low_rank, of_stripes = having(group="lowrank"), having(group="stripes")

FIGURES = {
    "fig1b": Figure(fig1.draw_bump, having(**BASE, code="bump")),
    "fig1": Figure(fig1.draw, of_both),
    "codes": Figure(codes.draw, having(**BASE)),
    "fig1d": Figure(mechanism.draw_superposition, of_both),
    "fig1e": Figure(mechanism.draw_kernels, of_both),
    "fig2": Figure(layers.draw_layers, _is_of_layers),
    "fig8": Figure(mechanism.draw_similarities, of_both),
    "fig10": Figure(depth.draw, of_every_depth),
    "fig11": _volumes("bump", "conv"),
    "fig12": _volumes("ramp", "conv"),
    "fig13": _volumes("bump", "mlp"),
    "fig14": _volumes("ramp", "mlp"),
    "ranks": Figure(layers.draw_ranks, of_every_depth),
    "fig3": Figure(lowrank.draw_low_rank, of_low_rank),
    "fig6": Figure(embeddings.draw_embeddings, of_low_rank),
    "fig4": Figure(stripes.draw_stripes, of_stripes),
    "fig7": Figure(stripes.draw_bumps, of_stripes),
    "additive": Figure(
        stripes.draw_additive,
        having(group=("stripes", "stripes_alone"), bumps=(0, None)),
        scale="paper",
    ),
    "fig15": Figure(units.draw_tuning, of_stripes),
    "fig1_epochs": Figure(fig1.draw_epochs, _is_of_the_papers_epochs, scale="paper"),
    "fig1_authors": Figure(fig1.draw, having(group="authors"), scale="paper"),
    "controls": Figure(controls.draw, _is_control_or_base),
    "three_factors": Figure(three_factors.draw, having(group="three_factors"), asked=True),
    "fig9": Figure(fig9.draw, having(group="rotation")),
    "encoders": Figure(encoders.draw, having(group="encoder"), asked=True),
    "pixels": Figure(pixels.draw, having(group="pixels"), asked=True),
    "pixels_begun": Figure(pixels.draw_begun, having(group="begun"), scale="paper", asked=True),
    "fig4c": Figure(scaling.draw_thresholds, sweep=SCALING),
    "exponents": Figure(scaling.draw_exponents, sweep=SCALING),
    "fig4c_epochs": Figure(scaling.draw_thresholds, sweep=EPOCHS, scale="paper"),
    "holdout_map": Figure(holdout.draw_holdout_map, sweep=HOLDOUT_MAP),
}

PAPER = Paper(
    title="Forced rendering",
    letters="CK",
    figures=FIGURES,
    networks=networks.networks,
    sweeps=networks.sweeps,
    claims=verdicts.all_claims,
    note=verdicts.NOTE,
    runs=verdicts.runs_table,
    conclude=verdicts.conclude,
)
