"""A range of a file that is on its way to a socket."""

from typing import Any

from typing_extensions import override


class FileSlice:
    """`length` bytes of `file` from `position`; never the bytes themselves.

    Holds the file open: the log may delete or roll the segment meanwhile, the bytes stay readable
    until the last slice is gone.

    Attributes:
        is_doubted: What led to it had to be read from the disk, so the rest of it may have to be,
            too: its first and last pages, which the look-up has brought, prove nothing.
        is_cut: More that may be read lies behind it: it ends where the limit of a read is, or the
            segment.
    """

    __slots__ = ("file", "is_cut", "is_doubted", "length", "position")

    def __init__(self, file: Any, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.is_doubted = False
        self.is_cut = False

    def __len__(self) -> int:
        return self.length

    @override
    def __repr__(self) -> str:
        return f"FileSlice({self.file!r}, position={self.position}, length={self.length})"
