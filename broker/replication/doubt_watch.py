"""Answers appends that wait at a leader which may have been deposed without having heard of it.

    certain ──validity passed, not confirmed by followers──> in doubt ──at the next look──> answered
       ^                                                        │
       └──────────── confirmed, or the image has come ──────────┘

What waits for the ISR with acks=all cannot be wrong, so it may wait; but its producer waits too, as
long as its own time-out says, when another broker may have led the partition for seconds.
NOT_LEADER_OR_FOLLOWER sends it there; a batch that was committed after all is a duplicate there.
Appends of coordinators go on waiting: their memory has to agree with the log.

A broker whose every replicated partition is in doubt is *isolated*: Metadata then does not name it,
or its clients would look for the new leader where no broker has heard of one, again and again.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from broker.replication.terms import ReplicationTerms
    from broker.runtime.timer import Timer, TimerHandle
    from storage.environment.clock import Clock

LOOK_MS: Final = 500.0
"""Between two looks; while the validity lasts one is a single comparison."""


class DoubtWatch:
    """See the module.

    Attributes:
        answered: How often a partition's appends were answered so.
        is_isolated: It leads partitions with followers, and was in doubt of all at two looks.
    """

    def __init__(
        self,
        terms: "ReplicationTerms",
        clock: "Clock",
        timer: "Timer",
        *,
        led: "Callable[[], Iterable[Partition]]",
    ) -> None:
        """`start` begins.

        Args:
            terms: Of replication; its validity.
            clock: Monotonic.
            timer: For the looks.
            led: The partitions that are open here.
        """
        self._terms = terms
        self._clock = clock
        self._timer = timer
        self._led = led
        self._doubted: dict[Partition, int] = {}
        self._look: TimerHandle | None = None
        self._was_alone = False
        self.answered = 0
        self.is_isolated = False

    def start(self) -> None:
        """Look from now on."""
        self._look = self._timer.call_later_ms(LOOK_MS, self._on_look)

    def close(self) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _on_look(self) -> None:
        self.start()
        now_ms = self._clock.monotonic_ms()
        if now_ms <= self._terms.validity.until_ms:
            self._doubted.clear()
            self._was_alone = self.is_isolated = False
            return
        before, self._doubted = self._doubted, {}
        was_alone, self._was_alone = self._was_alone, False
        is_confirmed = False
        for partition in self._led():
            if partition.leading is None:
                continue
            if not partition.is_in_doubt(now_ms):
                is_confirmed = True
                continue
            self._was_alone = True
            waits = partition.commit_waits
            if not waits:
                continue
            if before.get(partition) == partition.role_number:
                self.answered += 1
                waits.fail_where(ErrorCode.NOT_LEADER_OR_FOLLOWER, is_internal=False)
            else:
                self._doubted[partition] = partition.role_number
        self._was_alone = self._was_alone and not is_confirmed
        self.is_isolated = was_alone and self._was_alone
