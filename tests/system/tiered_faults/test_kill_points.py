"""SIGKILL of the broker, and of the tier process alone, at every step of copying and deleting.

A life: a broker is started on what the last one left, writes two segments, deletes records of
another topic and sometimes a topic with all it has, and is killed on the way. Whenever that is,
what the histories in the bucket tell readers of is there, and records whose deletion was answered
are told to be gone. Then another is
started, and after its expiry tasks have run and garbage was collected once the bucket holds exactly
what the metadata says, and every record can be read, from offset 0, in order and without a gap.

What it is killed at:

    change    the n-th change to objects of the filesystem store or to the remote log's metadata
    request   the n-th request to S3, before or after it was done; the broker or the tier process
    time      some milliseconds after the work began
"""

import asyncio
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path

import pytest

from tests.fakes.network.client import EARLIEST, Client, RefusedError
from tests.fakes.s3.memory_server import MemoryS3, Request
from tests.system.conftest import until
from tests.system.tiered_faults.child_broker import DIED, ChildBroker, children
from tests.system.tiered_faults.cluster import (
    SEGMENT_BYTES,
    TIERED,
    admin,
    broken_promises,
    disagreement,
    is_copied,
    is_told,
    log_start_told,
    until_copied,
)
from tests.system.tiered_faults.workload import Consumer, Producer
from tiered.format.object_keys import HISTORY_NAME

LIVES_MAX = 8
"""Of one directory, which grows by two segments with each."""

LATE = "DeleteRecords answered before varve-history was updated"
"""What a broker logs that gave up telling the bucket first."""

SETTINGS: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 100,
    "remote_log_manager_task_retry_backoff_ms": 50,
    "remote_log_manager_task_retry_backoff_max_ms": 100,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "rsm_config_chunk_size": 256 << 10,
    "remote_fetch_max_wait_ms": 2_000,
    "tier_gc_grace_ms": 0,
    "tier_verify_bytes_per_second": 0,
    "tier_history_interval_ms": 50,
}


class World:
    """A data directory and a bucket, and the brokers that live on them one after the other.

    Attributes:
        problems: What was wrong, in words.
        lives: Brokers started.
        records: Compared.
    """

    def __init__(self, directory: Path, s3: MemoryS3 | None, worker: str) -> None:
        self.problems: list[str] = []
        self.lives = 0
        self.records = 0
        self._s3 = s3
        self._directory = directory
        self._bucket = directory / "objects"
        self._settings = {**SETTINGS, "tier_worker": worker, **self._store()}
        self._broker: ChildBroker | None = None
        self._written = {"t": 0, "d": 0}
        # Below it, records of "d" are gone, and somebody was told so.
        self._deleted = 0

    def _store(self) -> dict[str, object]:
        if self._s3 is None:
            return {
                "rsm_config_storage_backend_class": "filesystem",
                "rsm_config_storage_root": str(self._bucket),
            }
        return {
            "rsm_config_storage_backend_class": "s3",
            "rsm_config_storage_s3_bucket_name": "tiered",
            "rsm_config_storage_s3_region": "us-east-1",
            "rsm_config_storage_s3_endpoint_url": self._s3.url,
            "rsm_config_storage_aws_access_key_id": "varve-test",
            "rsm_config_storage_aws_secret_access_key": "varve-test-secret",
            "tier_store_connect_timeout_ms": 500,
            "tier_store_read_timeout_ms": 1_000,
            "tier_store_call_timeout_ms": 3_000,
        }

    def keys(self) -> list[str]:
        """Of the bucket, unfinished ones included."""
        if self._s3 is not None:
            return [*self._s3.objects, *(one.key for one in self._s3.uploads.values())]
        root = self._bucket
        # Folders go while they are looked through, which `Path.rglob` does not bear.
        found = os.walk(root)
        return [
            str((Path(at) / name).relative_to(root)) for at, _, names in found for name in names
        ]

    def histories(self) -> dict[str, bytes]:
        """Those in the bucket, by name."""
        names = [name for name in self.keys() if name.endswith(f"/{HISTORY_NAME}")]
        if self._s3 is not None:
            objects = dict(self._s3.objects)
            return {name: objects[name].data for name in names if name in objects}
        found = {}
        for name in names:
            with suppress(FileNotFoundError):
                found[name] = (self._bucket / name).read_bytes()
        return found

    def _check_histories(self, name: str) -> None:
        """Nobody writes now."""
        histories = self.histories()
        broken = broken_promises(histories, self.keys())
        if broken:
            self.problems.append(f"{name}: told and not there: {broken}")
        told = log_start_told(histories, "d")
        # On a machine that is very busy the store is slower than anybody waits for.
        is_late = LATE in (self._directory / "broker.log").read_text()
        if told < self._deleted and not is_late:
            self.problems.append(f"{name}: told to start at {told}, deleted up to {self._deleted}")

    async def _start(self) -> tuple[ChildBroker, Client]:
        self._broker = broker = ChildBroker(self._directory, self._settings)
        await asyncio.to_thread(broker.start)
        self.lives += 1
        return broker, await Client.connect("127.0.0.1", broker.port)

    def close(self) -> None:
        """No process stays."""
        if self._broker is not None and self._broker.process.pid is not None:
            self._broker.kill()

    # -- a life ----------------------------------------------------------------------------------

    async def life(
        self, name: str, arm: Callable[[ChildBroker], None], *, broker_dies: bool
    ) -> ChildBroker:
        """One, killed as `arm` has arranged; returns the broker that was."""
        broker, client = await self._start()
        first = broker
        known = {topic.name for topic in (await client.metadata()).topics}
        for topic in {"t", "d", "x"} - known:
            await client.create_topic(topic, 1, **TIERED)
        if "t" not in known or not broker_dies:
            # A first life has nothing to delete, and a tier process has to be there to be killed.
            await Producer(client, "d", await client.offset("d")).fill(2 * SEGMENT_BYTES)
            await self._settle(broker, ["t", "d", "x"])
        arm(broker)
        with suppress(OSError, TimeoutError):
            await self._work(client, broker)
        if self._s3 is not None:
            # Before there is another broker whose requests it would count.
            self._s3.hook = None
        if broker_dies:
            await asyncio.to_thread(broker.kill)
            await client.close()
            self._check_histories(name)
            if self.lives % 2:
                for cache in ("varve-chunk-cache", "remote-log-index-cache"):
                    shutil.rmtree(self._directory / "data" / cache, ignore_errors=True)
            broker, client = await self._start()
        broker.arm(0)
        try:
            await self._check(broker, client)
        except (AssertionError, OSError, RefusedError) as error:
            self.problems.append(f"{name}: {error!r}")
        finally:
            await client.close()
        status = await asyncio.to_thread(broker.stop)
        if status != 0:
            self.problems.append(f"{name}: exit status {status}")
        return first

    async def _work(self, client: Client, broker: ChildBroker) -> None:
        """Two segments to copy, two to delete, and a topic of one segment to delete."""
        writers = {}
        for topic in ("t", "d", "x"):
            writers[topic] = Producer(client, topic, await client.offset(topic))
        written = writers["d"].next
        await writers["x"].fill(SEGMENT_BYTES)
        await writers["t"].fill(2 * SEGMENT_BYTES)
        if written:
            await client.delete_records("d", written)
            self._deleted = written
        await writers["d"].fill(SEGMENT_BYTES)
        await self._until(broker, lambda: is_copied(broker.admin_address, "x"))
        if broker.is_dead:
            return
        await client.delete_topic("x")
        await self._until(broker, lambda: is_copied(broker.admin_address, "t"))
        await self._until(broker, lambda: is_copied(broker.admin_address, "d"))
        await self._until(broker, lambda: self._is_gone("x"))

    async def _is_gone(self, topic: str) -> bool:
        return not any(key.startswith(f"{topic}-") for key in self.keys())

    async def _until_told(self, broker: ChildBroker, topic: str) -> None:
        async def holds() -> bool:
            return await is_told(broker.admin_address, topic, self.histories())

        await self._until(broker, holds, timeout_s=20)
        assert await holds(), (topic, self.histories())

    @staticmethod
    async def _until(
        broker: ChildBroker, holds: Callable[[], Awaitable[bool]], timeout_s: float = 3
    ) -> None:
        """Or until it is dead, or the time is up: what is not done then is done by the next."""

        async def is_over() -> bool:
            return broker.is_dead or time.monotonic() > deadline or await holds()

        deadline = time.monotonic() + timeout_s
        await until(is_over, pause_s=0.01)

    async def _settle(self, broker: ChildBroker, topics: list[str]) -> None:
        """Until every topic's partition is led, and has nothing to copy or expire any more."""
        for topic in topics:
            await until_copied(broker.admin_address, topic)

    async def _check(self, broker: ChildBroker, client: Client) -> None:
        present = {topic.name for topic in (await client.metadata()).topics}
        topics = ["t", "d", *(["x"] if "x" in present else [])]
        # Garbage is collected of partitions that are led.
        await self._settle(broker, topics)
        if "x" not in present:
            await until(lambda: self._is_gone("x"))
        status, report = await admin(broker.admin_address, "POST", "/tier/gc")
        if status == 503:
            # The tier process was killed at the end of the work, and nobody had noticed yet.
            await until_copied(broker.admin_address, "t")
            status, report = await admin(broker.admin_address, "POST", "/tier/gc")
        assert status == 200, report
        assert report["isOurs"], report
        for topic in topics:
            await self._until_told(broker, topic)
        assert not broken_promises(self.histories(), self.keys())

        async def histories_are_whole() -> bool:
            """What a death left unfinished goes with a pass that knows the partition."""
            if any(f"/{HISTORY_NAME}." in key for key in self.keys()):
                await admin(broker.admin_address, "POST", "/tier/gc")
            return not any(f"/{HISTORY_NAME}." in key for key in self.keys())

        await until(histories_are_whole, pause_s=0.2)
        orphans, missing = await disagreement(broker.admin_address, topics, self.keys())
        assert not orphans, f"{orphans=} {report=}"
        assert not missing, missing
        assert report["missingSegments"] == 0, report
        for topic in topics:
            begin, end = await client.offset(topic, EARLIEST), await client.offset(topic)
            assert topic != "t" or begin == 0
            consumer = Consumer(client, topic, begin)
            assert await consumer.read_to(end, 60), (topic, consumer.next, end, consumer.errors)
            assert not consumer.problems, (topic, consumer.problems)
            self.records += end - begin
            if topic != "x":
                assert end >= self._written[topic]
                self._written[topic] = end


class Killer:
    """Kills a process at the n-th request to S3, before or after it was done."""

    def __init__(self, s3: MemoryS3, pid_of: Callable[[], int], step: int, *, done: bool) -> None:
        self.left = step
        self.killed = False
        self._pid_of = pid_of
        self._done = done
        s3.hook = self

    def __call__(self, _: Request, done: bool) -> bool:
        if done is not self._done or self.killed:
            return True
        self.left -= 1
        if self.left:
            return True
        self.killed = True
        os.kill(self._pid_of(), signal.SIGKILL)
        return False


def tier_pid(broker: ChildBroker) -> int:
    """The tier process of a broker."""
    (pid,) = children(broker.pid)
    return pid


class Runs:
    """Lives in directories that are changed for new ones now and then, and what came of them."""

    def __init__(self, directory: Path, worker: str, *, s3: bool) -> None:
        self._directory = directory
        self._worker = worker
        self._uses_s3 = s3
        self._stack = ExitStack()
        self._world: World | None = None
        self.s3: MemoryS3 | None = None
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def __enter__(self) -> "Runs":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _renew(self) -> World:
        self._stack.close()
        self.s3 = self._stack.enter_context(MemoryS3()) if self._uses_s3 else None
        directory = self._directory / f"world-{self.counts['worlds']}"
        self.counts["worlds"] += 1
        self._world = World(directory, self.s3, self._worker)
        self._stack.callback(shutil.rmtree, directory, ignore_errors=True)
        self._stack.callback(self._world.close)
        return self._world

    async def life(
        self, name: str, arm: Callable[[ChildBroker], None], *, broker_dies: bool = True
    ) -> ChildBroker:
        """See `World.life`; a world with a problem is not used again."""
        world = self._world
        if world is None or world.problems or self.counts["runs"] % LIVES_MAX == 0:
            world = self._renew()
        records = world.records
        broker = await world.life(name, arm, broker_dies=broker_dies)
        self.counts["runs"] += 1
        self.counts["records read"] += world.records - records
        self.problems += world.problems
        return broker

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"{counts}, {len(self.problems)} problems"


async def by_changes(runs: Runs, steps: Iterator[int], runs_max: int) -> None:
    """The broker dies at these changes."""
    for step in islice(steps, runs_max):

        def arm(broker: ChildBroker, step: int = step) -> None:
            broker.arm(step)

        broker = await runs.life(f"change {step}", arm)
        runs.counts["killed at their step"] += broker.process.exitcode == DIED


async def by_requests(runs: Runs, steps: Iterator[int], runs_max: int, *, tier: bool) -> None:
    """The broker, or its tier process alone, dies at these, before or after they are done."""
    killers: list[Killer] = []
    for step in islice(steps, runs_max):
        done = bool(len(killers) % 2)

        def arm(broker: ChildBroker, step: int = step, done: bool = done) -> None:
            assert runs.s3 is not None
            pid_of = (lambda: tier_pid(broker)) if tier else (lambda: broker.pid)
            killers.append(Killer(runs.s3, pid_of, step, done=done))

        name = f"request {step} {'after' if done else 'before'}"
        await runs.life(name, arm, broker_dies=not tier)
        runs.counts["killed at their step"] += killers[-1].killed


async def by_time(runs: Runs, seed: int, runs_max: int) -> None:
    """The broker dies after a while, by a signal from outside."""
    randomness = random.Random(seed)
    loop = asyncio.get_running_loop()
    for _ in range(runs_max):
        delay_s = randomness.uniform(0, 0.6)

        def arm(broker: ChildBroker, delay_s: float = delay_s) -> None:
            loop.call_later(delay_s, broker.kill)

        await runs.life(f"after {delay_s * 1000:.0f} ms", arm)


def spread(count: int, last: int) -> Iterator[int]:
    """`count` steps from 1 to `last`, evenly, then again."""
    while True:
        yield from (1 + index * last // count for index in range(count))


async def test_broker_dies_at_some_changes(tmp_path: Path) -> None:
    """Filesystem store; a step of each kind."""
    with Runs(tmp_path, "inline", s3=False) as runs:
        await by_changes(runs, spread(10, 170), 10)
    assert not runs.problems, runs.problems


async def test_broker_dies_at_some_requests(tmp_path: Path) -> None:
    """S3."""
    with Runs(tmp_path, "inline", s3=True) as runs:
        await by_requests(runs, spread(6, 40), 6, tier=False)
    assert not runs.problems, runs.problems


async def test_tier_process_dies_at_some_requests(tmp_path: Path) -> None:
    """S3; the broker lives on."""
    with Runs(tmp_path, "process", s3=True) as runs:
        await by_requests(runs, spread(4, 40), 4, tier=True)
    assert not runs.problems, runs.problems


async def test_deletion_that_was_not_told(tmp_path: Path) -> None:
    """A topic is gone from the metadata store, and the broker dies before it tells of it."""
    world = World(tmp_path, None, "inline")
    try:
        broker, client = await world._start()
        await client.create_topic("t", 1, **TIERED)
        await client.create_topic("x", 1, **TIERED)
        await Producer(client, "x").fill(2 * SEGMENT_BYTES)
        await until_copied(broker.admin_address, "x")
        # The broker may die at a change that it had still to make, a history say, before the topic
        # is gone from the store. Then again: such changes come to an end.
        for _ in range(20):
            broker.arm(1)
            with suppress(OSError, TimeoutError):
                await client.delete_topic("x")
            assert await asyncio.to_thread(broker.join) == DIED
            await client.close()
            broker, client = await world._start()
            if "x" not in {topic.name for topic in (await client.metadata()).topics}:
                break
            await until_copied(broker.admin_address, "x")
        else:
            raise AssertionError("it never died after the topic was gone from the store")
        await until(lambda: world._is_gone("x"))
        await client.close()
        assert await asyncio.to_thread(broker.stop) == 0
    finally:
        world.close()


@pytest.mark.slow
async def test_two_hundred_lives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every step several times, and any moment; prints a line for each kind."""
    problems = []
    total: Counter[str] = Counter()
    kinds: list[tuple[str, str, bool, Callable[[Runs], Awaitable[None]]]] = [
        ("broker, files, changes", "inline", False, lambda r: by_changes(r, spread(100, 170), 100)),
        ("broker, files, time", "inline", False, lambda r: by_time(r, 1, 25)),
        ("broker, S3, changes", "inline", True, lambda r: by_changes(r, spread(30, 40), 30)),
        (
            "broker, S3, requests",
            "inline",
            True,
            lambda r: by_requests(r, spread(60, 40), 60, tier=False),
        ),
        (
            "tier process, S3, requests",
            "process",
            True,
            lambda r: by_requests(r, spread(50, 40), 50, tier=True),
        ),
    ]
    for number, (name, worker, s3, run) in enumerate(kinds):
        with Runs(tmp_path / str(number), worker, s3=s3) as runs:
            await run(runs)
        problems += runs.problems
        total += runs.counts
        with capsys.disabled():
            sys.stdout.write(f"{name}: {runs}\n")
    with capsys.disabled():
        sys.stdout.write(f"kill -9: {dict(total)}, {len(problems)} problems\n")
    assert not problems, problems
