"""DeleteShareGroupState (API key 86), version 0.

Behaviour:
- The group coordinator deletes the state of share-partitions; a missing one is no error.
- NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS for a share-partition that is not served here.

Source: KIP-932.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.coordinator.persister import SharePartitionKey
from broker.share.state.requests import for_each_partition
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.share.services import ShareServices

API_KEY = ApiKey.DELETE_SHARE_GROUP_STATE
VERSIONS = (0, 0)


def handle(
    services: "ShareServices", context: "RequestContext", request: DeleteShareGroupStateRequest
) -> "DeleteShareGroupStateResponse | Answer[DeleteShareGroupStateResponse]":
    """Call the share coordinator for each partition."""

    def begin(
        key: SharePartitionKey, wanted: PartitionData, done: Callable[[PartitionResult], None]
    ) -> None:
        services.share_coordinator.delete(
            key,
            lambda code: done(_result(key.partition, code)),
            wait=False,
        )

    return for_each_partition(
        services,
        context,
        request,
        begin,
        refuse=_result,
        response=lambda found: DeleteShareGroupStateResponse(
            results=[
                DeleteStateResult(topic_id=topic_id, partitions=results)
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
