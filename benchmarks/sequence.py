"""What it costs to know what all answers together teach: medians. Nothing fails because of a clock.

python benchmarks/sequence.py           a minute
python benchmarks/sequence.py --quick   some seconds
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from sdcduck.methods.sequence.knowledge import Answers, Knowledge
from sdcduck.methods.sequence.rehearsal import Limit, rehearse
from sdcduck.methods.sequence.sets import Cells, Sets, cut, same_rows

CASES = [(2_000, 1_000, 10, "10"), (10_000, 1_000, 1, ""), (10_000, 1_000, 100, "150")]
"""Atoms, sets that are kept, new ones, and the goal in milliseconds."""
RECORDS, QUESTIONS = 1_000_000, 100
REPEATED = 7


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    took = []
    for _ in range(REPEATED):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    return float(np.median([one for one, _ in took])), float(np.median([one for _, one in took]))


def noise(quick: bool) -> Table:
    """What trying a question costs under `precision`, beside the two products of matrices in S a."""
    table = Table(title="Trying a question: `precision`", title_justify="left")
    for heading in ("atoms", "kept", "new", "ms", "CPU ms", "two products, ms", "goal ms"):
        table.add_column(heading, justify="right")
    chance = np.random.default_rng(1)
    for atoms, kept, new, goal in CASES:
        if quick and atoms > 2_000:
            continue
        known = Knowledge({"": Cells.numbered(chance.integers(1, 6, atoms))})
        for rows in np.array_split(chance.random((kept, atoms)) < 0.3, max(1, kept // 500)):
            known.keep(known.would({"": Answers.of(Sets.of_rows(rows), 2.0)}))
        question = {"": Answers.of(Sets.of_rows(chance.random((new, atoms)) < 0.3), 2.0)}
        wall, cpu = measured(lambda known=known, question=question: known.would(question))  # type: ignore[misc]
        held, asked = chance.random((atoms, kept)), chance.random((atoms, new))
        floor, _ = measured(lambda held=held, asked=asked: held @ (held.T @ asked))  # type: ignore[misc]
        ms = [f"{1e3 * seconds:.1f}" for seconds in (wall, cpu, floor)]
        table.add_row(f"{known.atoms:,}", f"{kept:,}", str(new), *ms, goal)
    return table


def exact(quick: bool) -> Table:
    """What all questions about records cost: atoms of them, and then the ranks of what is known of these."""
    table = Table(title=f"{QUESTIONS} exact answers about {RECORDS:,} records, goal 0.5 s", title_justify="left")
    for heading in ("what", "atoms", "s", "CPU s"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    chance = np.random.default_rng(2)
    records = RECORDS // 10 if quick else RECORDS
    columns = [chance.integers(0, levels, records) for levels in (4, 4, 5, 5, 3)]
    inside = np.zeros((records, -(-QUESTIONS // 64) * 64), np.bool_)
    for question in range(QUESTIONS):
        chosen = chance.choice(5, 2, replace=False)
        inside[:, question] = np.logical_and(
            *(np.isin(columns[one], chance.choice(3, chance.integers(1, 3), replace=False)) for one in chosen)
        )
    words = np.packbits(inside, axis=1).view(np.uint64)
    everybody, units = np.zeros(records, np.int64), np.ones(records)
    found = cut(everybody, units, words)
    wall, cpu = measured(lambda: cut(everybody, units, words))
    table.add_row("atoms", f"{len(found.sizes):,}", f"{wall:.2f}", f"{cpu:.2f}")

    def rank() -> None:
        atom_of = same_rows(words)
        _, first, sizes = np.unique(atom_of, return_index=True, return_counts=True)
        sets = Sets.of_rows(inside[first, :QUESTIONS].T)
        list(rehearse(Cells.numbered(sizes), sets, np.zeros(QUESTIONS, np.int64), np.zeros(QUESTIONS), RANK))

    wall, cpu = measured(rank)
    table.add_row("rank", f"{len(found.sizes):,}", f"{wall:.2f}", f"{cpu:.2f}")
    random = np.packbits(chance.random(inside.shape) < 0.5, axis=1).view(np.uint64)
    wall, cpu = measured(lambda: cut(everybody, units, random))
    table.add_row("atoms, where each record is one", f"{records:,}", f"{wall:.2f}", f"{cpu:.2f}")
    return table


RANK = Limit("rank", 3, 0.8)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description="What the sequence of answers costs.")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    console = Console(width=100)
    console.print(noise(quick))
    console.print(exact(quick))


if __name__ == "__main__":
    main()
