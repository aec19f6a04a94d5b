"""Steady work on a cluster that is hit by faults, and its longest time without a success."""

import itertools
import threading
import time


class Steady(threading.Thread):
    """A thread that does numbered pieces of work until it is stopped.

    Attributes:
        acks: Time of the monotonic clock and number of each success, in their order.
        sent_at: Time at which each number was begun.
        failures: Errors that end the work; it stops at the first.
    """

    def __init__(self, name: str, rate_per_s: float) -> None:
        """`rate_per_s`: 0: as fast as it goes."""
        super().__init__(name=name, daemon=True)
        self.acks: list[tuple[float, int]] = []
        self.sent_at: list[float] = []
        self.failures: list[str] = []
        self.interval_s = 1.0 / rate_per_s if rate_per_s else 0.0
        self.stopping = threading.Event()

    @property
    def acknowledged_count(self) -> int:
        """Successes so far."""
        return len(self.acks)

    def last_ack_sent_at(self) -> float:
        """When the newest number that succeeded was begun; 0 while there is none."""
        return self.sent_at[self.acks[-1][1]] if self.acks else 0.0

    def wait_for_acks(self, more: int, timeout_s: float = 60.0) -> None:
        """Until so many more have come.

        Raises:
            AssertionError: They have not, or one failed.
        """
        wanted, deadline = self.acknowledged_count + more, time.monotonic() + timeout_s
        while self.acknowledged_count < wanted:
            assert not self.failures, self.failures[:5]
            assert time.monotonic() < deadline, f"{more} acknowledgements took above {timeout_s} s"
            time.sleep(0.005)

    def stop(self) -> None:
        """Begin nothing more."""
        self.stopping.set()
        if self.is_alive():
            self.join()

    def longest_gap_s(self, begin: float, end: float) -> float:
        """The longest time without any success in a part of the run."""
        times = [begin, *(at for at, _ in self.acks if begin <= at <= end), end]
        return max(after - before for before, after in itertools.pairwise(times))
