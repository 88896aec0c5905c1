"""How fast grammar instances are made and recognised, beside nltk and a CYK in numpy.

python -m benchmarks.tasks_grammar
"""

from __future__ import annotations

import nltk
import numpy as np
import torch

from algocapture.tasks import Grammar, GrammarRecognition
from benchmarks.timing import interleaved, show

INSTANCES = {50: 4096, 100: 2048, 400: 256}
NLTK_LENGTH = 50  # longer ones take nltk seconds


def run() -> None:
    print(f"{torch.get_num_threads()} threads")
    task = GrammarRecognition()
    for size, n in INSTANCES.items():
        sampling(task, size, n)
        recognising(task, size, n)


def sampling(task: GrammarRecognition, size: int, n: int) -> None:
    draws = torch.Generator().manual_seed(0)
    seconds = interleaved({"verified instances": lambda: task.sample(size, n, draws)})
    show(
        f"GrammarRecognition.sample, T={size}, n={n}",
        "instance",
        dict.fromkeys(seconds, n),
        seconds,
    )


def recognising(task: GrammarRecognition, size: int, n: int) -> None:
    inputs = task.sample(size, n, torch.Generator().manual_seed(1)).inputs
    row = inputs[0].numpy()
    assert [cyk_numpy(task.grammar, x.numpy()) for x in inputs[:4]] == task.solve(
        inputs[:4]
    ).tolist()
    contenders = {
        "algocapture": lambda: task.solve(inputs),
        "CYK in numpy": lambda: cyk_numpy(task.grammar, row),
    }
    if size <= NLTK_LENGTH:
        parser = chart_parser(task.grammar)
        words = [str(token) for token in row.tolist()]
        contenders["nltk chart parser"] = lambda: parser.parse_one(words)
    work = {name: n if name == "algocapture" else 1 for name in contenders}
    show(f"GrammarRecognition.solve, T={size}", "string", work, interleaved(contenders))


def chart_parser(grammar: Grammar) -> nltk.ChartParser:
    rules = [f"V{a} -> V{b} V{c}" for a, b, c in grammar.binary]
    rules += [f"V{a} -> '{token}'" for a, token in grammar.terminal]
    rules.sort(key=lambda rule: not rule.startswith(f"V{grammar.start} "))  # the first is the start
    return nltk.BottomUpLeftCornerChartParser(nltk.CFG.fromstring("\n".join(rules)))


def cyk_numpy(grammar: Grammar, tokens: np.ndarray) -> bool:
    """The usual chart: for each span all rules and all splits at once."""
    length = len(tokens)
    a, b, c = np.array(grammar.binary).T
    leaf = np.zeros((grammar.terminals, grammar.variables), bool)
    leaf[tuple(np.array(grammar.terminal).T[::-1])] = True
    ends = np.zeros((grammar.variables, length, length + 1), bool)  # [A, i, e]
    ends[:, range(length), range(1, length + 1)] = leaf[tokens].T
    for span in range(2, length + 1):
        for i in range(length - span + 1):
            e = i + span
            hit = (ends[b, i, i + 1 : e] & ends[c, i + 1 : e, e]).any(1)
            ends[a[hit], i, e] = True
    return bool(ends[grammar.start, 0, length])


if __name__ == "__main__":
    run()
