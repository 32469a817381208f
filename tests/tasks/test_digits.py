"""Digits of the font: area, holes, place and direction. Digits of MNIST: files and their faults."""

import gzip

import chex
import matplotlib
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from scipy import ndimage

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import digits

HOLES = {0: 1, 4: 1, 6: 1, 8: 2, 9: 1}


@pytest.mark.parametrize("digit", range(10))
def test_a_digit_has_the_area_and_the_holes_of_its_outline(digit):
    """Area by the shoelace formula: an outline and its holes go round in opposite directions."""
    font = FontProperties(fname=f"{matplotlib.get_data_path()}/{digits.FONT}")
    polygons = TextPath((0, 0), str(digit), size=1000, prop=font).to_polygons()
    corners = np.concatenate(polygons)
    middle = (corners.min(0) + corners.max(0)) / 2
    scale = 12.5 / max(np.hypot(*(corner - middle)) for corner in corners)
    area = sum(np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1]) / 2 for p in polygons)
    image = digits.drawn(digit, 28)
    assert image.sum(dtype=np.float64) == pytest.approx(abs(area) * scale**2, rel=0.01)
    assert 0 <= image.min() and image.max() == 1 and len(np.unique(image)) > 2  # antialiased
    assert ndimage.label(image > 0.5)[1] == 1
    assert ndimage.label(image < 0.5)[1] - 1 == HOLES.get(digit, 0)


@pytest.mark.parametrize("side", [8, 16, 28])
def test_a_digit_is_centred_and_within_the_inscribed_circle(side):
    offset = np.arange(side) - (side - 1) / 2
    radius = np.hypot(offset[:, None], offset[None, :])
    for digit in range(10):
        image = digits.drawn(digit, side)
        for axis in (0, 1):  # its antialiased edges count
            inked = np.flatnonzero(image.any(axis=axis))
            assert abs(inked[0] + inked[-1] - (side - 1)) <= 1
        assert image[radius > (side - 1) / 2].max() == 0
        assert image[radius > (side - 1) / 2 - 2.5].max() > 0  # as large as can be


def test_row_0_is_the_bottom():
    """A 7 has its bar at the top, a 4 its crossbar low and its stem at the right; 6 turned is 9."""
    seven, four = digits.drawn(7, 28), digits.drawn(4, 28)
    rows = np.flatnonzero(seven.any(axis=1))
    assert (seven[rows[-3]] > 0.5).sum() > 2 * (seven[rows[2]] > 0.5).sum()
    rows = np.flatnonzero(four.any(axis=1))
    assert four[rows[1], 14:].sum() - four[rows[1], :14].sum() > 3
    assert np.argmax((four > 0.5).sum(axis=1)) < 12
    np.testing.assert_allclose(digits.drawn(6, 28)[::-1, ::-1], digits.drawn(9, 28), atol=0.15)


# --- MNIST -----------------------------------------------------------------------------------

LABELS = [5, 0, 4, 5, 4]
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)


def header(*numbers) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in numbers)


def images_file(images=IMAGES, magic=0x803) -> bytes:
    return header(magic, *images.shape) + images.tobytes()


def labels_file(labels=LABELS) -> bytes:
    return header(0x801, len(labels)) + bytes(labels)


def write(directory, images=None, labels=None, name="train-images-idx3-ubyte", suffix=""):
    own = {name: images_file() if images is None else images}
    of_labels = name.replace("images", "labels").replace("idx3", "idx1")
    own[of_labels] = labels_file() if labels is None else labels
    for name, content in own.items():
        content = gzip.compress(content) if suffix else content
        (directory / (name + suffix)).write_bytes(content)
    return directory


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "train-images.idx3-ubyte"])
def test_the_first_example_of_each_digit(tmp_path, name):
    write(tmp_path, name=name.removesuffix(".gz"), suffix=".gz" * name.endswith(".gz"))
    for path in (tmp_path, tmp_path / name):
        found = digits.first_of_each(str(path), (4, 5))
        expected = {4: IMAGES[2] / np.float32(255), 5: IMAGES[0] / np.float32(255)}
        chex.assert_trees_all_equal(found, expected)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"images": b"\x00\x00"}, "is truncated: 2 bytes have no whole header"),
        ({"images": images_file()[:-1]}, "is truncated: 3919 bytes of 5x28x28 values"),
        ({"images": images_file() + b"\x00"}, "is too long: 3921 bytes"),
        ({"images": images_file(magic=0x801)}, "has magic number 0x00000801, not 0x00000803"),
        ({"images": images_file(np.zeros((5, 5, 5), np.uint8))}, "has images of 5 x 5, not 28"),
        ({"images": images_file(IMAGES[:4])}, "has 4 images and .* 5 labels; must be as many"),
        ({"labels": labels_file([1, 2, 3, 5, 5])}, r"has no example of \[4\]"),
        ({"images": gzip.compress(images_file())[:-900]}, "is a broken gzip file"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, files, message):
    refused(write(tmp_path, **files), message)


def refused(path, message):
    with pytest.raises(ConfigError, match=message) as caught:
        digits.first_of_each(str(path), (4, 5))
    text = str(caught.value)
    assert text.startswith(f"config.task.mnist_path={str(path)!r}: ") and "\n" not in text


def test_a_missing_file_is_refused(tmp_path):
    refused(tmp_path / "nowhere", "no such file or directory")
    refused(tmp_path, "has neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz")
    write(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.rename(tmp_path / "elsewhere")
    refused(tmp_path, "has no train-labels-idx1-ubyte nor train-labels-idx1-ubyte.gz beside")
    other = tmp_path / "pictures"
    other.write_bytes(images_file())
    refused(other, "a file of images must have 'images' in its name")
