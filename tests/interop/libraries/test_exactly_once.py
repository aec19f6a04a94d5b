"""Read-process-write jobs with the Java client and librdkafka, exactly once under kill -9."""

from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest

from bench.kafka_release import KAFKA_VERSION, KafkaRelease
from tests.interop.conftest import new_node
from tests.interop.java_programs import command_of
from tests.interop.libraries.exactly_once import (
    PROPERTIES,
    Experiment,
    Job,
    Result,
    job_arguments,
    librdkafka_command,
)


def experiment(
    directory: Path, protocol: str, *, java: int, librdkafka: int, seed: int, per_second: int
) -> Experiment:
    """A broker with a directory of its own, and jobs of both clients."""
    release = KafkaRelease.resolve()
    node = new_node(directory / "broker", PROPERTIES)
    jobs = []
    for index in range(java):
        arguments = job_arguments(node.address, protocol, f"java-{index}")
        command = command_of(release, "ExactlyOnceJob", *arguments)
        jobs.append(Job(f"java-{index}", command, directory / f"java-{index}.log"))
    for index in range(librdkafka):
        command = librdkafka_command(node.address, protocol, index)
        log_path = directory / f"librdkafka-{index}.log"
        jobs.append(Job(f"librdkafka-{index}", command, log_path))
    return Experiment(node, jobs, seed=seed, per_second=per_second)


def hold(made: Experiment, faults: int, ran: Callable[[str], None]) -> Result:
    """Run it; the books must be right."""
    try:
        result = made.run(faults)
    finally:
        made.node.stop()
    versions = f"Java {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}"
    ran(
        f"exactly-once jobs ({versions}): {result.transactions} transactions of {result.inputs} "
        f"inputs, {result.broker_kills} broker kills, {result.job_kills} job kills, "
        f"{result.zombies} zombies, {result.seconds:.0f} s"
    )
    assert not result.anomalies, result
    return result


def test_short(tmp_path: Path, ran: Callable[[str], None]) -> None:
    """Four faults, one of each kind and one more of the broker."""
    made = experiment(tmp_path, "consumer", java=1, librdkafka=2, seed=1, per_second=500)
    result = hold(made, 4, ran)
    assert (result.broker_kills, result.job_kills, result.zombies) == (2, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_long(tmp_path: Path, ran: Callable[[str], None], protocol: str) -> None:
    """Sixty faults, a group of four."""
    made = experiment(tmp_path, protocol, java=2, librdkafka=2, seed=7, per_second=800)
    result = hold(made, 60, ran)
    assert result.broker_kills == 30
