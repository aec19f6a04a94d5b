"""Fields of a frame's body: numbers, texts and bytes, one behind the other.

    u8, u16, u32, u64, i64   big-endian
    blob                     u32 length, then the bytes
    text                     a blob of UTF-8
    flag                     u8: 0 or 1

What is read is believed in nothing: a length beyond the end, a flag of 2, bytes that are no UTF-8
and bytes behind the last field all raise `FrameError`.
"""

import struct
from typing import Final

from broker.controller.store.metadata_store import StoreError

_U8: Final = struct.Struct(">B")
_U16: Final = struct.Struct(">H")
_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")
_I64: Final = struct.Struct(">q")


class FrameError(StoreError):
    """What came over the socket is not what this protocol says."""


class FieldWriter:
    """Puts fields one behind the other."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def u8(self, value: int) -> None:
        """One byte."""
        self._parts.append(_U8.pack(value))

    def u16(self, value: int) -> None:
        """Two bytes."""
        self._parts.append(_U16.pack(value))

    def u32(self, value: int) -> None:
        """Four bytes."""
        self._parts.append(_U32.pack(value))

    def u64(self, value: int) -> None:
        """Eight bytes."""
        self._parts.append(_U64.pack(value))

    def i64(self, value: int) -> None:
        """Eight bytes, signed."""
        self._parts.append(_I64.pack(value))

    def flag(self, value: bool) -> None:
        """One byte."""
        self._parts.append(b"\x01" if value else b"\x00")

    def blob(self, value: bytes) -> None:
        """Length and bytes."""
        self._parts.append(_U32.pack(len(value)))
        self._parts.append(value)

    def text(self, value: str) -> None:
        """Length and UTF-8."""
        self.blob(value.encode())

    def done(self) -> bytes:
        """All of them."""
        return b"".join(self._parts)


class FieldReader:
    """Takes fields from the front of `data`."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _number(self, shape: struct.Struct) -> int:
        end = self._at + shape.size
        if end > len(self._data):
            raise FrameError(f"the body ends within a number, after {len(self._data)} bytes")
        (value,) = shape.unpack_from(self._data, self._at)
        self._at = end
        return int(value)

    def u8(self) -> int:
        """One byte."""
        return self._number(_U8)

    def u16(self) -> int:
        """Two bytes."""
        return self._number(_U16)

    def u32(self) -> int:
        """Four bytes."""
        return self._number(_U32)

    def u64(self) -> int:
        """Eight bytes."""
        return self._number(_U64)

    def i64(self) -> int:
        """Eight bytes, signed."""
        return self._number(_I64)

    def flag(self) -> bool:
        """One byte, 0 or 1."""
        value = self.u8()
        if value > 1:
            raise FrameError(f"a flag of {value}")
        return bool(value)

    def blob(self) -> bytes:
        """Length and bytes."""
        size = self.u32()
        end = self._at + size
        if end > len(self._data):
            raise FrameError(f"a field of {size} bytes, {len(self._data) - self._at} are there")
        value = self._data[self._at : end]
        self._at = end
        return value

    def text(self) -> str:
        """Length and UTF-8."""
        try:
            return self.blob().decode()
        except UnicodeDecodeError as error:
            raise FrameError(f"a text that is no UTF-8: {error}") from error

    def end(self) -> None:
        """Nothing may be left.

        Raises:
            FrameError: Something is.
        """
        if self._at != len(self._data):
            raise FrameError(f"{len(self._data) - self._at} bytes behind the last field")
