"""Networks of PyTorch on our pages, and its tensors as predictions."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import compgen_jax as cg
from compgen_jax.metrics import geometry
from tests.command import blocks, snippets

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by torch.func
PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "pytorch.md"


def test_the_tutorial_in_few_steps(tmp_path, monkeypatch):
    """From outside the checkout. Its metric tensors are those that JAX has with its weights."""
    monkeypatch.chdir(tmp_path)
    names = {}
    train, *others = blocks(PAGE.read_text(), "python")
    for block in (train.replace("steps=2000", "steps=20"), *others):
        exec(block.replace("range(4)", "range(2)"), names)
    assert set(names["scores"].to_frame().seeds) == {2} and not list(tmp_path.iterdir())
    weights = [parameter.detach().numpy() for parameter in names["net"].parameters()]

    def layers(point):
        places = jnp.arange(16.0)[None] - point[:, None]
        layer = weights[0] @ jnp.exp(-(places**2) / 2).ravel() + weights[1]
        return {"0": layer, "1": jax.nn.relu(layer)}

    tensors = geometry.metric_tensors(layers, jnp.asarray(names["cells"]["points"]))
    for name, expected in tensors.items():
        actual = names["tensors"][name].detach().numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_the_hooks_of_the_page_on_probes(numpy_rules):
    names = {}
    exec(snippets("probe")[2], names)
    factors = names["report"].layers["0"]["factors"]
    assert [factors[name]["measure"] for name in ("shape", "size")] == ["auc", "r2"]
    assert names["report"].rows == {"id": 22, "ood": 2}


def test_bfloat16_is_scored_as_its_numbers(tiny):
    targets = cg.examples(tiny)["targets"]
    error = cg.score(torch.tensor(targets).bfloat16(), tiny).mean["id.mse"]["value"]
    assert 0 < error < 2.0**-16 * np.square(targets).max()  # of 8 bits
