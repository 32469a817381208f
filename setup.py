"""Installed, launch/ and figures/ are compgen_jax.launch and compgen_jax.figures, so that
site-packages gets no folder of a name that others may use. The files of the tutorials are in
compgen_jax.examples, for `compgen-jax example`. setup.cfg has everything else."""

from setuptools import find_packages, setup

BESIDE = "launch", "figures"
setup(
    packages=[
        *find_packages(include=["compgen_jax", "compgen_jax.*"]),
        *(f"compgen_jax.{name}" for name in find_packages(include=[f"{b}*" for b in BESIDE])),
        "compgen_jax.examples",
    ],
    package_dir={f"compgen_jax.{name}": name for name in BESIDE}
    | {"compgen_jax.examples": "docs/tutorials"},
)
