"""The terms of replication: limits and look-ups that all partitions led here share."""

from collections.abc import Callable


class ReplicationTerms:
    """See the module; may be changed while partitions are led.

    Attributes:
        lag_time_max_ms: `replica.lag.time.max.ms`: a follower that has not caught up for longer
            leaves the ISR.
        fetch_wait_max_ms: `replica.fetch.wait.max.ms`: a live follower fetches at least so often.
        live_epoch: Broker epoch of a node that may be in an ISR: registered, not fenced, and not
            about to stop; None for any other (KIP-841, KIP-903).
    """

    __slots__ = ("fetch_wait_max_ms", "lag_time_max_ms", "live_epoch")

    def __init__(
        self,
        *,
        lag_time_max_ms: float = 30_000.0,
        fetch_wait_max_ms: float = 500.0,
        live_epoch: Callable[[int], int | None] | None = None,
    ) -> None:
        """`live_epoch`: without it no follower may join an ISR."""
        self.lag_time_max_ms = lag_time_max_ms
        self.fetch_wait_max_ms = fetch_wait_max_ms
        self.live_epoch = live_epoch or _nobody_lives


def _nobody_lives(_node_id: int) -> int | None:
    return None
