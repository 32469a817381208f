"""Hold-outs by sentence, by function and by published name, against counts by hand."""

import itertools
import re

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal

from compgen_jax.settings import ConfigError
from compgen_jax.tasks.holdouts import PUBLISHED, coverage, held_out, held_out_points
from compgen_jax.tasks.task import Factor, cells

MPI3D = tuple(
    Factor(name, np.arange(count))
    for names, count in {
        "object_color object_shape": 6, "object_size": 2, "camera_height background_color": 3,
        "horizontal_axis vertical_axis": 40,
    }.items() for name in names.split()
)  # fmt: skip
SMALL = (
    Factor("shape", np.arange(1, 4), real=False, labels=("square", "ellipse", "heart")),
    Factor("hue", np.arange(10) / 10, period=1),
    Factor("posX", np.arange(6) / 5),
)
POINTS = cells(SMALL)
SHAPE, HUE, POSX = np.float64(POINTS).T
RANK = np.argsort(np.random.default_rng(4).permutation(180))  # of each cell in the permutation
LINE = (Factor("posX", np.arange(10) / 9), Factor("posY", np.arange(10) / 9))
PLACE = np.arange(21) / 20
WORLD = Factor("posX", PLACE), Factor("posY", PLACE), Factor("shape", np.arange(3), real=False)
# as the data sets store them
DATA = {
    "dsprites": (
        SMALL[0],
        Factor("scale", np.linspace(0.5, 1, 6)),
        Factor("orientation", np.linspace(0, 2 * np.pi, 40)),
        Factor("posX", np.arange(32) / 31),
        Factor("posY", np.arange(32) / 31),
    ),
    "3dshapes": (
        *(Factor(f"{name}_hue", np.arange(10) / 10) for name in ("floor", "wall", "object")),
        Factor("scale", np.linspace(0.75, 1.25, 8)),
        Factor("shape", np.arange(4), real=False, labels=("cube", "cylinder", "sphere", "pill")),
        Factor("orientation", np.linspace(-30, 30, 15)),
    ),
    "mpi3d": MPI3D,
    "circles": WORLD[:2],
    "simple": WORLD,
    "twoshapes": (Factor("hue1", np.arange(5) / 5), Factor("hue2", np.arange(5) / 5)),
}


# 7 of 21 places lie in [.35, .65] and 10 above .5; 2 of 5 hues below and above index 2
COUNTS = """
dsprites: leave1out 5808, shape2tx 122880, sqr2tx 122880, ell2tx 122880, sqr2scl 122880,
 sqr2tx_cent 122880, sqr2tx_flnk 122880, sqr2tx_rs 115200, sqr2tx_ls 130560, blank_side 368640
3dshapes: leave1out 72, r2e shape2ohue 12000, shape2ohue 60000, shape2fhue 60000,
 ohue+whue2fhue 28800, ohue2whue 57600, fhue2whue 57600, shape2ohueq 36000,
 shape2ohue_flnk 60000, shape2orient 64000, odd_ohue 240000, odd_wnf_hue 360000, missing_fh 240000
mpi3d: leave1out 16, cyl2hx 86400, cyl2vx 86400, redoc2hx 86400, bkg2cyl 115200,
 horz_gt20 492480, objc_gt3 345600
circles: midpos 49, shape2px 100
simple: midpos 49, shape2px 100
twoshapes: huecomb 4"""


@pytest.mark.parametrize("counts", re.findall(r"\n(\S(?:.|\n )*)", COUNTS))
def test_published_names_hold_out_as_many_as_their_papers_code(counts):
    data, counts = re.sub(r"\s+", " ", counts).split(": ")
    points, names = cells(DATA[data]), {name for name in PUBLISHED if name.split()[1] == data}
    for row in counts.split(", "):
        name, count = f"montero {data} {row}".rsplit(" ", 1)
        assert held_out_points(name, DATA[data], points).sum() == int(count), name
        names.remove(name)
    assert not names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shape == 'square' and posX > .5", (SHAPE == 1) & (POSX > 0.5)),
        ("shape >= 2", SHAPE >= 2),
        ("shape in ('square', 'heart')", SHAPE != 2),
        ("hue >= .7", np.round(10 * HUE) >= 7),  # as float32 it is below .7
        ("hue in {.3, .6}", np.isin(np.round(10 * HUE), (3, 6))),
        ("not (posX < .5 or hue < .5)", (POSX >= 0.5) & (np.round(10 * HUE) >= 5)),
        ("posX == hue", np.round(10 * HUE) == np.round(10 * POSX)),
        ("abs(posX - hue) <= .1 * 2", abs(np.round(10 * HUE) - np.round(10 * POSX)) <= 2),
        ("2 * pi * posX > pi", POSX > 0.5),
        ("'montero dsprites shape2tx' or posX == 0", (SHAPE == 1) & (POSX > 0.5) | (POSX == 0)),
        ("recombination_to_element(hue=.3, shape='heart')", (SHAPE == 3) & (HUE == HUE[9])),
        ("slices(shape, posX, posX=0)", (SHAPE != 2) & (POSX != 0)),
        # the middle of an odd number of values is in the lower half
        ("recombination_to_range(posX, shape)", (POSX == 0) & (SHAPE == 3)),
        ("random(.3, seed=4)", RANK < 54),
        ("random(posX > .5, seed=4)", RANK < 90),
    ],
)
def test_a_sentence_holds_out_what_it_says(text, expected):
    assert_array_equal(held_out_points(text, SMALL, POINTS), expected)


@pytest.mark.parametrize(
    ("text", "values", "joint"),
    [
        ("block(posX, posY)", range(2, 7), True),  # 5 of 10 values each
        ("corner(posX, posY)", range(5, 10), True),
        ("composition(.5)", range(3, 10), True),  # 7 and 7 of 10
        ("cross(posX, posY, share=.36)", (4, 5), False),  # 8 of 10 kept, twice
        ("extrapolation(.36)", (8, 9), False),
        ("interpolation(.84)", (1, 2, 4, 5, 7, 8), False),  # keeps 4 of 10, twice
    ],
)
def test_regions_are_what_their_picture_shows(text, values, joint):
    """Interpolation keeps the ends and values evenly between. Some points form no grid."""
    cell = np.random.default_rng(0).permutation(cells(LINE))[:70]
    inside = [np.isin(np.round(9 * column), values) for column in cell.T]
    expected = inside[0] & inside[1] if joint else inside[0] | inside[1]
    assert_array_equal(held_out_points(text, LINE, cell), expected)


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_an_orthotope_shows_so_many_high_factors(seen):
    """The highest 4 of 10 hues and 2 of 5 others are nearest to the share."""
    factors = Factor("x", np.arange(10)), Factor("y", np.arange(5)), Factor("z", np.arange(5))
    points = cells(factors)
    high = (points >= (6, 3, 3)).sum(axis=1)
    text = f"orthotope(share={np.mean(high > seen)}, seen={seen})"
    assert_array_equal(held_out_points(text, factors, points), high > seen)


def test_rows_of_a_combination_are_held_out_together():
    row_n = np.random.default_rng(2).integers(len(POINTS), size=700)
    shapes = np.array(["", *SMALL[0].labels])[SHAPE.astype(int)]
    frame = pandas.DataFrame({"shape": shapes, "hue": HUE, "pos X": POSX}).iloc[row_n]
    expected = (SHAPE == 3) & (POSX > 0.5)
    assert_array_equal(held_out("shape == 'heart' and pos_X > .5", frame), expected[row_n])
    arrays = {name: frame[name].to_numpy() for name in frame}
    drawn = pandas.Series(held_out("random(.3, seed=1)", arrays)).groupby(row_n)
    assert drawn.nunique().max() == 1 and drawn.first().sum() == round(0.3 * len(drawn))
    with pytest.raises(ConfigError, match="orthotope needs more than 1 values of hue"):
        held_out("orthotope(hue)", frame.assign(hue=0))
    many = {f"f{k}": np.arange(700) for k in range(8)}  # 700^8 cells, more than an int64 counts
    assert held_out("f0 < 350", many).sum() == held_out("f7 >= 350", many).sum() == 350
    with pytest.raises(ConfigError, match="hue: has missing values"):
        held_out("hue > .5", frame.assign(hue=frame.hue.where(frame.hue > 0.2)))


def test_names_that_python_cannot_read_have_underscores():
    factors = (Factor("object hue", np.arange(4)), Factor("class", np.arange(3)))
    assert held_out_points("object_hue > 1 and class_ == 2", factors, cells(factors)).sum() == 2


WRONG = {
    "posx > .5": "no factor 'posx'; allowed: shape, hue, posX",
    "shape == 'sqare'": "no label of shape 'sqare'; allowed: square",
    "shape == 0": "shape is never 0; the nearest value is 1",
    "posX > 2": "holds out none of 180",
    "posX": "posX is no condition",
    "posX = .5": "equality is written ==",
    "eval('1')": "no function 'eval'",
    "orthotope(posX, hue, seen=2)": "at most 1 of the factors can be seen",
    "random(1.5)": "1.5 is no share between 0 and 1",
    "recombination_to_range(posX)": "takes a factor of one value, then",
    "montero dsprites shape2ty": "nearest: montero dsprites shape2tx",
    "-" * 980 + "posX > .5": "is nested too deeply",
    "posX > .5 or " * 100 + "posX > .5": "is longer than 1000 characters",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_sentence_is_answered_in_one_line(text):
    with pytest.raises(ConfigError) as caught:
        held_out_points(text, SMALL, POINTS)
    message = str(caught.value)
    assert message.startswith("config.task.held_out=") and WRONG[text] in message
    assert "\n" not in message and len(message) < 1500


def test_coverage_counts_pairs_that_exist_alone():
    rng = np.random.default_rng(3)
    some, mask = POINTS[rng.permutation(len(POINTS))[:60]], rng.random(60) < 0.6
    _, facts = coverage(mask, SMALL, some)
    for i, j in itertools.combinations(range(3), 2):
        exist, seen = (np.unique(rows[:, (i, j)], axis=0) for rows in (some, some[~mask]))
        name = f"seen_pairs.{SMALL[i].name}.{SMALL[j].name}"
        assert facts[name] == pytest.approx(len(seen) / len(exist))
    mask = held_out_points("hue >= .8 or shape == 'heart'", SMALL, POINTS)
    _, facts = coverage(mask, SMALL, POINTS)
    shares = {"seen": 96 / 180, "seen_values.hue": 0.8, "seen_values.posX": 1}
    assert {name: facts[name] for name in shares} == pytest.approx(shares)
