"""`make grid`: every fault with every kind of client, each cell on a cluster of its own.

A cell begins when all is well, then one fault lasts for some seconds, then all is healed and
judged as any history: clients, replicas, store. It is good when nothing was found, and when its
clients had a hundred successes while the fault lasted: acknowledged sends, commits of transactions,
reads that brought records, commits and acknowledgements of groups; reads of what brokers have in
remote storage alone, which the three share. Where no majority is left (two
of three brokers are dead) nothing has to succeed, and nothing may be lost.

    python -m tests.checker.cluster.grid --seconds 40
    python -m tests.checker.cluster.grid --only "kill leader/txn"

Cells that were good are kept in `.build/grid` and not repeated, unless `--again` says so: a grid
that was stopped goes on. The exit code is 0 when all cells that were asked for are good.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from bench.node import REPOSITORY, NodeError
from bench.wire import WireError
from tests.checker.clients.tier_work import BROKER_PROPERTIES, TOPIC_CONFIGS
from tests.checker.cluster.faults import ClusterFaults
from tests.checker.cluster.nemesis import TICK_S, ClusterNemesis
from tests.checker.faults.nemesis import Clients
from tests.checker.history import Recorder
from tests.checker.run import RunOptions, RunOutcome, end_orderly_on_sigterm, run

RESULTS: Final = REPOSITORY / ".build" / "grid"
BEFORE_S: Final = 2.0
"""Without a fault, after all clients have had a success."""

BEGUN_S: Final = 60.0
MOVING_S: Final = 40.0
"""So long at most leaders move after a broker was asked to stop."""

SUCCESSES_MIN: Final = 100
ROLLING: Final = "rolling restart"
TIER: Final = "tier"
"""Clients of topics whose records are in remote storage alone after some seconds."""


@dataclass(frozen=True, slots=True)
class GridFault:
    """A row.

    Attributes:
        fault: Of `tests.checker.cluster.faults`; empty: restarts, one after the other.
        etcd_members: Servers of the store.
        has_majority: Whether clients can get on meanwhile.
    """

    fault: str
    etcd_members: int = 1
    has_majority: bool = True


FAULTS: Final[dict[str, GridFault]] = {
    "kill leader": GridFault("kill-leader"),
    "kill follower": GridFault("kill-follower"),
    "kill controller": GridFault("kill-controller"),
    "kill two": GridFault("kill-two", has_majority=False),
    "stop leader": GridFault("pause-leader"),
    "cut leader": GridFault("isolate"),
    "cut from store": GridFault("cut-store"),
    "cut one way": GridFault("cut-one-way"),
    "50 ms": GridFault("slow"),
    "store down": GridFault("kill-store"),
    "stop store leader": GridFault("pause-store", etcd_members=3),
    ROLLING: GridFault(""),
}

WORKLOADS: Final[dict[str, tuple[str, ...]]] = {
    "send": ("send", "send"),
    "read": ("send", "read", "read", "read"),
    "txn": ("txn", "txn", "rawtxn", "rawtxn", "rawtxn"),
    "group": ("send", "nextsubscribe", "nextsubscribe"),
    "job": ("send", "nextjob"),
    "share": ("send", "jshare", "jshare"),
    TIER: ("send", "send", "history", "history", "history"),
}

COUNTED: Final[dict[str, frozenset[str]]] = {
    "send": frozenset({"send"}),
    "read": frozenset({"read"}),
    "txn": frozenset({"txn", "rawtxn"}),
    "group": frozenset({"nextsubscribe"}),
    "job": frozenset({"nextjob", "send"}),
    "share": frozenset({"jshare"}),
    TIER: frozenset({"history"}),
}
"""Whose successes count, in each column."""


class OneFault(ClusterNemesis):
    """Strikes once, and lets it last to the end."""

    def __init__(
        self, row: GridFault, faults: ClusterFaults, clients: Clients, recorder: Recorder
    ) -> None:
        super().__init__(faults, clients, names=(), seed=0, recorder=recorder, say=_quiet)
        self._row = row
        self._all_work = clients.all_work

    @override
    def run_until(self, end: float) -> None:
        lasting_s = end - time.monotonic()
        # What has not begun may need a topic, which cannot be made while the store is down.
        begun_until = time.monotonic() + BEGUN_S
        while not self._all_work() and time.monotonic() < begun_until:
            self._rest(TICK_S)
        self._rest(BEFORE_S)
        begin_ns = time.monotonic_ns()
        if self._row.fault:
            while not self.faults.strike(self._row.fault, 10 * lasting_s):
                self._rest(TICK_S)
            self._rest(lasting_s)
        else:
            self._roll(time.monotonic() + lasting_s)
        self.disturbed.append((begin_ns, time.monotonic_ns()))

    def _roll(self, end: float) -> None:
        """Restart one broker after the other, each once the one before is in sync; then wait."""
        cluster = self.faults.cluster
        for node_id, node in sorted(cluster.nodes.items()):
            self.moving_until(time.monotonic() + MOVING_S)
            self.faults.down.add(node_id)
            cluster.terminate(node_id)
            while node.is_running:
                self._rest(TICK_S)
            self.faults.done["restart"] += 1
            node.stop()
            node.launch()
            self.faults.down.discard(node_id)
            self._rest(TICK_S)
            while not self._is_whole():
                self._rest(TICK_S)
        while time.monotonic() < end:
            self._rest(TICK_S)

    def _is_whole(self) -> bool:
        cluster = self.faults.cluster
        try:
            return (
                all(
                    set(cluster.state_at(node, []).brokers) == set(cluster.nodes)
                    for node in cluster.nodes.values()
                )
                and not cluster.out_of_sync()
            )
        except (OSError, WireError, NodeError):
            return False


def _quiet(_line: str) -> None:
    """A cell is one line."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of one cell; `problem` is empty when it is good."""

    fault: str
    workload: str
    successes: int
    seconds: float
    silence_s: float
    problem: str = ""


def judge(fault: str, workload: str, outcome: RunOutcome) -> Cell:
    """A cell from a run's outcome."""
    progress = outcome.progress
    successes = sum(progress.ok[kind] for kind in COUNTED[workload])
    problems = [f"{kind} {count}" for kind, count in outcome.report.forbidden.items()]
    problems += outcome.undrained + outcome.worker_errors
    if FAULTS[fault].has_majority and successes < SUCCESSES_MIN:
        problems.append(f"{successes} successes")
    return Cell(
        fault, workload, successes, progress.seconds, progress.silence_s, "; ".join(problems)
    )


def play(fault: str, workload: str, seconds: float, seed: int, directory: Path) -> Cell:
    """One cell, on a cluster of its own in `directory`."""
    row = FAULTS[fault]
    options = RunOptions(
        seconds=seconds,
        seed=seed,
        brokers=3,
        etcd_members=row.etcd_members,
        workload=WORKLOADS[workload],
        asks_for_progress=False,
        make_nemesis=lambda faults, clients, recorder: OneFault(row, faults, clients, recorder),
    )
    if workload == TIER:
        objects = directory / "objects"
        objects.mkdir(parents=True)
        options.properties = {**BROKER_PROPERTIES, "rsm.config.storage.root": str(objects)}
        options.topic_configs = TOPIC_CONFIGS
    try:
        outcome = run(options, directory)
    except (NodeError, OSError, WireError) as error:
        return Cell(fault, workload, 0, 0.0, 0.0, f"{type(error).__name__}: {str(error)[:1000]}")
    cell = judge(fault, workload, outcome)
    if cell.problem:
        (directory / "outcome.txt").write_text(outcome.text())
    return cell


def table(cells: dict[tuple[str, str], Cell]) -> str:
    """Successes of every cell; a cell that is not good has an exclamation mark."""
    lines = [f"| | {' | '.join(WORKLOADS)} |", "|---" * (len(WORKLOADS) + 1) + "|"]
    for fault in FAULTS:
        shown = []
        for workload in WORKLOADS:
            cell = cells.get((fault, workload))
            shown.append("-" if cell is None else f"{cell.successes}{'!' if cell.problem else ''}")
        lines.append(f"| {fault} | {' | '.join(shown)} |")
    return "\n".join(lines)


def known() -> dict[tuple[str, str], Cell]:
    """Cells of earlier calls."""
    found = {}
    for path in sorted(RESULTS.glob("*.json")):
        cell = Cell(**json.loads(path.read_text()))
        if cell.fault in FAULTS and cell.workload in WORKLOADS:
            found[cell.fault, cell.workload] = cell
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print; see the module for the exit code."""
    parser = argparse.ArgumentParser(prog="make grid", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="for which a fault lasts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=240.0, help="at most, of this call")
    parser.add_argument("--only", action="append", default=[], metavar="FAULT/CLIENTS")
    parser.add_argument("--again", action="store_true", help="play good cells, too")
    parser.add_argument("--keep", type=Path, default=RESULTS / "kept", help="of cells that fail")
    options = parser.parse_args(arguments)
    wanted = [(fault, workload) for fault in FAULTS for workload in WORKLOADS]
    if options.only:
        asked = {tuple(one.split("/", 1)) for one in options.only}
        wanted = [one for one in wanted if one in asked]
        if len(wanted) != len(asked):
            parser.error(f"no such cell among {', '.join(options.only)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    end_orderly_on_sigterm()
    cells = known()
    end = time.monotonic() + options.minutes * 60
    for fault, workload in wanted:
        cell = cells.get((fault, workload))
        if cell is not None and not cell.problem and not options.again:
            continue
        if time.monotonic() > end:
            break
        directory = Path(tempfile.mkdtemp(prefix="varve-grid-"))
        cell = play(fault, workload, options.seconds, options.seed, directory)
        name = f"{fault}--{workload}".replace(" ", "-")
        if cell.problem:
            kept = options.keep / name
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(directory, kept)
        else:
            shutil.rmtree(directory, ignore_errors=True)
        cells[fault, workload] = cell
        (RESULTS / f"{name}.json").write_text(json.dumps(asdict(cell)) + "\n")
        sys.stdout.write(
            f"{fault:18} {workload:6} {cell.successes:6} successes in {cell.seconds:4.0f} s, "
            f"longest silence {cell.silence_s:4.1f} s  {cell.problem or 'good'}\n"
        )
        sys.stdout.flush()
    played = [cells[one] for one in wanted if one in cells]
    good = sum(not cell.problem for cell in played)
    sys.stdout.write(f"\n{table(cells)}\n\n{good} good cells of {len(wanted)}\n")
    return int(good < len(wanted))


if __name__ == "__main__":
    sys.exit(main())
