"""ReadShareGroupStateSummary (API key 87), versions 0 to 1.

Behaviour:
- Start offset and epochs of share-partitions, for descriptions; the start offset of an
  uninitialised one is -1.
- NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for a share-partition that is not served here.

Source: KIP-932.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey, ShareSummary
from broker.share.state.requests import for_each_partition, refusal
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

API_KEY = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
VERSIONS = (0, 1)


def handle(
    services: "ShareServices",
    context: "RequestContext",
    request: ReadShareGroupStateSummaryRequest,
) -> "ReadShareGroupStateSummaryResponse | Answer[ReadShareGroupStateSummaryResponse]":
    """Call the share coordinator for each partition."""
    refused = refusal(services, context)

    def begin(
        topic_id: UUID, wanted: PartitionData, done: Callable[[PartitionResult], None]
    ) -> None:
        if refused is not None:
            done(_result(wanted.partition, refused, None))
            return
        services.share_coordinator.read_summary(
            SharePartitionKey(request.group_id, topic_id, wanted.partition),
            lambda code, summary: done(_result(wanted.partition, code, summary)),
            wait=False,
        )

    return for_each_partition(
        request.topics if request.group_id else (),
        begin,
        lambda found: ReadShareGroupStateSummaryResponse(
            results=[
                ReadStateSummaryResult(topic_id=topic_id, partitions=results)
                for topic_id, results in found
            ]
        ),
    )


def _result(partition: int, code: ErrorCode, summary: ShareSummary | None) -> PartitionResult:
    if summary is None:
        return PartitionResult(partition=partition, error_code=code, error_message=code.message)
    return PartitionResult(
        partition=partition,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )
