"""Which study each claim is asked of."""

import numpy as np

from compgen_jax import claims
from figures.studies import BASE_DEPTH, Key, Study
from launch.config import CODES


def all_claims(studies: dict[Key, Study]) -> list[dict]:
    """The rows of claims.json for the studies there are, in the order of the claims."""
    found = [claim(code, conv.results) for claim in claims.FIGURE_1 for code, conv in
             _base(studies, "conv")]  # fmt: skip
    both = [(code, study) for code, study in _base(studies, "conv") if code in ("bump", "ramp")]
    for claim in (
        claims.superposes,
        claims.resembles_binary_kernel,
        claims.decays_with_depth,
        claims.distorts_volume,
    ):
        found += [claim(code, _trained(study), study.inspection) for code, study in both]
    if len(both) == 2:
        (_, bump), (_, ramp) = both
        trained = _trained(bump, ramp)
        found.append(claims.clearer_for_bump(trained, bump.inspection, ramp.inspection))
    ramps = sorted(key for key in studies if key.code == "ramp" and key.decoder == "conv")
    if len(ramps) > 1:
        shallow, deep = studies[ramps[0]], studies[ramps[-1]]
        trained = _trained(shallow, deep)
        found.append(claims.shallow_ramp_is_sharper(trained, shallow.inspection, deep.inspection))
    mlps = dict(_base(studies, "mlp"))
    for code, conv in both:
        if code in mlps:
            trained = _trained(conv, mlps[code])
            found.append(
                claims.mlp_is_opposite(code, trained, conv.inspection, mlps[code].inspection)
            )
    return sorted(found, key=lambda entry: entry["claim"])


def _base(studies, decoder: str):
    """(code, study) at the presets' depth, in the codes' order."""
    keys = [Key(code, decoder, BASE_DEPTH[decoder]) for code in CODES]
    return [(key.code, studies[key]) for key in keys if key in studies]


def _trained(*studies):
    """(T,) exact accuracy ID, of the worst network."""
    return np.min([claims.exact_id(study.results) for study in studies], axis=0)
