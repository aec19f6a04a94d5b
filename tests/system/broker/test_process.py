"""`varve serve` as a process: signals, what it prints, how it ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.node import VarveNode
from broker.app import banner
from native.library import RECORD_RULES, load_wanted
from protocol.error_codes import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.records.builder import build_batch
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tests.code_path import CODE
from tests.fakes.network.client import http_get, produce_request, read_of
from tests.system.conftest import Connect, Metrics, until


@pytest.fixture
def varve(tmp_path: Path) -> Iterator[VarveNode]:
    """Running, with a long wait for the first members of a group."""
    node = VarveNode(
        tmp_path,
        {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "60000"},
    )
    node.start()
    yield node
    node.stop()


def failed_start(node: VarveNode) -> tuple[int, list[str]]:
    """Exit status and lines of a broker that does not start."""
    result = subprocess.run(node.command(), capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, (result.stdout + result.stderr).splitlines()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("host", "address", "client"),
    [
        ("10.0.0.1", "10.0.0.1:9092", "10.0.0.1:9092"),
        ("", ":9092", "127.0.0.1:9092"),
        ("::1", "[::1]:9092", "[::1]:9092"),
    ],
)
def test_printed_addresses_are_such_as_clients_take(host: str, address: str, client: str) -> None:
    broker = SimpleNamespace(
        addresses=[("PLAINTEXT", host, 9092)],
        version="1",
        cluster_id="c",
        settings=SimpleNamespace(node_id=1, log_dirs=("/data",)),
        remote=None,
        admin_address="",
        local=SimpleNamespace(descriptors=SimpleNamespace(is_low=False)),
    )
    lines = banner(cast("Any", broker)).splitlines()
    assert f"  listeners  PLAINTEXT://{address}" in lines
    assert f"  try        echo hello | kcat -b {client} -t first -P" in lines


@pytest.mark.quick
async def test_sigterm_answers_who_waits(varve: VarveNode, connect: Connect) -> None:
    """Parked fetches get what there is, joins an error worth a retry; exit 0, marked clean."""
    fetcher = await connect(varve.host, varve.port)
    joiner = await connect(varve.host, varve.port)
    idle = await connect(varve.host, varve.port)
    await fetcher.create_topic("t")
    await fetcher.produce("t", b"v")
    fetch = fetcher.start_fetch("t", 0, max_wait_ms=60_000, min_bytes=1_000_000)
    await joiner.find_coordinator("g")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    join.member_id = (await joiner.call(join)).member_id
    joined = joiner.send(join)
    # Both have reached the broker when a later request of the same connection can be answered.
    await idle.metadata()
    await until(lambda: parked(varve, 1))

    begin = time.monotonic()
    stopping = asyncio.create_task(asyncio.to_thread(varve.stop))
    read = read_of(await asyncio.wait_for(fetch, 45))
    assert (read.error, [r.value for r in read.records]) == (ErrorCode.NONE, [b"v"])
    answer = await asyncio.wait_for(joined, 45)
    assert ErrorCode(answer.error_code).retriable
    assert await stopping == 0
    assert time.monotonic() - begin < 45
    await idle.closed_by_broker()
    assert (varve.data_directory / CLEAN_SHUTDOWN_FILE).exists()
    log = varve.log_path.read_text()
    assert "broker stopped" in log
    assert "Traceback" not in log
    assert "level=ERROR" not in log


@pytest.mark.quick
async def test_a_started_broker_runs_the_code_that_the_tests_run(varve: VarveNode) -> None:
    """Compiled in a run of the compiled path, else Python's; its log and its metrics say which."""
    metrics = Metrics.parse((await http_get(varve.admin_address, "/metrics"))[1])
    assert metrics.of("varve_code_info", path=CODE.name, reason=CODE.reason) == 1
    assert metrics.of("varve_code_compiled_modules") == CODE.modules
    walks = load_wanted(RECORD_RULES)
    assert metrics.of("varve_record_walks_info", path=walks.path, reason=walks.problem) == 1
    assert f"code {CODE.describe()}" in varve.log_path.read_text()


async def is_ready(varve: VarveNode) -> bool:
    return (await http_get(varve.admin_address, "/readyz"))[0] == 200


async def parked(varve: VarveNode, count: int) -> bool:
    metrics = Metrics.parse((await http_get(varve.admin_address, "/metrics"))[1])
    waiting = metrics.of(
        "kafka_server_delayedoperationpurgatory_purgatorysize", delayedOperation="Fetch"
    )
    groups = metrics.of("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance")
    return waiting == count and groups == count


@pytest.mark.quick
async def test_sigterm_under_load_acknowledges_only_what_stays(
    tmp_path: Path, connect: Connect
) -> None:
    """A consumer that fetches again and again and a producer without pause do not hold it up."""
    varve = VarveNode(tmp_path)
    varve.start()
    producer = await connect(varve.host, varve.port)
    consumer = await connect(varve.host, varve.port)
    await producer.create_topic("t")
    acknowledged: list[int] = []

    async def produce() -> None:
        while True:
            batch = build_batch([(None, b"v", (), 1)])
            answer = await producer.send(produce_request("t", 0, batch))
            response = answer.responses[0].partition_responses[0]
            if response.error_code == 0:
                acknowledged.append(response.base_offset)

    async def consume() -> None:
        offset = 0
        while True:
            read = read_of(await consumer.start_fetch("t", offset, max_wait_ms=500))
            if read.records:
                offset = read.records[-1].offset + 1

    tasks = [asyncio.create_task(produce()), asyncio.create_task(consume())]
    await until(lambda: len(acknowledged) > 100)
    begin = time.monotonic()
    assert await asyncio.to_thread(varve.stop) == 0
    assert time.monotonic() - begin < 45
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, ConnectionError) for result in results), results
    assert acknowledged == list(range(len(acknowledged)))
    varve.start()
    try:
        await until(lambda: is_ready(varve))
        client = await connect(varve.host, varve.port)
        assert await client.offset("t") >= len(acknowledged)
    finally:
        varve.stop()
    assert "Traceback" not in varve.log_path.read_text()


@pytest.mark.quick
def test_second_broker_on_the_same_directory(varve: VarveNode) -> None:
    """One line that names the directory, exit 1; the first does not notice."""
    second = VarveNode(varve.directory)
    code, lines = failed_start(second)
    assert code == 1
    assert len(lines) == 1, lines
    assert lines[0].startswith("varve: ")
    assert str(varve.data_directory) in lines[0]
    assert varve.is_running
    varve.wait_until_ready(5)


@pytest.mark.parametrize("which", [pytest.param("listener", marks=pytest.mark.quick), "admin"])
def test_port_in_use(varve: VarveNode, tmp_path: Path, which: str) -> None:
    """One line that names the port, exit 1, and the directory can be used again."""
    second = VarveNode(tmp_path / "second")
    if which == "listener":
        second.port = varve.port
    else:
        second.second_port = varve.second_port
    code, lines = failed_start(second)
    assert code == 1
    # Before it listens it has said that it is new.
    *told, line = lines
    assert all("level=INFO" in one for one in told), lines
    assert "in use" in line
    assert str(second.port if which == "listener" else second.second_port) in line
    if which == "listener":
        third = VarveNode(tmp_path / "second")
        third.start()
        assert third.stop() == 0


NO_THREADS = """\
import sys
import threading
from cli.main import main
def refuse(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
sys.exit(main())
"""


@pytest.mark.quick
def test_a_limit_on_threads(tmp_path: Path) -> None:
    """One line that names the limits, exit 1, and nothing is made."""
    node = VarveNode(tmp_path)
    program = [sys.executable, "-c", NO_THREADS, *node.command()[1:]]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("varve: the system refuses the ")
    assert len(result.stderr.splitlines()) == 1
    assert "pids.max" in result.stderr
    assert not node.data_directory.exists() or not list(node.data_directory.iterdir())


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.quick), signal.SIGHUP]
)
def test_what_a_terminal_sends_stops_as_sigterm_does(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C, and the end of the terminal or of the remote shell."""
    node = VarveNode(tmp_path)
    # What is ignored here, as where these tests run under nohup, the broker would ignore.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        node.start()
    finally:
        signal.signal(number, before)
    os.kill(node.pid, number)
    assert node._process is not None
    try:
        assert node._process.wait(60) == 0
    finally:
        node.kill()
    assert (node.data_directory / CLEAN_SHUTDOWN_FILE).exists()


def test_under_nohup_the_end_of_the_terminal_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = VarveNode.command
    monkeypatch.setattr(VarveNode, "command", lambda node: ["nohup", *command(node)])
    node = VarveNode(tmp_path)
    node.start()
    os.kill(node.pid, signal.SIGHUP)
    # It would have been handled before the answer to a request that is sent behind it.
    node.wait_until_ready()
    assert node.stop() == 0
    assert (node.data_directory / CLEAN_SHUTDOWN_FILE).exists()


def test_foreign_directory_is_refused(tmp_path: Path) -> None:
    """Of another node or cluster: one line that says whose it is."""
    node = VarveNode(tmp_path)
    node.start()
    node.stop()
    other = VarveNode(tmp_path, {"node.id": "7"})
    code, lines = failed_start(other)
    assert code == 1
    assert len(lines) == 1, lines
    assert "node 1" in lines[0]


def test_sigterm_in_the_middle_of_the_start(tmp_path: Path) -> None:
    """Whenever it comes once the broker says that it is starting: exit 0, nothing half made."""
    node = VarveNode(tmp_path)
    for _ in range(2):
        node.launch()
        while not (node.data_directory / ".lock").exists():
            node.check_alive()
        assert node.stop() in {0, -signal.SIGTERM}
    node.start()
    assert node.stop() == 0
    assert "Traceback" not in node.log_path.read_text()
