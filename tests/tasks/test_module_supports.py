from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import module_supports
from compgen_jax.tasks.module_supports import ModuleSupportConfig, all_sets, limits, n_sets
from tests.tasks.examples import as_sets

KINDS = "random", "equal", "disconnected", "non_compositional", "popular", "unpopular"


def split(kind, modules, most, **settings):
    return module_supports.split(ModuleSupportConfig(kind, **settings), modules, most)


def groups_of(sets, modules) -> list[set]:
    """The modules in groups that the sets join, by merging (a module in no set is a group)."""
    groups = [{m} for m in range(modules)]
    for joined in sets:
        touched = [group for group in groups if group & joined]
        groups = [group for group in groups if not group & joined]
        groups.append(set(joined).union(*touched))
    return groups


def seen_sets(kind, modules, most, n, seed=0) -> list[frozenset]:
    """The sets of a support, which has what its kind says."""
    seen = as_sets(all_sets(modules, most)[split(kind, modules, most, seen=n, seed=seed)])
    groups, alone = groups_of(seen, modules), kind == "non_compositional"
    assert len(seen) == n and len(groups) == (2 if kind == "disconnected" else 1) + alone
    assert set().union(*seen) == set(range(modules - alone)) and ({modules - 1} in groups) >= alone
    use = [sum(m in s for s in seen) for m in range(modules)]
    assert kind != "equal" or max(use) - min(use) <= 1
    return seen


@pytest.mark.parametrize(("modules", "most"), [(2, 1), (3, 3), (8, 3), (70, 2)])
def test_sets_are_listed_by_size_and_then_in_order_and_know_their_place(modules, most):
    sets = all_sets(modules, most)
    expected = [{*one} for size in range(1, most + 1) for one in combinations(range(modules), size)]
    assert sets.dtype == bool and as_sets(sets) == expected
    assert_array_equal(module_supports.index_of(sets), np.arange(len(sets)))


@pytest.mark.parametrize(
    ("kind", "modules", "most"),
    [(kind, 6, 2) for kind in KINDS] + [("equal", 7, 4), ("disconnected", 8, 3)],
)
def test_every_number_that_a_kind_can_have_and_no_other(kind, modules, most):
    """Numbers below and above are refused; all between are seen exactly, and connected."""
    least, greatest = limits(kind, modules, most)
    for n in range(1, n_sets(modules, most) + 2):
        if least <= n <= greatest:
            seen_sets(kind, modules, most, n, seed=n)
        else:
            with pytest.raises(ConfigError, match=f"seen={n}: "):
                split(kind, modules, most, seen=n)


def test_the_sets_that_are_drawn_stay_what_runs_were_trained_on():
    """Sums of the numbers of 40 of 92 sets."""
    sums = [np.flatnonzero(split(kind, 8, 3, seen=40, seed=1)).sum() for kind in KINDS]
    assert sums == [1928, 1917, 1822, 1600, 1515, 1169]


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize(("modules", "most"), [(3, 2), (8, 3), (16, 5)])
def test_a_support_is_built_where_no_draw_is_connected(monkeypatch, kind, modules, most):
    """Of equal ones, on a path at the first draw."""
    monkeypatch.setattr(module_supports, "DRAWS", 1)
    monkeypatch.setattr(module_supports, "connects", lambda sets: False)
    least, _ = limits(kind, modules, most)
    for n in range(least, least + 3):
        seen_sets(kind, modules, most, n, seed=n)


@pytest.mark.parametrize(("n", "first"), [(576, 1), (472, 2), (473, 1), (184, 8), (185, 7)])
def test_the_first_of_two_groups_is_as_large_as_can_be(n, first):
    """Sets within groups: 576 for 1 and 15 modules, 472 for 2 and 14, ..., 184 for 8 and 8."""
    groups = groups_of(seen_sets("disconnected", 16, 3, n), 16)
    assert sorted(map(sorted, groups)) == [[*range(first)], [*range(first, 16)]]


@pytest.mark.parametrize(("modules", "n", "hubs"), [(16, 522, 6), (8, 44, 1), (8, 28, 0)])
def test_a_popular_support_sees_every_set_of_its_hubs(modules, n, hubs):
    seen = seen_sets("popular", modules, 3, n)
    touching = {s for s in as_sets(all_sets(modules, 3)) if min(s) < hubs}
    assert touching <= set(seen) and all(hubs in s for s in set(seen) - touching)


@pytest.mark.parametrize(("modules", "n", "core"), [(16, 522, 14), (8, 44, 6), (8, 8, 1)])
def test_an_unpopular_support_sees_every_set_of_its_core(modules, n, core):
    seen = seen_sets("unpopular", modules, 3, n)
    inside = {s for s in as_sets(all_sets(modules, 3)) if max(s) < core}
    others = set(seen) - inside - {frozenset([0, m]) for m in range(core, modules)}
    assert inside <= set(seen) and all(max(s) == core for s in others)
    assert all(sum(m in s for s in seen) == 1 for m in range(core + 1, modules))
    assert seen == seen_sets("unpopular", modules, 3, n, seed=1)


def test_the_held_out_share_is_exact_where_floats_are_not():
    """0.7 * 1350 is 944.9999999999999 in floats."""
    for modules, share, held_out in ((16, 0.25, 174), (20, 0.7, 945)):
        assert (~split("random", modules, 3, held_out_share=share)).sum() == held_out
