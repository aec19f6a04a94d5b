"""ListOffsets (API key 2), versions 1 to 11.

Behaviour:
- -1: the end offset of the client's isolation level (last stable offset or high watermark). -2: the
  log start. -3: the record with the largest timestamp (KIP-734). A timestamp:
  the first record at or after it; none found is offset -1, timestamp -1, and no error.
- -4: the first offset that is local. -5: the last one that is in remote storage. -6: the first one
  that has yet to be copied there. -1 where that is not known or does not exist (KIP-405, KIP-1005,
  KIP-1023).
- A new leader does not know yet how far its predecessor had committed: until its high watermark has
  reached the log end with which it took over, -1, and times that no committed record has, are
  OFFSET_NOT_AVAILABLE, so that what consumers see never goes back (KIP-207).
- Replicas get the log end for -1. Only the debugging replica, -2, is answered by a follower, with
  the last leader epoch of its log: which of several logs is the longest can be told by it.
- A partition that is listed twice is INVALID_REQUEST, each time.
- Look-ups by time read old index and log pages in a thread, and remote storage for segments that
  are not local; they wait without holding a worker, so that a store that hangs delays no other
  request. Their timeout is `remote.list.offsets.request.timeout.ms`, or the client's if shorter;
  then the answer is REQUEST_TIMED_OUT (KIP-1075). End offsets are answered on the loop.

Versions:
- 2   isolation level                             KIP-98
- 4   fencing by leader epoch                     KIP-320
- 5   OFFSET_NOT_AVAILABLE, before LEADER_NOT_AVAILABLE    KIP-207
- 6   flexible
- 7   -3                                          KIP-734
- 8, 9, 11   -4, -5, -6
- 10  time-out of remote look-ups                 KIP-1075
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError, code_of
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
from tiered.errors import TieredError

if TYPE_CHECKING:
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.partition import Partition
    from broker.requests.request_context import RequestContext
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
DEBUGGING_REPLICA = -2
OFFSET_NOT_AVAILABLE_FROM_VERSION = 5

Answer = ListOffsetsPartitionResponse

LookUp = Callable[[], Awaitable[Answer]]
"""A look-up, started when those before it are done: a request may be cancelled earlier."""


def handle(
    services: "Services", context: "RequestContext", request: ListOffsetsRequest
) -> "ListOffsetsResponse | asyncio.Future[ListOffsetsResponse]":
    """Answer each partition; a Future if any look-up by time is among them."""
    named = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    lookups: list[tuple[Answer, LookUp]] = []
    topics: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        partitions: list[Answer] = []
        for wanted in topic.partitions:
            try:
                if named[topic.name, wanted.partition_index] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                answer, lookup = _partition(services, context, request, topic.name, wanted)
                if lookup is not None:
                    lookups.append((answer, lookup))
            except (ApiError, StorageError) as error:
                answer = _failed(wanted, error)
            partitions.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    response = ListOffsetsResponse(topics=topics)
    if not lookups:
        return response
    return services.lookups.start(_finish(services, request, response, lookups))


async def _finish(
    services: "Services",
    request: ListOffsetsRequest,
    response: ListOffsetsResponse,
    lookups: list[tuple[Answer, LookUp]],
) -> ListOffsetsResponse:
    """Run all look-ups, one after the other, within the timeout, and fill in their results."""
    limit_ms = services.lookups.timeout_ms
    if request.timeout_ms > 0:
        limit_ms = min(limit_ms, request.timeout_ms)
    deadline = asyncio.get_running_loop().time() + limit_ms / 1000
    for answer, lookup in lookups:
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            found = await asyncio.wait_for(lookup(), max(left_s, 0.0))
        except TimeoutError:
            services.lookups.expired += 1
            answer.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            continue
        except (ApiError, StorageError, TieredError) as error:
            answer.error_code = int(code_of(error))
            continue
        answer.timestamp = found.timestamp
        answer.offset = found.offset
        answer.leader_epoch = found.leader_epoch
    return response


def _partition(
    services: "Services",
    context: "RequestContext",
    request: ListOffsetsRequest,
    topic: str,
    wanted: ListOffsetsPartition,
) -> tuple[Answer, LookUp | None]:
    """The response; or one without an offset, and the look-up for it."""
    replicas = services.replica_manager
    find = replicas.replica_of if request.replica_id == DEBUGGING_REPLICA else replicas.leader_of
    partition = find(topic, wanted.partition_index)
    if partition is None:
        raise ApiError(
            replicas.missing_error(topic, wanted.partition_index, wanted.current_leader_epoch)
        )
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
    lagging = None
    if request.replica_id == NO_REPLICA and _is_lagging(partition):
        is_named = context.api_version >= OFFSET_NOT_AVAILABLE_FROM_VERSION
        lagging = ErrorCode.OFFSET_NOT_AVAILABLE if is_named else ErrorCode.LEADER_NOT_AVAILABLE
    if timestamp == LATEST:
        if lagging is not None:
            raise ApiError(lagging)
        found = _found(partition, wanted, -1, end_offset)
        if request.replica_id == DEBUGGING_REPLICA:
            # What it has, whatever epoch it follows in: the controller compares logs by it.
            latest = log.leader_epochs.latest_epoch
            found.leader_epoch = -1 if latest is None else latest
        return found, None
    if timestamp == EARLIEST:
        # What lost settings have left in remote storage is out of reach of a broker without it.
        is_whole = log.remote_storage or services.remote is not None
        offset = log.log_start_offset if is_whole else log.local_log_start_offset
        return _found(partition, wanted, -1, offset), None
    if timestamp == EARLIEST_LOCAL:
        return _found(partition, wanted, -1, log.local_log_start_offset), None
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        if services.remote is None or services.remote.is_settled(partition):
            return _tiered(partition, wanted), None
        # Metadata is being loaded: unknown is not the same as "there is none".
        waiting = partial(_when_settled, services.remote, partition, wanted)
        return _found(partition, wanted, -1, -1), waiting
    client = (context.connection.principal, context.client_id or "")
    lookup = partial(_by_time, services, partition, wanted, end_offset, client, lagging)
    return _found(partition, wanted, -1, -1), lookup


def _is_lagging(partition: "Partition") -> bool:
    """Whether records may be committed that its leader does not know to be."""
    leading = partition.leading
    return leading is not None and partition.log.high_watermark < leading.epoch_start_offset


async def _when_settled(
    remote: "RemoteStorage", partition: "Partition", wanted: ListOffsetsPartition
) -> Answer:
    await remote.settled(partition)
    if partition.gone:
        raise ApiError(partition.gone)
    return _tiered(partition, wanted)


def _tiered(partition: "Partition", wanted: ListOffsetsPartition) -> Answer:
    if wanted.timestamp == LATEST_TIERED:
        log = partition.log
        # Remote storage may have been switched off, and what it has be on its way out.
        highest = log.highest_remote_offset if log.remote_storage else -1
        return _found(partition, wanted, -1, highest)
    return _found(partition, wanted, -1, _pending_upload(partition))


def _pending_upload(partition: "Partition") -> int:
    """First offset that has yet to be copied; -1 if none has been, or it is not known yet."""
    log = partition.log
    if not log.remote_storage:
        return -1
    if log.highest_remote_offset < 0:
        # Local segments were deleted, so some were copied; up to which offset is not known yet.
        is_whole = log.local_log_start_offset == log.log_start_offset
        return int(log.log_start_offset) if is_whole else -1
    return int(max(log.highest_remote_offset + 1, log.log_start_offset))


async def _by_time(
    services: "Services",
    partition: "Partition",
    wanted: ListOffsetsPartition,
    end_offset: int,
    client: tuple[str, str],
    lagging: ErrorCode | None,
) -> Answer:
    """The first record at or after a time; `lagging`: the error if no committed one has it."""
    found = await services.replica_manager.remote.find_timestamp(
        partition,
        None if wanted.timestamp == MAX_TIMESTAMP else wanted.timestamp,
        end_offset,
        client,
    )
    if found is None or found.offset >= end_offset:
        if lagging is not None:
            raise ApiError(lagging)
        return _found(partition, wanted, -1, -1)
    return _found(partition, wanted, found.timestamp, found.offset)


def _failed(wanted: ListOffsetsPartition, error: Exception) -> Answer:
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, error_code=int(code_of(error))
    )


def _found(
    partition: "Partition", wanted: ListOffsetsPartition, timestamp: int, offset: int
) -> Answer:
    """A response; the epoch is that of the offset found, the leader's for the end of the log."""
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
