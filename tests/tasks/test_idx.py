"""IDX files as MNIST has them, written here byte by byte, and every way in which they are wrong."""

import gzip

import numpy as np
import pytest

from compgen_jax.settings import ConfigError
from compgen_jax.tasks import digits as idx

LABELS = [5, 0, 4, 5, 4]
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), np.uint8)


def header(*numbers) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in numbers)


def images_file(images=IMAGES, magic=0x803) -> bytes:
    return header(magic, *images.shape) + images.tobytes()


def labels_file(labels=LABELS, magic=0x801) -> bytes:
    return header(magic, len(labels)) + bytes(labels)


def write(directory, images=None, labels=None, name="train-images-idx3-ubyte", suffix=""):
    own = {name: images_file() if images is None else images}
    of_labels = name.replace("images", "labels").replace("idx3", "idx1")
    own[of_labels] = labels_file() if labels is None else labels
    for name, content in own.items():
        content = gzip.compress(content) if suffix else content
        (directory / (name + suffix)).write_bytes(content)
    return directory


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "train-images.idx3-ubyte"])
@pytest.mark.parametrize("by_file", [False, True])
def test_the_first_of_each_digit(tmp_path, name, suffix, by_file):
    write(tmp_path, name=name, suffix=suffix)
    path = tmp_path / (name + suffix) if by_file else tmp_path
    found = idx.first_of_each(str(path), (4, 5))
    assert set(found) == {4, 5}
    for digit, index in ((4, 2), (5, 0)):
        assert found[digit].dtype == np.float32 and found[digit].shape == (28, 28)
        np.testing.assert_array_equal(found[digit], IMAGES[index] / np.float32(255))


def test_labels_may_be_compressed_where_images_are_not(tmp_path):
    write(tmp_path)
    plain = tmp_path / "train-labels-idx1-ubyte"
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    np.testing.assert_allclose(idx.first_of_each(str(tmp_path), [0])[0], IMAGES[1] / 255, rtol=1e-6)


SMALL = np.zeros((5, 5, 5), np.uint8)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"images": b"\x00\x00"}, "is truncated: 2 bytes have no whole header"),
        ({"images": images_file()[:-1]}, "is truncated: 3919 bytes of 5x28x28 values"),
        ({"labels": labels_file()[:-1]}, "is truncated: 4 bytes of 5 values"),
        ({"images": images_file() + b"\x00"}, "is too long: 3921 bytes"),
        ({"images": images_file(magic=0x801)}, "has magic number 0x00000801, not 0x00000803"),
        ({"labels": labels_file(magic=0x803)}, "has magic number 0x00000803, not 0x00000801"),
        ({"images": images_file(SMALL)}, "has images of 5 x 5, not 28 x 28"),
        ({"images": images_file(IMAGES[:4])}, "has 4 images and .* 5 labels; must be as many"),
        ({"labels": labels_file([1, 2, 3, 5, 5])}, r"has no example of \[4\]"),
        ({"images": gzip.compress(images_file())[:-900]}, "is a broken gzip file"),
        ({"images": b"\x1f\x8b" + b"no gzip at all"}, "is a broken gzip file"),
    ],
)
def test_files_that_are_wrong(tmp_path, files, message):
    fails(write(tmp_path, **files), message)


def fails(path, message):
    with pytest.raises(ConfigError, match=message) as caught:
        idx.first_of_each(str(path), (4, 5))
    text = str(caught.value)
    assert text.startswith(f"config.task.mnist_path={str(path)!r}: ") and "\n" not in text


def test_damage_within_a_compressed_file(tmp_path):
    write(tmp_path, suffix=".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    fails(tmp_path, "is a broken gzip file")


def test_files_that_are_missing(tmp_path):
    fails(tmp_path / "nowhere", "no such file or directory")
    fails(tmp_path, "has neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz")
    write(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    fails(tmp_path, "has no train-labels-idx1-ubyte nor train-labels-idx1-ubyte.gz beside")
    other = tmp_path / "pictures"
    other.write_bytes(images_file())
    fails(other, "a file of images must have 'images' in its name")
