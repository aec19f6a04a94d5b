"""`python -m bench.failover`: how long producers stand still when a broker of three fails.

One idempotent producer (librdkafka, its own defaults, acks=all) sends at a steady rate to a topic
of three replicas; the figure is the longest time without an acknowledgement around each fault.
`--client raw` takes a producer without timers of its own, which librdkafka has: it looks for a
leader once a second. Coordinators are asked by raw clients in any case. Released Kafka brokers
beside it get the same faults by the same program, one cluster at a time.
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
from bench.kafka_release import KAFKA_VERSION, KafkaReleaseError
from bench.node import NodeError

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
    parser.add_argument("--etcd-members", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of ours")
    parser.add_argument("--name", default="failover", help="of the file in bench/results")
    parser.add_argument("--directory", type=Path, help="where brokers keep their data")
    return parser


def _numbered() -> list[str]:
    return [f"{number} {fault.name}" for number, fault in enumerate(FAULTS)]


def _cluster(
    kind: str, directory: Path, arguments: argparse.Namespace, *, needs_links: bool
) -> Cluster:
    if kind == "kafka":
        return KafkaCluster(directory)
    given = dict(pair.partition("=")[::2] for pair in arguments.set)
    return VarveCluster(
        directory,
        given,
        etcd_members=arguments.etcd_members,
        links="clients" if needs_links else False,
    )


class _Measurement:
    """All samples of one kind of cluster; what fails is said, and its cluster replaced."""

    def __init__(
        self, kind: str, faults: Sequence[Fault], directory: Path, arguments: argparse.Namespace
    ) -> None:
        self.samples: dict[str, list[Sample]] = {f.name: [] for f in faults if kind in f.kinds}
        self._kind = kind
        self._faults = [fault for fault in faults if kind in fault.kinds]
        self._directory = directory
        self._arguments = arguments
        self._lives = 0

    def run(self) -> None:
        """Take them, those that need proxies on a cluster of their own."""
        for needs_links in (False, True):
            faults = [fault for fault in self._faults if fault.needs_links is needs_links]
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
                needs_links=fault.needs_links,
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
    parser = _parser()
    arguments = parser.parse_args()
    try:
        faults = [FAULTS[int(n)] for n in arguments.faults or range(len(FAULTS))]
    except (ValueError, IndexError):
        parser.error(f"--faults: numbers of {', '.join(_numbered())}")
    kinds = KINDS if arguments.brokers == "both" else (arguments.brokers,)
    base = arguments.directory or Path(tempfile.gettempdir())
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
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{arguments.name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(f"\n{table(measured)}\n\n{time.monotonic() - begin:.0f} s; {path}")
    complete = all(
        len(found) == arguments.count for samples in measured.values() for found in samples.values()
    )
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
