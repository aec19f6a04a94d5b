"""A batch that is appended, as a segment's indexes need it."""


class BatchAppend:
    """What the indexes need to know of one batch that is appended."""

    __slots__ = ("last_offset", "max_timestamp", "size")

    def __init__(self, size: int, last_offset: int, max_timestamp: int) -> None:
        self.size = size
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp


def max_timestamp_of(batches: list[BatchAppend]) -> int:
    """The largest timestamp of one batch at least, ms."""
    largest = batches[0].max_timestamp
    for batch in batches:
        if batch.max_timestamp > largest:
            largest = batch.max_timestamp
    return largest
