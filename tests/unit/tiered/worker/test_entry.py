"""The real process: how it starts, serves and ends. On Linux, where its end can be waited for."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.timer import ManualTimer
from tests.unit.tiered.format.closed_segments import FACTS as TOPIC
from tests.unit.tiered.format.closed_segments import make_segment
from tests.unit.tiered.worker.real_process import client, has_ended, wait_for_end
from tests.unit.tiered.worker.turns import FACTS, FILES, SEGMENT, until
from tiered.errors import TierProcessError
from tiered.segment_metadata import RemoteLogSegmentId, RemoteLogSegmentMetadata
from tiered.worker.client import TierClient
from tiered.worker.loop_timer import LoopTimer
from tiered.worker.process import TierProcesses
from tiered.worker.session import (
    KILL_AFTER_MS,
    PING_MS,
    PINGS_MISSED_MAX,
    REAP_MS,
    TERM_AFTER_MS,
)
from tiered.worker.supervisor import BACKOFF_MS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

MakeClient = Callable[..., TierClient]


@pytest.fixture
async def make_client() -> AsyncIterator[MakeClient]:
    """Clients that leave no process behind."""
    made: list[TierClient] = []

    def make(
        behaviour: str = "", module: str = "tests.fakes.tiered.scripted_tier_process"
    ) -> TierClient:
        made.append(client(behaviour, module=module))
        return made[-1]

    yield make
    for one in made:
        session = one.supervisor.current
        await one.close()
        assert session is None or has_ended(session.pid)


async def pid_of(tier: TierClient) -> int:
    return (await tier.supervisor.session()).pid


async def asked(tier: TierClient) -> None:
    """Return when the process is at a call."""
    session = await tier.supervisor.session()
    await until(lambda: session.calls_under_way > 0)
    # Answered after the call was begun: the process takes messages in order.
    assert await tier.list_uploads("") == []


@pytest.mark.parametrize("method", ["copy_segment", "fetch_chunk"])
async def test_killed_while_it_works(make_client: MakeClient, method: str) -> None:
    """The caller is told, the next call finds a new process, nothing is left of the old one."""
    tier = make_client("hold")
    work = asyncio.ensure_future(
        tier.copy_segment(SEGMENT, FILES, FACTS)
        if method == "copy_segment"
        else tier.fetch_chunk(SEGMENT, "/m", 1, "/p")
    )
    await asked(tier)
    pid = await pid_of(tier)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(TierProcessError):
        await work
    await tier.put_object("k", b"v")
    assert await tier.get_object("k") == b"v"
    assert await pid_of(tier) != pid
    assert has_ended(pid)
    statistics = tier.statistics()["worker"]
    assert (statistics["restarts"], statistics["losses"]) == (1, 1)


async def test_stopped_process_is_noticed_and_replaced() -> None:
    """In turns of a timer that the test moves: so many pings without a word."""
    timer = ManualTimer()
    tier = client("hold", timer=timer)
    pid = await pid_of(tier)
    work = asyncio.ensure_future(tier.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    await asked(tier)
    os.kill(pid, signal.SIGSTOP)
    for _ in range(PINGS_MISSED_MAX):
        timer.advance(PING_MS)
        await asyncio.sleep(0.001)
        assert not work.done()
    timer.advance(PING_MS)
    with pytest.raises(TierProcessError, match="has not answered"):
        await work
    assert await wait_for_end(pid, 30)
    timer.advance(REAP_MS)
    timer.advance(BACKOFF_MS)
    assert await tier.list_uploads("") == []
    replaced = await pid_of(tier)
    closing = asyncio.ensure_future(tier.close())
    assert await wait_for_end(replaced, 30)
    while not closing.done():
        timer.advance(REAP_MS)
        await asyncio.sleep(0)
    await closing


async def test_stopped_process_does_not_hold_up_the_stop() -> None:
    """It cannot end by itself: it is asked, then killed."""
    timer = ManualTimer()
    tier = client(timer=timer, drain_ms=0)
    pid = await pid_of(tier)
    os.kill(pid, signal.SIGSTOP)
    closing = asyncio.ensure_future(tier.close())
    for _ in range(int((TERM_AFTER_MS + KILL_AFTER_MS) / REAP_MS) + 20):
        timer.advance(REAP_MS)
        await asyncio.sleep(0.001)
    # In real time, while the timer stands: the stop does not wait for ever.
    assert await wait_for_end(pid, 30)
    while not closing.done():
        timer.advance(REAP_MS)
        await asyncio.sleep(0.001)
    await closing


async def test_end_of_the_socket_is_the_end_of_the_process() -> None:
    """Without the kernel's help: its parent lives on. Work under way does not hold it."""
    started = TierProcesses("tests.fakes.tiered.scripted_tier_process").start()
    started.socket.close()
    assert await wait_for_end(started.process.pid, 30)
    assert started.process.poll() == 0
    started.log.close()


async def test_end_of_the_socket_while_it_works() -> None:
    tier = client("hold")
    work = asyncio.ensure_future(tier.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    await asked(tier)
    session = await tier.supervisor.session()
    closing = asyncio.ensure_future(tier.close())
    with pytest.raises(TierProcessError):
        await work
    assert await wait_for_end(session.pid, 30)
    await closing
    assert session.exit_status == 0


BROKER = """
import asyncio, os, signal
from tests.unit.tiered.worker.real_process import client
from tests.unit.tiered.worker.turns import SEGMENT
async def main():
    tier = client("hold")
    work = asyncio.ensure_future(tier.fetch_chunk(SEGMENT, "/m", 1, "/p"))
    print((await tier.supervisor.session()).pid, flush=True)
    await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""


@pytest.fixture
def broker() -> Iterator["subprocess.Popen[bytes]"]:
    """Another process, whose tier process is at work; its first line is that one's id."""
    with subprocess.Popen([sys.executable, "-c", BROKER], stdout=subprocess.PIPE) as broker:
        yield broker
        broker.kill()


async def test_process_does_not_outlive_a_killed_broker(
    broker: "subprocess.Popen[bytes]",
) -> None:
    assert broker.stdout is not None
    pid = int(await asyncio.to_thread(broker.stdout.readline))
    broker.kill()
    assert await wait_for_end(pid, 30)


async def test_sigterm_ends_it_and_the_broker_starts_another(make_client: MakeClient) -> None:
    tier = make_client()
    session = await tier.supervisor.session()
    os.kill(session.pid, signal.SIGTERM)
    assert await wait_for_end(session.pid, 30)
    await until(lambda: session.ended is not None)
    await tier.put_object("k", b"v")
    assert await pid_of(tier) != session.pid


async def test_ctrl_c_is_for_the_broker(make_client: MakeClient) -> None:
    tier = make_client()
    pid = await pid_of(tier)
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    assert await tier.list_uploads("") == []
    assert await pid_of(tier) == pid


async def test_why_it_cannot_start_is_told(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    tier = make_client("refuse")
    with pytest.raises(TierProcessError, match="no such key id"):
        await tier.list_uploads("")
    assert "it cannot start: no such key id" in caplog.text


async def test_program_that_is_missing_is_told(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    tier = make_client(module="tests.fakes.no_such_program")
    with pytest.raises(TierProcessError, match="lost"):
        await tier.list_uploads("")
    await tier.close()
    assert "No module named tests.fakes.no_such_program" in caplog.text


async def test_its_log_lines_are_the_brokers(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    tier = make_client()
    await tier.list_uploads("")
    await tier.close()
    lines = [record for record in caplog.records if record.name == "tiered.worker.entry"]
    assert [line.getMessage() for line in lines] == [
        "tier process stopping reason=the connection was closed calls=0 process=tier"
    ]


async def test_level_of_the_log_is_the_brokers(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that has no name."""
    caplog.set_level(33)
    tier = make_client()
    assert await tier.list_uploads("") == []
    await tier.close()
    assert [record.name for record in caplog.records if "process=tier" in record.message] == []


async def test_secrets_and_priority(make_client: MakeClient) -> None:
    """Whoever may look at processes sees neither keys nor settings."""
    tier = make_client()
    pid = await pid_of(tier)
    for shown in shown_of(pid, "cmdline", "environ"):
        assert b"hush-hush" not in shown
    assert shown_of(pid, "comm") == [b"varve-tier\n"]
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)


def shown_of(pid: int, *names: str) -> list[bytes]:
    return [Path(f"/proc/{pid}/{name}").read_bytes() for name in names]


def held_by(pid: int) -> list[str]:
    return [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]


async def test_it_holds_no_file_of_the_brokers(make_client: MakeClient, tmp_path: Path) -> None:
    """A log file that the broker has deleted must be free when the broker lets it go."""
    file = LocalFilesystem().open(str(tmp_path / "segment.log"), create=True)
    pid = await pid_of(make_client())
    assert file.path in held_by(os.getpid())
    assert file.path not in held_by(pid)


@pytest.mark.slow
async def test_killed_at_any_moment_of_a_copy_the_next_copy_is_whole(tmp_path: Path) -> None:
    """With the real store: what was half copied is not complete, another attempt is."""
    settings = TierConfig(rsm_config_storage_root=str(tmp_path / "bucket"))
    segment = make_segment([b"x" * 10_000 for _ in range(300)])
    files = segment.write(LocalFilesystem(), str(tmp_path / "partition"))
    tier = TierClient(settings, TierProcesses(), timer=LoopTimer(), clock=SystemClock())
    killed = 0
    for number in range(10):
        metadata = _attempt(segment.metadata, number)
        pid = await pid_of(tier)
        copy = asyncio.ensure_future(tier.copy_segment(metadata, files, TOPIC))
        for _ in range(number * 80):
            await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        try:
            await copy
        except TierProcessError:
            killed += 1
        else:
            assert await tier.is_complete(metadata)
        if await tier.is_complete(metadata):
            assert list(await tier.verify_segment(metadata)) == []
    assert killed > 0
    metadata = _attempt(segment.metadata, 99)
    await tier.copy_segment(metadata, files, TOPIC)
    assert list(await tier.verify_segment(metadata)) == []
    await tier.close()


def _attempt(metadata: RemoteLogSegmentMetadata, number: int) -> RemoteLogSegmentMetadata:
    segment_id = RemoteLogSegmentId(metadata.partition, UUID(int=1000 + number))
    return replace(metadata, segment_id=segment_id)
