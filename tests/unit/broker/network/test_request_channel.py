"""Requests that need a worker wait in a bounded queue, in order; the others never wait."""

import asyncio

from broker.network.connection_info import ConnectionInfo
from broker.network.response import Pieces
from tests.fakes.network.sockets import FakeStream
from tests.unit.broker.network.harness import SHARED_SIZE, Harness, frame


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
    assert bytes(h.stream.sent) == b"[W-first.][W-second]<third...>"


async def test_a_request_that_parks_behind_a_waiting_one_keeps_its_place() -> None:
    """Its place in the order of answers is taken when it starts, as the router asks for it."""
    h, gate = Harness(workers=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second") + frame(b"P-third.") + frame(b"fourth.."))
    await settle()
    await gate.finish(b"W-first.")
    await gate.finish(b"W-second")
    assert bytes(h.stream.sent) == b"[W-first.][W-second]"
    h.router.parked[0][1].complete([b"(third)"])
    assert bytes(h.stream.sent) == b"[W-first.][W-second](third)<fourth..>"


async def test_a_frame_that_came_in_pieces_is_not_lost_on_a_full_channel() -> None:
    """It stays where it is, charged, until the channel has room."""
    h, gate = Harness(workers=1, capacity=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second"))
    large = b"W-large." + bytes(10_000)
    data = frame(large) + frame(b"last....")
    h.receive(*[data[at : at + 4000] for at in range(0, len(data), 4000)])
    await settle()
    assert not h.reading
    assert h.buffers.charged == len(large) + len(b"W-second")
    await gate.finish(b"W-first.")
    assert h.router.seen == [b"W-first.", b"W-second"]
    await gate.finish(b"W-second")
    await gate.finish(large)
    h.receive()
    while h.stream.incoming and h.reading:
        h.poller.readable(h.stream.fd)
    assert h.router.seen == [b"W-first.", b"W-second", large, b"last...."]
    assert h.buffers.charged == 0
    assert bytes(h.stream.sent).endswith(b"]<last....>")


async def test_the_queue_is_bounded_by_bytes_too() -> None:
    """500 requests of 100 MiB would be 50 GB; one above the bound is taken if it is alone."""
    h, gate = Harness(workers=1, capacity=100, limit=10_000), Gate()
    h.router.work = gate.work
    names = [b"W-first.", b"W" + bytes(15_000), b"W-third.", b"W" + bytes(5_000)]
    for name in names:
        data = frame(name)
        h.receive(*[data[at : at + SHARED_SIZE] for at in range(0, len(data), SHARED_SIZE)])
    await settle()
    # Small ones are few bytes, however many there may be.
    assert h.channel.queued == 2
    assert not h.reading
    assert h.buffers.charged == 15_001 + len(names[2]) + 5_001
    for name in names:
        await gate.finish(name)
    assert h.router.seen == names
    assert h.buffers.charged == 0


async def test_what_waits_for_a_worker_is_memory_of_requests_as_any_other() -> None:
    """Together they hold `queued.max.request.bytes`, not each of them."""
    h, gate = Harness(workers=1, capacity=100, limit=10_000), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first."))
    other = FakeStream(fd=101)
    large = frame(b"W" + bytes(9_000))
    other.incoming += [large[:4096], large[4096:8192], large[8192:]]
    h.processor.add(other, ConnectionInfo("PLAINTEXT", "127.0.0.1"))
    while other.incoming:
        h.poller.readable(other.fd)
    await settle()
    assert (h.channel.queued, h.buffers.charged) == (1, 9_001)
    third = FakeStream(fd=102)
    third.incoming.append((9_004).to_bytes(4, "big") + b"E" * 4_000)
    h.processor.add(third, ConnectionInfo("PLAINTEXT", "127.0.0.1"))
    assert h.buffers.is_short
    await h.channel.stop(0)
    assert h.buffers.charged == 4_000


async def test_stopping_lets_waiting_requests_start_and_end() -> None:
    h, gate = Harness(workers=1), Gate()
    h.router.work = gate.work
    h.receive(frame(b"W-first.") + frame(b"W-second"))
    await settle()
    stopping = asyncio.create_task(h.channel.stop(5))
    await gate.finish(b"W-first.")
    await gate.finish(b"W-second")
    await stopping
    assert bytes(h.stream.sent) == b"[W-first.][W-second]"


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
