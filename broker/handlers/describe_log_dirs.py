"""DescribeLogDirs (API key 35), versions 1 to 4.

Behaviour:
- One result per log directory; one that is offline has KAFKA_STORAGE_ERROR and nothing else.
  Topics null: every partition; otherwise those requested, where they are found.
- The size is that of the partition's segments. The lag is 0: the log is its own leader's. A copy
  being made in the directory (AlterReplicaLogDirs) is listed as a future replica, with its lag.
- With `tier.describe.log.dirs.remote` the bucket is one more directory, `remote://...`, with the
  bytes each partition led here has there (as Redpanda does it); its volume is not known.
- Total and usable bytes are those of the volume the directory is on, read in a thread.

Versions:
- 1  KIP-113
- 2  flexible
- 3  error code at the top                       KIP-784
- 4  bytes of the volume                         KIP-827
"""

import contextlib
from collections.abc import Iterable, Iterator
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
    from broker.requests.request_context import RequestContext
    from broker.services import Services
    from storage.checkpoints.log_directory import LogDirectory

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
                disk = services.disk.of(directory.path)
                total_bytes, usable_bytes, _ = await disk.run(directory.volume)
        results.append(
            DescribeLogDirsResult(
                error_code=int(ErrorCode.NONE),
                log_dir=directory.path,
                topics=_rows(_here(services, directory, wanted)),
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
            )
        )
    remote = services.remote
    if remote is not None and services.settings.tier_describe_log_dirs_remote:
        scheme, _, place = remote.location.partition("://")
        results.append(
            DescribeLogDirsResult(
                error_code=int(ErrorCode.NONE),
                log_dir=f"remote://{place.rstrip('/') if scheme == 's3' else place}",
                topics=_rows(
                    (topic, index, size, None)
                    for topic, index, size in remote.sizes()
                    if wanted is None or (topic, index) in wanted
                ),
                total_bytes=-1,
                usable_bytes=-1,
            )
        )
    return DescribeLogDirsResponse(error_code=int(ErrorCode.NONE), results=results)


Row = tuple[str, int, int, int | None]
"""Topic, partition, bytes, and the lag of a future replica; None: it is none."""


def _here(
    services: "Services", directory: "LogDirectory", wanted: set[tuple[str, int]] | None
) -> Iterator[Row]:
    for log in services.log_manager.logs_in(directory):
        if wanted is None or tuple(log.topic_partition) in wanted:
            yield (*log.topic_partition, log.size(), None)
    if services.log_mover is not None:
        for copy in services.log_mover.futures_in(directory):
            if wanted is None or tuple(copy.topic_partition) in wanted:
                yield (*copy.topic_partition, copy.size_bytes, copy.offset_lag)


def _rows(sizes: Iterable[Row]) -> list[DescribeLogDirsTopic]:
    """Convert rows for the response."""
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for topic, index, size, lag in sizes:
        by_topic.setdefault(topic, []).append(
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=size,
                offset_lag=lag or 0,
                is_future_key=lag is not None,
            )
        )
    return [
        DescribeLogDirsTopic(name=name, partitions=partitions)
        for name, partitions in by_topic.items()
    ]
