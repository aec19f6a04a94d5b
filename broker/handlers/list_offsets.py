"""ListOffsets (API key 2), versions 1 to 11.

Behaviour:
- -1: the end, as far as the client's isolation level lets it see (last stable offset or high
  watermark). -2: the log start. -3: the record with the largest timestamp (KIP-734). A timestamp:
  the first record at or after it; none found is offset -1, timestamp -1, and no error.
- -4, the first local offset, is the log start as long as nothing is tiered; -5 and -6, which ask
  for tiered offsets, find none (-1) (KIP-405, KIP-1005, KIP-1023).
- Look-ups by time may read old index and log pages, so they run in a thread; the ends are answered
  on the loop.

Versions:
- 2   isolation level                             KIP-98
- 4   fencing by leader epoch                     KIP-320
- 6   flexible
- 7   -3                                          KIP-734
- 8, 9, 11   -4, -5, -6
- 10  time-out of remote look-ups                 KIP-1075
"""

from typing import TYPE_CHECKING

from broker.errors import ApiError, code_of
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.partition import Partition
    from broker.request import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_OFFSETS
VERSIONS = (1, 11)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
LOWEST_VERSION_OF = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED = 1
NO_REPLICA = -1


async def handle(
    services: "Services", context: "RequestContext", request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Answer every partition asked for."""
    named = [(t.name, p.partition_index) for t in request.topics for p in t.partitions]
    duplicates = {key for key in named if named.count(key) > 1} if len(named) < 1000 else set()
    topics: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        partitions: list[ListOffsetsPartitionResponse] = []
        for wanted in topic.partitions:
            try:
                if (topic.name, wanted.partition_index) in duplicates:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                answer = await _partition(services, context, request, topic.name, wanted)
            except (ApiError, StorageError) as error:
                answer = ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index, error_code=int(code_of(error))
                )
            partitions.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


async def _partition(
    services: "Services",
    context: "RequestContext",
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    partition = services.replica_manager.get_partition(topic, wanted.partition_index)
    if partition is None:
        raise ApiError(services.replica_manager.missing_error(topic, wanted.partition_index))
    partition.check_leader_epoch(wanted.current_leader_epoch)
    timestamp = wanted.timestamp
    if timestamp < 0:
        lowest = LOWEST_VERSION_OF.get(timestamp, 1 if timestamp >= EARLIEST else None)
        if lowest is None or context.api_version < lowest:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    log = partition.log
    if request.replica_id != NO_REPLICA:
        end_offset = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        end_offset = log.last_stable_offset
    else:
        end_offset = log.high_watermark
    if timestamp == LATEST:
        return _found(partition, wanted, -1, end_offset)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _found(partition, wanted, -1, log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _found(partition, wanted, -1, -1)
    if timestamp == MAX_TIMESTAMP:
        found = await services.disk.run(log.max_timestamp_offset)
    else:
        found = await services.disk.run(log.offset_for_timestamp, timestamp, end_offset)
    if found is None or found.offset >= end_offset:
        return _found(partition, wanted, -1, -1)
    return _found(partition, wanted, found.timestamp, found.offset)


def _found(
    partition: "Partition", wanted: ListOffsetsPartition, timestamp: int, offset: int
) -> ListOffsetsPartitionResponse:
    """An answer; the epoch is the one of the offset found, the leader's for the end of the log."""
    epoch = -1
    if offset >= 0:
        found = partition.log.leader_epochs.epoch_for_offset(offset)
        if found is not None:
            epoch = found
        elif offset >= partition.log.log_end_offset:
            epoch = partition.leader_epoch
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=0,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )
