"""A thousand clients connect at once: how long until each has its first answer."""

import errno
import select
import socket
import time
from dataclasses import dataclass

from bench import wire
from bench.generator import GeneratorError
from bench.process import cpu_seconds, rss_bytes


@dataclass(slots=True)
class ConnectResult:
    """Seconds from the first SYN to the last ApiVersions answer, and what a connection costs."""

    seconds: float
    broker_cpu_s: float
    rss_per_connection_bytes: float


def open_connections(host: str, port: int, pid: int, count: int) -> ConnectResult:
    """Connect `count` times at once, send ApiVersions on each, wait for every answer."""
    request = wire.frame(wire.API_VERSIONS, 0, 1, b"")
    poll = select.epoll()
    waiting: dict[int, socket.socket] = {}
    rss_before, cpu_before = rss_bytes(pid), cpu_seconds(pid)
    begin = time.perf_counter()
    for _ in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        code = connection.connect_ex((host, port))
        if code not in (0, errno.EINPROGRESS):
            raise GeneratorError(f"connect: {errno.errorcode[code]}")
        waiting[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLOUT)
    open_ones = []
    deadline = begin + 120
    while waiting:
        if time.perf_counter() > deadline:
            raise GeneratorError(f"{len(waiting)} of {count} connections had no answer")
        for fd, events in poll.poll(1.0):
            connection = waiting[fd]
            if events & select.EPOLLOUT:
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise GeneratorError(f"connect: {errno.errorcode[code]}")
                connection.send(request)
                poll.modify(fd, select.EPOLLIN)
            elif not connection.recv(65_536):
                raise GeneratorError("the broker closed a connection")
            else:
                poll.unregister(fd)
                open_ones.append(waiting.pop(fd))
    seconds = time.perf_counter() - begin
    result = ConnectResult(
        seconds, cpu_seconds(pid) - cpu_before, (rss_bytes(pid) - rss_before) / count
    )
    for connection in open_ones:
        connection.close()
    poll.close()
    return result
