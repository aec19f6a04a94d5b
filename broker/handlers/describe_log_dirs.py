"""DescribeLogDirs (API key 35), versions 1 to 4.

Behaviour:
- One result per log directory; a directory that is offline is KAFKA_STORAGE_ERROR and tells nothing
  else. Topics null: every partition; otherwise those asked for, where they are found.
- The size is that of the partition's segments. The lag is 0: the log is its own leader's, and none
  is being moved from one directory to another.
- Total and usable bytes are those of the volume the directory is on, read in a thread.

Versions:
- 1  KIP-113
- 2  flexible
- 3  error code at the top                       KIP-784
- 4  bytes of the volume                         KIP-827
"""

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.request import RequestContext
    from broker.services import Services
    from storage.log import Log

API_KEY = ApiKey.DESCRIBE_LOG_DIRS
VERSIONS = (1, 4)

UNKNOWN_SPACE = (-1, -1)


async def handle(
    services: "Services", context: "RequestContext", request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe each directory by itself."""
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = []
    for directory in services.log_manager.directories:
        if not directory.is_online:
            results.append(
                DescribeLogDirsResult(
                    error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=directory.path
                )
            )
            continue
        total_bytes, usable_bytes = UNKNOWN_SPACE
        if context.api_version >= 4:
            with contextlib.suppress(DiskError):
                total_bytes, usable_bytes = await services.disk.run(directory.volume)
        results.append(
            DescribeLogDirsResult(
                error_code=int(ErrorCode.NONE),
                log_dir=directory.path,
                topics=_topics(services.log_manager.logs_in(directory), wanted),
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
            )
        )
    return DescribeLogDirsResponse(error_code=int(ErrorCode.NONE), results=results)


def _topics(
    logs: "Iterable[Log]", wanted: set[tuple[str, int]] | None
) -> list[DescribeLogDirsTopic]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in logs:
        topic, index = log.topic_partition
        if wanted is not None and (topic, index) not in wanted:
            continue
        by_topic.setdefault(topic, []).append(
            DescribeLogDirsPartition(
                partition_index=index, partition_size=log.size(), offset_lag=0, is_future_key=False
            )
        )
    return [
        DescribeLogDirsTopic(name=name, partitions=partitions)
        for name, partitions in by_topic.items()
    ]
