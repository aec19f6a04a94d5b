"""`python -m tests.checker --minutes 10 --seed 1 --broker varve --faults kill,pause`."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.cluster.namespaces import enter
from tests.checker.brokers import BROKERS
from tests.checker.cluster.faults import CLUSTER_FAULTS
from tests.checker.cluster.nemesis import GROUPS, expand
from tests.checker.faults.nemesis import FAULTS
from tests.checker.run import RunOptions, end_orderly_on_sigterm, run
from tests.checker.workloads import EVERYBODY, PLAIN, SHARING, TRANSACTIONAL

WORKLOADS = {"all": EVERYBODY, "without-java": TRANSACTIONAL, "plain": PLAIN, "share": SHARING}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, report; the exit code is 1 unless all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broker", choices=sorted(BROKERS), default="varve")
    parser.add_argument("--brokers", type=int, default=1, help="3: replicated, on an etcd")
    parser.add_argument("--etcd-members", type=int, choices=(1, 3), default=1)
    parser.add_argument("--namespaces", action="store_true", help="of several: lose packets")
    parser.add_argument(
        "--faults",
        help=f"of {','.join(FAULTS)}; of several brokers {','.join(GROUPS)} or one by its name, "
        f"{','.join(CLUSTER_FAULTS)}; may be empty",
    )
    parser.add_argument("--clients", choices=sorted(WORKLOADS), default="all", help="which kinds")
    parser.add_argument("--rate", type=float, default=40.0, help="operations/s of one client")
    parser.add_argument("--keep", type=Path, help="directory for history and broker")
    given = parser.parse_args(arguments)
    if given.namespaces:
        enter("tests.checker", sys.argv[1:] if arguments is None else arguments)
    usual = ("kill", "pause") if given.brokers == 1 else tuple(GROUPS)
    asked = None if given.faults is None else given.faults.split(",")
    faults = usual if asked is None else tuple(one for one in asked if one)
    if given.brokers > 1:
        try:
            expand(faults)
        except ValueError as error:
            parser.error(f"no such fault of several brokers: {error}")
    elif unknown := set(faults) - set(FAULTS):
        parser.error(f"unknown faults: {', '.join(sorted(unknown))}")
    options = RunOptions(
        seconds=given.minutes * 60,
        seed=given.seed,
        broker=given.broker,
        brokers=given.brokers,
        etcd_members=given.etcd_members,
        namespaces=given.namespaces,
        faults=faults,
        workload=WORKLOADS[given.clients],
        rate_per_s=given.rate,
    )
    directory = given.keep or Path(tempfile.mkdtemp(prefix="varve-checker-"))
    outcome = None
    end_orderly_on_sigterm()
    try:
        outcome = run(options, directory)
    finally:
        if given.keep is None and outcome is not None and outcome.is_clean:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            sys.stdout.write(f"kept: {directory}\n")
    sys.stdout.write(f"seed {options.seed}, {options.broker}, {given.minutes} min\n")
    sys.stdout.write(f"{outcome.text()}\n")
    return int(not outcome.is_clean)


if __name__ == "__main__":
    sys.exit(main())
