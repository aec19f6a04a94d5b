"""Result of an append."""


class AppendInfo:
    """Result of an append.

    Attributes:
        first_offset: Given to the first record; for a duplicate, what it got the first time.
        last_offset: Given to the last record, inclusive.
        log_append_time_ms: Time given to all records with LogAppendTime, else -1.
        log_start_offset: Of the log, for the producer's answer.
        duplicate: It was in the log already; nothing was written.
    """

    __slots__ = (
        "duplicate",
        "first_offset",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        duplicate: bool,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
