"""A range of a file that is on its way to a socket."""

from typing import Any

from typing_extensions import override


class FileSlice:
    """`length` bytes of `file` from `position`; never the bytes themselves.

    Holds the file open: the log may delete or roll the segment meanwhile, the bytes stay readable
    until the last slice is gone.
    """

    __slots__ = ("file", "length", "position")

    def __init__(self, file: Any, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    @override
    def __repr__(self) -> str:
        return f"FileSlice({self.file!r}, position={self.position}, length={self.length})"
