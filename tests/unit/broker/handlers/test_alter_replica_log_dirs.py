"""AlterReplicaLogDirs, in every version; `tests/system/disks/test_moving_partitions.py` moves."""

import pytest

from broker.handlers import alter_replica_log_dirs
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


class Mover:
    """Remembers what is asked of it; there is no /nowhere."""

    def __init__(self) -> None:
        self.asked: list[tuple[TopicPartition, str]] = []

    def move(self, topic_partition: TopicPartition, path: str) -> None:
        self.asked.append((topic_partition, path))
        if path == "/nowhere":
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, "no")


@pytest.mark.parametrize("version", versions_of(alter_replica_log_dirs))
async def test_each_partition_has_an_answer(version: int) -> None:
    """By topic; of a partition named twice the last directory counts."""

    def directory(path: str, name: str, *partitions: int) -> AlterReplicaLogDir:
        topic = AlterReplicaLogDirTopic(name=name, partitions=list(partitions))
        return AlterReplicaLogDir(path=path, topics=[topic])

    mover = Mover()
    services = services_of(await open_controller(), log_mover=mover)
    request = AlterReplicaLogDirsRequest(
        dirs=[directory("/a", "t", 0, 1), directory("/b", "t", 1), directory("/nowhere", "u", 0)]
    )
    response = await call(alter_replica_log_dirs, services, request, version)
    assert mover.asked == [
        (TopicPartition("t", 0), "/a"),
        (TopicPartition("t", 1), "/b"),
        (TopicPartition("u", 0), "/nowhere"),
    ]
    assert [
        (topic.topic_name, one.partition_index, one.error_code)
        for topic in response.results
        for one in topic.partitions
    ] == [("t", 0, 0), ("t", 1, 0), ("u", 0, ErrorCode.LOG_DIR_NOT_FOUND)]
