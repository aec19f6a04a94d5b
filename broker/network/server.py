"""The network layer as a whole: acceptors, processors, the request channel, and their limits."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from posixpath import dirname
from typing import TYPE_CHECKING, Final

from broker.network.acceptor import Acceptor
from broker.network.connection import Connection
from broker.network.connection_limits import NO_BOUND, ConnectionLimits
from broker.network.iteration_end import IterationEnd
from broker.network.listeners import Listeners
from broker.network.loop_resources import LoopResources
from broker.network.network import Listening, Network, SocketNetwork
from broker.network.processor import Processor
from broker.network.receive_buffers import ReceiveBuffers
from broker.network.request_channel import RequestChannel, Router
from broker.network.response import ResponseMemory
from config.listeners import Listener
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.environment.local_filesystem import EVICTED_AT_ONCE
from storage.environment.memory import memory_bytes

if TYPE_CHECKING:
    from config.broker import BrokerConfig
    from storage.types.file_slice import FileSlice

LOGGER = logging.getLogger(__name__)

SWEEP_MS = 1000.0
STOP_STALLED_MS = 1000.0
"""When the broker stops: how long a peer may take nothing of its last answers."""

UNLIMITED_SHARE = 4
"""Without `queued.max.request.bytes`, unfinished requests may hold this fraction of the memory."""

RESPONSES_SHARE = 16
"""Answers that their readers do not take may hold this fraction of the memory."""

CLIENT_ID_SHOWN_MAX = 64
"""Characters of a client id in a log line: the client chooses it, and may choose 32 KiB."""

Done = Callable[[object, BaseException | None], None]

ReadCold = Callable[[str, Callable[[], object], Done], None]
"""Calls a function in a thread of a log directory: `broker.replicas.cold_reads.ColdReads.run`."""


def memory_share(fraction: int) -> int:
    """One `fraction`th of the memory that this process may have, in bytes."""
    return memory_bytes() // fraction


def memory_limit(configured: int) -> int:
    """Bytes that unfinished requests may hold in all."""
    return configured if configured > 0 else memory_share(UNLIMITED_SHARE)


KAFKA_BUFFER_BYTES: Final = 102_400
"""Kafka's default of `socket.receive.buffer.bytes` and `socket.send.buffer.bytes`, chosen before
systems fitted buffers to their connections: a batch of 1 MiB would come, and go, in ten parts."""

SYSTEM_BUFFER: Final = -1


def buffer_bytes(configured: int) -> int:
    """A socket's buffer; -1: the system fits it to the connection."""
    return SYSTEM_BUFFER if configured == KAFKA_BUFFER_BYTES else configured


def shown(client_id: str | None) -> str | None:
    """A client id escaped and cut for a log line: it can neither forge a field nor break it."""
    if client_id is None:
        return None
    word = client_id[:CLIENT_ID_SHOWN_MAX].encode("unicode_escape").decode()
    return word.replace(" ", "\\x20").replace('"', "\\x22")


LISTENER_KEYS: Final = ("listener.security.protocol.map", "listeners", "num.network.threads")
"""Settings that `update_listeners` takes."""

WORKER_KEYS: Final = ("num.io.threads",)
"""Settings that `update_workers` takes."""

LIMIT_KEYS: Final = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)
"""Settings that `update_limits` takes."""


class NetworkServer:
    """See the module."""

    def __init__(
        self,
        settings: "BrokerConfig",
        *,
        loop: asyncio.AbstractEventLoop,
        environment: Environment,
        network: Network | None = None,
        read_cold: ReadCold,
        router: Router,
        iteration_end: IterationEnd,
        connections_max: int = NO_BOUND,
        alerts: Alerts | None = None,
    ) -> None:
        """Without listeners, until `start`.

        Args:
            settings: Listeners and limits.
            loop: Whose thread everything here runs on.
            environment: Clock and timer of sweeps, and the files whose descriptors are closed when
                a connection finds none.
            network: Where it listens; default: the operating system's.
            read_cold: Has a thread bring a slice into the page cache.
            router: Answers requests.
            iteration_end: When gathered answers leave.
            connections_max: Their share of the descriptors (`storage.environment.descriptors`).
            alerts: Get one for a listener that cannot be bound; default: none are shown.
        """
        self._settings = settings
        self._loop = loop
        self._environment = environment
        self._network = network or SocketNetwork()
        self._clock = environment.clock
        self._timer = environment.timer
        self._read_cold = read_cold
        self._stopped = False
        self.buffers = ReceiveBuffers(memory_limit(settings.queued_max_request_bytes))
        self.channel = RequestChannel(
            capacity=settings.queued_max_requests,
            worker_count=settings.num_io_threads,
            memory=self.buffers,
        )
        self.channel.connect(router)
        self.responses = ResponseMemory(memory_share(RESPONSES_SHARE))
        self.limits = ConnectionLimits(
            max_connections=settings.max_connections,
            max_per_address=settings.max_connections_per_ip,
            overrides=dict(settings.max_connections_per_ip_overrides),
            rate_max=settings.max_connection_creation_rate,
            descriptors_max=connections_max,
        )
        self._poller = self._network.connection_poller(loop, environment.clock)
        self._resources = LoopResources.of(
            self._poller or loop,
            environment.clock,
            buffers=self.buffers,
            responses=self.responses,
            iteration_end=iteration_end,
        )
        self.admission = self._resources.admission
        self._listeners = Listeners(
            bind=self._bind,
            make_processor=self._processor,
            make_acceptor=self._acceptor,
            alerts=alerts or Alerts(),
        )

    def _bind(self, listener: Listener) -> Listening:
        return self._network.listen(
            listener.host,
            listener.port,
            backlog=self._settings.socket_listen_backlog_size,
            receive_buffer_bytes=buffer_bytes(self._settings.socket_receive_buffer_bytes),
        )

    def _processor(self, listener_name: str, index: int) -> Processor:
        return Processor(
            index,
            listener_name,
            resources=self._resources,
            channel=self.channel,
            frame_size_max=self._settings.socket_request_max_bytes,
            warm=self._warm,
            on_closed=self._closed,
        )

    def _acceptor(
        self, listener_name: str, bound: Listening, processors: Sequence[Processor]
    ) -> Acceptor:
        return Acceptor(
            listener_name,
            bound,
            processors,
            poller=self._loop,
            environment=self._environment,
            limits=self.limits,
            stream_of=partial(
                self._network.stream,
                send_buffer_bytes=buffer_bytes(self._settings.socket_send_buffer_bytes),
                receive_buffer_bytes=buffer_bytes(self._settings.socket_receive_buffer_bytes),
            ),
            free_descriptors=self._free_descriptors,
        )

    def _free_descriptors(self) -> None:
        self._environment.filesystem.open_files.evict(EVICTED_AT_ONCE)

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener, host, port) as bound."""
        return self._listeners.addresses

    @property
    def processors(self) -> Iterable[Processor]:
        """Of all listeners."""
        return self._listeners.processors()

    def update_limits(self, settings: "BrokerConfig") -> None:
        """Limits of connections that were changed; those that are open stay."""
        self.limits.max_connections = settings.max_connections
        self.limits.max_per_address = settings.max_connections_per_ip
        self.limits.overrides = dict(settings.max_connections_per_ip_overrides)
        self.limits.rate_max = settings.max_connection_creation_rate

    def update_listeners(self, settings: "BrokerConfig") -> None:
        """Listeners and processors that were changed; connections of those that stay are kept."""
        self._listeners.apply(settings.listeners, settings.num_network_threads)

    def update_workers(self, settings: "BrokerConfig") -> None:
        """How many requests may wait for a disk at a time; those that do go on."""
        self.channel.resize(settings.num_io_threads)

    def start(self) -> None:
        """Listen on every listener, then accept.

        Raises:
            OSError: An address is taken or not ours; nothing is left listening.
        """
        settings = self._settings
        self._listeners.open_all(settings.listeners, settings.num_network_threads)
        self._timer.call_later_ms(SWEEP_MS, self._sweep)

    def _sweep(self) -> None:
        if self._stopped:
            return
        for processor in self.processors:
            processor.sweep(float(self._settings.connections_max_idle_ms))
        self.admission.sweep()
        self._timer.call_later_ms(SWEEP_MS, self._sweep)

    def _warm(self, connection: Connection, slice_: "FileSlice") -> None:
        def done(_result: object, error: BaseException | None) -> None:
            if error is not None:
                connection.close(f"log cannot be read: {error}")
            else:
                connection.warmed()

        directory = dirname(dirname(slice_.file.path))
        self._read_cold(directory, lambda: slice_.file.warm(slice_.position, slice_.length), done)

    def _closed(self, connection: Connection, reason: str | None) -> None:
        info = connection.info
        self.limits.closed(info.peer_host)
        if reason is not None:
            LOGGER.info(
                "connection closed listener=%s peer=%s:%d client_id=%s reason=%s",
                info.listener_name,
                info.peer_host,
                info.peer_port,
                shown(connection.client_id),
                reason,
            )

    def stop_accepting(self) -> None:
        """Refuse new connections, and further requests of the connections there are.

        Otherwise clients that send the next request once answered would keep a stop from ending.
        """
        self.stop_reading()
        self._listeners.close()

    def stop_reading(self) -> None:
        """Take no further requests from the connections there are."""
        for processor in self.processors:
            processor.stop_reading()

    async def stop(self, timeout_s: float) -> None:
        """Let running requests end and their answers leave, then close every connection."""
        self._stopped = True
        await self.channel.stop(timeout_s)
        deadline_ms = self._clock.monotonic_ms() + timeout_s * 1000
        connections = [c for p in self.processors for c in p.connections]
        stopping_ms = self._clock.monotonic_ms()
        while connections and (now_ms := self._clock.monotonic_ms()) < deadline_ms:
            connections = [c for c in connections if not c.closed and not c.quiet]
            for connection in connections:
                taken_ms = max(connection.last_active_ms, stopping_ms)
                if not connection.unanswered and now_ms - taken_ms > STOP_STALLED_MS:
                    connection.close(None)
            await asyncio.sleep(0.01)
        for connection in [c for p in self.processors for c in p.connections]:
            connection.close(None)
        if self._poller is not None:
            self._poller.close()
