"""DescribeLogDirs, in every version."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.handlers import describe_log_dirs
from protocol.error_codes import ErrorCode
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from storage.environment.filesystem import Volume
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


class Directories:
    """Two log directories, the second one offline."""

    def __init__(self, path: str) -> None:
        self.directories = [
            SimpleNamespace(path=path, is_online=True, volume=lambda: self.volume(path)),
            SimpleNamespace(path="/gone", is_online=False),
        ]

    def volume(self, path: str) -> Volume:
        return LocalFilesystem().volume(path)

    def logs_in(self, directory: SimpleNamespace) -> list[SimpleNamespace]:
        assert directory.is_online
        return [
            SimpleNamespace(topic_partition=TopicPartition(topic, index), size=lambda s=size: s)
            for topic, index, size in (("a", 0, 100), ("b", 0, 300), ("a", 1, 200))
        ]


class InlineDisk:
    def of(self, _path: str) -> "InlineDisk":
        return self

    async def run(self, function: Any, *args: Any) -> Any:
        return function(*args)


async def ask(path: str, request: DescribeLogDirsRequest, version: int) -> Any:
    services = services_of(
        await open_controller(), log_manager=Directories(path), disk=InlineDisk()
    )
    return await call(describe_log_dirs, services, request, version)


@pytest.mark.parametrize("version", versions_of(describe_log_dirs))
async def test_all_partitions(version: int, tmp_path: Any) -> None:
    """Sizes per partition, and of the volume from version 4; offline directories as such."""
    response = await ask(str(tmp_path), DescribeLogDirsRequest(topics=None), version)
    here, gone = response.results
    assert response.error_code == ErrorCode.NONE
    assert (here.error_code, here.log_dir) == (0, str(tmp_path))
    assert {
        (t.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
        for t in here.topics
        for p in t.partitions
    } == {("a", 0, 100, 0, False), ("a", 1, 200, 0, False), ("b", 0, 300, 0, False)}
    assert (gone.error_code, gone.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, "/gone")
    assert gone.topics == []
    if version >= 4:
        assert 0 < here.usable_bytes <= here.total_bytes
        assert (gone.total_bytes, gone.usable_bytes) == (-1, -1)


async def test_only_partitions_asked_for(tmp_path: Any) -> None:
    """What is not here is not told; an empty list asks for none."""
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="a", partitions=[1, 7])])
    response = await ask(str(tmp_path), request, 4)
    assert [
        (t.name, [p.partition_index for p in t.partitions]) for t in response.results[0].topics
    ] == [("a", [1])]
    nothing = await ask(str(tmp_path), DescribeLogDirsRequest(topics=[]), 4)
    assert nothing.results[0].topics == []


async def test_volume_that_cannot_be_told() -> None:
    """The rest of the answer stands."""
    response = await ask("/no/such/directory", DescribeLogDirsRequest(topics=None), 4)
    here = response.results[0]
    assert (here.error_code, here.total_bytes, here.usable_bytes) == (0, -1, -1)


@pytest.mark.parametrize(
    ("location", "shown"),
    [("s3://bucket/prefix/", "remote://bucket/prefix"), ("file:///objects", "remote:///objects")],
)
async def test_the_bucket_is_one_more_directory(tmp_path: Any, location: str, shown: str) -> None:
    """Behind a setting: consoles that add directories up would count the tiered bytes."""
    controller = await open_controller()
    remote = SimpleNamespace(location=location, sizes=lambda: [("a", 0, 7000), ("b", 0, 8000)])
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="a", partitions=[0])])
    for enabled in (False, True):
        services = services_of(
            controller,
            log_manager=Directories(str(tmp_path)),
            disk=InlineDisk(),
            remote=remote,
            settings=controller.settings.model_copy(
                update={"tier_describe_log_dirs_remote": enabled}
            ),
        )
        results = (await call(describe_log_dirs, services, request, 4)).results
        assert len(results) == 2 + enabled
    (topic,) = results[-1].topics
    assert (results[-1].log_dir, results[-1].total_bytes) == (shown, -1)
    assert [(p.partition_index, p.partition_size) for p in topic.partitions] == [(0, 7000)]
