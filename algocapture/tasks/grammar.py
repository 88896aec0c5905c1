"""Context-free grammar recognition: is the string in the language?"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from algocapture.config import register
from algocapture.rng import Seed
from algocapture.tasks import cyk, grammars
from algocapture.tasks.base import (
    Exponents,
    Task,
    check_count,
    check_integer,
    check_sampling,
    check_tensor,
    check_tokens,
)
from algocapture.tasks.compiled import in_threads
from algocapture.tasks.cyk import Floats, Integers
from algocapture.tasks.grammars import Grammar
from algocapture.tasks.linear import bigram_counts, linear_error, token_counts
from algocapture.types import Batch, TaskSpec

FIT = 4096  # instances on which a baseline is fitted
PROBES = 1000  # mutants tried before a size counts as having no negatives
TRIES = 100_000  # mutants tried for one negative at a size that has some
NO_MEMBERS = "no string of this length is in the language"
DRAWN = ("variables", "terminals", "binary_rules", "terminal_rules", "grammar_seed")


@register
@dataclass(frozen=True)
class GrammarRecognition(Task):
    """1 for strings of length `size` that the grammar derives, 0 for those that it does not.

    Half of the instances are members, drawn by their trees with probability proportional to the
    product of rule weights. The others begin as members: at a random length scale one inner node
    is replaced by a tree of equal length from a variable that no rule allows in its place. Each of
    these is confirmed by CYK and drawn again if it is in the language after all.

    The grammar is drawn from its own seed, or given as `rules`. Parentheses, ( = 0 and ) = 1,
    with S -> L R | L X | S S, X -> S R, L -> (, R -> ), where S, L, R, X = 0, 1, 2, 3:

    >>> brackets = Grammar(
    ...     variables=4, terminals=2, binary=((0, 1, 2), (0, 1, 3), (0, 0, 0), (3, 0, 2)),
    ...     terminal=((1, 0), (2, 1)),
    ... )
    >>> GrammarRecognition(rules=brackets).solve(torch.tensor([[0, 0, 1, 1], [0, 1, 1, 0]]))
    tensor([1, 0])
    """

    variables: int = 20
    terminals: int = 16
    binary_rules: int = 2  # per variable
    terminal_rules: int = 1  # per variable; docs/tasks/grammar.md says why these two
    grammar_seed: int = 0
    rules: Grammar | None = None  # the user's own grammar, instead of a drawn one
    verified_limit: int = 2000  # sizes above it are refused: confirming them takes too long

    exponents: ClassVar[Exponents] = Exponents(
        paper=3.0,
        known=2.371339,
        source="CYK; Valiant (1975) with the matrix product of Alman et al. (SODA 2025)",
    )

    def __post_init__(self) -> None:
        if self.rules is not None:
            self._check_alone()
        check_integer("variables", self.variables, least=2, most=grammars.MOST_SYMBOLS)
        check_integer("terminals", self.terminals, least=1, most=grammars.MOST_SYMBOLS)
        check_integer("grammar_seed", self.grammar_seed, least=0, most=2**63 - 1)
        check_integer("verified_limit", self.verified_limit, least=1)
        self._check_between("binary_rules", self.variables**2, "distinct pairs of variables")
        self._check_between("terminal_rules", self.terminals, "terminals")
        if self.variables * self.terminal_rules < self.terminals:
            raise ValueError(
                f"terminal_rules = {self.terminal_rules} for each of {self.variables} variables "
                f"cannot produce all {self.terminals} terminals: allow more rules or variables"
            )

    def _check_alone(self) -> None:
        if not isinstance(self.rules, Grammar):
            raise ValueError(f"rules must be a Grammar or None, got {self.rules!r}")
        defaults = {f.name: f.default for f in fields(self)}
        for name in DRAWN:
            if getattr(self, name) != defaults[name]:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r} describes a drawn grammar, but rules are "
                    "given: give one or the other"
                )

    def _check_between(self, name: str, most: int, what: str) -> None:
        check_integer(name, getattr(self, name), least=1)
        if getattr(self, name) > most:
            raise ValueError(
                f"{name} must be at most {most}, the number of {what}, got {getattr(self, name)}"
            )

    @property
    def grammar(self) -> Grammar:
        """The rules: `.start`, `.binary` of (A, B, C), `.terminal` of (A, a)."""
        if self.rules is not None:
            return self.rules
        return grammars.draw(*(getattr(self, name) for name in DRAWN))

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            inputs="tokens",
            output="class",
            vocab=self.grammar.terminals,
            classes=2,
            readout="mean",
            smallest=_smallest(self.grammar, self.verified_limit),
        )

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        """Made on the CPU from one key of the generator, then copied to the generator's device."""
        size, n = self._check_size(size, n, generator)
        key = _key(generator)
        targets = _balanced(n, key)
        inputs, attempts = _strings(self.grammar, size, targets, key, TRIES)
        if ((targets == 0) & (attempts == 0)).any():
            raise ValueError(
                f"size = {size}: none of {TRIES:,} mutants of one instance left the language; "
                "take a smaller size or a grammar with fewer rules"
            )
        batch = Batch(
            inputs=torch.from_numpy(inputs),
            targets=torch.from_numpy(targets),
            mask=torch.ones(n, dtype=torch.bool),
            size=size,
        )
        return batch.to(generator.device)

    def on_gpu(self, size: int) -> bool:
        return False

    def solve(self, inputs: Tensor) -> Tensor:
        """Bit-parallel CYK on the CPU; the answer lives where the inputs live."""
        tokens = self._tokens(inputs)
        answers = np.empty(len(tokens), np.int64)
        tables = grammars.tables(self.grammar)
        in_threads(
            lambda at, end: cyk.recognise(tables, tokens[at:end], answers[at:end]), len(tokens)
        )
        return torch.from_numpy(answers).to(inputs.device)

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Linear classifiers on token and on bigram counts, fitted on instances of their own."""
        fitted, fresh = self.sample(size, FIT, generator), self.sample(size, n, generator)
        vocab = self.grammar.terminals
        return {
            "constant": self.constant_error(fresh),
            "bag of tokens": linear_error(self, lambda x: token_counts(x, vocab), fitted, fresh),
            "bigrams": linear_error(self, lambda x: bigram_counts(x, vocab), fitted, fresh),
        }

    def describe(self, size: int, n: int, generator: torch.Generator) -> dict[str, Any]:
        few = min(n, max(8, 20_000 // size))  # parses are counted in O(size^3)
        members = self.members(size, few, generator)
        density, stderr = self.density(size, few, generator)
        return super().describe(size, n, generator) | {
            "density": {"value": density, "stderr": stderr},
            "ambiguous_members": float((self.parses(members) > 1).double().mean()),
            "mutants_kept": self.kept(size, n, generator),
        }

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        """Terminals as letters, while there are enough of them."""
        return [
            (chr(97 + a) if self.grammar.terminals <= 26 else str(a), "") for a in instance.tolist()
        ]

    def members(self, size: int, n: int, generator: torch.Generator) -> Tensor:
        """Strings in the language, drawn by their trees."""
        size, n = self._check_members(size, n)
        inputs, _ = _strings(self.grammar, size, np.ones(n, np.int64), _key(generator), 0)
        return torch.from_numpy(inputs).to(generator.device)

    def kept(self, size: int, n: int, generator: torch.Generator) -> float:
        """Fraction of mutants that are still in the language (before they are drawn again).

        A tree in which no variable could stand in a wrong place counts as kept.
        """
        size, n = self._check_members(size, n)
        targets = np.zeros(n, np.int64)
        _, attempts = _strings(self.grammar, size, targets, _key(generator), 1)
        return float((attempts == 0).mean())

    def density(self, size: int, n: int, generator: torch.Generator) -> tuple[float, float]:
        """Fraction of all strings of this length that are in the language, and standard error.

        A member w of probability p(w) counts 1/p(w): that is unbiased for the number of members,
        and tells 1e-100 from 1e-50, where uniform strings would show no member at all.
        """
        members = self._tokens(self.members(size, n, generator))
        tables = grammars.tables(self.grammar)
        table, rate = _partition(self.grammar, size)
        leaf = self.grammar.terminals * np.exp(-rate)
        share = table[tables.start, size] / _inside(tables, members, leaf)
        return float(share.mean()), float(share.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf

    def parses(self, inputs: Tensor) -> Tensor:
        """Number of parse trees of each string, float64."""
        tables = grammars.tables(self.grammar)
        unit = tables._replace(
            child_weight=np.ones_like(tables.child_weight),
            token_weight=np.ones_like(tables.token_weight),
        )
        return torch.from_numpy(_inside(unit, self._tokens(inputs), 1.0)).to(inputs.device)

    def _check_size(self, size: int, n: int, generator: torch.Generator) -> tuple[int, int]:
        size, n = check_sampling(self, size, n, generator)
        if size > self.verified_limit:
            raise ValueError(
                f"size = {size} is above verified_limit = {self.verified_limit}: confirming that "
                "negatives are outside the language takes O(size^3); raise verified_limit to wait"
            )
        reason = _obstacle(self.grammar, size)
        if reason:
            raise ValueError(f"size = {size} has no instances: {reason}")
        return size, n

    def _check_members(self, size: int, n: int) -> tuple[int, int]:
        size, n = check_count("size", size, least=1), check_count("n", n, least=1)
        table, _ = _partition(self.grammar, size)
        if not table[self.grammar.start, size] > 0:
            raise ValueError(f"size = {size}: {NO_MEMBERS}")
        return size, n

    def _tokens(self, inputs: Tensor) -> Integers:
        check_tensor("inputs", inputs)
        tokens = check_tokens(inputs.detach().cpu(), self.grammar.terminals, shortest=1)
        return np.ascontiguousarray(tokens.numpy())


def _key(generator: torch.Generator) -> int:
    return int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))


def _balanced(n: int, key: int) -> Integers:
    """n // 2 of each class in random order; for odd n a coin decides the class of the extra one."""
    rng = Seed(key).child("labels").numpy()
    targets = np.arange(n, dtype=np.int64) % 2
    targets[-1] = targets[-1] if n % 2 == 0 else rng.integers(2)
    return rng.permutation(targets)


def _strings(
    grammar: Grammar, size: int, targets: Integers, key: int, tries: int
) -> tuple[Integers, Integers]:
    """Strings of the classes asked for, and how many mutants each negative took (0: failed)."""
    inputs = np.empty((len(targets), size), np.int64)
    attempts = np.zeros(len(targets), np.int64)
    tables, (table, _) = grammars.tables(grammar), _partition(grammar, size)

    def chunk(at: int, end: int) -> None:
        rows = inputs[at:end], targets[at:end], attempts[at:end]
        cyk.fill(tables, table, key, at, *rows, tries)

    in_threads(chunk, len(targets))
    return inputs, attempts


def _partition(grammar: Grammar, size: int) -> tuple[Floats, float]:
    return grammars.partition(grammar, 1 << max(size - 1, 63).bit_length())


@lru_cache(maxsize=4096)
def _obstacle(grammar: Grammar, size: int) -> str:
    """Why there is no batch of this size; empty if there is."""
    table, _ = _partition(grammar, size)
    if not table[grammar.start, size] > 0:
        return NO_MEMBERS
    _, attempts = _strings(grammar, size, np.zeros(1, np.int64), 0, PROBES)
    if attempts[0] == 0:
        return (
            f"none of {PROBES} mutants left the language (the grammar has too many rules at this "
            "size, or no variable that could stand in a wrong place)"
        )
    return ""


@lru_cache(maxsize=256)
def _smallest(grammar: Grammar, limit: int) -> int:
    """The least size from which on all lengths that have members also have negatives."""
    table, _ = _partition(grammar, min(limit, 256))
    lengths = [l for l in range(1, table.shape[1]) if table[grammar.start, l] > 0 and l <= limit]
    lengths = lengths[:24]
    good = [l for l in lengths if not _obstacle(grammar, l)]
    if not good:
        tried = f"{lengths[0]}..{lengths[-1]}" if lengths else f"1..{min(limit, 256)}"
        raise ValueError(
            f"rules: no length of {tried} has both members and non-members that differ from a "
            "member by one subtree: take another grammar"
        )
    worst = max((l for l in lengths if l not in good), default=0)
    return min((l for l in good if l > worst), default=good[0])


def _inside(tables: cyk.Tables, tokens: Integers, leaf: float) -> Floats:
    sums = np.empty(len(tokens))
    in_threads(lambda at, end: cyk.inside(tables, tokens[at:end], leaf, sums[at:end]), len(tokens))
    return sums
