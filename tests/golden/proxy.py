"""A TCP proxy that keeps what passes: request and response frames of the Kafka protocol.

A frame is `>i` size and the bytes that follow; kept without its size. Answers are matched to
requests by connection and correlation id, because an answer does not say what it answers.
"""

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame, header included."""

    api_key: int
    version: int
    direction: str
    data: bytes


class RecordingProxy:
    """Forwards every connection to `target`; `frames` grows in the order of arrival."""

    def __init__(self, listener: socket.socket, target: tuple[str, int]) -> None:
        self.frames: list[Frame] = []
        self._listener = listener
        self._target = target
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where clients connect."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def take(self) -> list[Frame]:
        """What was recorded since the last call."""
        with self._lock:
            frames, self.frames = self.frames, []
        return frames

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._target)
                waiting: dict[int, tuple[int, int]] = {}
                for source, sink, is_request in ((client, broker, True), (broker, client, False)):
                    threading.Thread(
                        target=self._forward, args=(source, sink, is_request, waiting), daemon=True
                    ).start()

    def _forward(
        self,
        source: socket.socket,
        sink: socket.socket,
        is_request: bool,
        waiting: dict[int, tuple[int, int]],
    ) -> None:
        buffer = bytearray()
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                buffer += data
                # Noted before it is passed on: the answer must find its request.
                while len(buffer) >= 4:
                    (size,) = struct.unpack_from(">i", buffer)
                    if len(buffer) < size + 4:
                        break
                    self._keep(bytes(buffer[4 : size + 4]), is_request, waiting)
                    del buffer[: size + 4]
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _keep(self, data: bytes, is_request: bool, waiting: dict[int, tuple[int, int]]) -> None:
        if is_request:
            api_key, version, correlation_id = struct.unpack_from(">hhi", data)
            waiting[correlation_id] = (api_key, version)
        else:
            (correlation_id,) = struct.unpack_from(">i", data)
            api_key, version = waiting.pop(correlation_id)
        with self._lock:
            direction = "request" if is_request else "response"
            self.frames.append(Frame(api_key, version, direction, data))
