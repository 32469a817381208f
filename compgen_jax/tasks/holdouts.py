"""Which combinations of factors are held out, said in one sentence. It is read without `eval`.

    shape == 'square' and posX > .5       labels in quotes, numbers as the stored values
    random(.3, seed=0)                    a named function, alone or within a condition
    montero dsprites shape2tx             a published name; in quotes within a condition

docs/how_to/hold_out.md has all of them. Points are float32, so numbers are the same if they differ
by less than 1e-6 of the larger.
"""

import ast
import difflib
import itertools
import keyword
import math
import operator
import re

import numpy as np
import pandas

from compgen_jax import settings
from compgen_jax.tasks.supports import random_cells, value_indices
from compgen_jax.tasks.table_files import factor_of
from compgen_jax.tasks.task import counts, value_name

LONGEST, TOLERANCE = 1000, 1e-6

# Test conditions of Montero et al. 2021 (github.com/mmrl/disent-and-gen) and 2022
# (github.com/mmrl/lost-in-latent-space), both in scripts/configs/datasplits.py, as their code has
# them, not as their names say. Factors are named as the data sets name them. Training is the rest.
# In `horz_gt20` theirs does not train on 20 either.
TABLE = """
montero dsprites leave1out: shape == 'ellipse' and scale > .6 and posX > .66 and posY > .66 and 2
  * pi / 3 < orientation < 4 * pi / 3
montero dsprites shape2tx: shape == 'square' and posX > .5
montero dsprites sqr2tx: shape == 'square' and posX > .5
montero dsprites ell2tx: shape == 'ellipse' and posX > .5
montero dsprites sqr2scl: shape == 'square' and scale > .75
montero dsprites sqr2tx_cent: shape == 'square' and .25 < posX < .75
montero dsprites sqr2tx_flnk: shape == 'square' and .25 <= posX <= .75
montero dsprites sqr2tx_rs: shape == 'square' and .4 < posX < .9
montero dsprites sqr2tx_ls: shape == 'ellipse' and not .1 < posX < .6
montero dsprites blank_side: posX > .5
montero 3dshapes leave1out: shape == 'cylinder' and scale >= 1.1 and orientation > 20 and
  floor_hue >= .8 and wall_hue >= .8 and object_hue >= .8
montero 3dshapes r2e shape2ohue: shape == 'pill' and object_hue == .2
montero 3dshapes shape2ohue: shape == 'pill' and object_hue >= .5
montero 3dshapes shape2fhue: shape == 'pill' and floor_hue >= .5
montero 3dshapes ohue+whue2fhue: object_hue >= .8 and wall_hue <= .2
montero 3dshapes ohue2whue: object_hue >= .75 and wall_hue <= .5
montero 3dshapes fhue2whue: floor_hue >= .75 and wall_hue <= .5
montero 3dshapes shape2ohueq: shape == 'pill' and object_hue <= .25
montero 3dshapes shape2ohue_flnk: shape == 'pill' and .25 < object_hue < .75
montero 3dshapes shape2orient: shape == 'pill' and orientation >= 0
montero 3dshapes odd_ohue: object_hue in (.1, .3, .5, .7, .9)
montero 3dshapes odd_wnf_hue: wall_hue in (.1, .3, .5, .7, .9) or floor_hue in (.1, .3, .5, .7,
  .9)
montero 3dshapes missing_fh: floor_hue >= .5
montero mpi3d leave1out: object_color == 5 and object_shape == 2 and object_size == 1 and
  camera_height == 1 and background_color == 1 and horizontal_axis > 35 and vertical_axis > 35
montero mpi3d cyl2hx: object_shape == 2 and horizontal_axis < 20
montero mpi3d cyl2vx: object_shape == 2 and vertical_axis < 20
montero mpi3d redoc2hx: object_color == 2 and horizontal_axis < 20
montero mpi3d bkg2cyl: object_shape >= 4 and background_color == 2
montero mpi3d horz_gt20: horizontal_axis > 20
montero mpi3d objc_gt3: object_color > 3
montero circles midpos: .35 <= posX <= .65 and .35 <= posY <= .65
montero circles shape2px: posX > .5 and posY > .5
montero simple midpos: index(shape) == 1 and .35 <= posX <= .65 and .35 <= posY <= .65
montero simple shape2px: index(shape) == 1 and posX > .5 and posY > .5
montero twoshapes huecomb: index(hue1) < 2 and index(hue2) > 2
"""
PUBLISHED = {
    name: " ".join(condition.split())
    for name, condition in re.findall(r"^(\S.+): ((?:.|\n )+)", TABLE, re.M)
}

# name: whether a combination of chosen values is held out, or else is seen; how many values of a
# factor are seen at least; default share
REGIONS = {
    "composition": (True, 1, 0.7),
    "corner": (True, 1, 0.25),
    "block": (True, 2, 0.25),
    "cross": (False, 2, 0.25),
    "interpolation": (False, 2, 0.7),
    "extrapolation": (False, 1, 0.7),
    "orthotope": (True, 1, 0.7),
}
TAKES = dict.fromkeys(REGIONS, ("factors", "share")) | {
    "orthotope": ("factors", "share", "seen"),
    "random": ("share", "seed"),
    "slices": ("factors", "values"),
    "recombination_to_element": ("factors", "values"),
    "recombination_to_range": ("factors", "values"),
}
COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
ARITHMETIC = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}


def held_out_points(text: str, factors, points_BxF, field="task.held_out") -> np.ndarray:
    """(B,) bool: which of all combinations that exist, points (B, F), the text holds out; '' none.
    Raises ConfigError, which names the `field`, for a text that is no such sentence, or holds out
    nothing or everything."""
    mask = np.zeros(len(points_BxF), bool)
    if not text.strip():
        return mask
    reader = _Reader(text, tuple(factors), np.asarray(points_BxF), field)
    try:
        with np.errstate(all="ignore"):
            mask |= reader.sentence(text)
    except RecursionError:
        reader.require(False, "is nested too deeply")
    reader.require(mask.any(), f"holds out none of {len(mask)} combinations")
    reader.require(not mask.all(), f"holds out all {len(mask)} combinations")
    return mask


def held_out(text: str, frame) -> np.ndarray:
    """(n,) bool: the rows whose combination of factors the text holds out; to index a data set of
    any framework.

    frame: a DataFrame, or a dict of arrays (n,), with a column for each factor; text is a label.
        Rows of the same combination are held out together, however many there are.

    Raises ConfigError as `held_out_points`, and for a column with missing values.
    """
    factors, points_BxF, combination_n = combinations(frame)
    return held_out_points(text, factors, points_BxF)[combination_n]


def combinations(frame) -> tuple:
    """The factors of a frame, the combinations (B, F) of their values that it has, and the one of
    each row (n,). Raises ConfigError for missing values."""
    factors, indices = [], []
    for name, column in pandas.DataFrame(frame).items():
        settings.demand(not column.isna().any(), f"{name}: has missing values")
        kind = None if column.dtype.kind in "biuf" else str
        factor, index_n = factor_of(str(name), np.asarray(column, kind))
        factors.append(factor)
        indices.append(index_n)
    # in the order of cells, where the first factor varies fastest
    places_nxF = np.stack(indices[::-1], axis=1)
    places_BxF, combination_n = np.unique(places_nxF, axis=0, return_inverse=True)
    columns = zip(factors, places_BxF.T[::-1], strict=True)
    points_BxF = np.stack([factor.values[index_B] for factor, index_B in columns], axis=1)
    return factors, points_BxF, combination_n


class _Reader:
    """Walks the syntax tree of a text."""

    def __init__(self, text: str, factors: tuple, points_BxF, field: str):
        self.text, self.factors, self.points_BxF, self.field = text, factors, points_BxF, field
        columns = zip(factors, points_BxF.T, strict=True)
        self.indices = [value_indices(factor, column) for factor, column in columns]
        self.names = {}  # a factor's index by its name as a sentence has it
        for index, factor in enumerate(factors):
            name = re.sub(r"\W|^(?=\d)", "_", factor.name)
            self.names[name + "_" * keyword.iskeyword(name)] = index

    def require(self, ok, hint: str):
        settings.require(ok, self.field, self.text[:LONGEST], hint)

    def known(self, what: str, name: str, names):
        hint = settings.nearest_or_all(name, names)
        self.require(name in names, f"no {what} {name!r}; {hint}")

    def sentence(self, text: str):
        text = PUBLISHED.get(" ".join(text.split()), text).strip()
        self.require(len(text) <= LONGEST, f"is longer than {LONGEST} characters")
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, MemoryError) as error:
            close = difflib.get_close_matches(text, PUBLISHED, n=3)
            self.require(not close, f"no published name; nearest: {', '.join(close)}")
            hint = "; equality is written ==" if re.search("[^=<>!]=[^=]", text) else ""
            self.require(False, f"cannot be read: {error.args[0]}{hint}")
        return self.mask(tree.body)

    def mask(self, node):
        value = self.value(node)
        if isinstance(value, str):
            self.known("published name", value, PUBLISHED)
            return self.sentence(value)
        self.require(value.dtype == bool, f"{ast.unparse(node)} is no condition, as posX > .5 is")
        return value

    def number(self, node):
        value = self.value(node)
        is_number = not isinstance(value, str) and value.dtype != bool
        is_number = is_number and np.isfinite(value).all()
        self.require(is_number, f"{ast.unparse(node)} is no finite number")
        return value

    def value(self, node):
        """A text, numbers (B,) or (), or a condition (B,) or () bool."""
        match node:
            case ast.Constant(str(value)):
                return value
            case ast.Constant(value) if type(value) in (int, float) and abs(value) < 1e30:
                return np.float64(value)
            case ast.Name("pi") if "pi" not in self.names:
                return np.float64(math.pi)
            case ast.Name(name):
                return np.float64(self.points_BxF[:, self.factor(name)])
            case ast.Call(ast.Name("index"), [ast.Name(name)], []):
                return np.float64(self.indices[self.factor(name)])
            case ast.Call(ast.Name("abs"), [inner], []):
                return abs(self.number(inner))
            case ast.UnaryOp(ast.USub(), inner):
                return -self.number(inner)
            case ast.BinOp(left, kind, right) if type(kind) in ARITHMETIC:
                return ARITHMETIC[type(kind)](self.number(left), self.number(right))
            case ast.UnaryOp(ast.Not(), inner):
                return ~self.mask(inner)
            case ast.BoolOp(kind, parts):
                masks = np.broadcast_arrays(*map(self.mask, parts))
                return (np.all if isinstance(kind, ast.And) else np.any)(masks, axis=0)
            case ast.Compare(first, kinds, others):
                pairs = zip(itertools.pairwise([first, *others]), kinds, strict=True)
                masks = [self.comparison(*pair, kind) for pair, kind in pairs]
                return np.all(np.broadcast_arrays(*masks), axis=0)
            case ast.Call(ast.Name(name), arguments, keywords):
                self.known("function", name, (*TAKES, "index(posX)", "abs(posX)"))
                return self.named(name, arguments, keywords)
        hint = "; write and, or, not for &, |, ~" if re.search("[&|~]", self.text) else ""
        self.require(False, f"{ast.unparse(node)} is not allowed in a sentence{hint}")

    def comparison(self, first, second, kind):
        """One link of a chain. Numbers that differ by less than rounding are equal."""
        if isinstance(kind, ast.In | ast.NotIn):
            items = getattr(second, "elts", ())
            self.require(items, f"{ast.unparse(second)} is no list of values, as (1, 2) is")
            masks = [self.comparison(first, item, ast.Eq()) for item in items]
            return np.any(np.broadcast_arrays(*masks), axis=0) == isinstance(kind, ast.In)
        self.require(type(kind) in COMPARED, "values are compared by ==, !=, <, <=, > and >=")
        if isinstance(kind, ast.Eq | ast.NotEq) and ast.unparse(first) in self.names:
            index, value = self.names[ast.unparse(first)], self.value(second)
            if np.ndim(value) == 0:  # by the value that the factor has
                equal = self.indices[index] == self.value_index(index, value)
                return equal == isinstance(kind, ast.Eq)
        sides = [self.number(first), self.number(second)]
        size = max(np.max(np.abs(side), initial=0) for side in sides)
        gap = sides[0] - sides[1]
        return COMPARED[type(kind)](np.where(np.abs(gap) <= TOLERANCE * size, 0, gap), 0)

    def factor(self, name: str) -> int:
        labelled = [factor.name for factor in self.factors if name in factor.labels]
        hint = f"a label is quoted: {' or '.join(labelled)} == {name!r}"
        self.require(name in self.names or not labelled, hint)
        self.known("factor", name, self.names)
        return self.names[name]

    def value_index(self, index: int, value) -> int:
        factor = self.factors[index]
        if isinstance(value, str):
            self.known(f"label of {factor.name}", value, factor.labels)
            return factor.labels.index(value)
        values = np.asarray(factor.values, np.float64)
        nearest = int(np.argmin(np.abs(values - value)))
        hint = f"{factor.name} is never {value:g}; the nearest value is {values[nearest]:.7g}"
        self.require(abs(values[nearest] - value) <= TOLERANCE * np.max(np.abs(values)), hint)
        return nearest

    def named(self, name: str, arguments, keywords):
        chosen, values, share = [], {}, REGIONS.get(name, [0.7])[-1]
        whole = {"seed": 0, "seen": 0}
        pairs = [(keyword.arg or "**", keyword.value) for keyword in keywords]
        for item in arguments:
            pairs.append(("factors" if isinstance(item, ast.Name) else "share", item))
        for key, item in pairs:
            kind, text = key if key in ("factors", "share", *whole) else "values", ast.unparse(item)
            self.require(kind in TAKES[name], f"{name} takes no {kind}")
            if kind == "factors":
                chosen.append(self.factor(text))
            elif kind in whole:
                number = getattr(item, "value", None)
                self.require(type(number) is int, f"{kind} is a whole number from 0")
                whole[kind] = number
            elif kind == "share":
                value = self.value(item)
                is_share = not isinstance(value, str) and (value.dtype == bool or not value.ndim)
                share = float(np.mean(value)) if is_share else math.nan
                self.require(0 < share < 1, f"{text} is no share between 0 and 1, and no condition")
            else:
                index, value = self.factor(key), self.value(item)
                self.require(np.ndim(value) == 0, f"{text} is not one value")
                values[index] = self.value_index(index, value)
        if name == "random":
            return random_cells(np.ones(len(self.points_BxF)), share, whole["seed"])
        if name in REGIONS:
            return self.region(name, chosen, share, whole["seen"])
        every, masks = range(len(self.factors)), []
        if name == "slices":
            middle = {index: len(self.factors[index].values) // 2 for index in chosen or every}
            differ = [self.indices[i] != index for i, index in (middle | values).items()]
            return sum(differ) > 1
        if name == "recombination_to_range":
            hint = f"{name} takes a factor of one value, then the factor of the range"
            self.require(chosen and len({*chosen, *values}) > 1, hint)
            ranged = chosen.pop()
            half = (len(self.factors[ranged].values) + 1) // 2
            masks = [self.indices[ranged] >= half]
        elements = dict.fromkeys(chosen, 0) | values or dict.fromkeys(every, 0)
        masks += [self.indices[i] == index for i, index in elements.items()]
        return np.all(masks, axis=0)

    def region(self, name: str, chosen: list, share: float, seen: int):
        """The factors with fewest values come first; those after them make up for rounding."""
        is_joint, n_seen, _ = REGIONS[name]
        sizes = counts(self.factors)
        real = [i for i, factor in enumerate(self.factors) if factor.real and sizes[i] > 1]
        chosen = sorted(dict.fromkeys(chosen) or real, key=sizes.__getitem__)
        self.require(chosen, f"{name} finds no real factor; name its factors")
        self.require(seen < len(chosen), f"at most {len(chosen) - 1} of the factors can be seen")
        for factor in chosen:
            hint = f"{name} needs more than {n_seen} values of {self.factors[factor].name}"
            self.require(sizes[factor] > n_seen, hint)
        if name == "orthotope":
            return self.orthotope(chosen, sizes, share, seen)
        wanted, masks = share if is_joint else 1 - share, []
        for rank, factor in enumerate(chosen):
            size, index = sizes[factor], self.indices[factor]
            least, most = (1, size - n_seen) if is_joint else (n_seen, size - 1)
            n = min(max(round(size * wanted ** (1 / (len(chosen) - rank))), least), most)
            wanted = min(wanted * size / n, 1.0)
            if name == "block":
                masks.append((index - (size - n) // 2) // n == 0)
            elif name == "cross":
                masks.append((index - n // 2) // (size - n) != 0)
            elif name == "interpolation":
                masks.append(np.isin(index, np.round(np.linspace(0, size - 1, n))))
            else:  # the lowest n values are seen, or the highest n held out
                masks.append(index >= size - n if is_joint else index < n)
        return np.all(masks, axis=0) == is_joint

    def orthotope(self, chosen: list, sizes, share: float, seen: int):
        """More than `seen` factors have one of their highest values, as large a part of each: the
        part for which the share of all combinations is nearest to `share`."""
        most, options = max(sizes[i] for i in chosen), []
        for k in range(1, most):
            low = [min(max(round(k * sizes[i] / most), 1), sizes[i] - 1) for i in chosen]
            by_count = np.ones(1)  # share of the combinations with so many high values
            for i, n in zip(chosen, low, strict=True):
                by_count = np.convolve(by_count, [n, sizes[i] - n]) / sizes[i]
            options.append((abs(by_count[seen + 1 :].sum() - share), low))
        columns = zip(chosen, min(options)[1], strict=True)
        return sum(self.indices[i] >= n for i, n in columns) > seen


def coverage(mask_B, factors, points_BxF) -> tuple[list[str], dict[str, float]]:
    """Sentences on what is seen of the points (B, F) if `mask_B` is held out, and facts: the shares
    of what exists that are 'seen', 'seen_values.FACTOR' and 'seen_pairs.FACTOR.FACTOR'."""
    seen, columns = ~np.asarray(mask_B, bool), zip(factors, np.transpose(points_BxF), strict=True)
    indices = [value_indices(factor, column) for factor, column in columns]
    lines = [f"{seen.sum()} of {len(seen)} combinations are seen ({seen.mean():.2%})."]
    facts, partly = {"seen": float(seen.mean())}, []
    for factor, index_B in zip(factors, indices, strict=True):
        every = np.unique(index_B)
        unseen = np.setdiff1d(every, index_B[seen])
        facts[f"seen_values.{factor.name}"] = (len(every) - len(unseen)) / len(every)
        if len(unseen):
            names = [value_name(factor, factor.values[index]) for index in unseen]
            listed = f"{', '.join(names[:9])} ({len(names)} of {len(every)} values)"
            lines.append(f"{factor.name} is never {listed}.")
    for i, j in itertools.combinations(range(len(factors)), 2):
        pairs = indices[i] * len(factors[j].values) + indices[j]
        share = len(np.unique(pairs[seen])) / len(np.unique(pairs))
        facts[f"seen_pairs.{factors[i].name}.{factors[j].name}"] = share
        if share < 1:
            partly.append(f"{share:.1%} of {factors[i].name} × {factors[j].name}")
    lines.append(f"Pairs of values seen: {', '.join(partly) or 'all'}.")
    return lines, facts
