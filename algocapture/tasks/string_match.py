"""String matching: does the pattern after the separator occur in the text before it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from algocapture.config import register
from algocapture.tasks.base import (
    Exponents,
    Task,
    check_integer,
    check_rows,
    check_sampling,
    check_tokens,
    narrow,
)
from algocapture.types import Batch, TaskSpec


@register
@dataclass(frozen=True)
class StringMatch(Task):
    """[X, SEP, M]: class 1 if the pattern M, of m letters, occurs in the text X of T letters.

    The paper's g is 0 on a match; like the paper we predict 1 - g. SEP is the id after the letters.
    The law, for q near misses:

    1. X is uniform; M is uniform, one for each instance, or fixed by `pattern`.
    2. q+1 windows of m letters, at least m-1 letters apart, are chosen, all placements alike, and
       one of them, the site, at random. Each of the others becomes a near miss: M with one letter,
       at a uniform place, replaced by a uniform other letter.
    3. In every window of X that is equal to M the last letter (the first, if the last is part of
       a near miss) becomes a letter that M lacks: uniform, one for each instance. This frees X of
       M at once, since windows with a letter foreign to M are not M.
    4. Half of the instances, in random order, are positive: there M is written at the site.

    So a positive is a negative with M written over a place that nothing marks: planted near misses
    and the traces of step 3 have the same law in both classes, and no near miss is ever damaged.
    Of an odd number of instances the extra one takes a random class.

        >>> task = StringMatch(alphabet=4, near_misses=0)  # SEP = 4
        >>> task.solve(torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3], [0, 1, 2, 2, 4, 1, 2, 3]]))
        tensor([1, 0])
    """

    alphabet: int = 26
    pattern_length: int = 3
    near_misses: int = 1
    pattern: tuple[int, ...] | None = None

    exponents: ClassVar[Exponents] = Exponents(
        paper=1.0,
        known=1.0,
        source="Knuth-Morris-Pratt, O(T); the paper says 'low' and gives no number",
    )

    def __post_init__(self) -> None:
        check_integer("pattern_length", self.pattern_length, least=2)
        check_integer("alphabet", self.alphabet, least=self.pattern_length + 1)  # foreign letters
        check_integer("near_misses", self.near_misses, least=0)
        if self.pattern is None:
            return
        letters = isinstance(self.pattern, tuple) and all(
            type(letter) is int and 0 <= letter < self.alphabet for letter in self.pattern
        )
        if not letters or len(self.pattern) != self.pattern_length:
            raise ValueError(
                f"pattern must be None or a tuple of pattern_length = {self.pattern_length} "
                f"letters in 0..{self.alphabet - 1}, got {self.pattern!r}"
            )

    @property
    def spec(self) -> TaskSpec:
        smallest = self.near_misses * (2 * self.pattern_length - 1) + self.pattern_length
        return TaskSpec("tokens", "class", vocab=self.alphabet + 1, classes=2, smallest=smallest)

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        size, n = check_sampling(self, size, n, generator)
        m, device = self.pattern_length, generator.device
        length = size + 1 + m
        inputs = torch.randint(
            self.alphabet,
            (n, length),
            generator=generator,
            device=device,
            dtype=narrow(self.alphabet + 1),
        )
        inputs[:, size] = self.alphabet
        for j, letter in enumerate(self.pattern or ()):
            inputs[:, size + 1 + j] = letter
        text, pattern = inputs[:, :size], inputs[:, size + 1 :]
        site, others = self._places(size, n, generator)
        text.scatter_(1, others, self._near_misses(pattern, generator))
        self._free(text, pattern, others, generator)
        positive = _half(n, generator)
        text.scatter_(1, site, torch.where(positive[:, None], pattern, text.gather(1, site)))
        return Batch(inputs.long(), positive.long(), torch.ones_like(positive), size)

    def solve(self, inputs: Tensor) -> Tensor:
        m, separator = self.pattern_length, self.alphabet
        inputs = check_tokens(inputs, separator + 1, shortest=2 * m + 1)
        alone = (inputs == separator).sum(1) == 1
        laid_out = alone & (inputs[:, -1 - m] == separator)
        check_rows(laid_out, f"is not [X, SEP, M] with SEP = {separator} and M of {m} letters")
        matches = self.matches(inputs)
        return (matches == m).any(1).long()

    def matches(self, inputs: Tensor) -> Tensor:
        """How many letters each window of the text shares with the pattern, place by place."""
        m = self.pattern_length
        windows = inputs[:, : -1 - m].unfold(1, m, 1)
        return (windows == inputs[:, None, -m:]).sum(2)

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        """Letters; windows that are the pattern, or differ from it in one letter, have a role."""
        m, roles = self.pattern_length, [""] * len(instance)
        shared = self.matches(instance[None])[0].tolist()
        for role, letters in (("near miss", m - 1), ("match", m)):
            for start in (i for i, count in enumerate(shared) if count == letters):
                roles[start : start + m] = [role] * m
        roles[-m - 1] = "separator"
        texts = [chr(97 + a) if self.alphabet <= 26 else str(a) for a in instance.tolist()]
        texts[-m - 1] = "SEP"
        return list(zip(texts, roles, strict=True))

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Constant, and the best threshold, fitted on n other instances, of: the letters that agree
        with the pattern summed over all windows; the windows with m-1 such letters (near misses)
        and with m-1 or m; the letters of the text that occur anywhere in the pattern."""
        fit, batch = self.sample(size, n, generator), self.sample(size, n, generator)
        found = {"constant": self.constant_error(batch)}
        for name, score in self._scores(fit).items():
            cut = _best_threshold(score, fit.targets)
            guess = (self._scores(batch)[name] > cut).long()
            found[name] = float(self.error(guess, batch).mean())
        return found

    def _scores(self, batch: Batch) -> dict[str, Tensor]:
        matches, m = self.matches(batch.inputs), self.pattern_length
        text, pattern = batch.inputs[:, : batch.size], batch.inputs[:, None, -m:]
        return {
            "sum of aligned matches": matches.sum(1),
            "near misses": (matches == m - 1).sum(1),
            "near misses and matches": (matches >= m - 1).sum(1),
            "letters of the pattern": (text[:, :, None] == pattern).any(2).sum(1),
        }

    def _places(self, size: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Positions of the site's letters (n, m) and of the near misses' (n, q m), step 2."""
        m, count, device = self.pattern_length, self.near_misses + 1, generator.device
        spread = 2 * m - 2  # beyond distinct starts, so that neighbours leave m-1 letters free
        choices = size - m + 1 - spread * self.near_misses
        chosen = torch.empty((n, 0), dtype=torch.int64, device=device)
        for top in range(choices - count, choices):  # Floyd: a uniform subset
            one = torch.randint(top + 1, (n, 1), generator=generator, device=device)
            taken = (chosen == one).any(1, keepdim=True)
            chosen = torch.cat([chosen, one.masked_fill(taken, top)], 1)
        starts = chosen.sort(1).values + spread * torch.arange(count, device=device)
        which = torch.randint(count, (n, 1), generator=generator, device=device)
        rest = torch.arange(count - 1, device=device)
        rest = rest + (rest >= which)
        letters = torch.arange(m, device=device)
        others = (starts.gather(1, rest)[:, :, None] + letters).flatten(1)
        return starts.gather(1, which) + letters, others

    def _near_misses(self, pattern: Tensor, generator: torch.Generator) -> Tensor:
        """Copies of the pattern with one wrong letter each, (n, q m)."""
        n, q, device = len(pattern), self.near_misses, generator.device
        copies = pattern[:, None, :].repeat(1, q, 1)
        place = torch.randint(self.pattern_length, (n, q, 1), generator=generator, device=device)
        shift = torch.randint(1, self.alphabet, (n, q, 1), generator=generator, device=device)
        wrong = ((copies.gather(2, place) + shift) % self.alphabet).to(copies.dtype)
        return copies.scatter_(2, place, wrong).flatten(1)

    def _free(
        self, text: Tensor, pattern: Tensor, protected: Tensor, generator: torch.Generator
    ) -> None:
        """Step 3, in place. A stray overlaps at most one near miss by the gaps of step 2, and no
        near miss is a stray: so its first or its last letter is free."""
        m, windows = self.pattern_length, text.shape[1] - self.pattern_length + 1
        stray = text[:, :windows] == pattern[:, :1]
        for j in range(1, m):
            stray &= text[:, j : windows + j] == pattern[:, j : j + 1]
        kept = torch.zeros_like(text, dtype=torch.bool).scatter_(1, protected, True)
        kept = kept[:, m - 1 :]
        change = torch.zeros_like(text, dtype=torch.bool)
        change[:, m - 1 :] = stray & ~kept
        change[:, :windows] |= stray & kept
        weights = torch.rand(
            (len(text), self.alphabet), generator=generator, device=generator.device
        )
        foreign = weights.scatter_(1, pattern.long(), -1.0).argmax(1, keepdim=True)
        foreign = foreign.to(text.dtype)
        text.copy_(torch.where(change, foreign, text))


def _half(n: int, generator: torch.Generator) -> Tensor:
    """n/2 true in random order; n odd: one more or one less with equal chances."""
    order = torch.randperm(n, generator=generator, device=generator.device)
    coin = torch.randint(2, (1,), generator=generator, device=generator.device)
    return 2 * order + coin < n


def _best_threshold(score: Tensor, labels: Tensor) -> Tensor:
    """The t with the fewest errors of `score > t` on these instances."""
    order = score.argsort(stable=True)
    score, labels = score[order], labels[order]
    # cut after k scores: positives below it and negatives above it are wrong
    wrong = labels.cumsum(0) + (1 - labels).sum() - (1 - labels).cumsum(0)
    last = torch.cat([score[1:] != score[:-1], torch.ones_like(score[:1], dtype=torch.bool)])
    return score[wrong.where(last, len(score)).argmin()]
