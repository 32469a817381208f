"""What a drawn image shows, read off by comparison with true ones: its place and its size."""

import numpy as np


def drawn_size(signals_TxBxHxW, targets_CxHxW):
    """(T, B) int: which size's true image, at the brightest pixel of what is drawn, is nearest.

    Args:
      signals: of T seeds at any B points.  targets: the true signals of all cells of x, y and
        size, the first varying fastest, x and y the pixels.

    An image that is brightest nowhere is read at the first pixel, one with pixels that are no
    numbers at the first of these. ValueError where the cells are no such grid.
    """
    signals, targets = np.asarray(signals_TxBxHxW), np.asarray(targets_CxHxW)
    height, width = targets.shape[-2:]
    shape = targets.shape[1:]
    if targets.ndim != 3 or len(targets) % (height * width) or signals.shape[2:] != shape:
        raise ValueError(
            f"signals (T, B, H, W) and targets (S H W, H, W) needed, not {signals.shape} and "
            f"{targets.shape}"
        )
    by_place = targets.reshape(-1, height * width, height * width)  # size, place, pixel
    sizes = []
    for one_BxHxW in signals:
        flat = one_BxHxW.reshape(len(one_BxHxW), -1)
        place = np.argmax(flat, axis=1)
        errors = [np.square(flat - true[place]).mean(axis=1) for true in by_place]
        sizes.append(np.argmin(errors, axis=0))
    return np.array(sizes)
