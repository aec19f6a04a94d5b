"""DeleteRecords (API key 21), versions 0 to 2.

Behaviour:
- Raises a partition's log start offset to the offset given, -1 for its high watermark; never lowers
  it. Answers with the current log start offset. Segments wholly below it are deleted later.
- Above the high watermark, or below 0: OFFSET_OUT_OF_RANGE. Topics that are compacted and not
  deleted from: POLICY_VIOLATION. Internal topics: INVALID_TOPIC_EXCEPTION. `__remote_log_metadata`
  while a topic has remote storage: POLICY_VIOLATION.
- Answers when the leader's log start is on disk, so that no crash of it brings the records back;
  KAFKA_STORAGE_ERROR where it cannot be written, REQUEST_TIMED_OUT where that takes longer than
  `timeout_ms`, unless that is 0 or less; both are tried again at the next checkpoint. Kafka writes
  it once a minute.
- Answers when the log start of every live replica has passed the offset, with the least of them,
  the low watermark; REQUEST_TIMED_OUT after `timeout_ms`, and it goes on all the same. Followers
  get it with their next Fetch; one that is away, when it is back.
- For a tiered partition the bucket is updated, too: `broker.remote.deleted_records`; `timeout_ms`
  may only make that shorter.

Versions:
- 0  KIP-107
- 2  flexible
"""

import asyncio
from math import inf
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import INTERNAL_TOPICS
from broker.controller.topics.tiered_topics import check_metadata_stays
from broker.replicas.delayed_delete_records import (
    INVALID_LOW_WATERMARK,
    DelayedDeleteRecords,
)
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
    from broker.replicas.partition import Partition
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_RECORDS
VERSIONS = (0, 2)

HIGH_WATERMARK = -1

Raised = tuple["Partition", int, DeleteRecordsPartitionResult]
"""(partition, offset below which its records are deleted, its part of the response)."""


def handle(
    services: "Services", context: "RequestContext", request: DeleteRecordsRequest
) -> "DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]":
    """Delete each partition's records by itself; for one listed twice the last offset wins."""
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            offsets[partition.partition_index] = partition.offset
    raised: list[Raised] = []
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
    everywhere = _when_everywhere(services, response, raised, request.timeout_ms)
    if not raised:
        return everywhere
    return services.lookups.start(_answer(services, everywhere, raised, request.timeout_ms))


def _when_everywhere(
    services: "Services", response: DeleteRecordsResponse, raised: "list[Raised]", timeout_ms: int
) -> "DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]":
    """The response, once live followers have raised their log starts too."""
    behind = [one for one in raised if one[0].low_watermark < one[1]]
    if not behind:
        return response
    future: asyncio.Future[DeleteRecordsResponse] = asyncio.get_running_loop().create_future()

    def answer() -> None:
        if not future.done():
            future.set_result(response)

    delayed = DelayedDeleteRecords(answer)
    for partition, offset, result in behind:
        delayed.wait_for(partition, offset, result)
    if not services.replica_manager.delayed_delete_records.park(delayed, timeout_ms):
        delayed.complete(expired=True)
    return future


async def _answer(
    services: "Services",
    everywhere: "DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]",
    raised: "list[Raised]",
    timeout_ms: int,
) -> DeleteRecordsResponse:
    now_s = asyncio.get_running_loop().time
    deadline_s = now_s() + timeout_ms / 1000 if timeout_ms > 0 else inf
    unwritten = ErrorCode.KAFKA_STORAGE_ERROR
    if any(_is_in_memory(one) for one in raised):
        # Those of all requests that have come by then: the next finds it written.
        written = services.disk.run(services.log_manager.checkpoints.write_log_start_offsets)
        try:
            await asyncio.wait_for(written, timeout_ms / 1000 if timeout_ms > 0 else None)
        except TimeoutError:
            unwritten = ErrorCode.REQUEST_TIMED_OUT
    remote = services.remote
    if remote is not None:
        tiered = [one for one, _, _ in raised if remote.has_bucket(one)]
        if tiered:
            await remote.log_starts_raised(tiered, max((deadline_s - now_s()) * 1000, 0.0))
    response = everywhere if isinstance(everywhere, DeleteRecordsResponse) else await everywhere
    for one in raised:
        _, _, result = one
        if not result.error_code and _is_in_memory(one):
            result.error_code = int(unwritten)
            result.low_watermark = INVALID_LOW_WATERMARK
    return response


def _is_in_memory(one: Raised) -> bool:
    partition, before, _ = one
    return partition.log.durable_log_start_offset < before


def _delete(
    services: "Services", topic: str, index: int, offset: int, raised: "list[Raised]"
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=INVALID_LOW_WATERMARK, error_code=0
    )
    try:
        partition, before = _raise_log_start(services, topic, index, offset)
    except (ApiError, StorageError) as failure:
        result.error_code = int(code_of(failure))
    else:
        result.low_watermark = partition.low_watermark
        # Also when it was raised before: a retry may follow a lost response.
        raised.append((partition, before, result))
    return result


def _raise_log_start(
    services: "Services", topic: str, index: int, offset: int
) -> "tuple[Partition, int]":
    """The partition, and the offset below which its records are deleted now."""
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
        # Followers get it with the next answer.
        partition.wake_fetches()
    return partition, before
