"""Tables of images: every layout of files, subsets, smaller images, look-ups, and wrong files."""

import itertools
import math
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import table, table_files
from compgen_jax.tasks import task as tasks
from compgen_jax.tasks.table import ImageTable

RNG = np.random.default_rng(0)
# some of dSprites' values: orientations 0, 120, 240 and 360 degrees
DSPRITES = [
    [1.0], [1.0, 2.0, 3.0], [0.5, 0.8], 2 * np.pi * np.array([0, 1, 2, 3]) / 3, [0, 10 / 31, 1],
    [2 / 31, 7 / 31],
]  # fmt: skip
SHAPES3D = [[0.0, 0.5], [0.9], [0.1, 0.2, 0.4], [0.75, 1.25], [0.0, 1.0, 3.0], [-30.0, 30.0]]


def product(values):
    """(n, F) all combinations, the last factor fastest, as data sets store them."""
    return np.array(list(itertools.product(*values)))


def dsprites(**others):
    values = product(DSPRITES)
    images = RNG.integers(0, 2, (len(values), 6, 6), np.uint8)
    images[np.isclose(values[:, 3], 2 * np.pi)] = images[values[:, 3] == 0]
    metadata = np.array({"latents_names": b"pickled"}, dtype=object)
    return {"imgs": images, "latents_values": values, "metadata": metadata} | others


def shapes3d(**others):
    values = product(SHAPES3D)
    return {"images": RNG.integers(0, 256, (len(values), 4, 4, 3), np.uint8), "labels": values} | (
        others
    )


def own(**others):
    """Two factors of 3 x 4 values."""
    values = product([[0.0, 0.25, 0.5], [1.0, 2.0, 4.0, 8.0]])
    names = {"factors": values, "factor_names": np.array(["hue", "width"])}
    return {"images": RNG.random((12, 4, 4), np.float32)} | names | others


def split(directory, **others):
    """The four files of a split of dSprites: images (n, 1, H, W), places of values as labels."""
    labels = product([[0, 2], [1], [0, 13, 39], [5, 6], [31]])
    images = RNG.integers(0, 2, (len(labels), 1, 4, 4), np.uint8)
    test = labels[:, 3] == 6
    arrays = {}
    for part, chosen in (("train", ~test), ("test", test)):
        arrays |= {f"{part}_images": images[chosen], f"{part}_labels": labels[chosen]}
    for name, array in (arrays | others).items():
        if array is not None:
            np.savez_compressed(directory / f"dsprites_extrapolation_{name}.npz", array)
    return directory / "dsprites_extrapolation_train_images.npz", arrays


def npz(path, arrays, save=np.savez):
    save(path, **arrays)
    return path


def hdf5(path, arrays, **others):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            if array.dtype.kind == "U":
                file.create_dataset(name, data=array.astype(object), dtype=h5py.string_dtype())
            elif array.dtype != object:
                file.create_dataset(name, data=array, **others)
    return path


def cell_images(found):
    """(B, H, W[, C]) the images of all combinations, from 0 to 1."""
    return np.asarray(found.images[found.rows_B], np.float32) / np.float32(found.white)


def at(found, **values):
    """The one image of these values."""
    points = tasks.cells(found.factors)
    columns = {factor.name: points[:, index] for index, factor in enumerate(found.factors)}
    chosen = np.all([np.isclose(columns[name], value) for name, value in values.items()], axis=0)
    (image,) = cell_images(found)[chosen]
    return image


def python_2(path):
    """An npz whose headers Python 2 wrote: lengths have an L."""
    arrays = dsprites()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("imgs", "latents_values"):
            array = arrays[name]
            shape = "".join(f"{length}L, " for length in array.shape)
            header = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': ({shape})}}"
            header += " " * (-(len(header) + 11) % 16) + "\n"
            content = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode()
            archive.writestr(f"{name}.npy", content + array.tobytes())
    return path, arrays


@pytest.mark.parametrize("kind", ["savez", "savez_compressed", "python_2", "hdf5"])
def test_dsprites_without_its_color_and_its_repeated_orientation(tmp_path, kind):
    path, arrays = tmp_path / "dsprites.file", dsprites()
    if kind == "python_2":
        path, arrays = python_2(path)
    elif kind == "hdf5":
        names = {"imgs": "imgs", "latents/values": "latents_values"}
        hdf5(path, {name: arrays[other] for name, other in names.items()})
    else:
        path = npz(tmp_path / "dsprites.npz", arrays, getattr(np, kind))
    found = table_files.read(str(path))
    names = [(factor.name, len(factor.values), factor.real) for factor in found.factors]
    assert names == [
        ("shape", 3, False), ("scale", 2, True), ("orientation", 3, True), ("posX", 3, True),
        ("posY", 2, True),
    ]  # fmt: skip
    assert found.factors[0].labels == ("square", "ellipse", "heart")
    assert found.factors[2].period == 2 * math.pi
    assert found.white == 1 and found.exists_B.all() and found.test_B is None
    assert isinstance(found.images, np.memmap) == (kind == "savez")
    assert [line.split()[0] for line in found.says] == ["color", "orientation"]
    assert "36 images are left out" in found.says[1]
    for image, row in zip(arrays["imgs"], arrays["latents_values"], strict=True):
        _, shape, scale, angle, x, y = row
        if angle < 6:
            shown = at(found, shape=shape, scale=scale, orientation=angle, posX=x, posY=y)
            np.testing.assert_array_equal(shown, image)


@pytest.mark.parametrize(("chunk", "most"), [(None, 2**31), (72, 1000), (64, 1000), (None, 1000)])
def test_3d_shapes_read_in_batches(tmp_path, monkeypatch, chunk, most):
    monkeypatch.setattr(table_files, "AT_ONCE", 1000)
    monkeypatch.setattr(table_files, "IN_MEMORY", most)
    arrays, path = shapes3d(), hdf5(tmp_path / "3dshapes.h5", {"labels": shapes3d()["labels"]})
    with h5py.File(path, "a") as file:
        chunks = chunk and (chunk, 2, 2, 1)
        file.create_dataset("images", data=arrays["images"], chunks=chunks)
    found = table_files.read(str(path))
    # else they stay on disk; one image at random would read a whole chunk of many
    assert isinstance(found.images, np.ndarray) == (most > 1000 or chunk == 72)
    sizes = {factor.name: len(factor.values) for factor in found.factors}
    assert sizes == {"floor_hue": 2, "object_hue": 3, "scale": 2, "shape": 3, "orientation": 2}
    assert found.factors[0].period == 1 and found.factors[3].labels == ("cube", "cylinder", "pill")
    # stored with the last factor fastest; cells have the first fastest
    stored = arrays["images"].reshape(2, 3, 2, 3, 2, 4, 4, 3).transpose(4, 3, 2, 1, 0, 5, 6, 7)
    np.testing.assert_array_equal(cell_images(found), stored.reshape(-1, 4, 4, 3) / np.float32(255))


def test_only_images_that_are_not_black_have_a_background(tmp_path):
    """A small disc on a bright backdrop: the backdrop alone is no picture of it."""
    y, x = np.divmod(np.arange(12), 4)
    rows, columns = np.arange(16)[None, :, None], np.arange(16)[None, None, :]
    near = (rows - 3 - 4 * y[:, None, None]) ** 2 + (columns - 2 - 3 * x[:, None, None]) ** 2
    disc, backdrop = np.exp(-near / 4), np.linspace(0.2, 0.9, 256).reshape(16, 16)
    arrays = {"x": x, "y": y}
    for name, images, is_black in (
        ("dark", disc * (disc > 0.02), True), ("bright", np.maximum(disc, backdrop), False)
    ):  # fmt: skip
        path = npz(tmp_path / f"{name}.npz", arrays | {"images": images.astype(np.float32)})
        scene = ImageTable(path=str(path)).scene()
        assert (np.ndim(scene.background) == 0) == is_black
        score = jax.jit(ImageTable(path=str(path), held_out="x == 2").make().scores)
        shown = lambda image, score=score, truth=images[5]: bool(
            score(np.float32(image), np.float32(truth), np.float32([1, 1]))["rendered"]
        )
        assert shown(images[5]) and not shown(images.mean(axis=0))
        assert not shown(backdrop)
    assert np.corrcoef(backdrop.ravel(), images[5].ravel())[0, 1] ** 2 > 0.8
    np.testing.assert_allclose(scene.background, images.mean(axis=0), atol=0.15)


def test_mpi3d_told_by_its_number_of_images(tmp_path):
    for count, sizes in ((1036800, (6, 6, 2, 3, 3, 40, 40)), (460800, (4, 4, 2, 3, 3, 40, 40))):
        number = np.arange(count, dtype=np.uint32)[:, None] // [1, 256, 65536] % 256
        images = np.broadcast_to(number[:, None, None].astype(np.uint8), (count, 2, 2, 3))
        path = npz(tmp_path / "mpi3d_real.npz", {"images": images})
        found = table_files.read(str(path), (("vertical_axis", "::8"), ("horizontal_axis", (5, 7))))
        assert isinstance(found.images, np.memmap)
        assert len(found.rows_B) == count // 160 and found.factors[-1].name == "vertical_axis"
        assert bool(found.factors[0].labels) == (sizes[0] == 6)
        image = at(
            found, object_color=3, object_shape=1, object_size=1, camera_height=2,
            background_color=0, horizontal_axis=7, vertical_axis=24,
        )  # fmt: skip
        index = np.ravel_multi_index((3, 1, 1, 2, 0, 7, 24), sizes)
        assert np.round(image[0, 0] * 255).astype(int) @ [1, 256, 65536] == index


def test_the_test_part_of_a_split_is_held_out_unless_a_sentence_says_otherwise(tmp_path):
    path, arrays = split(tmp_path)
    found = table_files.read(str(path))
    names = [factor.name for factor in found.factors]
    assert names == ["shape", "orientation", "posX"]  # 0 and 39 are the same orientation
    np.testing.assert_allclose(found.factors[1].values, [0, 2 * np.pi * 13 / 39], rtol=1e-6)
    np.testing.assert_array_equal(found.factors[0].values, [1, 3])
    points = tasks.cells(found.factors)
    np.testing.assert_array_equal(found.test_B, np.isclose(points[:, 2], 6 / 31))
    image = at(found, shape=3, orientation=0, posX=6 / 31)
    (row,) = np.flatnonzero((arrays["test_labels"] == [2, 1, 0, 6, 31]).all(axis=1))
    np.testing.assert_array_equal(image, arrays["test_images"][row, 0])
    of_file = ImageTable(path=str(path)).make()
    np.testing.assert_array_equal(tasks.regions(of_file)["ood"], found.test_B)
    said = ImageTable(path=str(path), held_out="shape == 'heart' and posX < .17").make()
    np.testing.assert_array_equal(
        tasks.regions(said)["ood"], (points[:, 0] == 3) & np.isclose(points[:, 2], 5 / 31)
    )


def test_a_subset_of_a_split_needs_an_image_of_its_training_part(tmp_path):
    settings = ImageTable(path=str(split(tmp_path)[0]), subset=(("posX", (1,)),))
    with pytest.raises(ConfigError, match="config.task.held_out='': all that is left is of the"):
        settings.make()
    assert replace(settings, held_out="shape == 'heart'").make().points is None


@pytest.mark.parametrize("write", [npz, hdf5])
def test_files_of_your_own(tmp_path, write):
    arrays = own(hue_period=np.float64(0.5), width_labels=np.array(["a", "b", "c", "d"]))
    path = write(tmp_path / "own.npz", arrays)
    found = table_files.read(str(path))
    hue, width = found.factors
    assert (hue.name, hue.real, hue.period) == ("hue", True, 0.5)
    np.testing.assert_array_equal(hue.values, [0, 0.25])  # .5 is 0 again
    assert (width.name, width.real, width.labels) == ("width", False, ("a", "b", "c", "d"))
    np.testing.assert_array_equal(at(found, hue=0.25, width=8), arrays["images"][7])
    words = np.array(["pear", "fig"] * 6)
    columns = {"images": arrays["images"], "size": arrays["factors"][:, 1], "fruit": words}
    columns["size"] = np.repeat([1, 2, 3, 4, 5, 6], 2)
    found = table_files.read(str(write(tmp_path / "columns.npz", columns)))
    (fruit,) = (factor for factor in found.factors if factor.name == "fruit")
    assert fruit.labels == ("fig", "pear") and not fruit.real
    np.testing.assert_array_equal(at(found, fruit=1, size=3), arrays["images"][4])


def test_a_table_with_gaps_is_measured_at_its_images_alone(tmp_path):
    arrays = own()
    gone = [0, 6]  # (hue 0, width 1) and (hue .25, width 4)
    kept = {name: np.delete(arrays[name], gone, axis=0) for name in ("images", "factors")}
    path = npz(tmp_path / "gaps.npz", arrays | kept)
    found = table_files.read(str(path))
    assert (~found.exists_B).sum() == 2 and "2 of 12 combinations have no image" in found.says
    task = ImageTable(path=str(path), held_out="hue == .5 and width > 2").make()
    sorted_rows = lambda rows: rows[np.lexsort(rows.T)]
    np.testing.assert_array_equal(sorted_rows(task.points), sorted_rows(kept["factors"]))
    assert tasks.regions(task)["ood"].sum() == 2
    examples = jax.jit(lambda key: tasks.examples_at(task, key, jnp.float32(kept["factors"])))
    examples = examples(jax.random.key(0))
    np.testing.assert_array_equal(examples.target, kept["images"])


def test_the_nearest_image_of_a_table_with_gaps_is_found_round_the_circle(tmp_path):
    hue, x = product([np.arange(10) / 10, [0, 1, 2]])[1:].T
    columns = {"images": RNG.random((29, 4, 4), np.float32), "hue": hue, "x": x}
    path = npz(tmp_path / "gaps.npz", columns | {"hue_period": np.float64(1)})
    task = ImageTable(path=str(path), held_out="hue >= .8").make()
    nearest = task.nearest(np.float32([[0.9, 1], [0.8, 1], [0.9, 0]]))
    np.testing.assert_allclose(nearest, [[0, 1], [0.7, 1], [0, 1]])  # (0, 0) has no image


def test_subsets_by_label_place_and_slice(tmp_path):
    path = npz(tmp_path / "dsprites.npz", dsprites())
    keep = (("shape", ("heart", "square")), ("orientation", (-1, 0)), ("posX", "::2"))
    found = table_files.read(str(path), keep)
    values = {factor.name: list(np.round(factor.values, 3)) for factor in found.factors}
    assert values["shape"] == [1, 3] and found.factors[0].labels == ("square", "heart")
    assert values["orientation"] == [0, 4.189] and values["posX"] == [0, 1]
    whole = table_files.read(str(path))
    where = {"shape": 3, "scale": 0.8, "orientation": 4 * np.pi / 3, "posX": 1, "posY": 2 / 31}
    np.testing.assert_array_equal(at(found, **where), at(whole, **where))
    with pytest.raises(ConfigError, match="keeps no image"):
        gaps = {name: array[[1, 4, 11]] for name, array in own().items() if len(array) == 12}
        gaps = npz(tmp_path / "gaps.npz", gaps | {"factor_names": own()["factor_names"]})
        table_files.read(str(gaps), (("hue", (1,)), ("width", (1,))))
    one = table_files.read(str(path), (("shape", (1,)),))
    assert [factor.name for factor in one.factors] == ["scale", "orientation", "posX", "posY"]


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ((("colour", (0,)),), "must be pairs of a factor and its values; factors are color, shape"),
        (("posX", "::2"), "must be pairs"),
        ((("shape", ("circle",)),), "needs START:STOP:STEP, or a tuple of some of square, ellipse"),
        ((("shape", (3,)),), "places from 0 to 2"),
        ((("posX", (0, 0)),), "posX needs"),
        ((("posX", ()),), "posX needs"),
        ((("posX", 2),), "posX needs"),
        ((("posX", "every 2"),), "posX needs"),
        ((("posX", "::x"),), "posX needs"),
        ((("posX", "9:"),), "posX needs"),
    ],
)
def test_a_wrong_subset_is_refused(tmp_path, subset, message):
    path = str(npz(tmp_path / "dsprites.npz", dsprites()))
    with pytest.raises(ConfigError, match=message) as caught:
        table_files.read(path, subset)
    assert str(caught.value).startswith(f"config.task.subset={subset!r}: ")


@pytest.mark.parametrize("side", [1, 4, 5, 8])
def test_smaller_images_are_means_over_areas(tmp_path, side):
    images = RNG.integers(0, 256, (12, 10, 10, 3), np.uint8)
    path = npz(tmp_path / "own.npz", own(images=images))
    found = table_files.read(str(path), side=side)
    expected, step = np.zeros((side, side, 3)), 10 / side
    share = lambda a, i: max(0.0, min((a + 1) * step, i + 1) - max(a * step, i)) / step
    for a, b, i, j in itertools.product(range(side), range(side), range(10), range(10)):
        expected[a, b] += share(a, i) * share(b, j) * images[7, i, j] / 255
    assert found.images.dtype == np.float16
    np.testing.assert_allclose(at(found, hue=0.25, width=8), expected, atol=2**-11)


@pytest.mark.parametrize("side", [11, 400])
def test_no_side_is_larger_than_stored(tmp_path, side):
    path = str(npz(tmp_path / "own.npz", own(images=np.zeros((12, 10, 10), np.uint8))))
    with pytest.raises(ConfigError, match=f"config.task.side={side}: images have 10 x 10 pixels"):
        table_files.read(path, side=side)
    assert ImageTable(path=path, side=10).side == 10


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.float16, np.float64, ">f4", np.longdouble])
@pytest.mark.parametrize("most", [0, 2**20])
def test_a_constant_and_a_callback_show_the_same(tmp_path, monkeypatch, dtype, most):
    monkeypatch.setattr(table, "CONSTANT", most)
    images = RNG.random((12, 4, 4, 1)) if np.dtype(dtype).kind == "f" else None
    images = RNG.integers(0, 2, (12, 4, 4, 1)) if images is None else images
    arrays = own(images=images.astype(dtype))
    scene = ImageTable(path=str(npz(tmp_path / "own.npz", arrays))).scene()
    points = jnp.asarray(arrays["factors"] + [0.1, -0.4], jnp.float32).reshape(3, 4, 2)
    shown = jax.jit(jax.vmap(jax.vmap(scene.picture)))(points)
    assert shown.dtype == jnp.float32 and shown.shape == (3, 4, 4, 4)
    expected = arrays["images"][..., 0].astype(np.float32).reshape(3, 4, 4, 4)
    np.testing.assert_array_equal(shown, expected)
    program = str(jax.make_jaxpr(scene.picture)(points[0, 0]))
    assert ("pure_callback" in program) == (most == 0)


# --- wrong files -----------------------------------------------------------------------------


def content(data):
    def write(path):
        path.write_bytes(data)

    return write


def saved(arrays, save=np.savez):
    def write(path):
        with path.open("wb") as file:
            save(file, **arrays)

    return write


def shortened(arrays, share, save=np.savez):
    def write(path):
        saved(arrays, save)(path)
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

    return write


def flipped(path):
    """One bit of compressed images is wrong."""
    saved(own(images=RNG.integers(0, 256, (12, 40, 40), np.uint8)), np.savez_compressed)(path)
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)


def no_array(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images", b"no array")


def no_images(path):
    with h5py.File(path, "w") as file:
        file["images"] = np.dtype("f4")


def half_of_hdf5(path):
    hdf5(path, shapes3d())
    path.write_bytes(path.read_bytes()[:4000])


def objects(shape):
    return np.full(shape, None, dtype=object)


def spoilt(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


WRONG = [
    (lambda path: None, "No such file or directory"),
    (lambda path: path.mkdir(), "Is a directory"),
    (content(b""), "is neither an npz nor an HDF5 file"),
    (content(b"hue,width\n1,2\n"), "is neither an npz nor an HDF5 file"),
    (shortened(own(), 0.5), "not a zip file"),
    (half_of_hdf5, "truncated file"),
    (flipped, "Bad CRC-32|Error -3|invalid"),
    (no_array, "no item named 'images.npy'"),
    (no_images, "has the keys of no array"),
    (saved({}), "is neither an npz nor an HDF5 file"),
    (saved({"pictures": np.zeros((2, 4, 4))}), "has the keys pictures; your own file has images"),
    (saved({"imgs": np.zeros((2, 4, 4))}), "has the keys imgs"),
    (saved(own(images=np.zeros((12, 4, 4), int))), "images has int64; images must be uint8"),
    (saved(own(images=objects((12, 4, 4)))), "images has object|Object arrays cannot be loaded"),
    (saved(own(images=np.zeros((12, 16)))), r"images has shape \(12, 16\)"),
    (saved(own(images=np.zeros(()))), r"images has shape \(\)"),
    (saved(own(images=np.zeros((0, 4, 4)))), r"images has shape \(0, 4, 4\)"),
    (saved(own(images=np.zeros((12, 3, 8, 8)))), r"images has shape \(12, 3, 8, 8\)"),
    (saved(own(images=RNG.random((12, 4, 4)) * 255)), "floats must be from 0 to 1"),
    (saved(own(images=RNG.random((12, 4, 4)) - 1)), "floats must be from 0 to 1"),
    (saved(own(images=spoilt(own()["images"], (3, 2, 2), np.nan))), "images are nan to nan"),
    (saved(own(images=np.ones((12, 4, 4), np.uint8))), "are the same: it is damaged"),
    (
        saved(own(images=RNG.random((11, 4, 4)))),
        r"factors has shape \(12, 2\); must be \(11, 'any'",
    ),
    (saved(own(factors=spoilt(own()["factors"], (0, 1), np.inf))), "factors must be finite"),
    (saved(own(factors=objects((12, 2)))), "Object arrays cannot be loaded"),
    (saved(own(factors=np.ones((12, 2)))), "12 .*more than one image|no factor with two values"),
    (saved(own(factors=spoilt(own()["factors"], 0, [0, 2]))), "1 combinations have more than one"),
    (saved(own(factor_names=np.array(["hue"]))), r"factor_names has shape \(1,\); must be \(2,\)"),
    (saved(own(factor_names=np.array(["a", "a"]))), "factor_names has a name twice: a, a"),
    (saved(own(hue_period=np.float64(0))), "hue_period is 0; must be greater than 0"),
    (saved(own(hue_period=np.float64(0.3))), "hue_period is 0.3; .* at least the range of the val"),
    (saved(own(hue_period=np.ones(3))), r"hue_period has shape \(3,\)"),
    (saved(own(width_labels=np.array(["a", "b"]))), r"width_labels has shape \(2,\); must be \(4,"),
    (saved({"images": own()["images"], "size": np.arange(11)}), r"size has shape \(11,\)"),
    (
        saved({"images": own()["images"]}),
        "has 12 images and no factors; MPI3D has 1036800 or 460800",
    ),
    (saved(dsprites(latents_values=np.ones((5, 6)))), r"latents_values has shape \(5, 6\)"),
    (
        saved(dsprites(latents_values=product(DSPRITES)[:, [1, 0, 2, 3, 4, 5]])),
        "color is 2, and never so in dSprites",
    ),
    (saved(shapes3d(labels=product(SHAPES3D)[:, :5])), r"labels has shape \(72, 5\)"),
    (saved(shapes3d(labels=product(SHAPES3D) * 10)), "floor_hue is 5, and never so in 3D Shapes"),
    (saved({"arr_0": np.zeros((2, 1, 4, 4))}), "a split is DATA_SPLIT_train_images.npz"),
]


def refused(path, message):
    with pytest.raises(ConfigError, match=message) as caught:
        table_files.read(str(path))
    text = str(caught.value)
    assert text.startswith(f"config.task.path={str(path)!r}: ") and "\n" not in text


@pytest.mark.parametrize(("write", "message"), WRONG)
def test_a_wrong_file_is_refused(tmp_path, write, message):
    write(tmp_path / "table.npz")
    refused(tmp_path / "table.npz", message)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"test_images": None}, "needs dsprites_extrapolation_test_images.npz with the one key"),
        ({"train_labels": None}, "needs dsprites_extrapolation_train_labels.npz"),
        ({"test_labels": np.zeros((6, 4), int)}, r"arr_0 has shape \(6, 4\); must be \(6, 5\)"),
        ({"test_labels": np.full((6, 5), 40)}, "shape is 40, and never so in dsprites_extrap"),
        ({"test_images": np.zeros((6, 1, 5, 5), np.uint8)}, "the train and the test part differ"),
        ({"test_images": np.zeros((6, 4, 4, 4, 1), np.uint8)}, r"of a split, \(n, C, H, W\)"),
    ],
)
def test_a_wrong_split_is_refused(tmp_path, others, message):
    path, arrays = split(tmp_path, **others)
    refused(path, message)


def test_a_combination_of_both_parts_is_refused(tmp_path):
    labels = split(tmp_path)[1]["train_labels"]
    refused(split(tmp_path, test_labels=labels)[0], "combinations have more than one image")


def test_too_many_combinations_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_CELLS", 11)
    refused(npz(tmp_path / "own.npz", own()), r"more than 11 combinations .*\(hue 3, width 4\)")


def test_a_file_that_may_not_be_read_and_a_library_that_lacks_are_said(tmp_path, monkeypatch):
    path = hdf5(tmp_path / "3dshapes.h5", shapes3d())
    monkeypatch.setitem(sys.modules, "h5py", None)
    refused(path, r"needs h5py: pip install 'compgen_jax\[files\]'")

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    refused(path, "Permission denied")
    with pytest.raises(ConfigError, match="config.task.path='': must name a file"):
        ImageTable().make()
