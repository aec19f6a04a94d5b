"""Redelivery of released records: the batch is halved with each attempt after half of the limit.

    delivered before                  acquired together
    never (lost with a crash)         by the log's batches, as many as are requested
    less than half of the limit       all available records of its batch
    half of the limit                 half of the batch, and nothing else
    one more time, two more times     a quarter, an eighth, and nothing else
    the last attempt                  alone, so that it fails no other record

Source: Kafka, SharePartition.java (acquireSubsetBatchRecords, shouldThrottleRecordsDelivery).
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from broker.share.delivery.in_flight import InFlight, Run

THROTTLE_FROM_MIN = 2


class Redelivery:
    """Acquisition of released records of one share-partition."""

    __slots__ = ("_in_flight", "_max_deliveries", "_throttle_from")

    def __init__(self, in_flight: InFlight, max_deliveries: int) -> None:
        self._in_flight = in_flight
        self._max_deliveries = max_deliveries
        self._throttle_from = max(THROTTLE_FROM_MIN, -(-max_deliveries // 2))

    def take(
        self,
        taken: list[Run],
        first: int,
        last: int,
        limit: int,
        align: Callable[[int], int],
        is_exact: bool,
    ) -> tuple[int, bool]:
        """Take released records; return how many more may be taken, and whether to stop."""
        left = limit
        found = [run for run in self._in_flight.between(first, last) if run.is_available]
        for (_, is_new), batch in groupby(found, _batch_of):
            if left <= 0:
                break
            runs = list(batch)
            is_throttled = max(run.delivery_count for run in runs) >= self._throttle_from
            if is_throttled and left < limit:
                return left, True
            most = left
            if not is_exact:
                # Records never delivered are taken by the log's batches, the rest all at once.
                lowest = max(runs[0].first, first)
                most = align(lowest + left - 1) - lowest + 1 if is_new else last - first + 1
            count = self._take_again(taken, runs, first, last, most)
            left -= count
            if is_throttled and count:
                return left, True
        return left, False

    def _take_again(
        self, taken: list[Run], runs: Sequence[Run], first: int, last: int, most: int
    ) -> int:
        """Take available runs of a batch delivered before, or a part; return the record count.

        All of them, whichever member has the rest of the batch, unless one was delivered often:
        then half as many with each attempt, and a record on its last attempt alone.
        """
        last_chance = self._max_deliveries - 1
        count = 0
        company: int | None = None
        for run in runs:
            is_last_chance = last_chance > 1 and run.delivery_count >= last_chance
            if is_last_chance and count:
                break
            if company is None and run.delivery_count >= self._throttle_from:
                shift = run.delivery_count - self._throttle_from + 1
                company = max(1, run.batch_size >> shift)
            room = most if company is None else min(most, company)
            room = 1 if is_last_chance else room - count
            if room <= 0:
                break
            lowest, highest = max(run.first, first), min(run.last, last)
            allowed = min(highest, lowest + room - 1)
            for part in self._in_flight.cut(lowest, allowed):
                taken.append(part)
                count += len(part)
            if allowed < highest or is_last_chance:
                break
        return count


def _batch_of(run: Run) -> tuple[int, bool]:
    """First offset of the run's batch, and whether it was ever delivered."""
    return run.batch_first, not run.delivery_count
