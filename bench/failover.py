"""`python -m bench.failover`: how long producers stand still when a broker of three fails.

One idempotent producer (librdkafka, its own defaults, acks=all) sends at a steady rate to a topic
of three replicas; the figure is the longest time without an acknowledgement around each fault.
`--client raw` takes a producer without timers of its own, which librdkafka has: it looks for a
leader once a second. Coordinators are asked by raw clients in any case. Released Kafka brokers
beside it get the same faults by the same program, one cluster at a time.

A network is cut by proxies, which only ours can have between its brokers, or by `--namespaces`:
each server in a network namespace of its own, where packets are lost (`bench.cluster.namespaces`).
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.cluster.cluster import Cluster
from bench.cluster.failover import FAULTS, Fault, Sample, quantile, sample
from bench.cluster.kinds import KafkaCluster, VarveCluster
from bench.cluster.namespaces import NamespaceError, Namespaces, enter
from bench.kafka_release import KAFKA_VERSION, KafkaReleaseError
from bench.node import NodeError
from bench.process import end_on_sigterm

RESULTS = Path(__file__).parent / "results"
KINDS = ("varve", "kafka")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--brokers", choices=[*KINDS, "both"], default="both")
    parser.add_argument("--count", type=int, default=20, help="of each fault")
    parser.add_argument("--rate", type=float, default=200.0, help="records a second")
    parser.add_argument(
        "--faults",
        type=lambda text: text.split(","),
        help=f"by number, comma-separated: {', '.join(_numbered())}",
    )
    parser.add_argument("--client", choices=["librdkafka", "raw"], default="librdkafka")
    parser.add_argument("--namespaces", action="store_true", help="each server in one of its own")
    parser.add_argument("--etcd-members", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of ours")
    parser.add_argument("--name", default="failover", help="of the file in bench/results")
    parser.add_argument("--output", type=Path, help="the file, if it is to lie elsewhere")
    parser.add_argument("--directory", type=Path, help="where brokers keep their data")
    return parser


def _numbered() -> list[str]:
    return [f"{number} {fault.name}" for number, fault in enumerate(FAULTS)]


def _cluster(kind: str, directory: Path, arguments: argparse.Namespace, *, is_cut: bool) -> Cluster:
    namespaces = Namespaces() if arguments.namespaces else None
    if kind == "kafka":
        return KafkaCluster(directory, namespaces=namespaces)
    given = dict(pair.partition("=")[::2] for pair in arguments.set)
    return VarveCluster(
        directory,
        given,
        etcd_members=arguments.etcd_members,
        links="clients" if is_cut and namespaces is None else False,
        namespaces=namespaces,
    )


def can_strike(fault: Fault, kind: str, has_namespaces: bool) -> bool:
    """Whether there is such a fault for a kind of cluster, with the network it has."""
    if fault.unplugs or (fault.cuts and kind == "kafka"):
        return has_namespaces and kind in fault.kinds
    return kind in fault.kinds


class _Measurement:
    """All samples of one kind of cluster; what fails is said, and its cluster replaced."""

    def __init__(
        self, kind: str, faults: Sequence[Fault], directory: Path, arguments: argparse.Namespace
    ) -> None:
        self._kind = kind
        self._faults = [fault for fault in faults if can_strike(fault, kind, arguments.namespaces)]
        self.samples: dict[str, list[Sample]] = {fault.name: [] for fault in self._faults}
        self._directory = directory
        self._arguments = arguments
        self._lives = 0

    def run(self) -> None:
        """Take them, those that need proxies on a cluster of their own."""
        for is_cut in (False, True):
            faults = [fault for fault in self._faults if fault.cuts is is_cut]
            cluster: Cluster | None = None
            try:
                for number in range(self._arguments.count):
                    for fault in faults:
                        cluster = self._take(cluster, fault, number)
            finally:
                if cluster is not None:
                    cluster.close()

    def _take(self, cluster: Cluster | None, fault: Fault, number: int) -> Cluster | None:
        """One sample; the cluster, None when it is not whole any more."""
        kind, arguments = self._kind, self._arguments
        if cluster is None:
            self._lives += 1
            cluster = _cluster(
                kind,
                self._directory / f"{kind}-{self._lives}",
                arguments,
                is_cut=fault.cuts,
            )
            cluster.start()
        topic = f"failover-{self._lives}-{number}-{FAULTS.index(fault)}"
        try:
            one = sample(cluster, fault, topic, arguments.rate, is_raw=arguments.client == "raw")
        except (NodeError, AssertionError) as error:
            print(f"{kind:6} {fault.name:32} FAILED: {error}", flush=True)
            print(f"logs: {cluster.keep_logs(RESULTS.parent.parent / '.build' / topic)}")
            cluster.close()
            return None
        self.samples[fault.name].append(one)
        print(
            f"{kind:6} {fault.name:32} gap {one.gap_s:6.2f} s, "
            f"in sync again after {one.in_sync_s:5.1f} s, {one.records} acknowledged",
            flush=True,
        )
        return cluster


def table(measured: Mapping[str, Mapping[str, Sequence[Sample]]]) -> str:
    """Count, median, 95th percentile and largest gap of each fault and kind of cluster."""
    lines = [
        "| fault | cluster | n | median s | p95 s | largest s |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for fault in FAULTS:
        for kind, samples in measured.items():
            gaps = [one.gap_s for one in samples.get(fault.name, ())]
            if gaps:
                figures = (statistics.median(gaps), quantile(gaps, 0.95), max(gaps))
                shown = " | ".join(f"{figure:.2f}" for figure in figures)
                lines.append(f"| {fault.name} | {kind} | {len(gaps)} | {shown} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table, write the file; 1 when a sample failed."""
    end_on_sigterm()
    parser = _parser()
    arguments = parser.parse_args()
    try:
        faults = [FAULTS[int(n)] for n in arguments.faults or range(len(FAULTS))]
    except (ValueError, IndexError):
        parser.error(f"--faults: numbers of {', '.join(_numbered())}")
    if arguments.namespaces:
        try:
            enter("bench.failover", sys.argv[1:])
        except NamespaceError as error:
            print(error, file=sys.stderr)
            return 1
    kinds = KINDS if arguments.brokers == "both" else (arguments.brokers,)
    base = arguments.directory or Path(tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="varve-failover-", dir=base))
    measured: dict[str, dict[str, list[Sample]]] = {}
    begin = time.monotonic()
    try:
        for kind in kinds:
            measurement = _Measurement(kind, faults, directory, arguments)
            measured[kind] = measurement.samples
            measurement.run()
    except (NodeError, KafkaReleaseError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    document = {
        "kafka": KAFKA_VERSION,
        "rate_per_s": arguments.rate,
        "client": arguments.client,
        "gaps_s": {
            kind: {name: [one.gap_s for one in found] for name, found in samples.items()}
            for kind, samples in measured.items()
        },
    }
    path: Path = arguments.output or RESULTS / f"{arguments.name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"\n{table(measured)}\n\n{time.monotonic() - begin:.0f} s; {path}")
    complete = all(
        len(found) == arguments.count for samples in measured.values() for found in samples.values()
    )
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
