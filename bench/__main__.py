"""`python -m bench`: Varve and released Kafka side by side on this machine."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.brokers_rows import BROKERS_ROWS
from bench.cluster_life_rows import LIFE_ROWS
from bench.cluster_rows import CLUSTER_ROWS
from bench.consume_rows import CONSUME_ROWS
from bench.group_rows import GROUP_ROWS
from bench.group_shape_rows import GROUP_SHAPE_ROWS
from bench.kafka_release import KAFKA_VERSION, KafkaReleaseError
from bench.node import Node, NodeError, RunningNode
from bench.process import end_on_sigterm
from bench.report import RowResult, write
from bench.rows import ROWS as LOCAL_ROWS
from bench.rows import Bench
from bench.runner import Runner
from bench.tier_rows import TIER_ROWS
from bench.tier_s3_rows import TIER_S3_ROWS
from bench.tool_rows import TOOL_ROWS
from bench.transaction_rows import TRANSACTION_ROWS

ROWS = (
    *LOCAL_ROWS,
    *CONSUME_ROWS,
    *TOOL_ROWS,
    *BROKERS_ROWS,
    *GROUP_ROWS,
    *GROUP_SHAPE_ROWS,
    *TRANSACTION_ROWS,
    *TIER_ROWS,
    *TIER_S3_ROWS,
    *CLUSTER_ROWS,
    *LIFE_ROWS,
)
RESULTS = Path(__file__).parent / "results"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", help="names, comma-separated; see --list (default: all)")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    parser.add_argument("--pairs", type=int, default=5, help="ABAB pairs per row")
    parser.add_argument("--quick", action="store_true", help="small sizes, one pair, short warm-up")
    parser.add_argument("--only", choices=["varve", "kafka"], help="measure one broker alone")
    parser.add_argument(
        "--brokers", default="varve,kafka", help="e.g. kafka,kafka-2 to check the method itself"
    )
    parser.add_argument("--duration", type=float, help="seconds of load per sample")
    parser.add_argument("--warm-up", type=float, help="seconds of load before the first row")
    parser.add_argument("--restart-gib", type=float, help="size of the restart-full row")
    parser.add_argument("--partitions", type=int, help="count of the partitions rows")
    parser.add_argument("--tier-gib", type=float, help="history of the tier's rows (default: 2)")
    for kind in ("varve", "kafka"):
        parser.add_argument(f"--{kind}", metavar="HOST:PORT", help=f"take a running {kind}")
        parser.add_argument(f"--{kind}-pid", type=int, metavar="PID", help="and its process id")
    parser.add_argument(
        "--kafka-brokers", type=int, default=3, help="Kafka's in the rows on clusters (default: 3)"
    )
    parser.add_argument("--name", help="of the files in bench/results")
    parser.add_argument("--directory", type=Path, help="where brokers keep their data")
    return parser


def _given(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Node]:
    given: dict[str, Node] = {}
    for kind in ("varve", "kafka"):
        address, pid = getattr(arguments, kind), getattr(arguments, f"{kind}_pid")
        if (address is None) != (pid is None):
            parser.error(f"--{kind} and --{kind}-pid go together")
        if address is not None:
            given[kind] = RunningNode(kind, address, pid)
    return given


def main() -> int:
    """Run, print the table, write the files; 1 when a row failed."""
    end_on_sigterm()
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.list:
        for row in ROWS:
            print(f"{row.name:26} {row.title}")
        return 0
    wanted = arguments.rows.split(",") if arguments.rows else [row.name for row in ROWS]
    unknown = set(wanted) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; see --list")
    rows = [row for row in ROWS if row.name in wanted]
    brokers = [arguments.only] if arguments.only else arguments.brokers.split(",")
    quick = arguments.quick
    pairs = 1 if quick else arguments.pairs
    base = arguments.directory or Path(tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="varve-bench-", dir=base))
    runner = Runner(
        brokers,
        directory,
        given=_given(arguments, parser),
        warm_up_s=_or(arguments.warm_up, 4.0 if quick else 25.0),
        pairs=pairs,
        kafka_brokers=arguments.kafka_brokers,
    )
    bench = Bench(
        quick=quick,
        duration_s=_or(arguments.duration, 1.5 if quick else 4.0),
        restart_gib=_or(arguments.restart_gib, 0.5 if quick else 10.0),
        partitions=int(_or(arguments.partitions, 500 if quick else 5000)),
        new_node=runner.new_node,
        new_tiered_node=runner.new_tiered_node,
        tier_gib=_or(arguments.tier_gib, 0.25 if quick else 2.0),
    )
    results: list[RowResult] = []
    settings = {
        "kafka": KAFKA_VERSION,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "pairs": pairs,
        "duration_s": bench.duration_s,
        "restart_gib": bench.restart_gib,
        "partitions": bench.partitions,
        "tier_gib": bench.tier_gib,
        "kafka_brokers": arguments.kafka_brokers,
    }
    name = arguments.name or ("quick" if quick else "latest")
    begin = time.monotonic()
    text = ""
    try:
        for tiered, count in ((False, 1), (True, 1), (False, 2)):
            shared = [
                row
                for row in rows
                if row.run is not None and row.tiered is tiered and row.brokers == count
            ]
            with runner.running(bench, shared, tiered=tiered, brokers=count):
                for row in shared:
                    results.append(runner.run_row(bench, row))
                    text = write(results, brokers, settings, RESULTS, name)
        for row in rows:
            if row.run_own is not None:
                results.append(runner.run_row(bench, row))
                text = write(results, brokers, settings, RESULTS, name)
        clustered = [row for row in rows if row.run_cluster is not None]
        with runner.running_clusters(bench, clustered):
            for row in clustered:
                results.append(runner.run_row(bench, row))
                text = write(results, brokers, settings, RESULTS, name)
    except (NodeError, KafkaReleaseError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"\n{text}\n{time.monotonic() - begin:.0f} s; files: {RESULTS / name}.*")
    return 1 if any(result.error for result in results) else 0


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


if __name__ == "__main__":
    sys.exit(main())
