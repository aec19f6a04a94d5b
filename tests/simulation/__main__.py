"""`make simulate`: runs seeds, prints how each went, makes a failing one small.

make simulate ARGS="--seed 1 --hours 1"         seeds 1, 2, ... for one hour of virtual time
make simulate ARGS="--seed 17 --runs 1 --log /tmp/17.log --shrink"
make simulate ARGS="--runs 100 --repeat"        has a seed the same trace in each interpreter?
make simulate ARGS="--dense --hours 1"          fault after fault, without quiet time
make simulate ARGS="--tiered --dense --hours 1" the topic is copied to a bucket
make simulate ARGS="--hours 100 --workers 2"    two seeds at a time
make simulate ARGS="--crash-points --workers 2" a broker dies at every point of scripted failovers
make simulate-mutants                           is each seeded bug found?
"""

import argparse
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from tests.simulation.faults.nemesis import Fault
from tests.simulation.faults.shrinking import Case, rule_of, script, shrink
from tests.simulation.mutants.catalogue import BUGS
from tests.simulation.outcome import Outcome
from tests.simulation.repeats import compare
from tests.simulation.run import run
from tests.simulation.shape import Shape, draw_shape
from tests.simulation.walks import walk
from tests.simulation.workers import in_order, warm_up

RUN_S = 1800.0
DENSE_S = 60.0
LINES_SHOWN = 15
LINE_SHOWN = 200


def main(arguments: Sequence[str]) -> int:
    """Run; 1 when a seed has failed."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--hours", type=float, help="of virtual time, in all")
    parser.add_argument("--runs", type=int, help="how many seeds")
    parser.add_argument("--length", type=float, help="seconds of faults in a run")
    parser.add_argument("--dense", action="store_true", help="no quiet time between faults")
    parser.add_argument("--workers", type=int, default=1, help="seeds that run at a time")
    parser.add_argument("--tiered", action="store_true", help="the topic lies in a bucket, too")
    parser.add_argument("--brokers", type=int, help="instead of a cluster drawn by the seed")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--min-isr", type=int, default=2)
    parser.add_argument("--mutant", help="a seeded bug (tests/simulation/mutants)")
    parser.add_argument("--mutants", type=float, help="try all, each for so many seconds")
    parser.add_argument("--limit", type=float, help="seconds of processor time, then it is killed")
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--log", help="a file for every event of the last run")
    parser.add_argument("--shrink", action="store_true", help="leave faults out of a failing run")
    parser.add_argument("--script", help="a file for the script that replays a shrunk run")
    parser.add_argument("--go-on", action="store_true", help="also after a failing run")
    parser.add_argument("--crash-points", action="store_true", help="die at each, in --runs seeds")
    parser.add_argument("--every", type=int, default=1, help="crash points: each so many-eth one")
    parser.add_argument("--repeat", action="store_true", help="are runs of a seed the same?")
    chosen = parser.parse_args(arguments)
    if chosen.repeat:
        return compare([word for word in arguments if word != "--repeat"])
    if chosen.crash_points:
        return walk(chosen.seed, chosen.runs or 1, workers=chosen.workers, every=chosen.every)
    if chosen.length is None:
        chosen.length = DENSE_S if chosen.dense or chosen.mutants is not None else RUN_S
    if chosen.mutants is not None:
        return score(chosen.mutants, chosen.length)
    if chosen.limit is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(chosen.limit), int(chosen.limit) + 1))
    if chosen.mutant is not None:
        BUGS[chosen.mutant].seed()
    total = Total(chosen.seed)

    def jobs() -> Iterator[tuple[object, ...]]:
        plan: list[Fault] | None = [] if chosen.no_faults else None
        for seed in count(chosen.seed):
            shape = shape_of(seed, chosen)
            if chosen.mutant is None or BUGS[chosen.mutant].fits(shape):
                yield seed, chosen.length, shape, plan, chosen.log
            if chosen.runs is not None and seed + 1 - chosen.seed >= chosen.runs:
                return
            if chosen.hours is not None and total.virtual_s >= chosen.hours * 3600:
                return
            if chosen.runs is None and chosen.hours is None:
                return

    # A limit of processor time is that of one process.
    outcomes = (
        (timed(*job) for job in jobs())  # type: ignore[arg-type]  # as `timed` takes them
        if chosen.limit is not None
        else in_order(chosen.workers, jobs(), timed_alone)
    )
    if chosen.limit is None and (chosen.hours is not None or (chosen.runs or 1) > 1):
        warm_up()
    for outcome, line in outcomes:
        print(line, flush=True)
        total.add(outcome)
        if outcome.violation is not None:
            report(outcome)
            if chosen.shrink:
                shape = shape_of(outcome.seed, chosen)
                case = Case(outcome.seed, chosen.length, shape, outcome.plan)
                make_small(case, outcome, chosen.mutant, chosen.script)
            if not chosen.go_on:
                break
    total.print()
    return 1 if total.failed else 0


def shape_of(seed: int, chosen: argparse.Namespace) -> Shape:
    """The shape of a seed's cluster, unless one was asked for."""
    if chosen.brokers is None:
        return draw_shape(seed, quiet=not chosen.dense, tiered=chosen.tiered)
    return Shape(brokers=chosen.brokers, replicas=chosen.replicas, min_in_sync=chosen.min_isr)


class Total:
    """All runs so far, and what one of their virtual hours contained."""

    def __init__(self, seed: int) -> None:
        self._first = self._last = seed
        self._began_s = time.monotonic()
        self.virtual_s = 0.0
        self._quiet_s = 0.0
        self._counts: Counter[str] = Counter()
        self.failed: list[int] = []

    def add(self, outcome: Outcome) -> None:
        """A run has ended."""
        self._last = outcome.seed
        self.virtual_s += outcome.virtual_s
        self._quiet_s += outcome.quiet_s
        self._counts.update(
            {
                "faults": outcome.struck,
                "records acknowledged": outcome.acked + outcome.lone_acks,
                "transactions": outcome.committed + outcome.aborted + outcome.unknown,
                "commits of groups": outcome.commits,
                "cleaned records missed": outcome.cleaned,
                "accepted by share groups": outcome.shared,
                "events": outcome.handles,
                "looks at a broker": outcome.checks,
                "segments copied": outcome.copied,
                "segments removed": outcome.remote_removed,
                "topics deleted": outcome.deleted,
                "unclean elections": outcome.unclean,
                "logs moved": outcome.moved,
                "transactions left open": outcome.left,
                "timed out": outcome.timed_out,
                "waits for a throttle": outcome.held_back,
                "partitions added": outcome.added,
                "moves to other brokers": outcome.moves,
                "replaced": outcome.replaced,
                "given up": outcome.given_up,
            }
        )
        if outcome.violation is not None:
            self.failed.append(outcome.seed)

    def print(self) -> None:
        """One line of what was found, one of what was done for it."""
        hours = self.virtual_s / 3600
        took_s = time.monotonic() - self._began_s
        cpu_s = time.process_time() + processor_s()
        print(
            f"{hours:.2f} virtual hours, seeds {self._first} to {self._last}, "
            f"{self._counts['faults']} faults, {len(self.failed)} violations "
            f"{self.failed or ''} in {took_s:.0f} s ({self.virtual_s / took_s:.0f}x; of processor "
            f"time {self.virtual_s / cpu_s:.0f}x)"
        )
        print(
            f"an hour of them: {self._quiet_s / self.virtual_s:.0%} quiet, "
            + ", ".join(f"{number / hours:,.0f} {what}" for what, number in self._counts.items())
        )


def score(limit_s: float, length_s: float) -> int:
    """Try every seeded bug for so much processor time; 1 when more than one is not found."""
    found, used_s = 0, processor_s()
    for name, bug in BUGS.items():
        command = [sys.executable, "-m", "tests.simulation", "--dense", "--mutant", name]
        command += ["--tiered"] if bug.is_tiered else []
        command += ["--hours", "1000", "--length", str(length_s), "--limit", str(limit_s)]
        ended = subprocess.run(command, capture_output=True, check=False)
        took_s, used_s = processor_s() - used_s, processor_s()
        if ended.returncode == -signal.SIGXCPU:
            print(f"NOT FOUND {name} in {took_s:.0f} s", flush=True)
            continue
        lines = ended.stdout.decode().splitlines()
        why = next((line for line in lines if line.startswith("  ")), "it does not run")
        found += why.startswith("  ")
        print(f"found {name} in {took_s:.1f} s: {why.strip()[:150]}", flush=True)
    print(f"{found} of {len(BUGS)} found")
    return 0 if found >= len(BUGS) - 1 else 1


def processor_s() -> float:
    """What the processes that this one has started have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(
    seed: int,
    length_s: float,
    shape: Shape,
    plan: list[Fault] | None,
    log: str | None,
    *,
    collects: bool = True,
) -> tuple[Outcome, str]:
    """Run a seed; its outcome, and a line about it."""
    began_s = time.process_time()
    if log is None:
        outcome = run(seed, length_s, shape=shape, plan=plan, collects=collects)
    else:
        with open(log, "w", encoding="utf-8") as file:
            outcome = run(
                seed, length_s, shape=shape, plan=plan, log=lambda line: file.write(line + "\n")
            )
    took_s = time.process_time() - began_s
    line = (
        f"seed {seed}: {'FAILED' if outcome.violation else 'held'} trace {outcome.trace:016x} "
        f"handles {outcome.handles} virtual {outcome.virtual_s:.0f} s "
        f"({outcome.virtual_s / took_s:.0f}x) acked {outcome.acked} lone {outcome.lone_acks} "
        f"read {outcome.read} transactions {outcome.committed}/{outcome.aborted}/{outcome.unknown} "
        f"commits {outcome.commits}/{outcome.fetches} faults {outcome.struck}"
    )
    return outcome, line


def timed_alone(*job: Any) -> tuple[Outcome, str]:
    """As `timed`, in a process that ends with it."""
    return timed(*job, collects=False)


def report(outcome: Outcome) -> None:
    """Print what went wrong, and what had been done before."""
    print(f"  {outcome.violation}")
    for line in outcome.done[-LINES_SHOWN:]:
        print(f"    {line}")
    for line in outcome.lines[-LINES_SHOWN:]:
        print(f"      {line}")
    for line in outcome.state:
        print(f"    | {line[:LINE_SHOWN]}")


def make_small(case: Case, outcome: Outcome, mutant: str | None, path: str | None) -> None:
    """Make a failing run small, and print a script that replays it (also into a file)."""

    def tell(tried: Case, ended: Outcome) -> None:
        print(
            f"  {len(tried.plan)} faults, {tried.length_s:.0f} s: "
            f"{'FAILED' if ended.violation else 'held'} {rule_of(ended.violation)}",
            flush=True,
        )

    smallest, outcome = shrink(case, outcome, tell)
    report(outcome)
    text = script(smallest, mutant=mutant)
    print(f"replayed by:\n{text}")
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
