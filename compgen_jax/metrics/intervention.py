"""Interventions on the layers of any network that returns its activations.

An activation is a variable of the network's jaxpr, which is evaluated with another value in its
place: no model needs hooks.
"""

import difflib
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from compgen_jax.settings import demand

# each result is a copy of entries of the operands: replaced there, it is replaced in these, too
COPIES = "reshape", "squeeze", "transpose", "concatenate", "slice", "broadcast_in_dim"
RECORDED_BESIDE = "is recorded beside what the output is computed from, and cannot be replaced"


def check_layer(name: str, layers: dict):
    """Raises ConfigError unless there is the layer."""
    nearest = ", ".join(difflib.get_close_matches(name, layers, n=3, cutoff=0))
    demand(name in layers, f"layer {name!r}: no such layer; nearest: {nearest}")


def intervene(network: Callable, values: dict, example):
    """The output of one example, with layers replaced on the way.

    Args:
      network: example -> (output, {layer: array}).
      values: {layer: array}, or a function of the activation, to which replaced earlier layers led.

    Raises ConfigError for an unknown layer, another shape, and a layer that is recorded beside
    what the output is computed from.
    """
    closed, shapes = jax.make_jaxpr(network, return_shape=True)(example)
    jaxpr, replaced = closed.jaxpr, {}
    output, layers = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr.outvars)
    made_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    order = [*jaxpr.constvars, *jaxpr.invars, *made_by]
    known = dict(zip(order, [*closed.consts, *jax.tree.leaves(example)], strict=False))
    needed = {*jax.tree.leaves(output)}  # what the output is computed from
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            needed |= {var for var in eqn.invars if not isinstance(var, Literal)}

    def evaluate() -> Callable:
        results = known | replaced
        value_of = lambda var: var.val if isinstance(var, Literal) else results[var]
        for eqn in jaxpr.eqns:
            params = eqn.primitive.get_bind_params(eqn.params)
            made = eqn.primitive.bind(*map(value_of, eqn.invars), **params)
            made = made if eqn.primitive.multiple_results else [made]
            for var, result in zip(eqn.outvars, made, strict=True):
                results.setdefault(var, result)
        return value_of

    def sources(var) -> list:
        """The variables of which it is a copy."""
        eqn = made_by.get(var)
        if eqn is None or eqn.primitive.name not in COPIES or var.aval.dtype == bool:
            return []
        if any(isinstance(source, Literal) for source in eqn.invars):
            return []
        is_repeated = var.aval.size > sum(source.aval.size for source in eqn.invars)
        return [] if is_repeated else eqn.invars

    def is_read(var) -> bool:
        return var in needed or (bool(sources(var)) and all(map(is_read, sources(var))))

    def replace(var, value, value_of):
        replaced[var], before = value, [*map(value_of, sources(var))]
        if before:
            copy = partial(made_by[var].primitive.bind, **made_by[var].params)
            back = jax.linear_transpose(copy, *before)
            parts = before, back(value), back(jnp.ones_like(value))
            for source, old, new, is_copied in zip(sources(var), *parts, strict=True):
                replace(source, jnp.where(is_copied > 0, new, old), value_of)

    for name in values:
        check_layer(name, layers)
        demand(is_read(layers[name]), f"layer {name!r}: {RECORDED_BESIDE}")
    for name in sorted(values, key=lambda name: order.index(layers[name])):
        value_of, value = evaluate(), values[name]
        before = value_of(layers[name])
        after = jnp.asarray(value(before) if callable(value) else value, before.dtype)
        wanted = f"replaced by {after.shape}, must be {before.shape}"
        demand(after.shape == before.shape, f"layer {name!r}: {wanted}")
        replace(layers[name], after, value_of)
    return jax.tree.map(evaluate(), output)
