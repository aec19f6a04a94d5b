"""A thousand clients connect: how long until each has its first answer."""

import socket
import time
from dataclasses import dataclass

from bench import wire
from bench.process import cpu_seconds, rss_bytes


@dataclass(slots=True)
class ConnectResult:
    """Seconds from the first SYN to the last ApiVersions answer, and what a connection costs."""

    seconds: float
    broker_cpu_s: float
    rss_per_connection_bytes: float


def open_connections(host: str, port: int, pid: int, count: int) -> ConnectResult:
    """Connect `count` times, each as soon as the one before stands, and wait for every answer.

    ApiVersions goes out on each connection at once, without waiting for its answer: a connection
    counts when the broker has accepted it, not when the kernel has. One after the other, because
    that is what a broker with a short accept queue survives at all: all at once, released Kafka
    leaves hundreds of a thousand without an answer for minutes.
    """
    request = wire.frame(wire.API_VERSIONS, 0, 1, b"")
    rss_before, cpu_before = rss_bytes(pid), cpu_seconds(pid)
    begin = time.perf_counter()
    connections = []
    for _ in range(count):
        connection = socket.create_connection((host, port), timeout=120.0)
        connection.sendall(request)
        connections.append(connection)
    for connection in connections:
        wire.receive(connection)
    seconds = time.perf_counter() - begin
    result = ConnectResult(
        seconds, cpu_seconds(pid) - cpu_before, (rss_bytes(pid) - rss_before) / count
    )
    for connection in connections:
        connection.close()
    return result
