"""`make histories`: many kills, many records, and not one of them lost, doubled or out of order.

A run is made of legs. Each has topics of its own: numbered records by librdkafka's idempotent
producer and by a raw one, acks=all, three replicas and two in sync at least, while brokers, store
and network fail. Then all is healed, and everything that was acknowledged must be there once, at
its offset, in order; a reader has seen nothing that is not there; replicas are equal byte for
byte; no offset and leader epoch ever named two batches; the store was never made to say what it
must not. Then the topics go, so that the disk holds one leg at most.

    python -m tests.checker.cluster.long_run --seed 1 --kills 200 --records 1000000

It ends by itself: when there were as many kills and acknowledged records as asked for, when its
time is over, or at the first finding, whose data it keeps. The exit code is 0 for the first of
these, 3 for the second, 1 for a finding. Figures go to `.build/histories/<seed>.json` after each
leg; the same command goes on from there, `--again` begins anew.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from bench import wire
from bench.cluster.namespaces import Namespaces, enter
from bench.cluster.numbered import Found, NumberedProducer, read_numbers
from bench.node import REPOSITORY, NodeError
from tests.checker.brokers import ReplicatedBrokers
from tests.checker.cluster.faults import KILLS
from tests.checker.cluster.nemesis import GROUPS, ClusterNemesis, expand
from tests.checker.cluster.watched import WatchedCluster
from tests.checker.cluster.writers import RawWriter, Reader
from tests.checker.run import end_orderly_on_sigterm

RESULTS: Final = REPOSITORY / ".build" / "histories"
PARTITIONS: Final = 3
PROGRESS_S: Final = 20.0
CAUGHT_UP_S: Final = 60.0
FREE_BYTES_MIN: Final = 2 << 30

FAULTS: Final = (*KILLS, *expand(tuple(GROUPS)), "kill-store", "pause-store")
"""Kills of brokers are drawn twice as often as all else."""


@dataclass(slots=True)
class Figures:
    """What a run has come to so far; `seconds` are those with faults."""

    seed: int
    legs: int = 0
    seconds: float = 0.0
    kills: int = 0
    acknowledged: int = 0
    acknowledged_raw: int = 0
    read: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    anomalies: int = 0
    elections: int = 0
    controllers: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One line, for people."""
        return (
            f"seed {self.seed}: {self.legs} legs, {self.seconds / 60:.1f} min of faults, "
            f"{self.kills} broker kills, {self.acknowledged + self.acknowledged_raw} acknowledged "
            f"({self.acknowledged_raw} raw), {self.read} read along, {self.lost} lost, "
            f"{self.duplicated} duplicated, {self.reordered} reordered, "
            f"{self.anomalies} anomalies; {self.elections} elections, "
            f"{self.controllers} controllers"
        )

    def is_enough(self, kills: int, records: int) -> bool:
        """Whether nothing is left to do."""
        return self.kills >= kills and self.acknowledged + self.acknowledged_raw >= records


class Leg:
    """Topics, writers and a reader of one part of a run."""

    def __init__(self, number: int, brokers: ReplicatedBrokers, rate_per_s: float) -> None:
        self.number = number
        self._brokers = brokers
        names = f"leg-{number}-idempotent", f"leg-{number}-raw"
        for name in names:
            brokers.create_topic(name, PARTITIONS, {"min.insync.replicas": "2"})
        self.topics = names
        indexes = range(PARTITIONS)
        self.producer = NumberedProducer(
            brokers.address,
            names[0],
            partitions=indexes,
            rate_per_s=rate_per_s * 2 / 3,
            value_size=100,
            # A broker that is paused accepts and does not answer.
            settings={"socket.timeout.ms": 3_000, "linger.ms": 5},
        )
        self.raw = RawWriter(brokers.address, names[1], indexes, rate_per_s / 3)
        partitions = [(name, index) for name in names for index in indexes]
        self.reader = Reader(brokers.address, partitions)

    def start(self) -> None:
        """Begin to write and to read."""
        for one in (self.producer, self.raw, self.reader):
            one.start()
        self.producer.wait_for_acks(100)

    @property
    def acknowledged_count(self) -> int:
        """Of both writers."""
        return self.producer.acknowledged_count + self.raw.acknowledged_count

    def finish(self) -> list[str]:
        """Wait for what is in flight; what failed."""
        failures = []
        for one in (self.producer, self.raw):
            try:
                one.finish()
            except AssertionError as error:
                failures.append(str(error))
        deadline = time.monotonic() + CAUGHT_UP_S
        while self.reader.count < self.acknowledged_count and time.monotonic() < deadline:
            time.sleep(0.1)
        self.reader.stop()
        return failures

    def stop(self) -> None:
        """Write and read no more."""
        self.producer.stop()
        self.raw.stop()
        self.reader.stop()

    def judge(self) -> tuple[Found, list[str]]:
        """Lost, doubled and out of order; and what the reader saw that is not so."""
        found, wrong = Found(), list(self.reader.changed)
        written: tuple[Mapping[int, Mapping[int, int | None]], ...] = (
            self.producer.acknowledged,
            self.raw.acknowledged,
        )
        for topic, partitions in zip(self.topics, written, strict=True):
            for index, offsets in partitions.items():
                with self._brokers.cluster.connected_to_leader(topic, index) as connection:
                    numbers = read_numbers(connection, topic, index)
                found.judge(f"{topic}-{index}", offsets, numbers)
                wrong += self.reader.judge(topic, index, numbers)
        return found, wrong

    def delete(self) -> None:
        """Its topics, and wait until their files are gone."""
        cluster = self._brokers.cluster
        with cluster.connected(cluster.controller_id()) as connection:
            wire.delete_topics(connection, list(self.topics))

        def is_gone() -> bool:
            return not any(
                list(node.data_directory.glob(f"{topic}-*"))
                for node in cluster.nodes.values()
                for topic in self.topics
            )

        cluster.wait_until("the leg's topics are gone", is_gone, 90.0, poll_s=0.2)


class LongRun:
    """Legs on one cluster, until there were enough."""

    def __init__(self, options: argparse.Namespace, figures: Figures, directory: Path) -> None:
        self._options = options
        self.figures = figures
        self._directory = directory
        self.findings: list[str] = []

    def run(self) -> None:
        """See the module."""
        options = self._options
        end = time.monotonic() + options.minutes * 60
        brokers = ReplicatedBrokers(
            "varve",
            self._directory,
            brokers=options.brokers,
            properties={
                "log.segment.bytes": str(8 << 20),
                "log.segment.delete.delay.ms": "1000",
                # librdkafka asks for topics of legs that are over, and would have them again.
                "auto.create.topics.enable": "false",
            },
            etcd_members=options.etcd_members,
            namespaces=Namespaces() if options.namespaces else None,
        )
        try:
            brokers.start()
            watched = WatchedCluster(
                brokers.cluster, options.seed * 1000 + self.figures.legs, topics=()
            )
            while not self.findings and not self.figures.is_enough(options.kills, options.records):
                if time.monotonic() > end:
                    return
                if shutil.disk_usage(self._directory).free < FREE_BYTES_MIN:
                    self.findings.append("the disk is nearly full")
                    return
                self._leg(brokers, watched, min(end, time.monotonic() + options.leg_minutes * 60))
        finally:
            brokers.close()

    def _leg(self, brokers: ReplicatedBrokers, watched: WatchedCluster, end: float) -> None:
        figures, number = self.figures, self.figures.legs + 1
        leg = Leg(number, brokers, self._options.rate)
        watched.faults.topics = frozenset(leg.topics)
        kills, faults = watched.faults.kills, Counter(watched.faults.done)
        nemesis = ClusterNemesis(
            watched.faults, None, names=FAULTS, seed=self._options.seed * 1000 + number, say=_quiet
        )
        begin = time.monotonic()
        try:
            leg.start()
            while time.monotonic() < end:
                nemesis.run_until(min(end, time.monotonic() + PROGRESS_S))
                _say(
                    f"  leg {number}, {end - time.monotonic():4.0f} s left: "
                    f"{figures.kills + watched.faults.kills - kills} kills, "
                    f"{figures.acknowledged + figures.acknowledged_raw + leg.acknowledged_count} "
                    f"acknowledged, now {watched.faults.lasting or 'nothing'}"
                )
            seconds = time.monotonic() - begin
            nemesis.heal()
            watched.wait_until_whole()
            failures = leg.finish()
            found, wrong = leg.judge()
            anomalies = watched.judge()
        except (NodeError, AssertionError) as error:
            self.findings.append(f"leg {number}: {error}")
            return
        finally:
            leg.stop()
        figures.legs = number
        figures.seconds += seconds
        figures.kills += watched.faults.kills - kills
        figures.acknowledged += leg.producer.acknowledged_count
        figures.acknowledged_raw += leg.raw.acknowledged_count
        figures.read += leg.reader.count
        figures.lost += len(found.lost)
        figures.duplicated += len(found.duplicated)
        figures.reordered += len(found.reordered)
        figures.anomalies += len(anomalies) + len(wrong)
        figures.elections += watched.history.elections
        figures.controllers += watched.history.controllers
        watched.history.elections = watched.history.controllers = 0
        done = watched.faults.done - faults
        figures.faults = dict(Counter(figures.faults) + done)
        texts = [f"{one.kind}: {one.text}" for one in anomalies]
        self.findings += [*failures, *found.problems[:20], *wrong[:20], *texts]
        _say(f"{figures.text}\n  {'; '.join(watched.notes)}")
        watched.notes.clear()
        if not self.findings:
            leg.delete()
            for topic in leg.topics:
                watched.ledger.forget(topic)


def _quiet(_line: str) -> None:
    """The rounds are told by progress lines."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, report; see the module for the exit code."""
    parser = argparse.ArgumentParser(prog="make histories", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200, help="of brokers, in all")
    parser.add_argument("--records", type=int, default=1_000_000, help="acknowledged, in all")
    parser.add_argument("--rate", type=float, default=1500.0, help="records/s that are tried")
    parser.add_argument("--minutes", type=float, default=120.0, help="at most, of this call")
    parser.add_argument("--leg-minutes", type=float, default=4.0, help="of faults in one leg")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--etcd-members", type=int, choices=(1, 3), default=1)
    parser.add_argument("--namespaces", action="store_true", help="lose packets, without proxies")
    parser.add_argument("--again", action="store_true", help="forget this seed's figures")
    parser.add_argument("--directory", type=Path, help="where brokers keep their data")
    options = parser.parse_args(arguments)
    if options.namespaces:
        enter("tests.checker.cluster.long_run", sys.argv[1:] if arguments is None else arguments)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{options.seed}.json"
    figures = Figures(options.seed)
    if path.exists() and not options.again:
        figures = Figures(**json.loads(path.read_text()))
    directory = Path(tempfile.mkdtemp(prefix="varve-histories-", dir=options.directory))
    end_orderly_on_sigterm()
    run = LongRun(options, figures, directory)
    is_kept = True
    try:
        run.run()
        is_kept = bool(run.findings)
    finally:
        path.write_text(json.dumps(asdict(figures), indent=1) + "\n")
        if is_kept:
            _say(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    _say(f"{figures.text}\nfaults: {figures.faults}\n{path}")
    for finding in run.findings:
        _say(f"FINDING {finding}")
    if run.findings:
        return 1
    return 0 if figures.is_enough(options.kills, options.records) else 3


if __name__ == "__main__":
    sys.exit(main())
