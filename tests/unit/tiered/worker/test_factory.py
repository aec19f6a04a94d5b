"""The settings say where the tier's work is done."""

from pathlib import Path

import pytest

from tests.fakes.timer import ManualTimer
from tiered.settings import StoreSettings, TierSettings
from tiered.worker.client import TierClient
from tiered.worker.factory import open_tier
from tiered.worker.inline import InlineTier


async def test_process_or_inline(tmp_path: Path) -> None:
    timer = ManualTimer()
    store = StoreSettings(root=str(tmp_path))
    inline = open_tier(TierSettings(store=store, worker="inline"), timer=timer, clock=timer.clock)
    assert isinstance(inline, InlineTier)
    await inline.put_object("k", b"v")
    assert await inline.get_object("k") == b"v"
    await inline.close()
    process = open_tier(TierSettings(store=store), timer=timer, clock=timer.clock)
    assert isinstance(process, TierClient)
    await process.close()


def test_elsewhere_is_refused() -> None:
    timer = ManualTimer()
    with pytest.raises(ValueError, match="'cloud'"):
        open_tier(TierSettings(worker="cloud"), timer=timer, clock=timer.clock)
