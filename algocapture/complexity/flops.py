"""What a kernel estimate costs, as a function of T, P, draws, depth and features.

Products are exact: what `InfiniteTransformer.estimate` runs, counted by 2 m k n. Roots are eigen-
decompositions, whose size is given as n^3 (a routine takes about ten times that in FLOPs). Models
say their own cost beside `forward`: `ModelConfig.flops` and `.activations`.
"""

from __future__ import annotations

from dataclasses import dataclass

from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.kernels.attention import cheaper_by_features
from algocapture.kernels.chain import CACHE, workspace
from algocapture.kernels.checks import check_choice, check_count

SAMPLERS = ("shared", "row", "pair", "conditional", "keys")


@dataclass(frozen=True)
class KernelCost:
    products: int  # FLOPs of matrix products
    cubes: int  # n^3 of all eigendecompositions
    memory: int  # bytes, roughly: one portion of draws, the covariances of a block, the results


@dataclass(frozen=True)
class Workload:
    """An estimate by its sizes: P inputs with themselves, or with `others` inputs."""

    kernel: InfiniteTransformer
    inputs: int
    length: int
    features: int
    draws: int
    others: int | None = None
    kinds: tuple[str, ...] = ("nngp",)
    sampler: str = "pair"
    key_dim: int = 64
    runs: int = 1  # independent parts that the draws are split into: each has roots of its own

    def __post_init__(self) -> None:
        for name in ("inputs", "length", "features", "draws", "key_dim", "runs"):
            check_count(name, getattr(self, name))
        if self.others is not None:
            check_count("others", self.others)
        check_choice("sampler", self.sampler, SAMPLERS)

    @property
    def ntk(self) -> bool:
        return "ntk" in self.kinds

    @property
    def by_pairs(self) -> bool:
        return self.sampler in ("pair", "conditional")

    @property
    def groups(self) -> int:
        """Groups of inputs that have draws of their own."""
        if not self.by_pairs:
            return 1
        p = self.inputs
        return p * (p + 1) // 2 if self.others is None else p * self.others

    @property
    def sides(self) -> tuple[int, int, int]:
        """Inputs of a group, and how many of them are on the left and on the right."""
        if self.by_pairs:
            return 2, 1, 1
        if self.others is None:
            return self.inputs, self.inputs, self.inputs
        return self.inputs + self.others, self.inputs, self.others

    def cost(self, itemsize: int = 4, memory: int = 2**30) -> KernelCost:
        """`memory` as in `estimate`; portions of draws are those of a CPU."""
        first, *later = self._blocks()
        begun = self.runs if self._many_portions(itemsize, memory) else 1  # block 1 is kept
        fixed = begun * first.fixed + self.runs * sum(block.fixed for block in later)
        cubes = begun * first.cubes + self.runs * sum(block.cubes for block in later)
        drawn = self.draws * sum(block.draw + block.moments for block in [first, *later])
        budget = min(memory, CACHE)
        held = max(block.held(budget, itemsize) for block in [first, *later])
        return KernelCost(
            self.groups * (fixed + drawn) + self._means(),
            self.groups * cubes + self._settled(),
            held + itemsize * self._results(),
        )

    def _blocks(self) -> list[_Block]:
        (every, left, right), depth = self.sides, self.kernel.depth
        middle = [_Block(self, n, every, every, every, False) for n in range(depth - 1)]
        one_row = self.kernel.readout == "last"
        return [*middle, _Block(self, depth - 1, every, left, right, one_row)]

    def _many_portions(self, itemsize: int, memory: int) -> bool:
        """Pairs that do not fit the memory together begin anew in every run."""
        each = 4 * (2 * self.length) ** 2 * itemsize * 20
        return self.by_pairs and self.groups > max(1, memory // each)

    def _means(self) -> int:
        """Readout "mean": weighted sums over both inputs' tokens, of every run at depth >= 2."""
        if self.kernel.readout != "mean":
            return 0
        pairs = self.inputs * (self.others or self.inputs)
        times = (1 if self.kernel.depth == 1 else self.runs) * len(self.kinds)
        return times * 2 * pairs * self.length * (self.length + 1)

    def _results(self) -> int:
        """Entries of what every run leaves."""
        rows = 1 if self.kernel.readout == "last" else self.length
        return self.runs * len(self.kinds) * self.inputs * (self.others or self.inputs) * rows**2

    def _settled(self) -> int:
        """A Gram of independent pairs is checked for eigenvalues below 0. Projecting one that has
        some takes 2 n^3 more products, which are not counted: it depends on the draws."""
        if not self.by_pairs or self.others is not None:
            return 0
        tokens = self.length if self.kernel.readout == "tokens" else 1
        return len(self.kinds) * (self.inputs * tokens) ** 3


@dataclass(frozen=True)
class _Block:
    """One block of one group; every count is of one group, `draw` and `moments` of one draw."""

    of: Workload
    place: int
    inputs: int
    left: int
    right: int
    one_row: bool  # the readout needs the last token alone

    @property
    def tokens(self) -> int:
        return self.inputs * self.of.length

    @property
    def rank(self) -> int:
        """Of the root: the features of the tokens in block 1, all tokens from block 2 on."""
        return self.tokens if self.place else min(self.of.features, self.tokens)

    @property
    def rows(self) -> int:
        return 1 if self.one_row else self.of.length

    @property
    def features(self) -> bool:
        """Through features of low rank: block 1, and every block of an NNGP."""
        if self.place and self.of.ntk:
            return False
        others = 0 if self.symmetric else self.right
        return cheaper_by_features(self.rank, self.of.length, self.left, others, self.of.ntk)

    @property
    def covariance(self) -> bool:
        """Is the covariance between all tokens made?"""
        used = not self.features or (self.of.ntk and not self.one_row)
        return used or self.of.features > self.tokens or self.of.sampler == "conditional"

    @property
    def symmetric(self) -> bool:
        return not (self.one_row or self.last) or self.left == self.right == self.inputs

    @property
    def last(self) -> bool:
        return self.place == self.of.kernel.depth - 1

    @property
    def by_row(self) -> bool:
        return self.one_row and self.of.sampler in ("row", "pair")

    @property
    def draw(self) -> int:
        n, t, r, s = self.tokens, self.of.length, self.rank, min(self.rank, self.of.length)
        if self.of.sampler == "conditional":  # L U L^T and C U C^T, then M (spread U) M^T
            return 6 * (t * s * s + t * t * s)
        if self.by_row:
            k = min(self.inputs, r)
            return 2 * self.inputs * k * r + 2 * n * r
        if self.of.sampler == "keys":
            return 4 * n * r * self.of.key_dim + 2 * n * t * self.of.key_dim
        return 2 * n * r * r + 2 * n * t * r

    @property
    def moments(self) -> int:
        return self._by_features() if self.features else self._by_identity()

    def _by_identity(self) -> int:
        t, q, both = self.of.length, self.rows, self.left * self.right
        times_left = 2 * both * q * t * t  # A M for every other input
        times_right = 2 * both * q * q * t
        mirrored = not self.symmetric
        own = 2 * (self.left + self.right) * q * t * t * mirrored  # variances of both sides
        if not self.of.ntk:
            return own + times_left + times_right
        # Each trace: A (M * N), a product with A^T, mirrored unless symmetric, and the means' own.
        lefts, rights, traces = 2 + mirrored, 2 + mirrored, 1
        if self.place:  # Theta' is another matrix: a second trace
            lefts, rights, traces = lefts + 2 + 2 * mirrored, rights + 2 + mirrored, 2
        return own + lefts * times_left + rights * times_right + traces * 2 * both * q * q

    def _by_features(self) -> int:
        t, q, r = self.of.length, self.rows, self.rank
        sides = self.left if self.symmetric else self.left + self.right
        widths = [r] + ([r * (r + 1) // 2] if self.of.ntk else [])
        apply = 2 * sides * q * t * sum(widths)
        return apply + 2 * self.left * q * self.right * q * sum(widths)

    @property
    def fixed(self) -> int:
        """Products before the first draw: the covariance of the tokens, a sampler's roots."""
        t, s = self.of.length, min(self.rank, self.of.length)
        tokens = 0 if self.place or not self.covariance else 2 * self.tokens**2 * self.of.features
        if self.features and self.of.ntk and self.one_row:
            tokens += 2 * self.left * self.right * self.rank
        if self.of.sampler == "conditional":
            return tokens + 2 * t * t * s + 4 * t * s * s + 2 * s**3
        return tokens + (2 * self.inputs**2 * self.rank if self.by_row else 0)

    @property
    def cubes(self) -> int:
        n, t = self.tokens, self.of.length
        root = n**3 if self.place or self.of.features > n else 0
        if self.of.sampler == "conditional":
            return root + 2 * t**3 + min(self.rank, t) ** 3
        return root + (self.inputs**3 if self.by_row else 0)

    def held(self, budget: int, itemsize: int) -> int:
        """Bytes of the workspace of as many draws as the budget allows, and of the block's state:
        covariance, NTK from block 2 on, root."""
        t, n = self.of.length, self.tokens
        each = itemsize * workspace(self.inputs, t, self.rank, self.features, self.of.ntk)
        portion = each * max(1, min(self.of.draws // self.of.runs, budget // each))
        covariances = self.covariance or self.place > 0
        state = n * n * (covariances + (self.of.ntk and self.place > 0)) + n * self.rank
        return portion + itemsize * state


def fully_connected_flops(
    kernel: InfiniteFullyConnected, inputs: int, others: int, width: int
) -> int:
    """Products of an exact Gram between inputs of `width` numbers; its depth costs entries only."""
    return 2 * inputs * others * width
