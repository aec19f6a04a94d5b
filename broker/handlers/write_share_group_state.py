"""WriteShareGroupState (API key 85), versions 0 to 1.

Behaviour:
- The leader of a partition changes its records' delivery states; FENCED_LEADER_EPOCH and
  FENCED_STATE_EPOCH for a caller that is out of date.
- NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for a share-partition that is not served here.

Source: KIP-932.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordinator.persister import SharePartitionKey
from broker.share.state.requests import for_each_partition
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

API_KEY = ApiKey.WRITE_SHARE_GROUP_STATE
VERSIONS = (0, 1)


def handle(
    services: "ShareServices", context: "RequestContext", request: WriteShareGroupStateRequest
) -> "WriteShareGroupStateResponse | Answer[WriteShareGroupStateResponse]":
    """Call the share coordinator for each partition."""

    def begin(
        key: SharePartitionKey, wanted: PartitionData, done: Callable[[PartitionResult], None]
    ) -> None:
        services.share_coordinator.write(
            key,
            state_epoch=wanted.state_epoch,
            leader_epoch=wanted.leader_epoch,
            start_offset=wanted.start_offset,
            delivery_complete_count=wanted.delivery_complete_count,
            batches=[
                StateBatch(
                    batch.first_offset,
                    batch.last_offset,
                    batch.delivery_state,
                    batch.delivery_count,
                )
                for batch in wanted.state_batches
            ],
            done=lambda code: done(_result(key.partition, code)),
            wait=False,
        )

    return for_each_partition(
        services,
        context,
        request,
        begin,
        refuse=_result,
        response=lambda found: WriteShareGroupStateResponse(
            results=[
                WriteStateResult(topic_id=topic_id, partitions=results)
                for topic_id, results in found
            ]
        ),
    )


def _result(partition: int, code: ErrorCode) -> PartitionResult:
    return PartitionResult(
        partition=partition,
        error_code=code,
        error_message=None if code is ErrorCode.NONE else code.message,
    )
