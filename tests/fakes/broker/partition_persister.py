"""The share coordinator, as far as share-partitions know it."""

from collections.abc import Sequence

from broker.coordinator.persister import (
    Done,
    SharePartitionKey,
    ShareState,
    StateDone,
    SummaryDone,
)
from protocol.error_codes import ErrorCode as E
from protocol.internal.share_state import StateBatch


class FakePersister:
    """Keeps nothing but what was written; with `hold` it answers when told to."""

    def __init__(self) -> None:
        self.state: ShareState | None = ShareState(0, 0, ())
        self.read_code = E.NONE
        self.write_code = E.NONE
        self.hold = False
        self.held: list[Done] = []
        self.writes: list[tuple[int, int, list[StateBatch]]] = []

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done
    ) -> None:
        raise AssertionError("the group coordinator does that")

    def read(self, key: SharePartitionKey, leader_epoch: int, done: StateDone) -> None:
        done(self.read_code, self.state if self.read_code is E.NONE else None)

    def read_summary(self, key: SharePartitionKey, done: SummaryDone) -> None:
        raise AssertionError("the group coordinator does that")

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
        self.writes.append((start_offset, delivery_complete_count, list(batches)))
        if self.hold:
            self.held.append(done)
        else:
            done(self.write_code)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        raise AssertionError("the group coordinator does that")

    def answer(self, code: E = E.NONE) -> None:
        held, self.held = self.held, []
        for done in held:
            done(code)
