"""The claims of S1, S2b and S4 once more, between the scales: 16 modules, widths to 512.

A draw has a teacher, a split and a training seed of its own (`runs.middle`). So intervals are over
teachers and splits as well as seeds.
"""

from dataclasses import replace

from compgen_jax.claims import Claim
from compgen_jax.papers.scale import codes, composing, decoding, runs

WIDEST = "middle_seen_{}_width_512"  # with so many sets seen
SIZE = "middle scale"


def students(runs_by_name, **fields) -> list:
    return list(runs.of_draws(runs_by_name).values())


def _draws(name: str):
    """The run of a claim: its draws, None where some are missing."""
    return lambda runs_by_name, **fields: runs.of_draws(runs_by_name).get(name.format(**fields))


def _of_the_middle(claim: Claim, each=(), **named) -> Claim:
    code = claim.code
    if callable(code):
        titled = lambda e: f"{code(e)} ({SIZE})"
    else:
        titled = SIZE if code == "{code}" else f"{code} ({SIZE})"
    return replace(claim, code=titled, figure="scale_middle", each=dict(each), runs=named)


CLAIMS = (
    _of_the_middle(
        composing.MORE_SETS_HELP,
        few=_draws(WIDEST.format(60)),
        many=_draws(WIDEST.format(522)),
    ),
    *(
        _of_the_middle(
            claim,
            {"support": claim.each["support"]},
            random=_draws(WIDEST.format(522)),
            student=_draws(WIDEST.format(522) + "_{support}"),
        )
        for claim in (codes.SUPPORT_MATTERS, codes.COVERING_IS_ENOUGH)
    ),
    *(
        _of_the_middle(claim, students=students)
        for claim in (composing.WIDTH_HELPS, *decoding.CLAIMS)
    ),
)
