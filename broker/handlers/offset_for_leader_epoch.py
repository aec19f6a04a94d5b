"""OffsetForLeaderEpoch (API key 23), versions 2 to 4.

Behaviour:
- The end offset of a leader epoch: the largest epoch at or below the requested one and the offset
  after its last record; (-1, -1) when no epoch that old is known. Consumers use it to detect a
  truncated log (KIP-320), followers to find where to truncate (KIP-101).
- A leader in doubt tells consumers no end of its log, nor that it knows no such epoch: another may
  have gone on by now. It answers NOT_LEADER_OR_FOLLOWER. Followers fetch, and then it has no doubt.

Versions:
- 3   replica id
- 4   flexible
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError, code_of
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.OFFSET_FOR_LEADER_EPOCH
VERSIONS = (2, 4)


def handle(
    services: "Services", context: "RequestContext", request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look up the end offset of each partition's epoch."""
    topics = []
    for topic in request.topics:
        results = []
        for wanted in topic.partitions:
            result = EpochEndOffset(partition=wanted.partition, leader_epoch=-1, end_offset=-1)
            try:
                partition = services.replica_manager.leader_of(topic.topic, wanted.partition)
                if partition is None:
                    raise ApiError(
                        services.replica_manager.missing_error(
                            topic.topic, wanted.partition, wanted.current_leader_epoch
                        )
                    )
                partition.check_leader_epoch(wanted.current_leader_epoch)
                log = partition.log
                epoch, end_offset = log.reader.end_offset_for_epoch(wanted.leader_epoch)
                if (
                    request.replica_id < 0
                    and (end_offset < 0 or end_offset == log.log_end_offset)
                    and not partition.leads_for_certain
                ):
                    # A consumer would take what it has read at the next leader for truncated.
                    raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                result.leader_epoch, result.end_offset = epoch, end_offset
            except (ApiError, StorageError) as error:
                result.error_code = int(code_of(error))
            results.append(result)
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(topics=topics)
