"""How much is measured: widths, draws and networks, of which `scale` multiplies the latter two."""

from __future__ import annotations

from dataclasses import dataclass

from algocapture.studies.convergence.families import Family

BLOCKS = 20  # independent parts behind every standard error


@dataclass(frozen=True)
class Sizes:
    scale: float = 1.0
    samples: int = 4  # P where it does not vary
    counts: tuple[int, ...] = (2, 4, 8, 16, 32)
    samples_width: int = 16
    burn: int = 600
    steps: int = 1200
    device: str = "cpu"

    def kernel_widths(self, family: Family) -> tuple[int, ...]:
        """Without the least ones: there the next order is as large as the first."""
        return (8, 16, 32, 64, 128) if family.exact else (4, 6, 8, 12, 16)

    def widths(self, family: Family) -> tuple[int, ...]:
        """Of posteriors by weighting."""
        return (2, 4, 8, 16, 32, 64) if family.exact else (4, 6, 8, 12, 16)

    def trained_widths(self, family: Family) -> tuple[int, ...]:
        return (4, 8, 16, 32) if family.exact else (4, 6, 8)

    def flow_widths(self, family: Family) -> tuple[int, ...]:
        return (8, 16, 32, 64, 128) if family.exact else (4, 6, 8, 12, 16)

    def doubling(self, family: Family) -> tuple[int, ...]:
        return (8, 16, 32, 64, 128) if family.exact else (4, 8, 16)

    def reference(self, family: Family) -> int:
        """Where f_U is read off: one hidden layer has its exact cumulant in single neurons."""
        return 1 if family.name.startswith("fcn2") else self.widths(family)[-1]

    def draws(self, family: Family, width: int) -> int:
        return self._scaled(40_000 if family.exact else 64_000 // width)

    def networks(self, family: Family, kind: str, width: int) -> int:
        """A mean kernel is 1 / width off, a single one 1 / sqrt(width): it takes many."""
        if not family.exact:
            return self.draws(family, width)
        return self._scaled(120_000 if kind == "nngp" else 640_000 // width)

    def chains(self, family: Family) -> int:
        return self._scaled(400 if family.exact else 100)

    def flows(self, family: Family, width: int) -> int:
        return self._scaled(4_000 if family.exact else 2_400 // width)

    @property
    def limit_draws(self) -> int:
        return self._scaled(200_000)

    def _scaled(self, number: int) -> int:
        return max(2 * BLOCKS, round(number * self.scale))
