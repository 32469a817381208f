"""Which study each claim is asked of."""

import re

import numpy as np

from compgen_jax import claims
from compgen_jax.config import Config
from compgen_jax.sweeps import plan
from figures.forced_rendering.embeddings import embedding_numbers
from figures.forced_rendering.networks import BASE_DEPTH, Key
from figures.forced_rendering.scaling import settings_of
from figures.studies import Study
from launch.config import CODES


def all_claims(studies: dict, few: int, scaling=None) -> list[dict]:
    """The rows of claims.json for the studies there are, in the order of the claims; `few` is the
    number of bumps beside the stripes that should be enough, `scaling` the rows and the config of
    a sweep over numbers of images."""
    networks = {key: study for key, study in studies.items() if isinstance(key, Key)}
    named = {key: study for key, study in studies.items() if isinstance(key, str)}
    base = networks.get(Key("bump", "conv", BASE_DEPTH["conv"]))
    found = _bumps_alone(networks) + _remedies(named, base, few) + _controls(named, base)
    found += _scaling(*scaling) if scaling else []
    return sorted(found, key=lambda row: row["claim"][0] + row["claim"][1:].zfill(2))


def _bumps_alone(studies: dict[Key, Study]) -> list[dict]:
    """C1 to C7."""
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
    return found


def _remedies(named: dict[str, Study], base: Study | None, few: int) -> list[dict]:
    """C8 to C10, C12 and C13."""
    found = []
    ablations = {name: named.get(f"lowrank_{name}") for name in claims.ABLATIONS}
    if all(ablations.values()):
        results = {name: study.results for name, study in ablations.items()}
        numbers = {name: embedding_numbers(study) for name, study in ablations.items()}
        found += claims.penalties_on_embeddings(results, numbers)
    by_bumps = {
        int(match[1]): study
        for name, study in named.items()
        if (match := re.fullmatch(r"stripes_(\d+)", name))
    }
    if 0 in by_bumps:
        none = by_bumps[0]
        found.append(claims.stripes_add_up("bump", none.results, none.stripes))
        if few in by_bumps:
            results = {n: study.results for n, study in sorted(by_bumps.items())}
            found.append(claims.few_bumps_multiply("bump", results, few, none.stripes))
    with_stripes = named.get("donut_stripes")
    if base and with_stripes:
        trained = _trained(base, with_stripes)
        pair = with_stripes.inspection, base.inspection
        found.append(claims.volume_stays_smooth("bump", trained, *pair))
    if base and few in by_bumps:
        pair = by_bumps[few].inspection, base.inspection
        trained = _trained(by_bumps[few])
        found.append(claims.units_turn_from_stripes_to_bumps("bump", trained, *pair))
    return found


def _scaling(rows: list[dict], config: Config) -> list[dict]:
    """C11, for every reading of the sweep, and by share, learning rate and weight decay where it
    has several."""
    found = []
    for region in config.sweep.regions:
        readings = [reading for reading in plan.readings(config) if reading.region == region]
        settings = settings_of(rows, region)
        for setting in settings:
            several = [name for name in setting if len({other[name] for other in settings}) > 1]
            stated = {name: setting[name] for name in several}
            found += claims.needs_images(config.task.code.name, rows, readings, **stated)
    return found


def _controls(named: dict[str, Study], base: Study | None) -> list[dict]:
    """K1 to K5."""
    found = [claims.lit_pixels_fail(base.results)] if base and "wide" in named else []
    asked = {
        "wide": claims.wide_bumps_fail,
        "random": claims.random_cells_are_composed,
        "pixelwise": claims.shared_pixels_compose,
        "donut_stripes": claims.stripes_beat_trivial_predictors,
    }
    return found + [claim(named[name].results) for name, claim in asked.items() if name in named]


def _base(studies, decoder: str):
    """(code, study) at the presets' depth, in the codes' order."""
    keys = [Key(code, decoder, BASE_DEPTH[decoder]) for code in CODES]
    return [(key.code, studies[key]) for key in keys if key in studies]


def _trained(*studies):
    """(T,) exact accuracy ID, of the worst network."""
    return np.min([claims.exact_id(study.results) for study in studies], axis=0)
