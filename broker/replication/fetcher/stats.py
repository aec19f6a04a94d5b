"""Counters of all fetchers of a broker; read at scrape time."""


class FetcherStats:
    """See the module.

    Attributes:
        requests: Fetches sent.
        failed_requests: Without an answer, or with an error for the whole request.
        corrupt_batches: Answers refused because a batch was damaged, or does not follow.
        late_records: Records dropped because the log no longer ends where they were asked for.
        truncations: Logs cut because they had diverged from their leader's.
        truncations_below_high_watermark: Of those, what was committed as far as was known here:
            records were lost by an unclean election, or the cluster's state was.
        moved_to_remote: Offsets that the leader has in remote storage only.
        rebuilt_from_remote: Logs that begin behind what the leader has in remote storage only.
        partition_errors: Errors of single partitions in answers.
    """

    __slots__ = (
        "corrupt_batches",
        "failed_requests",
        "late_records",
        "moved_to_remote",
        "partition_errors",
        "rebuilt_from_remote",
        "requests",
        "truncations",
        "truncations_below_high_watermark",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.failed_requests = 0
        self.corrupt_batches = 0
        self.late_records = 0
        self.truncations = 0
        self.truncations_below_high_watermark = 0
        self.moved_to_remote = 0
        self.rebuilt_from_remote = 0
        self.partition_errors = 0
