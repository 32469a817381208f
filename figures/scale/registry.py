"""The figures of "Scale leads to compositional generalization", and which networks each shows."""

from compgen_jax.papers.scale import runs as networks
from compgen_jax.papers.scale.runs import having, in_bridge
from figures.paper import Figure, Paper
from figures.scale import figures, verdicts


def _of(*groups):
    return lambda role: any(having(group)(role) for group in groups)


FIGURES = {
    "scale1": Figure(figures.draw_scale, _of("seen", "needed"), asked=True),
    "scale2": Figure(figures.draw_codes_and_supports, _of("seen", "code", "support"), asked=True),
    "scale3": Figure(figures.draw_neurons, _of("seen", "modules"), asked=True),
    "scale4": Figure(figures.draw_decodability, _of("seen"), asked=True),
    "bridge": Figure(figures.draw_bridge, in_bridge, asked=True),
}

PAPER = Paper(
    title="Scale",
    letters="S",
    figures=FIGURES,
    networks=networks.networks,
    sweeps=lambda scale: {},
    claims=verdicts.all_claims,
    note=verdicts.NOTE,
    runs=verdicts.runs_table,
)
