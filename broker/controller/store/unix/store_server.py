"""Serves a metadata store of this process to others, over a Unix socket.

    listening socket ──> Session, one a connection ──> the store
                          up to CONNECTIONS_MAX

Every connection has its requests answered as they end, and its watches fed. All of it is bounded: a
client that asks for too much at once is read no further, one that does not read a watch loses it.
"""

import asyncio
import logging
import socket
from dataclasses import dataclass
from typing import Any, Final

from broker.controller.store.unix.session import ServedStore, Session, SessionCounts
from broker.runtime.timer import Timer

LOGGER = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 256
"""One broker has one; a command has one for as long as it runs."""

BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class ServerNumbers:
    """What a server has done, and what it has now, for metrics.

    Attributes:
        connections: That are open.
        watches: On all of them.
        requests: That were answered.
        refused: Connections that were refused: too many, another release, no greeting in time.
        bad_frames: Connections that were ended for what they had sent.
        lost_watches: Watches that ended because their reader was behind.
    """

    connections: int
    watches: int
    requests: int
    refused: int
    bad_frames: int
    lost_watches: int


class StoreServer:
    """See the module. In the loop of its store."""

    def __init__(self, store: ServedStore, identity: int, timer: Timer) -> None:
        """Serve nothing yet.

        Args:
            store: Stays open when this is closed.
            identity: Of that store, for as long as it lives; above 0.
            timer: For the time that a greeting may take.
        """
        self._store = store
        self._identity = identity
        self._timer = timer
        self._server: asyncio.Server | None = None
        self._sessions: dict[Session, asyncio.Task[Any]] = {}
        self._counts = SessionCounts()

    @property
    def numbers(self) -> ServerNumbers:
        """As they are."""
        counts = self._counts
        return ServerNumbers(
            connections=len(self._sessions),
            watches=sum(session.watches for session in self._sessions),
            requests=counts.requests,
            refused=counts.refused,
            bad_frames=counts.bad_frames,
            lost_watches=counts.lost_watches,
        )

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections on a bound socket, which is closed with this."""
        self._server = await asyncio.start_unix_server(
            self._connected, sock=listening, backlog=BACKLOG
        )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(
            self._store,
            self._identity,
            (reader, writer),
            self._timer,
            self._counts,
        )
        if len(self._sessions) >= CONNECTIONS_MAX:
            self._counts.refused += 1
            session.refuse(f"{CONNECTIONS_MAX} connections are open, no more are taken")
            return
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        try:
            await session.run()
        except asyncio.CancelledError:
            # By `aclose`: a task that ends in it would be reported as lost.
            LOGGER.debug("connection ended with the server")
        finally:
            self._sessions.pop(session, None)

    async def aclose(self) -> None:
        """Accept nothing more, and end all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = list(self._sessions.values())
        for session, task in list(self._sessions.items()):
            session.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
