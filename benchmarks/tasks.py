"""How fast instances are made, beside the peers that one would take instead, with ratios.

    python -m benchmarks.tasks

Each family of tasks is a module with `run()`.
"""

from __future__ import annotations

from benchmarks import tasks_graphs, tasks_sequences


def main() -> None:
    tasks_sequences.run()
    tasks_graphs.run()


if __name__ == "__main__":
    main()
