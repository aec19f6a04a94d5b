"""Settings of replication that fetchers read for each request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """See the module.

    Attributes:
        wait_max_ms: `replica.fetch.wait.max.ms`.
        min_bytes: `replica.fetch.min.bytes`.
        max_bytes: `replica.fetch.max.bytes`, of a partition.
        response_max_bytes: `replica.fetch.response.max.bytes`.
        backoff_ms: `replica.fetch.backoff.ms`.
        socket_timeout_ms: `replica.socket.timeout.ms`.
        fetchers: `num.replica.fetchers`.
    """

    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1_048_576
    response_max_bytes: int = 10_485_760
    backoff_ms: int = 1000
    socket_timeout_ms: int = 30_000
    fetchers: int = 1
