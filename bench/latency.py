"""End-to-end latency: from the moment a record should leave to the moment a consumer holds it.

One process spins over two connections, a producer's and a long-polling consumer's, so no wake-up of
its own is measured. Records are due at fixed moments and timed from there, whether or not the
producer was late: a stalled broker is charged for every record that should have been on its way
(no coordinated omission).

The spinning loop knows when the machine took its own core away. Records that were on their way, or
due, in such a moment and shortly after it say nothing about the broker and are left out;
`left_out_share` says how many. A broker cannot make the loop stand still, so this hides none of its
delays. Above `LEFT_OUT_LIMIT` too little is left to speak of a 99th percentile.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import wire
from bench.generator import GeneratorError, percentile
from bench.process import cpu_seconds

STALL_S = 0.001
"""An iteration of the loop takes microseconds: a longer one was other work of the machine."""

SETTLING_S = 0.005
"""How long after a standstill its backlog of records may still be in their own way."""

LEFT_OUT_LIMIT = 0.5


def undisturbed(
    due: Sequence[float], done: Sequence[float], stalls: Sequence[tuple[float, float]]
) -> list[int]:
    """Indices of the records whose way from `due` to `done` met no standstill; both ascend."""
    kept = []
    first = 0
    for index, (begin, end) in enumerate(zip(due, done, strict=True)):
        while first < len(stalls) and stalls[first][1] + SETTLING_S <= begin:
            first += 1
        if first == len(stalls) or stalls[first][0] >= end:
            kept.append(index)
    return kept


@dataclass(frozen=True, slots=True)
class LatencyLoad:
    """Records of one topic at a steady rate."""

    port: int
    pid: int
    topic: str
    batch: bytes
    rate_per_s: int
    duration_s: float
    warm_up_s: float = 1.0
    host: str = "127.0.0.1"


@dataclass(slots=True)
class LatencyResult:
    """Milliseconds; end to end and until acknowledged."""

    records: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    ack_p50_ms: float
    ack_p99_ms: float
    broker_cpu_s: float
    left_out_share: float


def _connect(load: LatencyLoad) -> socket.socket:
    connection = socket.create_connection((load.host, load.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return connection


def measure(load: LatencyLoad) -> LatencyResult:
    """Run the load; the topic must be empty before."""
    producer, consumer = _connect(load), _connect(load)
    layout = wire.ProduceResponseLayout.of(load.topic)
    frame = wire.produce_frame(load.topic, 0, load.batch)
    fetch = bytearray(wire.fetch_frame(load.topic, 0, 0x0102030405060708, max_bytes=1 << 20))
    offset_at = fetch.index(bytes(range(1, 9)))
    total = int((load.duration_s + load.warm_up_s) * load.rate_per_s)
    interval = 1.0 / load.rate_per_s
    acked_at = [0.0] * total
    seen_at = [0.0] * total
    ack_buffer, ack_have = bytearray(1 << 16), 0
    fetch_buffer = bytearray(4 << 20)
    fetch_view, fetch_have = memoryview(fetch_buffer), 0
    sent = acked = seen = 0
    left = memoryview(frame)
    stalls: list[tuple[float, float]] = []
    batch_size = len(load.batch)
    clock = time.perf_counter

    def ask() -> None:
        struct.pack_into(">q", fetch, offset_at, seen)
        if consumer.send(fetch) != len(fetch):
            raise GeneratorError("a Fetch request did not fit the socket")

    ask()
    cpu_before = cpu_seconds(load.pid)
    begin = now = clock()
    give_up = begin + total * interval + 20.0
    while seen < total:
        before, now = now, clock()
        if now - before > STALL_S:
            stalls.append((before, now))
        if now > give_up:
            raise GeneratorError(f"{total - seen} of {total} records were not seen")
        if sent < total and now >= begin + sent * interval:
            # What a broker that does not keep up leaves waiting here is timed as all else is.
            with contextlib.suppress(BlockingIOError):
                left = left[producer.send(left) :]
            if not left:
                left = memoryview(frame)
                sent += 1
        if acked < sent:
            try:
                ack_have += producer.recv_into(memoryview(ack_buffer)[ack_have:])
            except BlockingIOError:
                pass
            else:
                at = clock()
                while ack_have >= layout.size:
                    if ack_buffer[layout.error_code : layout.error_code + 2] != b"\x00\x00":
                        raise GeneratorError("Produce was refused")
                    acked_at[acked] = at
                    acked += 1
                    ack_have -= layout.size
                    ack_buffer[:ack_have] = ack_buffer[layout.size : layout.size + ack_have]
        try:
            fetch_have += consumer.recv_into(fetch_view[fetch_have:])
        except BlockingIOError:
            continue
        if fetch_have < 4:
            continue
        (size,) = struct.unpack_from(">i", fetch_buffer)
        if fetch_have < size + 4:
            continue
        at = clock()
        answer = wire.parse_fetch(fetch_view[4 : size + 4])
        if answer.error_code:
            raise GeneratorError(f"Fetch: error {answer.error_code}")
        for _ in range(len(answer.records) // batch_size):
            seen_at[seen] = at
            seen += 1
        fetch_have = 0
        if seen < total:
            ask()
    cpu = cpu_seconds(load.pid) - cpu_before
    # The last acknowledgements may still be under way.
    producer.setblocking(True)
    while acked < total:
        ack_have += producer.recv_into(memoryview(ack_buffer)[ack_have:])
        for _ in range(ack_have // layout.size):
            acked_at[acked] = clock()
            acked += 1
        ack_have %= layout.size
    producer.close()
    consumer.close()
    first = int(load.warm_up_s * load.rate_per_s)
    due = [begin + index * interval for index in range(total)]
    kept = [n for n in undisturbed(due, seen_at, stalls) if n >= first]
    left_out = 1 - len(kept) / (total - first)
    if not kept:
        return LatencyResult(0, 0.0, 0.0, 0.0, 0.0, 0.0, cpu, left_out)
    ends = sorted((seen_at[n] - due[n]) * 1e3 for n in kept)
    acks = sorted((acked_at[n] - due[n]) * 1e3 for n in kept)
    return LatencyResult(
        len(ends),
        percentile(ends, 0.5),
        percentile(ends, 0.99),
        percentile(ends, 0.999),
        percentile(acks, 0.5),
        percentile(acks, 0.99),
        cpu,
        left_out,
    )
