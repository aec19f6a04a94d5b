"""ReadShareGroupState (API key 84), version 0.

Behaviour:
- The leader of a partition reads its state: leaders of earlier epochs are fenced from then on.
- NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for a share-partition that is not served here.

Source: KIP-932.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordinator.persister import SharePartitionKey, ShareState
from broker.share.state.requests import for_each_partition
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

API_KEY = ApiKey.READ_SHARE_GROUP_STATE
VERSIONS = (0, 0)


def handle(
    services: "ShareServices", context: "RequestContext", request: ReadShareGroupStateRequest
) -> "ReadShareGroupStateResponse | Answer[ReadShareGroupStateResponse]":
    """Call the share coordinator for each partition."""

    def begin(
        key: SharePartitionKey, wanted: PartitionData, done: Callable[[PartitionResult], None]
    ) -> None:
        services.share_coordinator.read(
            key,
            wanted.leader_epoch,
            lambda code, state: done(_result(key.partition, code, state)),
            wait=False,
        )

    return for_each_partition(
        services,
        context,
        request,
        begin,
        refuse=_result,
        response=lambda found: ReadShareGroupStateResponse(
            results=[
                ReadStateResult(topic_id=topic_id, partitions=results)
                for topic_id, results in found
            ]
        ),
    )


def _result(partition: int, code: ErrorCode, state: ShareState | None = None) -> PartitionResult:
    if state is None:
        return PartitionResult(partition=partition, error_code=code, error_message=code.message)
    return PartitionResult(
        partition=partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[
            StateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in state.batches
        ],
    )
