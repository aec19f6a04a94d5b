"""A tier process around `FakeTier`.

    python -m tests.fakes.tiered.scripted_tier_process --socket-fd N

Started as the real one is. The bucket's name says how it behaves:

    refuse      it cannot start
    hold        every copy and every fetch of a chunk hangs
"""

import sys

from config.tier import TierConfig
from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.errors import StoreDeniedError
from tiered.tier import Tier
from tiered.worker.entry import main


def build(settings: TierConfig) -> Tier:
    tier = FakeTier()
    if settings.store.bucket == "refuse":
        raise StoreDeniedError("no such key id")
    if settings.store.bucket == "hold":
        tier.gate("copy_segment").close()
        tier.gate("fetch_chunk").close()
    return tier


if __name__ == "__main__":
    main(int(sys.argv[sys.argv.index("--socket-fd") + 1]), build)
