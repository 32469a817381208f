"""Tables of images: every layout of files, subsets, smaller images, look-ups, and wrong files."""

import io
import itertools
import re
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import table, table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.holdouts import held_out
from compgen_jax.tasks.table import ImageTable
from tests.command import blocks
from tests.tasks.examples import examples_at, scores_at

RNG = np.random.default_rng(0)
# some of dSprites' values: orientations 0, 120, 240 and 360 degrees
DSPRITES = [
    [1.0], [1.0, 2.0, 3.0], [0.5, 0.8], 2 * np.pi * np.array([0, 1, 2, 3]) / 3, [0, 10 / 31, 1],
    [2 / 31, 7 / 31],
]  # fmt: skip
SHAPES3D = [[0.0, 0.5], [0.9], [0.1, 0.2, 0.4], [0.75, 1.25], [0.0, 1.0, 2.0, 3.0], [-30.0, 30.0]]


def product(values):
    """(n, F) all combinations, the last factor fastest, as data sets store them."""
    return np.array(list(itertools.product(*values)))


def dsprites():
    values = product(DSPRITES)
    images = RNG.integers(0, 2, (len(values), 6, 6), np.uint8)
    images[np.isclose(values[:, 3], 2 * np.pi)] = images[values[:, 3] == 0]
    metadata = np.array({"latents_names": b"pickled"}, dtype=object)
    return {"imgs": images, "latents_values": values, "metadata": metadata}


def own(**others):
    """Two factors of 3 x 4 values."""
    values = product([[0.0, 0.25, 0.5], [1.0, 2.0, 4.0, 8.0]])
    names = {"factors": values, "factor_names": np.array(["hue", "width"])}
    return {"images": RNG.random((12, 4, 4), np.float32)} | names | others


def npz(path, arrays, save=np.savez):
    save(path, **arrays)
    return str(path)


def hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            if array.dtype.kind == "U":
                file.create_dataset(name, data=array.astype(object), dtype=h5py.string_dtype())
            elif array.dtype != object:
                file[name.replace("latents_", "latents/")] = array
    return str(path)


def cell_images(found):
    """(B, H, W[, C]) the images of all combinations, from 0 to 1."""
    images = table_files.take(found.images, found.rows_n[found.first_B])
    return np.float32(images) / np.float32(found.white)


def at(found, *values):
    """The one image of these values."""
    (image,) = cell_images(found)[np.isclose(tasks.cells(found.factors), values).all(axis=1)]
    return image


def python_2(path, arrays):
    """An npz whose headers Python 2 wrote: the last length has an L."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("imgs", "latents_values"):
            np.save(file := io.BytesIO(), arrays[name])
            content = file.getvalue().replace(b"6), } ", b"6L), }")
            assert b"6L" in content
            archive.writestr(f"{name}.npy", content)
    return str(path)


@pytest.mark.parametrize("write", [npz, partial(npz, save=np.savez_compressed), python_2, hdf5])
def test_dsprites_without_its_color_and_its_repeated_orientation(tmp_path, write):
    arrays = dsprites()
    found = table_files.read(write(tmp_path / "dsprites.npz", arrays))
    names = [(factor.name, len(factor.values)) for factor in found.factors]
    assert names == [("shape", 3), ("scale", 2), ("orientation", 3), ("posX", 3), ("posY", 2)]
    assert found.factors[0].labels == ("square", "ellipse", "heart")
    assert found.factors[2].period == 2 * np.pi and found.white == 1
    assert isinstance(found.images, np.memmap) == (write is npz)
    assert [line.split()[0] for line in found.says] == ["color", "orientation"]
    for image, row in zip(arrays["imgs"], arrays["latents_values"], strict=True):
        if row[3] < 6:
            assert_array_equal(at(found, *row[1:]), image)


@pytest.mark.parametrize(("chunk", "most"), [(None, 2**31), (72, 1000), (64, 1000), (None, 1000)])
def test_3d_shapes_read_in_batches(tmp_path, monkeypatch, chunk, most):
    monkeypatch.setattr(table_files, "AT_ONCE", 1000)
    monkeypatch.setattr(table_files, "IN_MEMORY", most)
    labels, path = product(SHAPES3D), tmp_path / "3dshapes.h5"
    images = RNG.integers(0, 256, (len(labels), 4, 4, 3), np.uint8)
    hdf5(path, {"labels": labels})
    with h5py.File(path, "a") as file:
        file.create_dataset("images", data=images, chunks=chunk and (chunk, 2, 2, 1))
    found = table_files.read(path)
    # else they stay on disk; one image at random would read a whole chunk of many
    assert isinstance(found.images, np.ndarray) == (most > 1000 or chunk == 72)
    names = [factor.name for factor in found.factors]
    assert names == ["floor_hue", "object_hue", "scale", "shape", "orientation"]
    assert found.factors[0].period == 1 and found.factors[3].labels[:3:2] == ("cube", "sphere")
    # stored with the last factor fastest; cells have the first fastest
    stored = images.reshape(2, 3, 2, 4, 2, 4, 4, 3).transpose(4, 3, 2, 1, 0, 5, 6, 7)
    assert_array_equal(cell_images(found), stored.reshape(-1, 4, 4, 3) / np.float32(255))


def test_only_images_that_are_not_black_have_a_background(tmp_path):
    """A small disc on a bright backdrop: the backdrop alone is no picture of it."""
    y, x = np.divmod(np.arange(12), 4)
    rows, columns = np.mgrid[:16, :16]
    near = (rows - 3 - 4 * y[:, None, None]) ** 2 + (columns - 2 - 3 * x[:, None, None]) ** 2
    disc, backdrop = np.exp(-near / 4), np.linspace(0.2, 0.9, 256).reshape(16, 16)
    bright = np.maximum(disc, backdrop).astype(np.float32)
    for images, is_black in ((np.float32(disc * (disc > 0.02)), True), (bright, False)):
        path = npz(tmp_path / f"{is_black}.npz", {"x": x, "y": y, "images": images})
        assert (np.ndim(ImageTable(path=path).scene().background) == 0) == is_black
        task = ImageTable(path=path, held_out="x == 2").make()
        answers = np.float32([images[5], images.mean(axis=0), backdrop])
        truths, points = np.stack(3 * [images[5]]), np.ones((3, 2), np.float32)
        scores = scores_at(task, answers, truths, points)
        assert scores["rendered"].tolist() == [True, False, False]


def test_the_page_converts_mpi3d_and_a_split_of_the_benchmark(tmp_path, monkeypatch):
    """Of MPI3D with tiny images, in which each has its number, and of a few images of a split."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    mpi3d, split = blocks(page, "python")
    number = np.arange(1_036_800, dtype=np.uint32)[:, None] // [1, 256, 65536] % 256
    np.savez("mpi3d_real.npz", images=number[:, None, None].astype(np.uint8))
    exec(mpi3d, {})
    found = table_files.read("mpi3d_real.npz", (("vertical_axis", "::8"),))
    places = (3, 1, 1, 2, 0, 7, 24)
    index = np.ravel_multi_index(places, (6, 6, 2, 3, 3, 40, 40))
    assert np.round(at(found, *places)[0, 0] * 255).astype(int) @ [1, 256, 65536] == index
    assert found.factors[0].labels[3] == "blue" and found.factors[-1].real
    labels, images = product([[0, 2], [1], [0, 13], [5, 6], [31]]), RNG.random((8, 1, 4, 4))
    for part, rows in (("train", slice(0, 5)), ("test", slice(5, 8))):
        np.savez(f"dsprites_composition_{part}_images.npz", images[rows])
        np.savez(f"dsprites_composition_{part}_labels.npz", labels[rows])
    exec(split, {})
    image = at(table_files.read("composition.npz"), 2, 13, 6)
    assert_allclose(image, images[7, 0], rtol=1e-6)


@pytest.mark.parametrize("write", [npz, hdf5])
def test_files_of_your_own(tmp_path, write):
    arrays = own(hue_period=np.float64(0.5), width_labels=np.array(["a", "b", "c", "d"]))
    path = write(tmp_path / "own.npz", arrays)
    found = table_files.read(path)
    hue, width = found.factors
    # .5 is 0 again
    assert (hue.name, hue.real, hue.period, *hue.values) == ("hue", True, 0.5, 0, 0.25)
    assert (width.name, width.real, width.labels) == ("width", False, ("a", "b", "c", "d"))
    assert_array_equal(at(found, 0.25, 8), arrays["images"][7])
    columns = {"fruit": np.array(["pear", "fig"] * 6), "size": np.repeat(np.arange(1, 7), 2)}
    columns["images"] = arrays["images"]
    found = table_files.read(write(tmp_path / "columns.npz", columns))
    fruit, _ = found.factors
    assert (fruit.name, fruit.labels, fruit.real) == ("fruit", ("fig", "pear"), False)
    assert_array_equal(at(found, 1, 3), arrays["images"][4])


def test_a_table_with_gaps_is_measured_at_its_images_alone(tmp_path):
    arrays = own()  # without (hue 0, width 1) and (hue .25, width 4)
    kept = {name: np.delete(arrays[name], [0, 6], axis=0) for name in ("images", "factors")}
    path = npz(tmp_path / "gaps.npz", arrays | kept)
    found = table_files.read(path)
    assert (~found.exists_B).sum() == 2 and "2 of 12 combinations have no image" in found.says
    task = ImageTable(path=path, held_out="hue == .5 and width > 2").make()
    assert sorted(task.points.tolist()) == sorted(kept["factors"].tolist())
    assert tasks.regions(task)["ood"].sum() == 2
    assert_array_equal(examples_at(task, kept["factors"]).target, kept["images"])


def test_subsets_by_label_place_and_slice(tmp_path):
    path = npz(tmp_path / "dsprites.npz", dsprites())
    keep = (("shape", ("heart", "square")), ("orientation", (-1, 0)), ("posX", "::2"))
    found, whole = table_files.read(path, keep), table_files.read(path)
    shape, _, orientation, pos_x, _ = found.factors
    assert shape.labels == ("square", "heart") and pos_x.values.tolist() == [0, 1]
    assert_allclose(orientation.values, [0, 4 * np.pi / 3], rtol=1e-6)
    values = (3, 0.8, 4 * np.pi / 3, 1, 2 / 31)
    assert_array_equal(at(found, *values), at(whole, *values))
    one = table_files.read(path, (("shape", (1,)),))
    assert [factor.name for factor in one.factors] == ["scale", "orientation", "posX", "posY"]


@pytest.mark.parametrize("side", [1, 4, 5, 8])
def test_smaller_images_are_means_over_areas(tmp_path, side):
    images = RNG.integers(0, 256, (12, 10, 10, 3), np.uint8)
    path = npz(tmp_path / "own.npz", own(images=images))
    found = table_files.read(path, side=side)
    # the share of a new pixel in an old one: with each a tenth of it at a time
    shares = np.zeros((side, 10))
    fine = np.arange(10 * side)
    np.add.at(shares, (fine // 10, fine // side), 1 / 10)
    expected = np.einsum("ai,bj,ijc->abc", shares, shares, images[7] / 255)
    assert found.images.dtype == np.float16
    assert_allclose(at(found, 0.25, 8), expected, atol=2**-11)


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.float16, ">f4", np.longdouble])
@pytest.mark.parametrize("most", [0, 2**20])
def test_a_constant_and_a_callback_show_the_same(tmp_path, monkeypatch, dtype, most):
    monkeypatch.setattr(table, "CONSTANT", most)
    images = RNG.random((12, 16)) if np.dtype(dtype).kind == "f" else np.eye(12, 16) > 0
    arrays = own(images=images.reshape(12, 4, 4, 1).astype(dtype))
    scene = ImageTable(path=npz(tmp_path / "own.npz", arrays)).scene()
    points = np.float32(arrays["factors"] + [0.1, -0.4]).reshape(3, 4, 2)
    shown = jax.jit(jax.vmap(jax.vmap(scene.picture)))(points)
    assert shown.dtype == jnp.float32
    assert_array_equal(shown, np.float32(arrays["images"]).reshape(3, 4, 4, 4))
    program = str(jax.make_jaxpr(scene.picture)(points[0, 0]))
    assert ("pure_callback" in program) == (most == 0)


# --- several images of a combination ---------------------------------------------------------


def several(path, write=npz):
    """(path, the rows' factors, their images) of a file whose combinations, of which one is
    missing, have 1 to 4 images, in any order."""
    cells = np.delete(own()["factors"], 6, axis=0)
    factors = RNG.permutation(np.repeat(cells, 1 + np.arange(11) % 4, axis=0))
    images = RNG.random((len(factors), 4, 4), np.float32)
    arrays = own(factors=factors, images=images, hue_labels=np.array(["red", "sky", "tan"]))
    return write(path / "several.npz", arrays), factors, images


def of(factors, images, hue, width):
    return images[(factors == [hue, width]).all(axis=1)]


@pytest.mark.parametrize(("write", "most"), [(npz, 2**20), (npz, 0), (hdf5, 0)])
def test_each_example_has_one_of_the_images_of_its_combination(tmp_path, monkeypatch, write, most):
    monkeypatch.setattr(table, "CONSTANT", most)
    path, factors, images = several(tmp_path, write)
    task = ImageTable(path=path, held_out="index(hue) == 2 and width > 2").make()
    assert task.describe()[0] == "a combination has 1 to 4 images"
    keys, points = jax.random.split(jax.random.key(0), 400), np.float32([[0, 8], [0.25, 2]])
    draw = jax.jit(jax.vmap(jax.vmap(task.example, (None, 0)), (0, None)))
    drawn = jax.device_get(draw(keys, points))
    for point, targets in zip(points, np.moveaxis(drawn.target, 1, 0), strict=True):
        same = (targets[:, None] == of(factors, images, *point)).all(axis=(2, 3))
        assert same.any(axis=1).all() and same.shape[1] == {8: 4, 2: 2}[point[1]]
        assert_allclose(same.mean(axis=0), 1 / same.shape[1], atol=0.1)  # 4 standard errors
    reader = ImageTable(path=path, held_out="hue == 'tan' and width > 2", asks="factors").make()
    read = jax.jit(reader.example)(keys[3], points[0])
    assert_array_equal(read.input, drawn.target[3, 0])
    # rows of one combination are held out together, also for those who index the file
    frame = {"hue": factors[:, 0], "width": factors[:, 1]}
    assert_array_equal(held_out("hue == .5 and width > 2", frame), task.held_out(factors))


@pytest.mark.parametrize("against", ["nearest", "mean"])
@pytest.mark.parametrize("most", [2**20, 0])
def test_scores_are_against_the_nearest_or_the_mean_image(tmp_path, monkeypatch, against, most):
    monkeypatch.setattr(table, "CONSTANT", most)
    path, factors, images = several(tmp_path)
    task = ImageTable(path=path, held_out="hue == 'tan' and width > 2", against=against).make()
    points, hues = tasks.points(task), [0, 0.25, 0.5]
    truths = examples_at(task, points).target
    answers = truths + 0.3 * RNG.standard_normal(truths.shape).astype(np.float32)

    def compared(answer, hue, width):
        every = of(factors, images.astype(np.float64), hue, width)
        nearest = np.square(answer - every).mean(axis=(1, 2)).argmin()
        return every[nearest] if against == "nearest" else every.mean(axis=0)

    scores = scores_at(task, answers, truths, points)
    for index, (answer, (hue, width)) in enumerate(zip(answers, points, strict=True)):
        right = compared(answer, hue, width)
        assert_allclose(scores["mse"][index], np.square(answer - right).mean(), rtol=1e-5)
        if width != 4:  # of which the middle hue has no image
            errors = [np.square(answer - compared(answer, other, width)).mean() for other in hues]
            assert scores["hue_accuracy"][index] == (hues[np.argmin(errors)] == hue)
    # a picture is the mean, and a look-up shows one image
    picture = jax.jit(ImageTable(path=path).scene().picture)(np.float32([0, 8]))
    assert_allclose(picture, of(factors, images, 0, 8).mean(axis=0), rtol=1e-5)
    lookup = jax.jit(partial(tasks.trivial_scores, task))(jax.random.key(1))["nearest_seen"]["mse"]
    assert (lookup[tasks.regions(task)["id"]] == 0).all() == (against == "nearest")


def test_one_image_for_each_combination_is_no_draw(tmp_path):
    """Neither a random number nor a search is in the program."""
    task = ImageTable(path=npz(tmp_path / "own.npz", own()), held_out="hue == .5").make()
    drawing = jax.make_jaxpr(task.example)(jax.random.key(0), jnp.ones(2))
    scoring = jax.make_jaxpr(task.scores)(jnp.ones((4, 4)), jnp.ones((4, 4)), jnp.ones(2))
    assert "random_bits" not in str(drawing) and not re.search("scan|while", str(scoring))


@pytest.mark.parametrize("write", [npz, hdf5])
@pytest.mark.parametrize("copies", [1, 10])
def test_a_large_file_is_opened_by_offset(tmp_path, monkeypatch, write, copies):
    monkeypatch.setattr(table_files, "IN_MEMORY", 0)
    number = np.arange(100_000)
    images = np.zeros((len(number), 32, 32), np.uint8)
    images[:, 0, :3] = number[:, None] // [1, 256, 65536] % 256
    columns = {"a": number // copies % 100, "b": number // copies // 100}
    path = write(tmp_path / "large.npz", columns | {"images": images})
    tracemalloc.start()
    task = ImageTable(path=path, held_out="a > 50 and b > 50").make()
    target = examples_at(task, [[17, 90]]).target[0, 0, :3]
    assert tracemalloc.get_traced_memory()[1] < images.nbytes / 4
    tracemalloc.stop()
    row = np.round(target * 255).astype(int) @ [1, 256, 65536]
    assert (columns["a"][row], columns["b"][row]) == (17, 90)


# --- what is refused -------------------------------------------------------------------------


def refused(message, *arguments, **others):
    with pytest.raises(ConfigError, match=message) as caught:
        table_files.read(*arguments, **others)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"imgs": np.zeros((2, 4, 4))}, "has the keys imgs; your own file has images"),
        (own(images=np.zeros((12, 4, 4), int)), "images has int64; images must be uint8"),
        (own(images=RNG.random((12, 4, 4)) * 255), "floats must be from 0 to 1"),
        (own(images=np.ones((12, 4, 4), np.uint8)), "are the same: it is damaged"),
        (own(factors=np.full((12, 2), np.inf)), "factors must be finite"),
        (own(factors=np.full((12, 2), None, dtype=object)), "Object arrays cannot be loaded"),
        (own(factors=RNG.random((12, 2))), "more than 100 combinations .*hue 12, width 12"),
        (own(hue_period=np.float64(0.3)), "hue_period is 0.3; .* at least the range of the"),
        (own(factor_names=np.array(["hue", "hue"])), "factor_names has a name twice: hue, hue"),
        ({"images": own()["images"]}, "has 12 images and no factors; your own file"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, monkeypatch, arrays, message):
    monkeypatch.setattr(table_files, "MOST_CELLS", 100)
    path = npz(tmp_path / "table.npz", arrays)
    refused(f"config.task.path={path!r}: .*({message})", path)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "table.npz"
    for write, change, message in (
        (npz, lambda data: data[: len(data) // 2], "(zip|seek|EOF|ends)"),
        (hdf5, lambda data: data[:4000], "truncated file"),
        (npz, lambda data: data[:100_000] + 100 * b"?" + data[100_100:], "Bad CRC-32"),
        (npz, lambda data: b"hue,width", "is neither an npz nor an HDF5 file"),
    ):
        write(path, own(images=RNG.integers(0, 256, (12, 64, 64, 3), np.uint8)))
        path.write_bytes(change(path.read_bytes()))
        refused(f"config.task.path={str(path)!r}: .*{message}", str(path))
    refused("No such file or directory", str(tmp_path / "nowhere"))
    refused("Is a directory", str(tmp_path))


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ((("colour", (0,)),), "must be pairs of a factor and its values; factors are color, shape"),
        ((("shape", ("circle",)),), "needs START:STOP:STEP, or a tuple of some of square, ellipse"),
        *(((("posX", wrong),), "posX needs") for wrong in ((0, 0), (), 2, "every 2", "9:")),
    ],
)
def test_a_wrong_subset_is_refused(tmp_path, subset, message):
    path = npz(tmp_path / "dsprites.npz", dsprites())
    refused(f"config.task.subset=.*{message}", path, subset)
    refused("config.task.side=7: images have 6 x 6 pixels", path, side=7)
