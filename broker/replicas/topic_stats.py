"""Counters of a topic, over all its partitions here; read at scrape time."""


class TopicStats:
    """See the module."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replication_bytes_in",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        self.bytes_rejected = 0
        self.messages_in = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
