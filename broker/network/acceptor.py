"""An acceptor owns one listening socket and assigns its connections to processors, round robin.

A connection above a limit (`broker.network.connection_limits`) is closed at once; above the rate,
accepting pauses until the second's share is used up, and clients wait in the kernel's backlog.
"""

import logging
from collections.abc import Callable, Sequence

from broker.network.connection_info import ConnectionInfo
from broker.network.connection_limits import ConnectionLimits
from broker.network.network import Accepted, Listening
from broker.network.processor import Processor
from broker.network.stream import Poller, Stream
from storage.environment.environment import Environment
from storage.errors import DESCRIPTOR_LIMIT

LOGGER = logging.getLogger(__name__)

ACCEPT_BATCH = 128
"""Connections accepted per wake-up before requests of others are handled."""

ACCEPT_LIMIT_MS = 2.0
"""How long one wake-up may last: first requests are handled as a connection is accepted, which may
take a millisecond each, and connections that are open must not wait for a hundred of them."""

OUT_OF_DESCRIPTORS_PAUSE_MS = 100.0
"""Pause after EMFILE: the condition does not go away by retrying in a busy loop (as trio does)."""

LOG_INTERVAL_MS = 10_000.0
"""Between two lines of the log about connections that cannot be accepted, or that are refused."""


class Acceptor:
    """See the module."""

    __slots__ = (
        "_clock",
        "_free_descriptors",
        "_limits",
        "_listener",
        "_logged_ms",
        "_next",
        "_poller",
        "_processors",
        "_refusal_logged_ms",
        "_refused",
        "_stream_of",
        "_timer",
        "_watching",
        "accepted",
        "listener_name",
    )

    def __init__(
        self,
        listener_name: str,
        listener: Listening,
        processors: Sequence[Processor],
        *,
        poller: Poller,
        environment: Environment,
        limits: ConnectionLimits,
        stream_of: Callable[[Accepted], Stream],
        free_descriptors: Callable[[], object] = lambda: None,
    ) -> None:
        """Accept nothing until `start`.

        Args:
            listener_name: For peers' `ConnectionInfo`, and the log.
            listener: A listening socket, which does not block.
            processors: Get the connections round robin; the list may change.
            poller: The event loop's readiness calls.
            environment: Clock and timer of pauses.
            limits: Of all listeners.
            stream_of: The stream of an accepted socket; raises OSError when its peer has gone.
            free_descriptors: Called when there is none for a connection.
        """
        self._free_descriptors = free_descriptors
        self._logged_ms = float("-inf")
        self._refusal_logged_ms = float("-inf")
        # Since the last line about them.
        self._refused = 0
        self.listener_name = listener_name
        self.accepted = 0
        self._listener = listener
        self._processors = processors
        self._poller = poller
        self._timer = environment.timer
        self._clock = environment.clock
        self._limits = limits
        self._stream_of = stream_of
        self._next = -1
        self._watching = False

    @property
    def port(self) -> int:
        """The port listened on: the one the system chose where the setting says 0."""
        return int(str(self._listener.getsockname()[1]))

    def start(self) -> None:
        """Begin to accept."""
        if not self._watching and self._listener.fileno() >= 0:
            self._watching = True
            self._poller.add_reader(self._listener.fileno(), self._on_acceptable)

    def _pause(self, delay_ms: float) -> None:
        self._watching = False
        self._poller.remove_reader(self._listener.fileno())
        self._timer.call_later_ms(delay_ms, self.start)

    def _on_acceptable(self) -> None:
        end_ms = self._clock.monotonic_ms() + ACCEPT_LIMIT_MS
        for _ in range(ACCEPT_BATCH):
            now_ms = self._clock.monotonic_ms()
            if now_ms >= end_ms:
                return
            delay_ms = self._limits.rate_delay_ms(now_ms)
            if delay_ms > 0:
                self._pause(delay_ms)
                return
            try:
                connected, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if now_ms - self._logged_ms >= LOG_INTERVAL_MS:
                    self._logged_ms = now_ms
                    LOGGER.error("accept failed listener=%s error=%s", self.listener_name, error)
                if error.errno in DESCRIPTOR_LIMIT:
                    self._free_descriptors()
                self._pause(OUT_OF_DESCRIPTORS_PAUSE_MS)
                return
            self._take(connected, address)

    def _take(self, connected: Accepted, address: Sequence[object]) -> None:
        host = str(address[0]).removeprefix("::ffff:")
        refusal = self._limits.refusal(host)
        if refusal is not None:
            self._limits.rejected += 1
            self._log_refusal(host, refusal)
            connected.close()
            return
        try:
            stream = self._stream_of(connected)
        except OSError:
            # The peer has gone again already.
            connected.close()
            return
        self._limits.opened(host)
        self.accepted += 1
        # There may be fewer than a moment ago.
        self._next = (self._next + 1) % len(self._processors)
        processor = self._processors[self._next]
        info = ConnectionInfo(
            listener_name=self.listener_name,
            peer_host=host,
            peer_port=int(str(address[1])),
        )
        processor.add(stream, info)

    def _log_refusal(self, host: str, reason: str) -> None:
        """Log the first, then how many: clients that are refused try again many times a second."""
        self._refused += 1
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._refusal_logged_ms < LOG_INTERVAL_MS:
            return
        self._refusal_logged_ms = now_ms
        LOGGER.warning(
            "connection refused listener=%s peer=%s reason=%s refused=%d",
            self.listener_name,
            host,
            reason,
            self._refused,
        )
        self._refused = 0

    def close(self) -> None:
        """Stop accepting; connections already accepted stay."""
        if self._watching:
            self._watching = False
            self._poller.remove_reader(self._listener.fileno())
        self._listener.close()
