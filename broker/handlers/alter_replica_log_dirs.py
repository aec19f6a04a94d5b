"""AlterReplicaLogDirs (API key 34), versions 1 to 2.

Behaviour:
- Each partition is moved to the log directory under which it is listed: a copy is made there while
  it serves, then replaces the log. The answer comes at once; DescribeLogDirs shows the copy.
- The directory where it is already ends a move under way. Another one begins a new move.
- LOG_DIR_NOT_FOUND: `log.dirs` has no such directory. KAFKA_STORAGE_ERROR: it is offline or
  missing, or the one the partition is in.
  REPLICA_NOT_AVAILABLE: the partition is not served. UNKNOWN_TOPIC_OR_PARTITION: there is none.
  Of both, one that has no log here yet gets it in that directory when it comes; until then the
  request is to be repeated, as `kafka-reassign-partitions.sh` does.
  INVALID_TOPIC_EXCEPTION: its name is too long for a copy's directory.
- For a partition listed twice the last directory wins.

Versions:
- 1  KIP-113
- 2  flexible
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_REPLICA_LOG_DIRS
VERSIONS = (1, 2)


def handle(
    services: "Services", context: "RequestContext", request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Start each move by itself."""
    wanted: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            paths = wanted.setdefault(topic.name, {})
            paths.update(dict.fromkeys(topic.partitions, directory.path))
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index,
                        error_code=int(_move(services, TopicPartition(name, index), path)),
                    )
                    for index, path in paths.items()
                ],
            )
            for name, paths in wanted.items()
        ]
    )


def _move(services: "Services", topic_partition: TopicPartition, path: str) -> ErrorCode:
    assert services.log_mover is not None
    try:
        services.log_mover.move(topic_partition, path)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
