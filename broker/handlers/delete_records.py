"""DeleteRecords (API key 21), versions 0 to 2.

Behaviour:
- Raises a partition's log start offset to the offset given, -1 for its high watermark; never lowers
  it. Answers with the current log start offset. Segments wholly below it are deleted later.
- Above the high watermark, or below 0: OFFSET_OUT_OF_RANGE. Topics that are compacted and not
  deleted from: POLICY_VIOLATION. Internal topics: INVALID_TOPIC_EXCEPTION. `__remote_log_metadata`
  while a topic has remote storage: POLICY_VIOLATION.
- There is no other replica to wait for. For a tiered partition the bucket is updated first:
  `broker.remote.deleted_records`; `timeout_ms` may only make that shorter.

Versions:
- 0  KIP-107
- 2  flexible
"""

import asyncio
from math import inf
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import INTERNAL_TOPICS
from broker.controller.topics.tiered_topics import check_metadata_stays
from broker.runtime.errors import ApiError, code_of
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.partition import Partition
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_RECORDS
VERSIONS = (0, 2)

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


def handle(
    services: "Services", context: "RequestContext", request: DeleteRecordsRequest
) -> "DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]":
    """Delete each partition's records by itself; for one listed twice the last offset wins."""
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            offsets[partition.partition_index] = partition.offset
    raised: list[Partition] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    _delete(services, name, index, offset, raised)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in wanted.items()
        ]
    )
    remote = services.remote
    tiered = [] if remote is None else [one for one in raised if remote.has_bucket(one)]
    if remote is None or not tiered:
        return response
    return services.lookups.start(_answer(response, remote, tiered, request.timeout_ms))


async def _answer(
    response: DeleteRecordsResponse,
    remote: "RemoteStorage",
    tiered: "list[Partition]",
    timeout_ms: int,
) -> DeleteRecordsResponse:
    await remote.log_starts_raised(tiered, float(timeout_ms) if timeout_ms > 0 else inf)
    return response


def _delete(
    services: "Services", topic: str, index: int, offset: int, raised: "list[Partition]"
) -> DeleteRecordsPartitionResult:
    low_watermark, error = INVALID_LOW_WATERMARK, ErrorCode.NONE
    try:
        low_watermark = _raise_log_start(services, topic, index, offset, raised)
    except (ApiError, StorageError) as failure:
        error = code_of(failure)
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=int(error)
    )


def _raise_log_start(
    services: "Services", topic: str, index: int, offset: int, raised: "list[Partition]"
) -> int:
    if services.controller.image.partition(topic, index) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    check_metadata_stays(services.controller.image, topic, "lose records")
    partition = services.replica_manager.leader_of(topic, index)
    if partition is None:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = partition.log
    if "compact" in log.config.cleanup_policy and "delete" not in log.config.cleanup_policy:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    before = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= before <= log.high_watermark:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if before > log.log_start_offset:
        log.delete_records(before)
    # Also when it was raised before: a retry may follow a lost response.
    raised.append(partition)
    return int(log.log_start_offset)
