"""Ranged GETs with as little work per byte as Python allows.

aiobotocore takes 1.5 to 3 CPU seconds a GB, for parsing, callbacks and copies. Here a request is
one signature and one write, and the kernel copies the body into the caller's memory: `docs/
s3-servers.md` has the figures. Everything that is not plain is left to aiobotocore.

Connections are kept while the server keeps them, the one used last first, so that those which are
not needed grow old. A kept connection may have been closed when it is used again; that is no
error of the store, and the request is repeated on another.
"""

import asyncio
import ssl
from typing import Final

from storage.environment.clock import Clock
from tiered.errors import StoreTimeoutError, StoreUnavailableError
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.s3.credentials import CredentialsSource
from tiered.object_store.s3.http_connection import (
    ClosedBeforeAnswerError,
    RangeConnection,
)
from tiered.object_store.s3.sigv4 import RangeSigner, quoted_path
from tiered.object_store.statistics import StoreStatistics

IDLE_MAX_S: Final = 15.0
"""An unused connection is closed after so long; load balancers forget them silently at 60 or so."""


class Endpoint:
    """Where a bucket's objects are.

    Attributes:
        tls: None for plain HTTP.
        base_path: In front of every key, ends with `/`: `/bucket/` in path style.
    """

    __slots__ = ("base_path", "host", "host_header", "port", "region", "tls")

    def __init__(
        self,
        host: str,
        port: int | None,
        base_path: str,
        region: str,
        tls: ssl.SSLContext | None,
    ) -> None:
        shown = f"[{host}]" if ":" in host else host
        self.host = host
        self.port = port or (443 if tls else 80)
        self.host_header = shown if port in (None, 443 if tls else 80) else f"{shown}:{port}"
        self.base_path = base_path
        self.region = region
        self.tls = tls


class RangedReader:
    """Reads ranges from one bucket; see the module. Belongs to one loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: CredentialsSource,
        clock: Clock,
        statistics: StoreStatistics,
        *,
        deadlines: StoreDeadlines,
        max_connections: int,
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._clock = clock
        self._statistics = statistics
        self._deadlines = deadlines
        self._signer = RangeSigner(endpoint.host_header, endpoint.region)
        self._slots = asyncio.Semaphore(max_connections)
        self._loop = asyncio.get_running_loop()
        self._idle: list[RangeConnection] = []
        self._busy: set[RangeConnection] = set()
        self._closed = False

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._idle) + len(self._busy)

    async def read(self, key: str, position: int, view: memoryview) -> None:
        """Fill `view`, at least 1 byte, from `position` on; errors as `RangeConnection.exchange`.

        The caller's deadline is the total one: when this is cancelled the connection is closed.
        """
        path = quoted_path(self._endpoint.base_path + key)
        read_timeout_s = self._deadlines.read_ms / 1000
        async with self._slots:
            while True:
                connection = self._idle_connection() or await self._connect()
                used_before = connection.requests > 0
                credentials = await self._credentials.current()
                request = self._signer.request(
                    path, position, len(view), credentials, self._clock.now_ms()
                )
                self._busy.add(connection)
                try:
                    await connection.exchange(request, position, view, read_timeout_s)
                except ClosedBeforeAnswerError:
                    if not used_before:
                        raise
                    continue
                finally:
                    self._busy.discard(connection)
                    if connection.reusable and not self._closed:
                        self._idle.append(connection)
                    else:
                        connection.abort()
                return

    def _idle_connection(self) -> RangeConnection | None:
        oldest_s = self._loop.time() - IDLE_MAX_S
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since >= oldest_s:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> RangeConnection:
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        where = self._endpoint
        timeout_s = self._deadlines.connect_ms / 1000
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await self._loop.create_connection(
                    lambda: RangeConnection(self._loop, self._lost),
                    where.host,
                    where.port,
                    ssl=where.tls,
                )
        except TimeoutError as error:
            raise StoreTimeoutError(
                f"no connection to {where.host_header} within {self._deadlines.connect_ms} ms"
            ) from error
        except OSError as error:
            raise StoreUnavailableError(f"no connection to {where.host_header}: {error}") from error
        self._statistics.connections_opened += 1
        return connection

    def _lost(self, connection: RangeConnection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def close(self) -> None:
        """Close all connections; reads under way fail."""
        self._closed = True
        for connection in [*self._idle, *self._busy]:
            connection.abort()
        self._idle.clear()
