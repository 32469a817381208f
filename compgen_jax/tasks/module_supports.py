"""Which sets of modules are seen, for tasks that combine at most K of M modules.

The T = sum_j C(M, j) non-empty sets of up to K modules are the rows of a table (T, M), single
modules first. A support is *compositional* if every module occurs in a seen set, and *connected* if
seen sets join all modules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from math import comb

import numpy as np
from scipy.sparse.csgraph import connected_components

from compgen_jax.settings import ConfigError, choice, number
from compgen_jax.tasks.task import refuse

DRAWS = 1000  # random supports tried before a connected one is built
MAX_SETS = 10**7  # their table takes a few hundred megabytes


@dataclass(frozen=True)
class ModuleSupportConfig:
    """Which sets of modules are in training; all others are held out.

    random            sets at random, compositional and connected;
    equal             the same, and modules occur equally often, to 1;
    disconnected      two groups of modules that never meet, each connected in itself;
    non_compositional no set with the last module;
    popular           all sets with one of the first few modules, and some with the next;
    unpopular         all sets of the first many modules; the others in one set each.

    `seen` is the number of sets. If it is 0, `held_out_share` of all sets, rounded down, are held
    out, but of non_compositional those with the last module.
    """

    name: str = choice(
        "random", "random", "equal", "disconnected", "non_compositional", "popular", "unpopular"
    )
    seen: int = number(0, low=0)
    held_out_share: float = number(0.25, low=0, high=1)
    seed: int = number(0, low=0)


# --- sets of modules -------------------------------------------------------------------------


def n_sets(modules: int, most: int) -> int:
    return sum(comb(modules, size) for size in range(1, most + 1))


def all_sets(modules: int, most: int):
    """(T, M) bool: which modules each set has; by size and then lexicographic."""
    sizes = range(1, most + 1)
    every = chain.from_iterable(combinations(range(modules), k) for k in sizes)
    column = np.fromiter(chain.from_iterable(every), np.int64)
    size_T = np.repeat(sizes, [comb(modules, k) for k in sizes])
    sets_TxM = np.zeros((len(size_T), modules), bool)
    sets_TxM[np.repeat(np.arange(len(size_T)), size_T), column] = True
    return sets_TxM


def index_of(sets_SxM):
    """(S,) the rows of `all_sets` that the sets are, for any `most`."""
    modules = sets_SxM.shape[1]
    later_SxM = sets_SxM[:, ::-1].cumsum(1, dtype=np.int16)[:, ::-1]  # members from a module on
    sizes = range(later_SxM.max(initial=0) + 1)
    after_MxK = np.array([[comb(modules - 1 - m, k) for k in sizes] for m in range(modules)])
    end_K = np.array([n_sets(modules, k) for k in sizes])
    after_S = (after_MxK[np.arange(modules), later_SxM] * sets_SxM).sum(1)
    return end_K[later_SxM[:, 0]] - 1 - after_S


def connects(sets_SxM) -> bool:
    """Whether the sets connect all M modules, so that each is in one."""
    if not sets_SxM.any(0).all():
        return False
    values_SxM = sets_SxM.astype(np.float32)
    n_parts, _ = connected_components(values_SxM.T @ values_SxM > 0, directed=False)
    return n_parts == 1


# --- splits ----------------------------------------------------------------------------------


def limits(kind: str, modules: int, most: int) -> tuple[int, int]:
    """How many sets are seen at least, as M modules need ceil((M - 1) / (K - 1)) sets to be
    connected, and at most."""
    groups, greatest = [modules], n_sets(modules, most) - 1
    if kind == "disconnected":
        groups = [modules // 2, modules - modules // 2]
        greatest = n_sets(1, most) + n_sets(modules - 1, most)
    elif kind == "non_compositional":
        groups, greatest = [modules - 1], n_sets(modules - 1, most)
    if most == 1 and max(groups) > 1:
        raise ConfigError("config.task.most=1: single modules connect nothing; must be at least 2")
    least = sum(max(1, -(-(group - 1) // max(most - 1, 1))) for group in groups)
    return max(least, modules) if kind == "unpopular" else least, greatest


def n_seen(settings: ModuleSupportConfig, modules: int, most: int) -> int:
    """Raises ConfigError if no such support has that many."""
    total = n_sets(modules, most)
    refuse({
        f"modules={modules}: must be at least 2": modules < 2,
        f"most={most}: must be at most config.task.modules={modules}, at least 1":
            not 1 <= most <= modules,
        f"most={most}: config.task.modules={modules} make {total} sets; must be at most {MAX_SETS}":
            total > MAX_SETS,
    })  # fmt: skip
    least, greatest = limits(settings.name, modules, most)
    if settings.name == "non_compositional" and not settings.seen:
        return greatest
    held_out = int(Fraction(str(settings.held_out_share)) * total)  # exact, unlike in floats
    n = settings.seen or total - held_out
    field = "seen" if settings.seen else "held_out_share"
    least, greatest = max(least, 1), min(greatest, total - 1)
    limit = f"at least {least}" if n < least else f"at most {greatest}"
    refuse({
        f"support.{field}={vars(settings)[field]}: {n} of {total} sets seen; must be {limit} for "
        f"{settings.name!r} with {modules} modules in sets of up to {most}":
            not least <= n <= greatest,
    })  # fmt: skip
    return n


def split(settings: ModuleSupportConfig, modules: int, most: int):
    """(T,) bool, in the order of `all_sets`: which sets are seen. Raises ConfigError."""
    n, kind = n_seen(settings, modules, most), settings.name
    rng, sets_TxM = np.random.default_rng(settings.seed), all_sets(modules, most)
    none_T, groups = np.zeros(len(sets_TxM), bool), [np.arange(modules)]
    always_T, options_T = none_T, ~none_T
    if kind == "unpopular":
        core = max(c for c in range(1, modules) if n_sets(c, most) + modules - c <= n)
        seen_T = ~sets_TxM[:, core:].any(1)
        fits_T = ~sets_TxM[:, core + 1 :].any(1)
        seen_T[index_of(np.eye(modules, dtype=bool)[core:] | (np.arange(modules) == 0))] = True
        seen_T[np.flatnonzero(fits_T & ~seen_T)[: n - seen_T.sum()]] = True
        return seen_T
    if kind == "popular":
        # the number of sets with one of the first 1, 2, ... modules
        touching = np.logical_or.accumulate(sets_TxM, axis=1).sum(0)
        hubs = int((touching <= n).sum())
        always_T, options_T = sets_TxM[:, :hubs].any(1), sets_TxM[:, hubs]
    elif kind == "non_compositional":
        options_T, groups = ~sets_TxM[:, -1], [np.arange(modules - 1)]
    elif kind == "disconnected":
        sizes = range(1, modules // 2 + 1)
        first = max(k for k in sizes if n_sets(k, most) + n_sets(modules - k, most) >= n)
        options_T = ~(sets_TxM[:, :first].any(1) & sets_TxM[:, first:].any(1))
        groups = np.split(np.arange(modules), [first])
    # n of the options at random such that every group of modules is connected in itself
    for _ in range(DRAWS):
        seen_T = _filled(rng, always_T, options_T, n)
        if kind == "equal":
            seen_T = _evened(rng, sets_TxM, seen_T, none_T)
        if all(connects(sets_TxM[np.ix_(seen_T, group)]) for group in groups):
            return seen_T
    # around the fewest sets that connect: of equal ones a path, of popular ones, which then have no
    # hub, sets of module 0
    joint = {"equal": lambda joined: joined - 1, "popular": lambda joined: 0}
    for _ in range(DRAWS):
        orders = [rng.permutation(group) for group in groups]
        if kind == "popular":
            orders[0] = np.append(0, orders[0][orders[0] > 0])
        trees = [_tree(sets_TxM, most, o, joint.get(kind, rng.integers)) for o in orders]
        tree_T = np.any(trees, axis=0)
        seen_T = _filled(rng, tree_T, options_T, n)
        if kind != "equal":
            break
        seen_T = _evened(rng, sets_TxM, seen_T, tree_T)
        if np.ptp(sets_TxM[seen_T].sum(0)) <= 1:
            break
    return seen_T


def _evened(rng, sets_TxM, seen_T, fixed_T):
    """As many sets of the same sizes, whose modules occur equally often, to 1, if fixed sets allow:
    the least used module replaces the most used one where the new set is unseen."""
    seen_T, use_M = seen_T.copy(), sets_TxM[seen_T].sum(0)
    while True:
        most_used, least_used = use_M.argmax(), use_M.argmin()
        wanted = (use_M[most_used] - use_M[least_used]) // 2
        movable_T = seen_T & ~fixed_T & sets_TxM[:, most_used] & ~sets_TxM[:, least_used]
        old_S = np.flatnonzero(movable_T)
        moved_SxM = sets_TxM[old_S]
        moved_SxM[:, [most_used, least_used]] = False, True
        new_S = index_of(moved_SxM)
        free = np.flatnonzero(~seen_T[new_S])
        chosen = rng.permutation(free)[:wanted]
        if not len(chosen):
            return seen_T
        seen_T[old_S[chosen]], seen_T[new_S[chosen]] = False, True
        use_M[most_used] -= len(chosen)
        use_M[least_used] += len(chosen)


def _tree(sets_TxM, most: int, order, joint: Callable):
    """(T,) bool: the fewest sets that connect the modules in `order`."""
    step = max(most - 1, 1)
    starts = range(1, max(len(order), 2), step)
    tree_SxM = np.zeros((len(starts), sets_TxM.shape[1]), bool)
    for row, joined in zip(tree_SxM, starts, strict=True):
        row[order[joint(joined)]] = True
        row[order[joined : joined + step]] = True
    tree_T = np.zeros(len(sets_TxM), bool)
    tree_T[index_of(tree_SxM)] = True
    return tree_T


def _filled(rng, seen_T, options_T, n: int):
    """The seen sets and as many of the options as make them n."""
    filled_T = seen_T.copy()
    options_S = np.flatnonzero(options_T & ~seen_T)
    filled_T[rng.choice(options_S, n - seen_T.sum(), replace=False)] = True
    return filled_T
