"""How many rules should a drawn grammar have? Prints the tables of docs/tasks/grammar.md.

python -m benchmarks.grammar_choice
"""

from __future__ import annotations

import numpy as np
import torch

from algocapture.tasks import GrammarRecognition

RULES = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2)]
SEEDS = range(5)
SIZES = (10, 20, 50, 100, 400)
PARSED = 50  # length at which ambiguity and density are told
MUTANTS = {10: 2000, 20: 2000, 50: 2000, 100: 1000, 400: 200}
FRESH = 8192


def main() -> None:
    print("\nMutants still in the language, mean (least..most) over 5 grammars\n")
    header("subtree, T = ", SIZES)
    for rules in RULES:
        row(rules, [spread([kept(task, size) for task in drawn(rules)]) for size in SIZES])
    print("\nOne token replaced, still in the language\n")
    header("one token, T = ", SIZES[:4])
    for rules in RULES:
        row(rules, [spread([one_token(task, size) for task in drawn(rules)]) for size in SIZES[:4]])
    print(f"\nMembers of length {PARSED}\n")
    print("| binary | terminal | with several parses | median parses | log2 density |")
    print("|---|---|---|---|---|")
    for rules in RULES:
        row(rules, ambiguity(rules))
    print("\nError of shortcuts, mean over 5 grammars: bag of tokens / bigrams\n")
    header("T = ", SIZES[:4])
    for rules in RULES:
        row(rules, [shortcuts(rules, size) for size in SIZES[:4]])


def header(title: str, sizes: tuple[int, ...]) -> None:
    print("| binary | terminal | " + " | ".join(f"{title}{size}" for size in sizes) + " |")
    print("|---" * (2 + len(sizes)) + "|")


def row(rules: tuple[int, int], cells: list[str]) -> None:
    print(f"| {rules[0]} | {rules[1]} | " + " | ".join(cells) + " |", flush=True)


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ({min(values):.3f}..{max(values):.3f})"


def drawn(rules: tuple[int, int]) -> list[GrammarRecognition]:
    return [
        GrammarRecognition(binary_rules=rules[0], terminal_rules=rules[1], grammar_seed=seed)
        for seed in SEEDS
    ]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def kept(task: GrammarRecognition, size: int) -> float:
    return task.kept(size, MUTANTS[size], generator())


def one_token(task: GrammarRecognition, size: int) -> float:
    draws = generator()
    strings = task.members(size, MUTANTS[size], draws)
    rows = torch.arange(len(strings))
    where = torch.randint(size, (len(strings),), generator=draws)
    shift = torch.randint(1, task.grammar.terminals, (len(strings),), generator=draws)
    strings[rows, where] = (strings[rows, where] + shift) % task.grammar.terminals
    return float(task.solve(strings).double().mean())


def ambiguity(rules: tuple[int, int]) -> list[str]:
    tasks = drawn(rules)
    parses = [task.parses(task.members(PARSED, 400, generator())) for task in tasks]
    several = spread([float((counts > 1).double().mean()) for counts in parses])
    density = np.mean([np.log2(task.density(PARSED, 400, generator())[0]) for task in tasks])
    return [several, f"{float(torch.cat(parses).median()):.3g}", f"{density:.1f}"]


def shortcuts(rules: tuple[int, int], size: int) -> str:
    try:
        found = [task.baselines(size, FRESH, generator()) for task in drawn(rules)]
    except ValueError:  # the mutants stay in the language
        return "no negatives"
    bag, bigrams = (np.mean([f[name] for f in found]) for name in ("bag of tokens", "bigrams"))
    return f"{bag:.3f} / {bigrams:.3f}"


if __name__ == "__main__":
    main()
