"""How fast instances are made, beside the peers that one would take instead, with ratios.

    python -m benchmarks.tasks                     # all families of tasks
    python -m benchmarks.tasks sequences graphs    # some: sequences, graphs, grammar

On a GPU: `python -m benchmarks.tasks_gpu`.
"""

from __future__ import annotations

import sys

from benchmarks import tasks_grammar, tasks_graphs, tasks_sequences

FAMILIES = {"sequences": tasks_sequences, "graphs": tasks_graphs, "grammar": tasks_grammar}


def main() -> None:
    for name in sys.argv[1:] or FAMILIES:
        FAMILIES[name].run()


if __name__ == "__main__":
    main()
