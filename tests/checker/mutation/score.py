"""Runs each mutant and says which the checker has caught: `python -m tests.checker.mutation.score`.

A clean broker is run the same ways first: a checker that complains of it proves nothing.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from bench.node import NodeError, OwnedNode, VarveNode
from tests.checker import delayed
from tests.checker.brokers import PROPERTIES
from tests.checker.clients.raw import GaveUpError, RefusedError
from tests.checker.mutation.mutants import MUTANTS, Mutant
from tests.checker.run import RunOptions, end_orderly_on_sigterm, run


class MutantNode(VarveNode):
    """Varve with a bug."""

    def __init__(self, directory: Path, properties: dict[str, str], mutant: str) -> None:
        super().__init__(directory, properties)
        self.mutant = mutant

    @override
    def command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "tests.checker.mutation.mutant_broker",
            self.mutant,
            *super().command()[1:],
        ]


class Verdict(NamedTuple):
    """What became of one mutant."""

    caught: bool
    why: str
    seconds: float


def try_mutant(name: str, mutant: Mutant, seconds: float, seed: int, directory: Path) -> Verdict:
    """Run one; `seconds` is how long the clients work."""

    def make(where: Path, _port: int | None) -> OwnedNode:
        return MutantNode(where, dict(PROPERTIES), name)

    begin = time.monotonic()
    try:
        if mutant.delayed:
            outcome = delayed.run(
                delayed.Options(
                    transactions=int(seconds * 120), seed=seed, make_broker=make, drain_s=15
                ),
                directory,
            )
            found = [f"{kind} {n}" for kind, n in outcome.report.forbidden.items()]
        else:
            options = RunOptions(
                seconds=seconds,
                seed=seed,
                faults=mutant.faults,
                workload=mutant.workload,
                fault_share=0.9,
                make_broker=make,
                drain_s=20,
            )
            result = run(options, directory)
            found = [f"{kind} {n}" for kind, n in result.report.forbidden.items()]
            found += ["unfinished job" for _ in result.undrained]
    except (RefusedError, GaveUpError, NodeError) as error:
        found = [f"{type(error).__name__}: {str(error).splitlines()[0]}"]
    return Verdict(bool(found), ", ".join(found), time.monotonic() - begin)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.checker.mutation.score")
    parser.add_argument("--seconds", type=float, default=20.0, help="work of the clients, each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("mutants", nargs="*", metavar="NAME", help=f"of {', '.join(MUTANTS)}")
    given = parser.parse_args(arguments)
    names = given.mutants or list(MUTANTS)
    caught = 0
    end_orderly_on_sigterm()
    for name in names:
        directory = Path(tempfile.mkdtemp(prefix=f"varve-{name}-"))
        try:
            verdict = try_mutant(name, MUTANTS[name], given.seconds, given.seed, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        caught += verdict.caught
        sys.stdout.write(
            f"{'caught' if verdict.caught else 'MISSED'}  {name} ({verdict.seconds:.0f} s): "
            f"{MUTANTS[name].summary}. {verdict.why}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"mutation score: {caught} of {len(names)}, seed {given.seed}\n")
    return int(caught < len(names))


if __name__ == "__main__":
    sys.exit(main())
