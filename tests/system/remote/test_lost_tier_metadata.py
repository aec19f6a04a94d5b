"""What remote storage holds outlives the loss of `__remote_log_metadata`, or of a part of it.

Every object is counted before and after, with a collector that is on its way all the time and
gives no grace.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.controller.images.metadata_records import (
    ConfigResource,
    ResourceType,
    config_key,
    encode_config,
)
from broker.controller.store.metadata_store import Delete, Put
from broker.controller.store.store_writer import Unit
from cli import main as command
from protocol.error_codes import ErrorCode
from protocol.messages import alter_configs as old
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until
from tiered.errors import StoreUnavailableError

REMOTE: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "tier_worker": "inline",
    "tier_gc_interval_ms": 30,
    "tier_gc_grace_ms": 0,
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_ms": 1,
    "file_delete_delay_ms": 0,
}
METADATA = "__remote_log_metadata"
RECORDS = 80
PASSES = 5
"""Of the collector, before it counts as harmless."""


def value(number: int) -> bytes:
    return b"%06d" % number * 20_000


def history(data: Path) -> dict[str, int]:
    """Objects of segments by name, and their sizes."""
    found: dict[str, int] = {}
    for folder, _, names in os.walk(data / "varve-objects"):
        for name in names:
            path = Path(folder) / name
            with suppress(FileNotFoundError):  # removed meanwhile
                if path.suffix in (".log", ".indexes", ".rsm-manifest"):
                    found[str(path.relative_to(data))] = path.stat().st_size
    return found


def is_copied(node: Node, topic: str = "t") -> bool:
    """All of it, and nothing but the active segment is here still."""
    partition = node.broker.replicas.replica_of(topic, 0)
    assert partition is not None
    log = partition.log
    return log.highest_remote_offset == log.log_end_offset - 1 and not log.size()


async def copied(start_node: StartNode, **settings: object) -> Node:
    """A broker whose topic "t" is all in remote storage, and nowhere else."""
    node = await start_node(**REMOTE, **settings)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    for number in range(RECORDS):
        await client.produce("t", value(number))
    await until(lambda: is_copied(node))
    return node


async def collected(node: Node, passes: int = PASSES) -> None:
    """The collector has gone over the bucket some more times."""
    remote = node.broker.remote
    assert remote is not None
    await until(lambda: remote.manager is not None)
    manager = remote.manager
    assert manager is not None
    before = manager.scrubber.runs
    await until(lambda: manager.scrubber.runs >= before + passes)


def lose_topic(data: Path) -> None:
    """All that told what is in remote storage, and the snapshots of it."""
    for path in data.glob(f"{METADATA}-*"):
        shutil.rmtree(path)
    shutil.rmtree(data / "varve-remote-metadata", ignore_errors=True)


def lose_topic_but_not_its_snapshots(data: Path) -> None:
    for path in data.glob(f"{METADATA}-*"):
        shutil.rmtree(path)


def lose_topic_and_checkpoints(data: Path) -> None:
    lose_topic(data)
    (data / "log-start-offset-checkpoint").unlink()


def lose_topic_and_epochs(data: Path) -> None:
    lose_topic(data)
    (data / "t-0" / "leader-epoch-checkpoint").unlink()


async def read_all(client: Client, start: int, end: int) -> list[bytes | None]:
    """However slow the machine: an empty answer is asked again."""
    values: list[bytes | None] = []
    async with asyncio.timeout(60):
        while start < end:
            read = await client.fetch("t", start)
            assert not read.error
            values += [record.value for record in read.records if record.offset >= start]
            start = read.records[-1].offset + 1 if read.records else start
    return values


async def read_some(client: Client, offset: int) -> tuple[int, list[bytes | None]]:
    """What one fetch says: its error, and the values."""
    read = await client.fetch("t", offset)
    return read.error, [record.value for record in read.records if record.offset >= offset]


@pytest.mark.parametrize(
    "lose",
    [lose_topic, lose_topic_and_checkpoints, lose_topic_and_epochs],
    ids=lambda f: f.__name__,
)
async def test_a_lost_metadata_topic_costs_no_object(
    start_node: StartNode, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    """The log waits; consumers are not sent away; two starts change nothing."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    assert len(before) > 20
    await node.stop()
    lose(data)
    for _ in range(2):
        node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
        await collected(node)
        assert history(data) == before
        client = await node.client()
        assert await client.offset("t", -2) == 0, "the log start did not go up"
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
        assert await client.produce("t", value(1000)) >= RECORDS
        status, text = await node.page("/readyz")
        assert status == 200
        assert "varve tier rebuild-metadata" in text
        await node.stop()
        checkpoint = (data / "log-start-offset-checkpoint").read_text()
        assert "t 0" not in checkpoint
    assert history(data) == before


async def alter(client: Client, topic: str, **configs: str | None) -> tuple[int, str]:
    """IncrementalAlterConfigs, None for "delete": the error and its text."""
    changes = [
        AlterableConfig(
            name=key.replace("_", "."), config_operation=0 if text is not None else 1, value=text
        )
        for key, text in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=changes)
    (answer,) = (await client.call(IncrementalAlterConfigsRequest(resources=[resource]))).responses
    return answer.error_code, answer.error_message or ""


async def replace_configs(client: Client, topic: str, **configs: str) -> int:
    """AlterConfigs, which replaces all."""
    changes = [
        old.AlterableConfig(name=key.replace("_", "."), value=text) for key, text in configs.items()
    ]
    resource = old.AlterConfigsResource(resource_type=2, resource_name=topic, configs=changes)
    (answer,) = (await client.call(old.AlterConfigsRequest(resources=[resource]))).responses
    return int(answer.error_code)


async def delete_topic(client: Client, topic: str) -> tuple[int, str]:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000)
    (answer,) = (await client.call(request)).responses
    return answer.error_code, answer.error_message or ""


async def test_the_metadata_topic_cannot_be_taken_away(
    start_node: StartNode, tmp_path: Path
) -> None:
    """While any topic has anything in remote storage; each refusal says why."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    client = await node.client()
    code, text = await delete_topic(client, METADATA)
    assert (code, "1: t" in text) == (ErrorCode.POLICY_VIOLATION, True)
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=METADATA, count=9)], timeout_ms=30_000
    )
    (answer,) = (await client.call(request)).results
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    for index in range(3):
        offsets = [DeleteRecordsPartition(partition_index=index, offset=-1)]
        topics = [DeleteRecordsTopic(name=METADATA, partitions=offsets)]
        deleted = await client.call(DeleteRecordsRequest(topics=topics, timeout_ms=30_000))
        assert deleted.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
    for changes in (
        {"retention_ms": "1"},
        {"retention_ms": None},
        {"retention_bytes": "1"},
        {"cleanup_policy": "compact"},
        {"cleanup_policy": "compact,delete"},
        {"flush_messages": "100"},
        {"remote_storage_enable": "true"},
    ):
        code, text = await alter(client, METADATA, **changes)
        assert (code, METADATA in text) == (ErrorCode.INVALID_CONFIG, True), changes
    assert await replace_configs(client, METADATA, segment_bytes="1048576") != ErrorCode.NONE
    assert await alter(client, METADATA, segment_ms="60000") == (ErrorCode.NONE, "")
    await collected(node)
    assert history(data) == before
    values = [record.value for record in await client.read_all("t")]
    assert values == [value(number) for number in range(RECORDS)]

    await client.delete_topic("t")
    await until(lambda: not history(data))
    controller = node.broker.controller
    assert controller is not None
    await until(lambda: not controller.image.deleted_topics)
    assert (await delete_topic(client, METADATA))[0] == ErrorCode.NONE


@pytest.mark.parametrize("topic", [METADATA, "__consumer_offsets", "__share_group_state"])
async def test_the_brokers_own_topics_are_never_tiered(start_node: StartNode, topic: str) -> None:
    node = await start_node(**REMOTE)
    client = await node.client()
    configs = [
        CreatableTopicConfig(name="remote.storage.enable", value="true"),
        CreatableTopicConfig(name="cleanup.policy", value="delete"),
    ]
    new = CreatableTopic(name=topic, num_partitions=3, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=[new], timeout_ms=30_000)
    (answer,) = (await client.call(request)).topics
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert topic in (answer.error_message or "")
    await client.create_topic(topic, 3, cleanup_policy="delete")
    code, text = await alter(client, topic, remote_storage_enable="true")
    assert (code, topic in text) == (ErrorCode.INVALID_CONFIG, True)
    assert await replace_configs(client, topic, remote_storage_enable="true") != ErrorCode.NONE


async def test_an_override_that_stands_on_the_metadata_topic_is_ignored(
    start_node: StartNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An earlier release took it, and then nothing of any history could be read."""
    data = tmp_path / "data"
    node = await copied(start_node)
    controller = node.broker.controller
    assert controller is not None
    resource = ConfigResource(ResourceType.TOPIC, METADATA)
    overrides = dict(controller.image.topics[METADATA].overrides) | {
        "remote.storage.enable": "true"
    }
    put = Put(config_key(resource), encode_config(overrides))
    await controller.changes.run(controller.changes.commit([Unit(compare=(), operations=(put,))]))
    before = history(data)
    await node.stop()
    node = await start_node(**REMOTE)
    await collected(node)
    client = await node.client()
    values = [record.value for record in await client.read_all("t")]
    assert values == [value(number) for number in range(RECORDS)]
    assert history(data) == before
    told = [line for line in caplog.messages if "has no effect" in line]
    assert len(told) == 1


async def left_tiering(node: Node, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Remote storage is switched off while the bucket is away; then the override is removed."""
    client = await node.client()
    remote = node.broker.remote
    assert remote is not None
    assert remote.manager is not None
    failed = asyncio.Event()

    async def failing(*_: object) -> None:
        failed.set()
        raise StoreUnavailableError("the bucket is away")

    monkeypatch.setattr(remote.tier, "delete_segment", failing)
    await client.alter_topic(
        "t", remote_storage_enable="false", remote_log_delete_on_disable="true"
    )
    await asyncio.wait_for(failed.wait(), 30)
    code, text = await alter(client, "t", remote_log_delete_on_disable=None)
    assert code == ErrorCode.NONE, text
    return client


@pytest.mark.parametrize("then", ["goes on", "restart", "deleted", "deleted after a restart"])
async def test_what_a_topic_left_behind_in_remote_storage_goes(
    start_node: StartNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The purge was backing off when the override was removed: the metadata knows what is left."""
    data = tmp_path / "data"
    node = await copied(start_node)
    with monkeypatch.context() as patch:
        client = await left_tiering(node, patch)
        assert history(data)
        if "restart" in then:
            await node.stop()
    if "restart" in then:
        node = await start_node(**REMOTE)
        client = await node.client()
    if "deleted" in then:
        await client.delete_topic("t")
    await until(lambda: not history(data))


async def test_settings_that_are_lost_remove_no_history(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Nobody said that what the topic has there may go: it only looks as if it were not tiered."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    controller = node.broker.controller
    assert controller is not None
    resource = ConfigResource(ResourceType.TOPIC, "t")
    delete = Delete(config_key(resource))
    await controller.changes.run(
        controller.changes.commit([Unit(compare=(), operations=(delete,))])
    )
    for _ in range(2):
        await until(partial(node.page_has, "/readyz", "remote.log.delete.on.disable"))
        await collected(node)
        assert history(data) == before
        await node.stop()
        node = await start_node(**REMOTE)
    client = await node.client()
    await client.alter_topic("t", remote_log_delete_on_disable="true")
    await until(lambda: not history(data))


@pytest.mark.parametrize("starts", [1, 2])
async def test_settings_that_were_lost_serve_all_of_it_when_they_are_back(
    start_node: StartNode, tmp_path: Path, starts: int
) -> None:
    """Starts without them in between are no word of an operator: the log keeps its beginning."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    controller = node.broker.controller
    assert controller is not None
    resource = ConfigResource(ResourceType.TOPIC, "t")
    delete = Delete(config_key(resource))
    await controller.changes.run(
        controller.changes.commit([Unit(compare=(), operations=(delete,))])
    )
    for _ in range(starts):
        await node.stop()
        node = await start_node(**REMOTE)
        await until(partial(node.page_has, "/readyz", "remote.log.delete.on.disable"))
        await collected(node)
    client = await node.client()
    await client.alter_topic("t", **TIERED)
    await collected(node)
    assert history(data) == before
    assert await client.offset("t", -2) == 0
    values = [record.value for record in await client.read_all("t")]
    assert values == [value(number) for number in range(RECORDS)]


def lose_snapshots_and_first_events(data: Path) -> None:
    """As DeleteRecords, or a short retention, would leave the topic."""
    shutil.rmtree(data / "varve-remote-metadata", ignore_errors=True)
    lines = []
    for path in sorted(data.glob(f"{METADATA}-*")):
        (log,) = path.glob("*.log")
        if log.stat().st_size:
            lines.append(f"{METADATA} {path.name.rpartition('-')[2]} {6}")
    checkpoint = data / "log-start-offset-checkpoint"
    checkpoint.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


async def test_what_is_left_of_the_metadata_does_not_move_the_log_start(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Half of it is gone: neither is the other half garbage, nor the new beginning."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    await node.stop()
    lose_snapshots_and_first_events(data)
    for _ in range(2):
        node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
        await collected(node)
        client = await node.client()
        assert await client.offset("t", -2) == 0
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
        assert "rebuild-metadata" in (await node.page("/readyz"))[1]
        metrics = await node.metrics()
        assert metrics.of("varve_remote_unknown_copies") > 0
        assert metrics.of("varve_remote_held_back_partitions") == 1
        await node.stop()
        assert history(data) == before


async def test_a_lost_epoch_checkpoint_costs_no_history(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Lost or damaged: the remote segments know the epochs."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    for content in (None, b"0\n1\n", b"\x00" * 20):
        await node.stop()
        checkpoint = data / "t-0" / "leader-epoch-checkpoint"
        if content is None:
            checkpoint.unlink()
        else:
            checkpoint.write_bytes(content)
        node = await start_node(**REMOTE)
        await collected(node)
        client = await node.client()
        values = [record.value for record in await client.read_all("t")]
        assert values == [value(number) for number in range(RECORDS)]
        assert history(data) == before
        assert (await node.page("/readyz"))[1].strip() == "ready"


async def varve(capsys: pytest.CaptureFixture[str], node: Node, *words: str) -> Any:
    """`varve tier ...` against the broker; (exit status, its document)."""
    address = node.broker.admin_address
    assert address is not None
    capsys.readouterr()
    status = await asyncio.to_thread(command.main, ["tier", *words, "--admin", address, "--json"])
    out, err = capsys.readouterr()
    assert out, err
    return status, json.loads(out)


def extend_topic(data: Path) -> None:
    """The topic has another number of partitions than its events were written for."""
    (data / "varve-remote-metadata" / "partitions").write_text("2\n")


@pytest.mark.parametrize(
    "lose",
    [lose_topic, lose_snapshots_and_first_events, lose_topic_and_epochs, extend_topic],
    ids=lambda f: f.__name__,
)
async def test_the_metadata_is_rebuilt_from_the_manifests(
    start_node: StartNode,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lose: Callable[[Path], None],
) -> None:
    """All of the history is read again; twice does no harm, and a dry run does nothing."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    await node.stop()
    lose(data)
    node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
    await collected(node)
    client = await node.client()
    assert await read_some(client, 0) == (ErrorCode.NONE, [])
    assert history(data) == before
    await until(partial(node.page_has, "/readyz", "rebuild-metadata"))

    if lose is not extend_topic:
        status, told = await varve(capsys, node, "rebuild-metadata", "--dry-run")
        assert (status, told["found"]) == (0, False)
        assert 0 < told["toldSegments"] <= len(before) // 3
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
    status, told = await varve(capsys, node, "rebuild-metadata")
    assert (status, told["found"], told["heldBack"], told["problems"]) == (0, True, {}, [])
    assert told["toldSegments"] + told["knownSegments"] == len(before) // 3
    expected = [value(number) for number in range(RECORDS)]
    assert await read_all(client, 0, RECORDS) == expected
    status, told = await varve(capsys, node, "rebuild-metadata")
    assert (status, told["toldSegments"], told["knownSegments"]) == (0, 0, len(before) // 3)
    await collected(node)
    await until(lambda: not node.broker.local.alerts.all())
    await node.stop()

    node = await start_node(**REMOTE)
    await collected(node)
    client = await node.client()
    for number in range(RECORDS, RECORDS + 20):
        await client.produce("t", value(number))
    await until(partial(is_copied, node))
    expected = [value(number) for number in range(RECORDS + 20)]
    assert await read_all(client, 0, RECORDS + 20) == expected
    assert before.items() <= history(data).items()
    assert node.broker.local.alerts.all() == []


async def test_what_no_manifest_tells_any_more_is_given_up_only_when_somebody_says_so(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    node = await copied(start_node)
    await node.stop()
    lose_topic(data)
    first = min(data.rglob("*.rsm-manifest"))
    first.write_bytes(first.read_bytes().replace(b'"startOffset":0', b'"startOffset":1'))
    before = history(data)
    node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
    client = await node.client()
    for _ in range(2):
        status, told = await varve(capsys, node, "rebuild-metadata")
        assert (status, told["found"], len(told["problems"])) == (1, False, 1)
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
        assert await client.offset("t", -2) == 0
        await collected(node)
        assert history(data) == before
        await node.stop()
        node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
        client = await node.client()
    status, told = await varve(capsys, node, "rebuild-metadata", "--accept-loss")
    assert (told["found"], told["heldBack"]) == (True, {})
    await until(lambda: not node.broker.remote.manager.held_back)  # type: ignore[union-attr]  # open
    partition = node.broker.replicas.replica_of("t", 0)
    assert partition is not None
    await until(lambda: partition.log.log_start_offset > 0)
    start = partition.log.log_start_offset
    assert start < 10
    expected = [value(number) for number in range(start, RECORDS)]
    assert await read_all(client, start, RECORDS) == expected
    await collected(node)
    assert history(data) == before, "the damaged copy is kept still"
