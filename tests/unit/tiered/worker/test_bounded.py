"""Lanes: each bounded, none holds up another."""

import asyncio

import pytest

from config.tier import TierConfig
from tests.fakes.tiered.scripted_tier import FakeTier
from tests.unit.tiered.worker.turns import FACTS, FILES, SEGMENT, until
from tiered.tier import SideFile
from tiered.worker.bounded import LANE_BYTES_MAX, MIB, BoundedTier

SETTINGS = TierConfig(
    remote_log_manager_copier_thread_pool_size=1,
    remote_log_reader_threads=2,
    rsm_config_storage_s3_multipart_upload_part_size=8 * MIB,
    tier_s3_parts_in_flight=2,
    rsm_config_chunk_size=4 * MIB,
)


async def test_a_lane_that_is_full_holds_up_its_own_calls_only() -> None:
    tier = FakeTier()
    bounded = BoundedTier(tier, SETTINGS)
    gate = tier.gate("copy_segment")
    gate.close()
    copies = [asyncio.create_task(bounded.copy_segment(SEGMENT, FILES, FACTS)) for _ in range(2)]
    await until(lambda: gate.waiting == 1)
    assert bounded.statistics()["buffers"]["copying"]["waiting"] == 1
    fetching = tier.gate("fetch_chunk")
    fetching.close()
    fetches = [asyncio.create_task(bounded.fetch_chunk(SEGMENT, "/m", i, "/p")) for i in range(3)]
    await until(lambda: fetching.waiting == 2)
    await bounded.put_object("k", b"v")
    gate.open()
    fetching.open()
    await asyncio.gather(*copies, *fetches)
    buffers = bounded.statistics()["buffers"]
    assert buffers["copying"]["taken_max"] == 24 * MIB
    assert buffers["fetching"]["taken_max"] == 24 * MIB
    assert [lane["taken"] for lane in buffers.values()] == [0, 0, 0]


async def test_settings_of_any_size_leave_room_for_one_call_and_not_for_everything() -> None:
    huge = SETTINGS.with_values(
        {"remote_log_manager_copier_thread_pool_size": 1000, "remote_log_reader_threads": 1000}
    )
    sizes = [
        lane["size"] for lane in BoundedTier(FakeTier(), huge).statistics()["buffers"].values()
    ]
    assert max(sizes) == LANE_BYTES_MAX
    large = SETTINGS.with_values({"rsm_config_chunk_size": 256 * MIB})
    bounded = BoundedTier(FakeTier(), large)
    await asyncio.wait_for(bounded.fetch_indexes(SEGMENT, "/d", "s"), 30)


async def test_failure_gives_back() -> None:
    tier = FakeTier()
    tier.failures["get_object"] = RuntimeError("x")
    bounded = BoundedTier(tier, SETTINGS)
    for _ in range(5):
        with pytest.raises(RuntimeError):
            await bounded.get_object("k")
    assert bounded.statistics()["buffers"]["objects"]["taken"] == 0


async def test_the_rest_passes_through() -> None:
    tier = FakeTier()
    bounded = BoundedTier(tier, SETTINGS)
    await bounded.put_object("a", b"1")
    assert await bounded.get_object("a") == b"1"
    assert [found.key for found in (await bounded.list_objects("", None)).objects] == ["a"]
    await bounded.delete_objects(["a"])
    assert await bounded.fetch_side_file(SEGMENT, SideFile.OFFSET) == b"offset"
    await bounded.delete_segment(SEGMENT)
    assert not await bounded.is_complete(SEGMENT)
    assert len(await bounded.verify_segment(SEGMENT)) == 2
    assert await bounded.list_uploads("") == []
    assert bounded.statistics()["fake"] == {"calls": len(tier.calls)}
    methods = [method for method, _ in tier.calls]
    assert len(set(methods)) == len(methods) == 9
    await bounded.close()
    assert tier.closed
