"""The tests of training take a tiny run of the paper's decoder, whose convolutions are trained by
code of ours."""

import pytest

from compgen_jax.config import changed


@pytest.fixture(scope="session")
def tiny(tiny):
    return changed(tiny, {"model.name": "conv", "model.depth": 2, "model.width": 4})
