"""How fast instances are made, beside the peers that one would take instead, with ratios.

    python -m benchmarks.tasks

Each family of tasks is a module with `run()`.
"""

from __future__ import annotations

from benchmarks import tasks_grammar, tasks_graphs, tasks_sequences


def main() -> None:
    for family in (tasks_sequences, tasks_graphs, tasks_grammar):
        family.run()


if __name__ == "__main__":
    main()
