"""A broker with remote storage, seen from outside: what the metrics say is what lies there."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from cli.main import main
from protocol.error_codes import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from storage.types.uuid_text import format_uuid
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until
from tiered.errors import StoreUnavailableError

BROKER = 4
LATEST_TIERED = -5

REMOTE: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "tier_worker": "inline",
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_bytes": 1,
    "file_delete_delay_ms": 0,
}
NAMES = "kafka_server_brokertopicmetrics"


async def alter_brokers(client: Client, *, broker: str = "", **values: str) -> None:
    """Set some settings of all brokers, or of one, while they run."""
    configs = [
        AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=configs)
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert [response.error_code for response in answer.responses] == [0], answer


def objects(data: Path, suffix: str) -> list[Path]:
    """In the bucket; `os.walk` bears with folders that are removed meanwhile."""
    return [
        Path(folder) / name
        for folder, _, names in os.walk(data / "varve-objects")
        for name in names
        if name.endswith(suffix)
    ]


def manifests(data: Path) -> list[dict[str, object]]:
    """Of all segments in the bucket."""
    return [json.loads(path.read_bytes()) for path in objects(data, ".rsm-manifest")]


def closed_segments(data: Path) -> list[Path]:
    """Of the topic on local disk, without the active one."""
    return sorted((data / "t-0").glob("*.log"))[:-1]


def leads(node: Node) -> bool:
    """Whether the topic's metadata has been read and its tasks run."""
    remote = node.broker.remote
    return remote is not None and remote.manager is not None and any(remote.manager.gauges())


async def fill(client: Client, records: int = 100) -> None:
    for number in range(records):
        await client.produce("t", b"%06d" % number * 20_000)


async def test_lag_and_size_equal_what_is_in_bucket_and_directory(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Copying is paused for the topic, then for the cluster, then not at all; nothing is lost."""
    node = await start_node(**REMOTE)
    data = tmp_path / "data"
    client = await node.client()
    await client.create_topic("t", 1, **TIERED, tier_copy_paused="true")
    await fill(client)
    await until(lambda: leads(node))
    closed = closed_segments(data)
    assert len(closed) > 5
    metrics = await node.metrics()
    assert metrics.of(f"{NAMES}_remotecopylagsegments", topic="t") == len(closed)
    assert metrics.of(f"{NAMES}_remotecopylagbytes", topic="t") == sum(
        path.stat().st_size for path in closed
    )
    assert manifests(data) == []

    await alter_brokers(client, tier_copy_paused="true")
    await client.alter_topic("t", tier_copy_paused="false")
    metrics = await node.metrics()
    assert metrics.of(f"{NAMES}_remotecopylagsegments", topic="t") == len(closed)
    assert closed_segments(data) == closed

    await alter_brokers(client, tier_copy_paused="false")
    await until(lambda: not closed_segments(data))
    metrics = await node.metrics()
    assert metrics.of(f"{NAMES}_remotecopylagsegments", topic="t") == 0
    assert metrics.of(f"{NAMES}_remotecopylagbytes", topic="t") == 0
    stored = manifests(data)
    assert metrics.of(f"{NAMES}_remotelogmetadatacount", topic="t") == len(stored) == len(closed)
    logs = objects(data, ".log")
    in_bucket = sum(path.stat().st_size for path in logs)
    assert metrics.of(f"{NAMES}_remotelogsizebytes", topic="t") == in_bucket
    assert metrics.of(f"{NAMES}_remotecopybytes_total", topic="t") == in_bucket
    assert metrics.of(f"{NAMES}_remotecopyrequests_total", topic="t") == len(closed)

    offset = 0
    values: list[bytes | None] = []
    while offset < 100:
        read = await client.fetch("t", offset)
        assert not read.error
        values += [record.value for record in read.records if record.offset >= offset]
        offset = read.records[-1].offset + 1
    assert values == [b"%06d" % number * 20_000 for number in range(100)]
    metrics = await node.metrics()
    assert metrics.of(f"{NAMES}_remotefetcherrors_total", topic="t") == 0
    assert metrics.of(f"{NAMES}_remotefetchbytes_total", topic="t") >= in_bucket
    fetched = metrics.of("varve_remote_cache_fetches_total", cache="chunk")

    await client.fetch("t", 0)
    metrics = await node.metrics()
    assert metrics.of("varve_remote_cache_fetches_total", cache="chunk") == fetched


async def test_paused_reading_is_empty_and_no_error(start_node: StartNode, tmp_path: Path) -> None:
    """For the topic and for the cluster; it goes on where it was."""
    node = await start_node(**REMOTE, remote_fetch_max_wait_ms=60)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await fill(client)
    await until(lambda: not closed_segments(tmp_path / "data"))

    await client.alter_topic("t", tier_fetch_paused="true")
    read = await client.fetch("t", 0)
    assert (read.error, read.records) == (0, [])
    await client.alter_topic("t", tier_fetch_paused="false")
    await alter_brokers(client, tier_fetch_paused="true")
    read = await client.fetch("t", 0)
    assert (read.error, read.records) == (0, [])
    await alter_brokers(client, tier_fetch_paused="false")
    await alter_brokers(client, remote_fetch_max_wait_ms="5000")
    read = await client.fetch("t", 0)
    assert read.records[0].offset == 0


async def test_what_a_deleted_topic_had_is_gone(start_node: StartNode, tmp_path: Path) -> None:
    """Also when the broker stops between the deletion and its end."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await fill(client)
    data = tmp_path / "data"
    await until(lambda: not closed_segments(data))
    assert manifests(data)
    await client.delete_topic("t")
    await node.stop()
    again = await start_node(**REMOTE)
    await until(lambda: not objects(data, ".log"))
    assert manifests(data) == []
    await again.stop()


async def test_nothing_runs_before_a_topic_needs_it(start_node: StartNode) -> None:
    """No process, no internal topic: a broker without tiered topics pays nothing."""
    node: Node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1)
    assert node.broker.remote is not None
    assert node.broker.remote.manager is None
    assert node.broker.controller is not None
    assert set(node.broker.controller.image.topics) == {"t"}


async def test_a_flipped_byte_in_the_bucket_is_an_error_never_wrong_data(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Also when the chunk has been read before, and is read where it lies."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await fill(client)
    data = tmp_path / "data"
    await until(lambda: not closed_segments(data))
    first = await client.fetch("t", 0)
    assert not first.error
    damaged = min(objects(data, ".log"))
    content = bytearray(damaged.read_bytes())
    content[500_000] ^= 1
    damaged.write_bytes(content)
    read = await client.fetch("t", 0)
    assert (read.error, read.records) == (ErrorCode.CORRUPT_MESSAGE, [])
    assert node.broker.remote is not None
    assert node.broker.remote.manager is not None
    verifier = node.broker.remote.manager.verifier
    for segment in node.broker.remote.metadata.segments(  # type: ignore[union-attr]  # it is open
        next(node.broker.remote.manager.led_partitions())
    )[:2]:
        await verifier.verify(segment)
    (fault,) = verifier.faults
    assert fault.segment.start_offset == 0
    assert fault.faults[0].position == 0, "where the chunk begins"


async def test_a_topic_deleted_just_before_a_crash_leaves_nothing(
    start_node: StartNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller has forgotten it, and nobody had time to tell the metadata."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await client.create_topic("other", 1, **TIERED)
    await fill(client)
    data = tmp_path / "data"
    await until(lambda: not closed_segments(data))
    monkeypatch.setattr(node.broker.remote, "on_deleted", lambda _partitions: None)
    await client.delete_topic("t")
    await node.stop()
    assert manifests(data)
    again = await start_node(**REMOTE, tier_gc_grace_ms=0)
    await until(lambda: not objects(data, ".log"))
    controller, remote = again.broker.controller, again.broker.remote
    assert controller is not None
    assert remote is not None
    (topic_id,) = controller.image.deleted_topics
    leftovers = remote._deleted_topics
    assert leftovers is not None
    await until(lambda: bool(leftovers.gone_ms))
    # A copy that was cancelled may leave something yet: the note stays until that was looked for.
    late = data / "varve-objects" / f"t-{format_uuid(topic_id)}" / "0"
    late.mkdir(parents=True, exist_ok=True)
    stray = late / f"{0:020}-{format_uuid(UUID(int=5))}.log"
    stray.write_bytes(b"late")
    await asyncio.sleep(0)
    assert controller.image.deleted_topics
    assert remote.manager is not None
    while stray.exists():
        await remote.manager.scrubber.run_once()
    await until(lambda: not controller.image.deleted_topics)


async def test_a_topic_that_is_merely_unknown_keeps_its_history(
    start_node: StartNode, tmp_path: Path
) -> None:
    """The metadata store was made anew: only a deletion that was noted removes."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await client.create_topic("other", 1, **TIERED)
    await fill(client)
    data = tmp_path / "data"
    await until(lambda: not closed_segments(data))
    await node.stop()
    stored = manifests(data)
    for path in data.glob("varve-metadata.sqlite*"):
        path.unlink()
    shutil.rmtree(data / "t-0")
    assert await asyncio.to_thread(main, ["dirs", "adopt", f"--set=log.dirs={data}"]) == 0
    again = await start_node(**REMOTE)
    remote = again.broker.remote
    assert remote is not None
    await until(lambda: remote.metadata is not None and remote.metadata.is_complete)
    for _ in range(3):
        remote._check_leftovers()
    assert manifests(data) == stored != []


async def test_a_replaced_disk_does_not_give_old_records_for_new_offsets(
    start_node: StartNode, tmp_path: Path
) -> None:
    """The log begins anew at offset 0, and its bucket has other records with those offsets."""
    data = tmp_path / "data"
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await fill(client)
    await until(lambda: not closed_segments(data))
    old = len(manifests(data))
    await node.stop()
    shutil.rmtree(data / "t-0")

    node = await start_node(**REMOTE)
    client = await node.client()
    for number in range(60):
        await client.produce("t", b"new%03d" % number * 20_000)
    await until(lambda: len(manifests(data)) > old and not closed_segments(data))
    values = [record.value[:6] for record in await client.read_all("t") if record.value]
    assert values == [b"new%03d" % number for number in range(60)]


async def test_what_is_tiered_is_known_while_copies_fail_and_when_it_is_switched_off(
    start_node: StartNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a start has to wait for the metadata."""
    node = await start_node(**REMOTE)
    data = tmp_path / "data"
    client = await node.client()
    await client.create_topic("t", 1, **TIERED, remote_log_delete_on_disable="true")

    async def latest_tiered() -> int:
        return await asyncio.wait_for(client.offset("t", LATEST_TIERED), 30)

    await fill(client)
    await until(lambda: not closed_segments(data))
    copied = await latest_tiered()
    assert copied > 0

    async def failing(*_: object) -> None:
        raise StoreUnavailableError("the bucket is away")

    remote = node.broker.remote
    assert remote is not None
    manager = remote.manager
    assert manager is not None
    with monkeypatch.context() as patch:
        patch.setattr(remote.tier, "copy_segment", failing)
        await fill(client, 30)
        await until(lambda: manager.counters.of("t").copy_errors > 0)
        await client.alter_topic("t", tier_copy_paused="true")
        await until(lambda: not manager.copies_in_flight)
        assert await latest_tiered() == copied
    await client.alter_topic("t", remote_storage_enable="false")
    await until(lambda: not manifests(data))
    assert await latest_tiered() == -1
