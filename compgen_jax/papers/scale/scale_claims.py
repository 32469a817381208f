"""The claims of "Scaling can lead to compositional generalization" (NeurIPS 2025)."""

from compgen_jax.claims import Claim
from compgen_jax.papers.scale import codes, composing, decoding_claims, generators, neurons

MODULES = composing, codes, neurons, decoding_claims, generators
CLAIMS = tuple(c for module in MODULES for c in vars(module).values() if isinstance(c, Claim))
NOTE = (
    "S are claims of the paper on scale. R² is pooled, around the outputs' means over all tasks; "
    "gain is 1 - error / that of the best map that is bilinear in latent and input, which composes "
    "nothing and has an R² of .85 to .88 at 8 and 16 modules: so claims called *gain* judge gains. "
    "Intervals are Student's t over training seeds, of one teacher and one draw of the sets. At "
    "the middle scale every seed has a teacher and a draw of its own."
)
