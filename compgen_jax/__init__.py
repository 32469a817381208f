"""compgen_jax: a laboratory for compositional generalization.

Data flows one way: factors -> (code, target) -> decoder -> (image, activations) -> numbers
-> verdicts -> figures. Every function is written for one point, one seed, one trial; batches,
seeds, trials and devices are `vmap`/`pmap` on top.

Shape legend, used as a suffix where it helps (`codes_BxE`, `image_HxW`):

    B  points (a batch, or every cell of the grid)     N  grid size, in pixels
    E  code length                                     H, W  image height and width (both N)
    C  channels                                        D  flattened features of a layer
    L  layers                                          T  trials (seeds count as trials)

Coordinates are floats `(x, y)` in pixels: x is the column, y the row, pixel centres lie at the
integers 0..N-1, and a pixel is addressed as `image[y, x]`.
"""
