"""ReadShareGroupStateSummary (API key 87), versions 0 to 1.

Behaviour:
- Start offset and epochs of share-partitions, for descriptions; the start offset of an
  uninitialised one is -1.
- NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for a share-partition that is not served here.

Source: KIP-932.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordinator.persister import SharePartitionKey, ShareSummary
from broker.share.state.requests import for_each_partition
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

    def begin(
        key: SharePartitionKey, wanted: PartitionData, done: Callable[[PartitionResult], None]
    ) -> None:
        services.share_coordinator.read_summary(
            key,
            lambda code, summary: done(_result(key.partition, code, summary)),
            wait=False,
        )

    return for_each_partition(
        services,
        context,
        request,
        begin,
        refuse=_result,
        response=lambda found: ReadShareGroupStateSummaryResponse(
            results=[
                ReadStateSummaryResult(topic_id=topic_id, partitions=results)
                for topic_id, results in found
            ]
        ),
    )


def _result(
    partition: int, code: ErrorCode, summary: ShareSummary | None = None
) -> PartitionResult:
    if summary is None:
        return PartitionResult(partition=partition, error_code=code, error_message=code.message)
    return PartitionResult(
        partition=partition,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )
