"""Share state in memory, as far as the group coordinator knows of it."""

from collections.abc import Callable, Sequence

from broker.coordinator.persister import (
    NO_EPOCH,
    UNINITIALIZED_OFFSET,
    Done,
    SharePartitionKey,
    ShareSummary,
    StateDone,
    SummaryDone,
)
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch


class FakeSharePersister:
    """Answers at once; with `hold`, when `release` says so; with `fail_with`, that.

    `states` has state epoch and start offset of each share-partition; `calls` how often anything
    was asked.
    """

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, tuple[int, int]] = {}
        self.hold = False
        self.fail_with: dict[int, ErrorCode] = {}
        self.held: list[Callable[[], None]] = []
        self.calls = 0

    def release(self) -> None:
        held, self.held = self.held, []
        for work in held:
            work()

    def _run(self, work: Callable[[], None]) -> None:
        self.calls += 1
        if self.hold:
            self.held.append(work)
        else:
            work()

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done
    ) -> None:
        def work() -> None:
            code = self.fail_with.get(key.partition, ErrorCode.NONE)
            if code is ErrorCode.NONE:
                self.states[key] = (state_epoch, start_offset)
            done(code)

        self._run(work)

    def read_summary(self, key: SharePartitionKey, done: SummaryDone) -> None:
        def work() -> None:
            code = self.fail_with.get(key.partition, ErrorCode.NONE)
            if code is not ErrorCode.NONE:
                done(code, None)
                return
            epoch, offset = self.states.get(key, (0, UNINITIALIZED_OFFSET))
            done(code, ShareSummary(epoch, NO_EPOCH, offset, 0))

        self._run(work)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        def work() -> None:
            code = self.fail_with.get(key.partition, ErrorCode.NONE)
            if code is ErrorCode.NONE:
                self.states.pop(key, None)
            done(code)

        self._run(work)

    def read(self, key: SharePartitionKey, leader_epoch: int, done: StateDone) -> None:
        raise AssertionError("the group coordinator reads no state")

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        raise AssertionError("the group coordinator writes no state")
