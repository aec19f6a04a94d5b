"""What readers of the bucket are told of deleted records, after a kill, and with it away."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.fakes.network.client import EARLIEST, Client
from tests.fakes.s3.memory_server import Fault, MemoryS3
from tests.system.conftest import until
from tests.system.tiered_faults.child_broker import ChildBroker
from tests.system.tiered_faults.cluster import SEGMENT_BYTES, TIERED, until_copied
from tests.system.tiered_faults.test_kill_points import SETTINGS
from tests.system.tiered_faults.workload import Consumer, Producer
from tiered.format.object_keys import HISTORY_NAME
from tiered.metadata.history import PartitionHistory, decode_history

BROKER_RESOURCE = 4
NEVER_MS = 86_400_000
"""An interval in which nothing is written that nobody waits for."""


@pytest.fixture
def s3() -> Iterator[MemoryS3]:
    with MemoryS3() as server:
        yield server


def settings_of(s3: MemoryS3, **changes: object) -> dict[str, object]:
    return {
        **SETTINGS,
        "tier_worker": "inline",
        "tier_history_interval_ms": NEVER_MS,
        "rsm_config_storage_backend_class": "s3",
        "rsm_config_storage_s3_bucket_name": "tiered",
        "rsm_config_storage_s3_region": "us-east-1",
        "rsm_config_storage_s3_endpoint_url": s3.url,
        "rsm_config_storage_aws_access_key_id": "varve-test",
        "rsm_config_storage_aws_secret_access_key": "varve-test-secret",
        "tier_store_connect_timeout_ms": 500,
        "tier_store_read_timeout_ms": 1_000,
        "tier_store_call_timeout_ms": 3_000,
        **changes,
    }


def told(s3: MemoryS3) -> PartitionHistory | None:
    """The history of topic "t"."""
    for name, found in dict(s3.objects).items():
        if name.startswith("t-") and name.endswith(HISTORY_NAME):
            return decode_history(found.data, name)
    return None


def log_start_told(s3: MemoryS3) -> int:
    history = told(s3)
    return 0 if history is None else history.summary.log_start_offset


async def metric(broker: ChildBroker, name: str) -> float:
    """Of the broker's page for Prometheus."""

    def ask() -> str:
        with urlopen(f"http://{broker.admin_address}/metrics", timeout=30) as page:
            text: bytes = page.read()
        return text.decode()

    for line in (await asyncio.to_thread(ask)).splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


async def filled(broker: ChildBroker) -> Client:
    """A client of a broker that is started, and whose topic "t" is in the bucket."""
    await asyncio.to_thread(broker.start)
    client = await Client.connect("127.0.0.1", broker.port)
    await client.create_topic("t", 1, **TIERED)
    await Producer(client, "t").fill(2 * SEGMENT_BYTES)
    await until_copied(broker.admin_address, "t")
    return client


async def test_records_that_were_said_to_be_deleted_stay_so_after_a_kill(
    tmp_path: Path, s3: MemoryS3
) -> None:
    """At the moment the answer is there: for readers of the bucket, and for the next broker."""
    settings = settings_of(s3)
    broker = ChildBroker(tmp_path, settings)
    client = await filled(broker)
    try:
        assert await client.delete_records("t", 60) == 60
    finally:
        await asyncio.to_thread(broker.kill)
    await client.close()
    assert log_start_told(s3) == 60
    history = told(s3)
    assert history is not None
    assert history.segments[0].start_offset < 60 <= history.segments[0].end_offset
    broker = ChildBroker(tmp_path, settings)
    try:
        await asyncio.to_thread(broker.start)
        client = await Client.connect("127.0.0.1", broker.port)
        await until_copied(broker.admin_address, "t")
        assert await client.offset("t", EARLIEST) == 60
        end = await client.offset("t")
        consumer = Consumer(client, "t", 60)
        assert await consumer.read_to(end, 60), consumer.errors
        assert not consumer.problems
        assert log_start_told(s3) == 60
        await client.close()
    finally:
        assert await asyncio.to_thread(broker.stop) == 0


async def test_a_bucket_that_is_away_does_not_keep_the_answer_back(
    tmp_path: Path, s3: MemoryS3
) -> None:
    """The object follows, also when the broker that gave the answer has died meanwhile."""
    settings = settings_of(s3, tier_history_interval_ms=1_000)
    broker = ChildBroker(tmp_path, settings)
    client = await filled(broker)
    try:
        s3.break_down(Fault.HANG, "other")
        began = time.monotonic()
        assert await client.delete_records("t", 60) == 60
        assert time.monotonic() - began < 20
        assert log_start_told(s3) < 60
        # What was answered is on the broker's disk, and does not wait for the bucket.
        assert await client.offset("t", EARLIEST) == 60
        assert await metric(broker, "varve_remote_history_late_answers_total") == 1
        assert await metric(broker, "varve_remote_history_partitions_behind") == 1
        assert await metric(broker, "varve_remote_history_oldest_behind_seconds") > 0
    finally:
        await asyncio.to_thread(broker.kill)
    await client.close()
    s3.heal()
    broker = ChildBroker(tmp_path, settings)
    try:
        await asyncio.to_thread(broker.start)
        await until(lambda: log_start_told(s3) == 60)
    finally:
        assert await asyncio.to_thread(broker.stop) == 0


async def test_a_clean_stop_tells_all_and_the_interval_changes_at_run_time(
    tmp_path: Path, s3: MemoryS3
) -> None:
    broker = ChildBroker(tmp_path, settings_of(s3, tier_history_interval_ms=0))
    client = await filled(broker)
    try:
        assert await client.delete_records("t", 10) == 10
        assert told(s3) is None
        value = AlterableConfig(name="tier.history.interval.ms", value="200")
        resource = AlterConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="", configs=[value]
        )
        answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0
        await until(lambda: log_start_told(s3) == 10)
        value.value = str(NEVER_MS)
        answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0
        end = await client.offset("t")
        await Producer(client, "t", end).fill(2 * SEGMENT_BYTES)
        await until_copied(broker.admin_address, "t")
        before = told(s3)
        assert before is not None
        await client.close()
    finally:
        assert await asyncio.to_thread(broker.stop) == 0
    after = told(s3)
    assert after is not None
    assert after.summary.end_offset > max(before.summary.end_offset, end - 1)
