"""A stored file, or a part of one, as Arrow reads files: by ranges, a window of it held."""

import io
from typing import Final

from typing_extensions import override

from pipeline.lake.errors import TaskFailedError
from pipeline.lake.stores.table_store import TableStore

READ_BYTES: Final = 256 * 1024
"""Of a file that is read at once, where a reader wants less."""


class StoredBytes(io.RawIOBase):
    """A part of a stored file, as Arrow reads files; a missing one is a TaskFailedError."""

    def __init__(self, store: TableStore, key: str, start: int = 0, length: int = -1) -> None:
        """`length` -1: to the file's end."""
        super().__init__()
        self._store = store
        self._key = key
        self._start = start
        if length < 0:
            size = store.size(key)
            if size is None:
                raise self._missing()
            length = size - start
        self._length = length
        self._position = 0
        self._window = (0, b"")

    def _missing(self) -> TaskFailedError:
        return TaskFailedError(
            f"{self._store.uri}/{self._key} is not there: another job has committed the batch, "
            "or it is lost"
        )

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._position

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = base + offset
        return self._position

    @override
    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._length - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted >= READ_BYTES:
            data = self._fetched(wanted)
            self._position += wanted
            return data
        begin, held = self._window
        if not begin <= self._position <= self._position + wanted <= begin + len(held):
            begin, held = self._window = self._position, self._fetched(min(left, READ_BYTES))
        data = held[self._position - begin : self._position - begin + wanted]
        self._position += wanted
        return data

    def _fetched(self, size: int) -> bytes:
        data = self._store.read(self._key, self._start + self._position, size)
        if data is None:
            raise self._missing()
        if len(data) < size:
            raise TaskFailedError(f"{self._store.uri}/{self._key} is shorter than it was")
        return data
