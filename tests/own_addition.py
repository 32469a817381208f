"""Modular addition, as in studies of grokking: two one-hot numbers, and the label of their sum."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from compgen_jax.config import Config, TrainingConfig
from compgen_jax.models.model import Model
from compgen_jax.settings import Family, number
from compgen_jax.tasks.task import Example, Factor, over_cells


class Net(nn.Module):
    width: int
    classes: int

    @nn.compact
    def __call__(self, pair):
        summed = nn.Dense(self.width)(pair["a"]) + nn.Dense(self.width)(pair["b"])
        hidden = nn.relu(summed)
        return nn.Dense(self.classes)(hidden), {"summed": summed, "hidden": hidden}


@dataclass(frozen=True)
class TwoTowers(Model):
    width: int = number(32, low=1)

    def make(self, shapes):
        return Net(self.width, shapes.output.shape[0])


def scores(prediction, truth, point):
    right = prediction.argmax() == truth.argmax()
    return {"error": jnp.mean((prediction - truth) ** 2), "accuracy": right}


@dataclass(frozen=True)
class Addition(Family):
    p: int = number(5, low=2)
    left_out: int = number(1, traced=True)  # b = a + left_out (mod p) is held out

    def make(self):
        held_out = lambda points: (points[..., 0] + self.left_out) % self.p == points[..., 1]

        def example(key, ab):
            a, b = jax.nn.one_hot(ab.astype(int), self.p)
            return Example({"a": a, "b": b}, (ab.sum() % self.p).astype(int))

        factors = [Factor(name, np.arange(self.p), real=False) for name in "ab"]
        others = {"loss": lambda out, sum: -jax.nn.log_softmax(out)[sum], "scores": scores}
        others |= {"error": "error", "accuracy": "accuracy", "output": jnp.zeros(self.p)}
        others |= {"prediction": jax.nn.softmax, "truth": lambda sum: jax.nn.one_hot(sum, self.p)}
        return over_cells(factors, held_out, example, **others)


def get_config(name):
    return Config("sums", Addition(), TwoTowers(), TrainingConfig(steps=30))
