"""Reserved is not used: buffers are lent, charged by arrival, and kept within a bound."""

import os

from broker.network.receive_buffers import POOL_BYTES_MAX, POOLED_SIZE_MAX, ReceiveBuffers
from protocol.framing import FrameReader


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_announcements_cost_no_memory() -> None:
    """200 buffers of 100 MiB are address space only."""
    buffers = ReceiveBuffers(1 << 40)
    before = resident_bytes()
    taken = [buffers.take(100 * 1024 * 1024) for _ in range(200)]
    assert resident_bytes() - before < 8 * 1024 * 1024
    for buffer in taken:
        buffers.give_back(buffer)


def test_a_returned_buffer_is_lent_again() -> None:
    buffers = ReceiveBuffers(1 << 40)
    buffers.give_back(buffers.take(100_000))
    assert buffers.idle_bytes == 131_072
    assert len(buffers.take(70_000).view) == 131_072
    assert buffers.idle_bytes == 0


def test_idle_memory_is_bounded() -> None:
    buffers = ReceiveBuffers(1 << 40)
    taken = [buffers.take(POOLED_SIZE_MAX) for _ in range(20)]
    for buffer in taken:
        buffers.give_back(buffer)
    assert buffers.idle_bytes <= POOL_BYTES_MAX


def test_charges_follow_arrivals() -> None:
    """5,000 bytes are announced; what counts is how many have come."""
    buffers = ReceiveBuffers(1000)
    reader = FrameReader(memoryview(bytearray(100)), buffers, size_max=5000)
    reader.buffer[:4] = (5000).to_bytes(4, "big")
    assert reader.next_frames(4) == []
    assert reader.next_frames(999) == []
    assert not buffers.exhausted
    assert reader.next_frames(1) == []
    assert buffers.exhausted
    reader.clear()
    assert buffers.charged == 0


def test_a_view_kept_by_mistake_does_not_crash() -> None:
    buffers = ReceiveBuffers(1 << 40)
    buffer = buffers.take(POOLED_SIZE_MAX + 1)
    kept = buffer.view[:10]
    buffers.give_back(buffer)
    assert len(kept) == 10


def test_what_is_only_announced_holds_no_memory_that_was_used_before() -> None:
    """Buffers of frames that come and go would end with whoever announces and sends nothing."""
    limit = 16 * 1024 * 1024
    buffers = ReceiveBuffers(limit)
    held = []
    before = resident_bytes()
    for _ in range(60):
        busy = buffers.take(POOLED_SIZE_MAX)
        busy.view[:] = bytes(POOLED_SIZE_MAX)
        buffers.give_back(busy)
        held.append(buffers.take(POOLED_SIZE_MAX))
    grown = resident_bytes() - before
    assert grown <= POOL_BYTES_MAX + limit // 4 + 8 * 1024 * 1024
    for buffer in held:
        buffers.give_back(buffer)
    assert buffers.idle_bytes <= POOL_BYTES_MAX
    again = buffers.take(POOLED_SIZE_MAX)
    assert again.touched == POOLED_SIZE_MAX
