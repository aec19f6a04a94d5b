"""The tier in the broker's own process."""

from config.tier import TierConfig
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.worker.inline import InlineTier


async def test_counters_say_where_it_runs() -> None:
    tier = FakeTier()
    inline = InlineTier(tier, TierConfig())
    await inline.put_object("a", b"b")
    statistics = inline.statistics()
    assert statistics["worker"] == {"mode": "inline", "state": "running"}
    assert statistics["fake"] == {"calls": 1}
    assert statistics["buffers"]["objects"]["taken_max"] == 1
