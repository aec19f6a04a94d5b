"""Records that several followers are sent in one turn of the loop: read once, if they are few.

    first answer ──of(slice)──> the slice ──sent: the sender reads it, and has its bytes in the body
    next answer  ──of(slice)──> the same bytes, if it is the same part of the same file

Followers of one partition wait for the same records at the same offset. Nothing is written where
they lie while this is used: they are in the leader's log, and the loop does nothing else meanwhile.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from storage.types.file_slice import FileSlice

RECORDS_AT = 1
"""Their place in the body of an answer that has records of one partition."""


class SharedRecords:
    """See the module. Lives for one turn at most."""

    __slots__ = ("_body", "_file", "_length", "_position")

    def __init__(self) -> None:
        # Any, as a slice has it.
        self._file: Any = None
        self._position = 0
        self._length = 0
        self._body: list[Any] = []

    def of(self, records: "FileSlice") -> Any:
        """What is to be sent of `records`: their bytes, if an answer before had the same."""
        if (
            self._file is records.file
            and self._position == records.position
            and self._length == records.length
            and len(self._body) > RECORDS_AT
        ):
            read = self._body[RECORDS_AT]
            if isinstance(read, (bytes, bytearray)) and len(read) == records.length:
                return read
        # What is sent by the kernel moves its slice on.
        self._file = records.file
        self._position = records.position
        self._length = records.length
        self._body = []
        return records

    def sent_in(self, body: list[Any]) -> None:
        """The records that were asked for last are in `body`, which the sender works on."""
        self._body = body
