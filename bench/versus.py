"""`python -m bench.versus COMMIT`: this tree beside an older commit of Varve.

Shows that what was added since costs the rows of before nothing: same rows, same ABAB pairs, same
interpreter and libraries; only the source differs. A ratio of 1 is the goal, and how far the pairs
lie apart says how much of a difference could be seen at all: `--same` compares this tree with a
copy of itself and should find nothing.

`--instructions` counts what the broker executes instead of CPU time: good to a hundredth on a
machine that others use, where rates and seconds are good to a third. Rates are left out then.
"""

import argparse
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench import runner as abab
from bench.consume_rows import CONSUME_ROWS
from bench.group_rows import GROUP_ROWS
from bench.instructions import billions
from bench.node import REPOSITORY, VarveNode
from bench.process import end_on_sigterm, measure_cost_by
from bench.report import RowResult, write
from bench.rows import ROWS as LOCAL_ROWS
from bench.rows import Bench, Metric, Row
from bench.transaction_rows import TRANSACTION_ROWS

ROWS = (*LOCAL_ROWS, *CONSUME_ROWS, *GROUP_ROWS, *TRANSACTION_ROWS)
RESULTS = Path(__file__).parent / "results"
DEFAULT_ROWS = (
    "produce-1m,produce-16k-1,produce-16k-4,produce-100-pipelined,produce-100-ping-pong,"
    "latency-200,latency-2000,consume,idle,cold-start"
)
_COUNTED = {"us": "1e3 instructions", "ms": "1e6 instructions", "s": "1e9 instructions"}
NEW, OLD = "varve", "before"


def without_goals(row: Row, tolerance: float) -> Row:
    """The goals are Kafka's: what had one is to be no worse than before, within a tolerance."""

    def changed(metric: Metric) -> Metric:
        limit = 1 - tolerance if metric.better == "higher" else 1 + tolerance
        goal = None if metric.goal is None else limit
        return dataclasses.replace(metric, goal=goal, bound=None)

    return dataclasses.replace(row, metrics=tuple(map(changed, row.metrics)))


def in_instructions(row: Row) -> Row:
    """The row's costs alone, counted in instructions (`bench.instructions`)."""
    counted = []
    for metric in row.metrics:
        cpu, _, unit = metric.unit.partition(" ")
        if cpu == "CPU":
            size, per, what = unit.partition("/")
            counted.append(dataclasses.replace(metric, unit=_COUNTED[size] + per + what))
    return dataclasses.replace(row, metrics=tuple(counted))


def checked_out(tree: Path) -> type[VarveNode]:
    """A kind of broker that runs from the source in `tree`."""

    class CheckedOutNode(VarveNode):
        @override
        def command(self) -> list[str]:
            _, *arguments = super().command()
            # -P: the working directory must not come before the tree.
            main = "import sys; from cli.main import main; sys.exit(main())"
            return [sys.executable, "-P", "-c", main, *arguments]

        @override
        def environment(self) -> dict[str, str]:
            return {**super().environment(), "PYTHONPATH": str(tree)}

    return CheckedOutNode


def compile_all(tree: Path) -> None:
    """An installed broker has its bytecode: neither side is to write it while it is measured."""
    packages = [str(path.parent) for path in tree.glob("[!t]*/__init__.py")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *packages], check=True)


@contextlib.contextmanager
def worktree(commit: str, directory: Path) -> Iterator[Path]:
    """The files of a commit, below `directory`."""
    tree = directory / "tree"
    tree.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", "--format=tar", commit],
        check=True,
        capture_output=True,
    )
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    try:
        yield tree
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument("commit", nargs="?", help="to compare this working tree with")
    parser.add_argument("--same", action="store_true", help="compare HEAD with HEAD")
    parser.add_argument("--rows", default=DEFAULT_ROWS, help="names, comma-separated")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--duration", type=float, default=4.0, help="seconds of load per sample")
    parser.add_argument("--warm-up", type=float, default=5.0)
    parser.add_argument("--tolerance", type=float, default=0.05)
    parser.add_argument("--instructions", action="store_true", help="count them, not seconds")
    parser.add_argument("--name", default="versus", help="of the files in bench/results")
    return parser


def main() -> int:
    """Run, print the table, write the files; 1 when a row failed."""
    end_on_sigterm()
    parser = _parser()
    arguments = parser.parse_args()
    if (arguments.commit is None) is not arguments.same:
        parser.error("name a commit, or say --same")
    wanted = arguments.rows.split(",")
    unknown = set(wanted) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    rows = [without_goals(row, arguments.tolerance) for row in ROWS if row.name in wanted]
    if arguments.instructions:
        measure_cost_by(billions)
        abab.disregard_stolen_time()
        rows = [counted for row in rows if (counted := in_instructions(row)).metrics]
    commit = "HEAD" if arguments.same else arguments.commit
    directory = Path(tempfile.mkdtemp(prefix="varve-versus-"))
    brokers = directory / "brokers"
    brokers.mkdir()
    results: list[RowResult] = []
    settings = {"commit": commit, "cores": os.cpu_count(), "pairs": arguments.pairs}
    text = ""
    try:
        with worktree(commit, directory) as tree:
            compile_all(tree)
            compile_all(REPOSITORY)
            abab.KINDS[OLD] = checked_out(tree)
            abab.KINDS[NEW] = checked_out(tree if arguments.same else REPOSITORY)
            runner = abab.Runner(
                [NEW, OLD], brokers, given={}, warm_up_s=arguments.warm_up, pairs=arguments.pairs
            )
            bench = Bench(
                quick=False,
                duration_s=arguments.duration,
                restart_gib=1.0,
                partitions=1000,
                new_node=runner.new_node,
                new_tiered_node=runner.new_tiered_node,
                beside_limit=False,
            )
            with runner.running(bench, rows):
                shared = [row for row in rows if row.run is not None]
                results += [runner.run_row(bench, row) for row in shared]
            owned = [row for row in rows if row.run_own is not None]
            results += [runner.run_row(bench, row) for row in owned]
            text = write(results, [NEW, OLD], settings, RESULTS, arguments.name)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"\n{text}\nfiles: {RESULTS / arguments.name}.*")
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
