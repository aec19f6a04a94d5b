"""Requests that need a worker wait in a bounded queue, in order; the others never wait."""

import asyncio

from broker.network.response import Pieces
from tests.unit.broker.network.harness import Harness, frame


class Gate:
    """Handlers that wait until the test lets them go on."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, asyncio.Future[Pieces | None]] = {}

    async def work(self, data: bytes) -> Pieces | None:
        future: asyncio.Future[Pieces | None] = asyncio.get_running_loop().create_future()
        self.waiting[data] = future
        return await future

    async def finish(self, data: bytes) -> None:
        self.waiting.pop(data).set_result([b"[" + data + b"]"])
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_requests_beyond_the_workers_wait_their_turn() -> None:
    h, gate = Harness(workers=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second"))
    await settle()
    assert h.router.seen == [b"W-first."]
    assert h.channel.queued == 1
    await gate.finish(b"W-first.")
    assert h.router.seen == [b"W-first.", b"W-second"]
    await gate.finish(b"W-second")
    assert bytes(h.stream.sent) == b"[W-first.][W-second]"
    assert h.channel.busy_workers == 0
    assert h.channel.queued_bytes == 0


async def test_a_request_behind_a_waiting_one_does_not_overtake_it() -> None:
    """Requests of one connection start in order, also those that need no worker."""
    h, gate = Harness(workers=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second") + frame(b"third..."))
    await settle()
    assert h.router.seen == [b"W-first."]
    await gate.finish(b"W-first.")
    await gate.finish(b"W-second")
    assert h.router.seen == [b"W-first.", b"W-second", b"third..."]


async def test_a_full_channel_stops_the_reading() -> None:
    """Back-pressure reaches the client through its socket; nothing is lost."""
    h, gate = Harness(workers=1, capacity=2), Gate()
    h.router.work = gate.work
    names = [b"W-%06d" % i for i in range(6)]
    h.receive(b"".join(frame(n) for n in names))
    await settle()
    assert h.channel.queued == 2
    assert h.channel.refused >= 1
    assert not h.reading
    for name in names:
        await gate.finish(name)
    assert h.router.seen == names
    assert bytes(h.stream.sent) == b"".join(b"[" + n + b"]" for n in names)
    assert h.reading


async def test_other_connections_are_not_held_up_by_busy_workers() -> None:
    h, gate = Harness(workers=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first."))
    other = Harness()
    other.channel = h.channel
    other.processor.channel = h.channel
    other.receive(frame(b"quick..."))
    assert bytes(other.stream.sent) == b"<quick...>"
    await settle()
    await gate.finish(b"W-first.")


async def test_stopping_waits_then_cancels() -> None:
    h, gate = Harness(workers=2), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second"))
    await settle()
    gate.waiting[b"W-first."].set_result([b"done"])
    await h.channel.stop(0.01)
    assert bytes(h.stream.sent) == b"done"
    assert h.channel.busy_workers == 0
