"""The five requests for share group state, as a broker sends them (API keys 83 to 87).

They differ in name only: a group, topics by id, partitions, and a result for each. One `StateApi`
a request says how it is made of items and what its results are.

Source: KIP-932; Kafka, PersisterStateManager.java (RequestCoordinator handlers).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from broker.coordinator.peer_batches import code_of_peer
from broker.coordinator.persister import ShareState, ShareSummary
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


class StateApi(NamedTuple):
    """One of the five.

    Attributes:
        version: That is sent.
        request: Makes the request of a group and its topics.
        topic: Makes a topic of its id and items.
        value: What a result without an error carries.
    """

    version: int
    request: Callable[..., Message]
    topic: Callable[..., Message]
    value: Callable[[Any], object]


def _nothing(_result: object) -> None:
    return None


def _state(result: read_share_group_state.PartitionResult) -> ShareState:
    return ShareState(
        result.state_epoch,
        result.start_offset,
        tuple(
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
            for b in result.state_batches
        ),
    )


def _summary(result: read_share_group_state_summary.PartitionResult) -> ShareSummary:
    return ShareSummary(
        result.state_epoch,
        result.leader_epoch,
        result.start_offset,
        result.delivery_complete_count,
    )


INITIALIZE: Final = StateApi(
    0,
    initialize_share_group_state.InitializeShareGroupStateRequest,
    initialize_share_group_state.InitializeStateData,
    _nothing,
)
READ: Final = StateApi(
    0,
    read_share_group_state.ReadShareGroupStateRequest,
    read_share_group_state.ReadStateData,
    _state,
)
WRITE: Final = StateApi(
    1,
    write_share_group_state.WriteShareGroupStateRequest,
    write_share_group_state.WriteStateData,
    _nothing,
)
DELETE: Final = StateApi(
    0,
    delete_share_group_state.DeleteShareGroupStateRequest,
    delete_share_group_state.DeleteStateData,
    _nothing,
)
READ_SUMMARY: Final = StateApi(
    1,
    read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
    read_share_group_state_summary.ReadStateSummaryData,
    _summary,
)

Result = tuple[ErrorCode, object]
"""A partition's error code, and its value where that is NONE."""


def request_of(api: StateApi, group_id: str, items: Sequence[tuple[UUID, Message]]) -> Message:
    """The request for a group's items, each with its topic."""
    topics: dict[UUID, list[Message]] = {}
    for topic_id, item in items:
        topics.setdefault(topic_id, []).append(item)
    return api.request(
        group_id=group_id,
        topics=[
            api.topic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()
        ],
    )


def results_of(api: StateApi, answer: Any) -> dict[tuple[UUID, int], Result]:
    """The results of an answer, by topic id and partition."""
    results: dict[tuple[UUID, int], Result] = {}
    for topic in answer.results:
        for result in topic.partitions:
            code = code_of_peer(result.error_code)
            value = api.value(result) if code is ErrorCode.NONE else None
            results[topic.topic_id, result.partition] = (code, value)
    return results
