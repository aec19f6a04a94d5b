"""ABAB: both brokers alive, one loaded at a time, pair after pair.

Every pair gives one ratio; the median of them and their spread are reported. A pair in which the
machine was disturbed is taken again, at most as often as there are pairs.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.calibration import calibrate
from bench.cluster.cluster import Cluster
from bench.cluster.kinds import KafkaCluster, VarveCluster
from bench.generator import GeneratorError
from bench.kafka_release import KAFKA_HEAP
from bench.node import KafkaNode, Node, OwnedNode, VarveBrokersNode, VarveNode
from bench.process import machine_times, pin
from bench.report import RowResult
from bench.rows import BROKER_CORE, Bench, Disturbed, Row
from bench.tiered_node import TIERED_KINDS

KINDS: dict[str, type[OwnedNode]] = {"varve": VarveNode, "kafka": KafkaNode}

# All cores of a machine, each in its own way: brokers of one `varve serve`, threads of one Kafka.
BROKERS_KINDS: dict[str, type[OwnedNode]] = {"varve": VarveBrokersNode, "kafka": KafkaNode}

# Both brokers alike: what a newcomer gets, except that one run may hold many topics.
PROPERTIES = {"offsets.topic.num.partitions": "50"}

STOLEN_LIMIT = 0.02
_stolen_limit = STOLEN_LIMIT


def disregard_stolen_time() -> None:
    """What is counted does not depend on how long the machine takes for it."""
    global _stolen_limit
    _stolen_limit = float("inf")


class Runner:
    """Runs rows on one or two brokers; brokers that were given are never started or stopped."""

    def __init__(
        self,
        brokers: Sequence[str],
        directory: Path,
        *,
        given: Mapping[str, Node],
        warm_up_s: float,
        pairs: int,
        log: bool = True,
        kafka_brokers: int = 3,
    ) -> None:
        self.brokers = list(brokers)
        self.directory = directory
        self.given = dict(given)
        self.warm_up_s = warm_up_s
        self.pairs = pairs
        self.log = log
        self.shared: dict[str, Node] = {}
        self.clusters: dict[str, Cluster] = {}
        self.kafka_brokers = kafka_brokers
        self._nodes = 0

    def new_node(self, kind: str, properties: Mapping[str, str]) -> OwnedNode:
        """A broker with a fresh directory below ours."""
        return self._new_node(KINDS, kind, properties)

    def new_tiered_node(self, kind: str, properties: Mapping[str, str]) -> OwnedNode:
        """Likewise, with remote storage in a directory."""
        return self._new_node(TIERED_KINDS, kind, properties)

    def new_brokers(self, kind: str, properties: Mapping[str, str]) -> OwnedNode:
        """Likewise, with two brokers where it is ours."""
        return self._new_node(BROKERS_KINDS, kind, properties)

    def _new_node(
        self, kinds: Mapping[str, type[OwnedNode]], kind: str, properties: Mapping[str, str]
    ) -> OwnedNode:
        self._nodes += 1
        where = Path(tempfile.mkdtemp(prefix=f"{kind}-{self._nodes}-", dir=self.directory))
        # "kafka-2" is a second Kafka: how the method shows that it sees no difference where
        # there is none.
        node = kinds[kind.partition("-")[0]](where, {**PROPERTIES, **properties})
        node.name = kind
        return node

    def say(self, text: str) -> None:
        """Print progress."""
        if self.log:
            print(text, flush=True)

    @contextlib.contextmanager
    def running(
        self, bench: Bench, rows: Sequence[Row], *, tiered: bool = False, brokers: int = 1
    ) -> Iterator[None]:
        """Both brokers up and warm for the rows that share them."""
        owned: list[OwnedNode] = []
        try:
            if any(row.run for row in rows):
                for kind in self.brokers:
                    if kind in self.given and not tiered and brokers == 1:
                        self.shared[kind] = self.given[kind]
                        continue
                    new_node = self.new_tiered_node if tiered else self.new_node
                    if brokers > 1:
                        new_node = self.new_brokers
                    node = new_node(kind, {})
                    owned.append(node)
                    self.say(f"{kind}: up after {node.start():.2f} s")
                    self.shared[kind] = node
                self._warm_up(bench, rows if brokers > 1 else ())
            yield
        finally:
            self.shared.clear()
            for node in owned:
                with contextlib.suppress(Exception):
                    node.stop()

    @contextlib.contextmanager
    def running_clusters(self, bench: Bench, rows: Sequence[Row]) -> Iterator[None]:
        """Clusters up and warm for the rows that share them."""
        try:
            for kind in self.brokers if rows else ():
                where = Path(tempfile.mkdtemp(prefix=f"{kind}-cluster-", dir=self.directory))
                begin = time.monotonic()
                cluster = self._new_cluster(kind, where)
                self.clusters[kind] = cluster
                cluster.start()
                self.say(
                    f"{kind}: {len(cluster.nodes)} brokers after {time.monotonic() - begin:.1f} s"
                )
                before, bench.duration_s = bench.duration_s, min(5.0, self.warm_up_s / 4)
                while time.monotonic() - begin < self.warm_up_s:
                    for row in rows:
                        assert row.run_cluster is not None
                        # A cold cluster may not keep up with an open loop's rate at first.
                        with contextlib.suppress(Disturbed, GeneratorError):
                            row.run_cluster(bench, cluster)
                bench.duration_s = before
            yield
        finally:
            for cluster in self.clusters.values():
                cluster.close()
            self.clusters.clear()

    def _new_cluster(self, kind: str, where: Path) -> Cluster:
        if kind.startswith("kafka"):
            return KafkaCluster(where, PROPERTIES, brokers=self.kafka_brokers, heap=KAFKA_HEAP)
        return VarveCluster(where, PROPERTIES)

    def _warm_up(self, bench: Bench, own: Sequence[Row]) -> None:
        """Give the JIT what it needs, with the same kinds of load that will be measured.

        `own`: rows that are the load themselves; without them it is produce and consume.
        """
        # The tables are long; only two of their rows are needed here.
        from bench.consume_rows import CONSUME_ROWS
        from bench.rows import ROWS

        rows = (*ROWS, *CONSUME_ROWS)
        usual = [row for row in rows if row.name in {"produce-100-pipelined", "consume"}]
        warming = own or usual
        before, bench.duration_s = bench.duration_s, min(5.0, self.warm_up_s / 4)
        beside_limit, bench.beside_limit = bench.beside_limit, False
        for kind, node in self.shared.items():
            begin = time.monotonic()
            while time.monotonic() - begin < self.warm_up_s:
                for row in warming:
                    if row.run is not None:
                        row.run(bench, node)
            self.say(f"{kind}: warm after {time.monotonic() - begin:.0f} s of load")
        bench.duration_s = before
        bench.beside_limit = beside_limit

    def _warm_up_for(self, bench: Bench, row: Row, brokers: Sequence[str]) -> None:
        """Code that no row before has used is compiled by the first that does."""
        duration_s = min(row.warm_up_s, self.warm_up_s)
        if row.run is None or not duration_s:
            return
        before = bench.duration_s, bench.quick
        bench.duration_s, bench.quick = duration_s, True
        try:
            for kind in brokers:
                # Where the broker has only one core it takes longer.
                pin(self.shared[kind].pid, range(os.cpu_count() or 1))
                row.run(bench, self.shared[kind])
        finally:
            bench.duration_s, bench.quick = before

    def run_row(self, bench: Bench, row: Row) -> RowResult:
        """All pairs of one row."""
        brokers = [kind for kind in self.brokers if row.only in {None, kind}]
        result = RowResult(row, {kind: [] for kind in brokers})
        if not brokers:
            return result
        pairs = min(self.pairs, row.pairs_max or self.pairs)
        retries_left = pairs
        self.say(f"{row.name}: {row.title}")
        try:
            self._warm_up_for(bench, row, brokers)
        except Exception as error:  # noqa: BLE001  because the other rows go on
            result.error = f"{type(error).__name__}: {error}"
            self.say(f"  failed: {result.error}")
            return result
        while len(result.samples[brokers[-1]]) < pairs:
            calibration = calibrate(self.directory)
            try:
                pair = {kind: self._sample(bench, row, kind) for kind in brokers}
            except Disturbed as error:
                result.disturbed += 1
                self.say(f"  pair discarded: {error}")
                retries_left -= 1
                if retries_left < 0:
                    result.error = f"machine too busy: {error}"
                    break
                continue
            except Exception as error:  # noqa: BLE001  because the other rows go on
                result.error = f"{type(error).__name__}: {error}"
                self.say(f"  failed: {result.error}")
                break
            result.calibrations.append(calibration.as_dict())
            for kind, sample in pair.items():
                result.samples[kind].append(sample)
            self.say(f"  {self._pair_line(row, pair)}   [{calibration}]")
        return result

    def _pair_line(self, row: Row, pair: Mapping[str, Mapping[str, float]]) -> str:
        parts = []
        for metric in row.metrics:
            values = [sample.get(metric.name, 0.0) for sample in pair.values()]
            text = " : ".join(f"{value:,.4g}" for value in values)
            if len(values) == 2 and values[1]:
                text += f" = {values[0] / values[1]:.2f}"
            parts.append(f"{metric.name} {text}")
        return "; ".join(parts)

    def _sample(self, bench: Bench, row: Row, kind: str) -> dict[str, float]:
        # Dirty pages of the run before are not this run's business.
        os.sync()
        times, begin = machine_times(), time.monotonic()
        if row.run_own is not None:
            if kind in self.given:
                raise RuntimeError("needs a broker of its own: leave --kafka and --varve away")
            try:
                sample = row.run_own(bench, kind)
            finally:
                # Some rows leave gigabytes.
                for path in self.directory.iterdir():
                    shutil.rmtree(path, ignore_errors=True)
        elif row.run_cluster is not None:
            cluster = self.clusters[kind]
            cluster.pin({BROKER_CORE} if row.pinned else range(os.cpu_count() or 1))
            sample = row.run_cluster(bench, cluster)
        else:
            assert row.run is not None
            node = self.shared[kind]
            pin(node.pid, {BROKER_CORE} if row.pinned else range(os.cpu_count() or 1))
            sample = row.run(bench, node)
        stolen = (machine_times().stolen - times.stolen) / (time.monotonic() - begin)
        if stolen > _stolen_limit * (os.cpu_count() or 1):
            raise Disturbed(f"the hypervisor took {stolen:.1%} of a core")
        return sample
