"""How large is a deviation that is known from independent blocks of draws only?"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Size:
    """A root mean square free of the noise's own square, and its standard error.

    `value` is None where the noise hides the deviation: its square was estimated below 0.
    """

    value: float | None
    stderr: float


def size(blocks: Float[Tensor, "B ..."]) -> Size:
    """Of the mean over blocks, B independent estimates of one vector of deviations.

    The square of a mean has the noise's variance added; the product of two different blocks has
    not, so the square is the mean over pairs, and its error the jackknife over blocks.
    """
    flat = blocks.flatten(1).double()
    n = len(flat)
    if n < 3:
        raise ValueError(f"{n} blocks: a size needs 3 or more")
    gram = flat @ flat.T / flat.shape[1]
    total, own = gram.sum(), gram.diagonal()
    square = (total - own.sum()) / (n * (n - 1))
    # Without block i the pairs lose row and column i.
    left = (total - 2 * gram.sum(1) + own - (own.sum() - own)) / ((n - 1) * (n - 2))
    spread = ((left - left.mean()).square().sum() * (n - 1) / n).sqrt()
    if float(square) <= 0:
        return Size(None, float(spread.sqrt()))
    root = float(square.sqrt())
    return Size(root, float(spread) / (2 * root))
