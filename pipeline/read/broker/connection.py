"""One connection to a broker: requests out, answers back in the same order.

    request   size int32 | header | body
    answer    size int32 | correlation id int32 | body

Several requests may be under way; an answer that is not the one that is waited for is kept for
the caller that waits for it. The first request asks which versions the broker speaks, and every
other one goes out in the newest that both do. All of it blocks the caller: a caller that reads
ahead sends the next request before it reads the last answer.
"""

import mmap
import socket
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from pipeline.read.broker.errors import BrokerError, BrokerUnreachableError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.framing import RESPONSE_SIZE_MIN, FrameReader
from protocol.headers import decode_response_header, encode_request_header
from protocol.messages import module_of
from protocol.messages.api_versions import ApiVersionsRequest

FRAME_BYTES_MAX: Final = (1 << 31) - 1
"""Largest answer; a Fetch answer is as large as was asked for, or as its first batch is."""

RECEIVE_BYTES: Final = 64 << 10
"""Received at once where an answer begins; the rest of a large one comes straight to its place."""

MAPPED_SIZE_MIN: Final = 1 << 20
"""Answers from this size on lie in memory of which only what has arrived is used."""

UNDER_WAY_MAX: Final = 4
"""Requests that are not answered yet."""


class Wire(Protocol):
    """The part of a `socket.socket` that is used; times out with TimeoutError."""

    def sendall(self, data: bytes) -> None:
        """All of it."""
        ...

    def recv_into(self, buffer: memoryview) -> int:
        """At least a byte; 0 at the end."""
        ...

    def settimeout(self, value: float | None) -> None:
        """Seconds that any call may take."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


Dial = Callable[[str, int, float], Wire]
"""(host, port, seconds) to a connection; OSError when there is none."""


def dial(host: str, port: int, timeout_s: float) -> Wire:
    """Connect by TCP."""
    wire = socket.create_connection((host, port), timeout_s)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


class _Sent(NamedTuple):
    api: ApiKey
    version: int
    correlation_id: int


class PendingAnswer(NamedTuple):
    """A request that was sent."""

    connection: "BrokerConnection"
    correlation_id: int

    def wait(self) -> Any:
        """Its answer; BrokerUnreachableError when the connection ends before."""
        return self.connection.answer(self.correlation_id)


class _AnswerMemory:
    """Of one answer; a decoded answer has views of it."""

    __slots__ = ("filled", "size", "view")

    def __init__(self, size: int) -> None:
        self.view = memoryview(bytearray(size) if size < MAPPED_SIZE_MIN else mmap.mmap(-1, size))
        self.size = size
        self.filled = 0


class _AnswerPool:
    """Memory is freed with the last view of it, so nothing is given out again."""

    __slots__ = ("charged",)

    def __init__(self) -> None:
        self.charged = 0

    def take(self, size: int) -> _AnswerMemory:
        return _AnswerMemory(size)

    def give_back(self, buffer: _AnswerMemory) -> None:
        self.charged -= buffer.filled


class BrokerConnection:
    """See the module. Broken for good after its first error.

    Attributes:
        address: `host:port`.
        is_broken: Nothing can be sent any more.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        connect_timeout_ms: int,
        request_timeout_ms: int,
        versions_timeout_ms: int | None = None,
        dial: Dial = dial,
    ) -> None:
        """Connect, and ask which versions are spoken.

        Args:
            host: Of the broker.
            port: Likewise.
            client_id: Shown by it.
            connect_timeout_ms: Until the connection is made.
            request_timeout_ms: Until an answer is there.
            versions_timeout_ms: Until the first one is, which tells the versions; None: likewise.
            dial: Connects.

        Raises:
            BrokerUnreachableError: No server is there, or none that speaks Kafka's protocol.
            BrokerError: The broker speaks no version of ApiVersions that is known here.
        """
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.is_broken = False
        self._client_id = client_id
        self._timeout_ms = (
            request_timeout_ms if versions_timeout_ms is None else versions_timeout_ms
        )
        self._correlation_id = 0
        self._sent: deque[_Sent] = deque()
        self._frames: deque[memoryview] = deque()
        self._reader: FrameReader[_AnswerMemory] = FrameReader(
            memoryview(bytearray(RECEIVE_BYTES)),
            _AnswerPool(),
            size_max=FRAME_BYTES_MAX,
            size_min=RESPONSE_SIZE_MIN,
        )
        self._answers: dict[int, Any] = {}
        self._versions: dict[int, tuple[int, int]] = {}
        try:
            self._wire = dial(host, port, connect_timeout_ms / 1000)
            self._wire.settimeout(self._timeout_ms / 1000)
        except TimeoutError as error:
            problem = f"no connection to {self.address} within {connect_timeout_ms} ms"
            raise BrokerUnreachableError(problem) from error
        except OSError as error:
            problem = f"no connection to {self.address}: {error}"
            raise BrokerUnreachableError(problem) from error
        try:
            versions = self._send(ApiVersionsRequest(), 0).wait()
            if versions.error_code != ErrorCode.NONE:
                raise BrokerError(
                    f"{self.address} answers ApiVersions with error {versions.error_code}"
                )
            self._timeout_ms = request_timeout_ms
            self._wire.settimeout(request_timeout_ms / 1000)
        except BaseException:
            self.close()
            raise
        self._versions = {
            one.api_key: (one.min_version, one.max_version) for one in versions.api_keys
        }

    def newest(self, api: ApiKey, at_most: int | None = None) -> int:
        """The newest version that both sides speak.

        Raises:
            BrokerError: There is none.
        """
        codec: Any = module_of(api)
        least, most = self._versions.get(api, (0, -1))
        known: int = codec.MAX_VERSION
        most = min(most, known, known if at_most is None else at_most)
        if most < max(least, codec.MIN_VERSION):
            raise BrokerError(
                f"{self.address} speaks versions {least} to {self._versions.get(api, (0, -1))[1]} "
                f"of {api.name}, none of which is known here"
            )
        return most

    def send(self, request: Any, at_most: int | None = None) -> PendingAnswer:
        """Send a request, in a version of `at_most` if that is given.

        Raises:
            BrokerUnreachableError: The connection has ended.
            BrokerError: The broker does not know the API.
        """
        codec = sys.modules[type(request).__module__]
        return self._send(request, self.newest(ApiKey(codec.API_KEY), at_most))

    def call(self, request: Any, at_most: int | None = None) -> Any:
        """Send a request and wait for its answer; raises as both."""
        return self.send(request, at_most).wait()

    def _send(self, request: Any, version: int) -> PendingAnswer:
        if self.is_broken:
            raise BrokerUnreachableError(f"the connection to {self.address} has ended")
        if len(self._sent) >= UNDER_WAY_MAX:
            raise BrokerError(f"more than {UNDER_WAY_MAX} requests to {self.address} are under way")
        codec: Any = sys.modules[type(request).__module__]
        api = ApiKey(codec.API_KEY)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        head = encode_request_header(api, version, self._correlation_id, self._client_id)
        data = head + codec.encode_request(request, version)
        try:
            self._wire.sendall(len(data).to_bytes(4, "big") + data)
        except OSError as error:
            raise self._broken(error) from error
        self._sent.append(_Sent(api, version, self._correlation_id))
        return PendingAnswer(self, self._correlation_id)

    def answer(self, correlation_id: int) -> Any:
        """The answer to a request that was sent; see `PendingAnswer.wait`."""
        while correlation_id not in self._answers:
            if self.is_broken or not self._sent:
                raise BrokerUnreachableError(f"the connection to {self.address} has ended")
            self._receive()
        return self._answers.pop(correlation_id)

    def _receive(self) -> None:
        try:
            frame = self._next_frame()
            sent = self._sent.popleft()
            correlation_id, position = decode_response_header(frame, sent.api, sent.version)
            if correlation_id != sent.correlation_id:
                raise BrokerUnreachableError(f"{self.address} answers out of order")
            body = frame[position:]
            answer = module_of(sent.api).decode_response(body, sent.version)
        except OSError as error:
            raise self._broken(error) from error
        except (DecodeError, BrokerUnreachableError) as error:
            self.close()
            if isinstance(error, DecodeError):
                problem = f"{self.address} gives an answer that cannot be read: {error}"
                raise BrokerUnreachableError(problem) from error
            raise
        self._answers[correlation_id] = answer

    def _next_frame(self) -> memoryview:
        reader = self._reader
        while not self._frames:
            if reader.error is not None:
                raise BrokerUnreachableError(
                    f"{self.address} does not speak Kafka's protocol: {reader.error}"
                )
            count = self._wire.recv_into(reader.buffer)
            if count == 0:
                raise ConnectionResetError("it was closed by the broker")
            frames = reader.next_frames(count)
            while frames:
                if reader.lent is not None:
                    self._frames += frames
                    reader.release(frames)
                else:
                    # The next answer is received over them.
                    self._frames += [memoryview(bytearray(one)) for one in frames]
                frames = reader.next_frames() if reader.has_more else []
        return self._frames.popleft()

    def _broken(self, error: OSError) -> BrokerUnreachableError:
        self.close()
        if isinstance(error, TimeoutError):
            return BrokerUnreachableError(
                f"{self.address} has not answered within {self._timeout_ms} ms"
            )
        return BrokerUnreachableError(f"the connection to {self.address} has ended: {error}")

    def close(self) -> None:
        """End it; what is under way fails."""
        self.is_broken = True
        self._sent.clear()
        self._answers.clear()
        self._frames.clear()
        self._reader.clear()
        self._wire.close()
