"""`varve serve --brokers`: clients on any port, processes that are killed, wrong directories."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tests.fakes.network.client import Client, http_get
from tests.harness.machine_brokers import HOST, Brokers, is_running
from tests.system.conftest import Metrics, until

Make = Callable[..., Brokers]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Brokers] = []

    def one(count: int = 2, *given: str) -> Brokers:
        made.append(Brokers(tmp_path, count, *given))
        return made[-1]

    yield one
    for brokers in made:
        brokers.close()


async def leaders(brokers: Brokers, topic: str) -> list[int]:
    """Leader of each partition, as the first broker says."""
    client = await Client.connect(HOST, brokers.port)
    try:
        answer = await client.metadata(topic)
        (found,) = answer.topics
        return [one.leader_id for one in sorted(found.partitions, key=lambda p: p.partition_index)]
    finally:
        await client.close()


async def all_led(brokers: Brokers, topic: str) -> bool:
    try:
        return -1 not in await leaders(brokers, topic)
    except OSError:
        return False


async def is_taken(client: Client, partition: int) -> bool:
    """Whether a first record was taken."""
    answer = await client.try_produce("t", [(None, b"v")], partition=partition)
    assert answer.error_code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return bool(answer.error_code == ErrorCode.NONE)


async def test_two_brokers_are_one_cluster_and_a_killed_one_comes_back(make: Make) -> None:
    brokers = make()
    await brokers.start()
    first, second = [await Client.connect(HOST, brokers.port + index) for index in range(2)]
    await second.create_topic("t", partitions=4)
    await until(lambda: all_led(brokers, "t"))
    led = await leaders(brokers, "t")
    assert sorted(led) == [1, 1, 2, 2], "partitions are led evenly"
    for partition, node_id in enumerate(led):
        client = {1: first, 2: second}[node_id]
        # The leader may hear of it a moment after the broker that was asked.
        await until(partial(is_taken, client, partition))
    await first.close()
    await second.close()
    status, page = await http_get(brokers.admin, "/readyz")
    assert (status, page.splitlines()[0]) == (200, "broker 1: ready")
    metrics = Metrics.parse((await http_get(brokers.admin, "/metrics/sum"))[1])
    assert metrics.of("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 4

    pid = brokers.kill(2)
    await until(lambda: brokers.pids().get(2, pid) != pid)
    await until(lambda: all_led(brokers, "t"))
    assert "broker has ended, it is started again" in brokers.text
    metrics = Metrics.parse((await http_get(brokers.admin, "/metrics"))[1])
    assert metrics.of("varve_supervisor_broker_restarts_total", broker="2") == 1
    assert metrics.of("varve_supervisor_broker_restarts_total", broker="1") == 0
    # The other one went on in the same process.
    client = await Client.connect(HOST, brokers.port + 1)
    partition = led.index(2)
    assert await client.offset("t", partition=partition) == 1
    await client.close()

    pids = brokers.pids()
    assert await brokers.end() == 0
    assert not any(map(is_running, pids.values()))
    for node_id in (1, 2):
        assert (brokers.data / f"broker-{node_id}" / CLEAN_SHUTDOWN_FILE).exists()
    assert "Traceback" not in brokers.text


async def test_brokers_end_with_a_supervisor_that_is_killed(make: Make) -> None:
    """None serves without a store, and without someone to start it again."""
    brokers = make()
    await brokers.start()
    pids = brokers.pids()
    assert sorted(pids) == [1, 2]
    await brokers.end(signal.SIGKILL)
    await until(lambda: not any(map(is_running, pids.values())))
    assert "the supervisor has ended" in brokers.text
    # All that they held can be had again.
    await brokers.start()
    assert await brokers.end(signal.SIGINT) == 0


async def test_more_brokers_join_and_fewer_are_refused(make: Make) -> None:
    brokers = make(1)
    await brokers.start()
    assert await brokers.end() == 0
    brokers.count = 2
    await brokers.start()
    assert sorted(brokers.pids()) == [1, 2]
    assert await brokers.end() == 0
    brokers.count = 1
    assert await brokers.run() == 1
    assert "leaves out 2" in brokers.text.splitlines()[-1]


async def test_starts_that_are_refused_say_why_and_leave_nothing_running(make: Make) -> None:
    brokers = make()
    with socket.socket() as other:
        other.bind((HOST, brokers.port + 1))
        other.listen()
        assert await brokers.run() == 1
    assert "broker 2 does not start" in brokers.text
    assert "in use" in brokers.text
    await brokers.start()
    # The same directory a second time, by several brokers and by a single one.
    for arguments in (["--brokers", "2"], []):
        second = await asyncio.create_subprocess_exec(
            *brokers.command()[:4],
            *arguments,
            *("--set", f"log.dirs={brokers.data}", "--set", "admin.listener="),
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await second.communicate()
        assert second.returncode == 1
        assert str(brokers.data) in errors.decode().splitlines()[-1]
    assert len(brokers.pids()) == 2
    assert await brokers.end() == 0
    alone = await asyncio.create_subprocess_exec(
        *brokers.command()[:4],
        *("--set", f"log.dirs={brokers.data}", "--set", "admin.listener="),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await alone.communicate()
    assert alone.returncode == 1
    assert "start it with --brokers 2" in errors.decode().splitlines()[-1]


async def test_a_signal_in_the_middle_of_the_start(make: Make) -> None:
    """Exit 0, no process is left, and the directories are good for the next start."""
    brokers = make()
    for _ in range(2):
        brokers.launch()
        await until(lambda: bool(brokers.pids()))
        pids = brokers.pids()
        assert await brokers.end() == 0, brokers.text
        assert not any(map(is_running, pids.values()))
    await brokers.start()
    assert await brokers.end() == 0


async def test_a_restarted_broker_does_not_wait_for_a_stopping_supervisor(make: Make) -> None:
    """Stopped while a broker is down: the supervisor ends all the same."""
    brokers = make()
    await brokers.start()
    brokers.kill(1)
    brokers.kill(2)
    assert await brokers.end() == 0
    assert "varve-brokers.sqlite" in brokers.store_files()
    assert "varve-brokers.sock" not in brokers.store_files()
