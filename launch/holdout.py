"""What a hold-out is worth before anything is trained, and what baselines get right of it.

    compgen-jax holdout images.npz "shape == 'heart' and posX > .5"
    compgen-jax holdout --config=sprites_quick "composition(.5)" --out=DIR

What the numbers mean is in docs/how_to/hold_out.md.
"""

from pathlib import Path

from absl import flags

from compgen_jax import api, cli
from compgen_jax.runs import directory

CONFIG = cli.define_config()
SENTENCE = flags.DEFINE_string("held_out", None, "What is held out; may stand alone, last.")
OUT = cli.define_out()


def main():
    config = cli.read_config(CONFIG)
    worth = api.free_score(config, SENTENCE.value)
    print(worth)
    if OUT.value:
        path = Path(OUT.value) / "worth.json"
        directory.write_json(path, worth.numbers)
        print(f"wrote {path}")


if __name__ == "__main__":
    cli.run(main, positional=(CONFIG, SENTENCE))
