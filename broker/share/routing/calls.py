"""One call for the state of a share-partition, on its way to the share coordinator.

A call knows both ways: `local` asks the coordinator of this broker, `item` is its part of a request
to another. Writes that wait for one another go as one: the coordinator joins their batches as it
would have one after the other.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from broker.coordinator.persister import UNINITIALIZED_OFFSET, SharePartitionKey, SharePersister
from broker.share.routing.state_requests import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    StateApi,
)
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch
from protocol.message import Message
from protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

Answer = Callable[[ErrorCode, Any], None]
"""Gets the outcome: a value comes with NONE only, and only where the call has one."""

MERGED_BATCHES_MAX = 200
"""Most state batches of writes that go as one."""


class Call:
    """A call, until it is answered.

    Attributes:
        api: Its request.
        key: Whose state.
        item: Its part of a request.
        local: Asks the share coordinator of this broker.
        answers: Get the outcome.
        deadline_ms: Monotonic; after it no further attempt is made.
        attempts: Made so far.
    """

    __slots__ = ("answers", "api", "attempts", "deadline_ms", "item", "key", "local")

    def __init__(
        self,
        api: StateApi,
        key: SharePartitionKey,
        item: Message,
        local: Callable[[SharePersister, Answer], None],
        answer: Answer,
    ) -> None:
        self.api = api
        self.key = key
        self.item = item
        self.local = local
        self.answers: list[Answer] = [answer]
        self.deadline_ms = 0.0
        self.attempts = 0

    @property
    def place(self) -> tuple[UUID, int]:
        """Topic id and partition, as results have them."""
        return self.key.topic_id, self.key.partition


def initialize(key: SharePartitionKey, state_epoch: int, start_offset: int, answer: Answer) -> Call:
    """See `SharePersister.initialize`."""
    item = initialize_share_group_state.PartitionData(
        partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
    )
    return Call(
        INITIALIZE,
        key,
        item,
        lambda local, done: local.initialize(
            key, state_epoch, start_offset, lambda code: done(code, None)
        ),
        answer,
    )


def read(key: SharePartitionKey, leader_epoch: int, answer: Answer) -> Call:
    """See `SharePersister.read`."""
    item = read_share_group_state.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
    return Call(READ, key, item, lambda local, done: local.read(key, leader_epoch, done), answer)


def read_summary(key: SharePartitionKey, answer: Answer) -> Call:
    """See `SharePersister.read_summary`."""
    item = read_share_group_state_summary.PartitionData(partition=key.partition, leader_epoch=-1)
    return Call(READ_SUMMARY, key, item, lambda local, done: local.read_summary(key, done), answer)


def delete(key: SharePartitionKey, answer: Answer) -> Call:
    """See `SharePersister.delete`."""
    item = delete_share_group_state.PartitionData(partition=key.partition)
    return Call(
        DELETE,
        key,
        item,
        lambda local, done: local.delete(key, lambda code: done(code, None)),
        answer,
    )


def write(
    key: SharePartitionKey,
    *,
    state_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Sequence[StateBatch],
    answer: Answer,
) -> Call:
    """See `SharePersister.write`."""
    item = write_share_group_state.PartitionData(
        partition=key.partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=[
            write_share_group_state.StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in batches
        ],
    )

    def local(persister: SharePersister, done: Answer) -> None:
        # Of the item, which may have become that of several writes.
        persister.write(
            key,
            state_epoch=item.state_epoch,
            leader_epoch=item.leader_epoch,
            start_offset=item.start_offset,
            delivery_complete_count=item.delivery_complete_count,
            batches=[
                StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
                for b in item.state_batches
            ],
            done=lambda code: done(code, None),
        )

    return Call(WRITE, key, item, local, answer)


def merge(first: Call, second: Call) -> bool:
    """Make the second call, which came later, part of the first; False if they stay two.

    Only writes of one leader to one state, which has not been sent yet.
    """
    one, other = first.item, second.item
    if not isinstance(one, write_share_group_state.PartitionData) or not isinstance(
        other, write_share_group_state.PartitionData
    ):
        return False
    if (one.state_epoch, one.leader_epoch) != (other.state_epoch, other.leader_epoch):
        return False
    if len(one.state_batches) + len(other.state_batches) > MERGED_BATCHES_MAX:
        return False
    one.state_batches += other.state_batches
    if other.start_offset != UNINITIALIZED_OFFSET:
        one.start_offset = other.start_offset
    one.delivery_complete_count = other.delivery_complete_count
    first.answers += second.answers
    return True
