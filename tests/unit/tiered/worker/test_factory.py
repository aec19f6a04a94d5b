"""The settings say where the tier's work is done."""

from pathlib import Path

from config.tier import TierConfig
from tests.fakes.timer import ManualTimer
from tiered.worker.client import TierClient
from tiered.worker.factory import open_tier
from tiered.worker.inline import InlineTier


async def test_process_or_inline(tmp_path: Path) -> None:
    timer = ManualTimer()
    settings = TierConfig(rsm_config_storage_root=str(tmp_path))
    inline = open_tier(
        settings.with_values({"tier_worker": "inline"}), timer=timer, clock=timer.clock
    )
    assert isinstance(inline, InlineTier)
    await inline.put_object("k", b"v")
    assert await inline.get_object("k") == b"v"
    await inline.close()
    process = open_tier(settings, timer=timer, clock=timer.clock)
    assert isinstance(process, TierClient)
    await process.close()
