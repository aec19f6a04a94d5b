"""Frames that are bent in every way: no crash, no traceback, no stall.

Most are fed to a whole broker in this process, which is many times quicker than sockets; a frame
counts when it has reached the router. The rest goes over sockets to a broker of its own process,
while a well-behaved client measures how long it waits.
"""

import asyncio
import gc
import itertools
import select
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from tests.system.hostile.conftest import Note
from tests.system.hostile.frames import KINDS, HostileFrames
from tests.system.hostile.probe import HANG_MS
from tests.system.hostile.server import Target, running
from tests.system.hostile.world import World, open_world

T = TypeVar("T")


def on_uvloop(main: Callable[[], Awaitable[T]]) -> T:
    """Run on the loop the broker runs on in earnest."""

    async def run() -> T:
        return await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


async def fuzz(world: World, seed: int, handled_min: int) -> None:
    frames = HostileFrames(seed, world.topic_ids())
    while world.router.handled < handled_min:
        await world.run(frames.mixture(), 5000)


def check(world: World, note: Note, seconds: float) -> None:
    note(
        handled=world.router.handled,
        seconds=seconds,
        kinds=len(set(KINDS) & set(world.router.kinds)),
        answered=world.answers,
        closed=world.closed[True],
        longest_stall_ms=world.longest.ms,
    )
    world.assert_well()
    missed = set(KINDS) - set(world.router.kinds)
    assert not missed, f"never reached the router: {sorted(missed)}"
    assert world.longest.ms <= HANG_MS, str(world.longest)


def play(directory: Path, note: Note, attack: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_world(directory) as world:
            # As the broker does when it has started: what the test holds is not the broker's.
            gc.collect()
            gc.freeze()
            begin = time.monotonic()
            await attack(world)
            seconds = time.monotonic() - begin
        check(world, note, seconds)

    try:
        on_uvloop(main)
    finally:
        gc.unfreeze()


def test_fuzzed_frames(tmp_path: Path, note: Note) -> None:
    """The quick share of what `test_a_million_fuzzed_frames` does."""
    play(tmp_path, note, lambda world: fuzz(world, seed=1, handled_min=30_000))


@pytest.mark.slow
def test_a_million_fuzzed_frames(tmp_path: Path, note: Note) -> None:
    play(tmp_path, note, lambda world: fuzz(world, seed=2, handled_min=1_000_000))


@pytest.mark.parametrize(
    ("step"), [pytest.param(17, id="sampled"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_every_truncation_and_every_lie_of_every_version(
    tmp_path: Path, note: Note, step: int
) -> None:
    """Cut at every byte; counts and lengths that lie at every byte, as int32 and as varint."""

    async def attack(world: World) -> None:
        frames = HostileFrames(3, world.topic_ids())
        for key, version in KINDS:
            for frame in frames.systematic(key, version, step):
                # A frame that waits for a worker is lost when the next one ends the connection.
                await world.settle()
                await world.feed(frame)
            await world.tidy()

    play(tmp_path, note, attack)


class Stranger:
    """Sends frames over sockets and takes what comes, without looking at it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket | None = None
        self.sent = 0
        self.connections = 0

    def send(self, frames: Iterable[bytes]) -> None:
        """Send frames one by one; after a close the rest is sent on a new connection."""
        for frame in frames:
            if self._socket is None or self._is_closed(self._socket):
                self.close()
                self._socket = socket.create_connection(("127.0.0.1", self._target.port), 10)
                self.connections += 1
            try:
                self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
                self.sent += 1
                # An answer or the end: what is sent into a closing connection is judged by nobody.
                select.select([self._socket], [], [], 0.003)
            except OSError:
                self.close()

    def _is_closed(self, connection: socket.socket) -> bool:
        try:
            while select.select([connection], [], [], 0)[0]:
                if not connection.recv(1 << 16):
                    return True
        except OSError:
            return True
        return False

    def close(self) -> None:
        """Leave, in the rudest way."""
        if self._socket is not None:
            linger = b"\1\0\0\0\0\0\0\0"
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._socket.close()
            self._socket = None


def judged(target: Target) -> int:
    """Frames the broker has looked at: a frame sent into a closing connection is none."""
    return int(
        target.metric("kafka_network_requestmetrics_requests_total")
        + target.metric("varve_requests_unsupported_total")
    )


def attack_over_sockets(
    directory: Path, note: Note, frames: Iterator[bytes], judged_min: int
) -> None:
    """Send; the broker must have seen the frames, complain of nothing and never stall."""
    with running(directory, {"offsets.topic.num.partitions": "4"}) as target:
        descriptors, before = target.descriptors(), target.memory()
        with target.probe() as probe:
            begin = time.monotonic()
            stranger = Stranger(target)
            while chunk := list(itertools.islice(frames, 1000)):
                stranger.send(chunk)
                if judged(target) >= judged_min:
                    break
            seconds = time.monotonic() - begin
            seen = judged(target)
            stranger.close()
        assert target.eventually(lambda: target.descriptors() <= descriptors + 40)
        note(
            sent=stranger.sent,
            judged=seen - probe.seen.count,
            connections=stranger.connections,
            seconds=seconds,
            grown_mib=(target.memory() - before) / 2**20,
            ping=probe.seen,
        )
        # Frames whose header is cut off, or that wait behind one that parks, are not counted there.
        assert seen - probe.seen.count >= stranger.sent // 2
        assert not probe.seen.failures
        assert probe.seen.stall_ms <= HANG_MS


@pytest.mark.parametrize(
    "count", [pytest.param(3_000, id="quick"), pytest.param(25_000, marks=pytest.mark.slow)]
)
def test_fuzzed_frames_over_sockets(tmp_path: Path, note: Note, count: int) -> None:
    frames = HostileFrames(4)
    # The probe's requests are counted too: a generous share for them.
    attack_over_sockets(tmp_path, note, frames.mixture(), count + 2_000)


@pytest.mark.parametrize(
    "step", [pytest.param(97, id="sampled"), pytest.param(5, id="many", marks=pytest.mark.slow)]
)
def test_lies_and_truncations_over_sockets(tmp_path: Path, note: Note, step: int) -> None:
    """Every served (API, version) over a live connection."""
    frames = HostileFrames(5)
    lies = (f for key, version in KINDS for f in frames.systematic(key, version, step))
    attack_over_sockets(tmp_path, note, lies, 1 << 40)
