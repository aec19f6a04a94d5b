"""Factory of the `Tier` that the settings name."""

from config.tier import TierConfig
from storage.environment.clock import Clock
from storage.environment.timer import Timer
from tiered.tier import Tier
from tiered.worker.client import TierClient
from tiered.worker.process import TierProcesses


def open_tier(settings: TierConfig, *, timer: Timer, clock: Clock) -> Tier:
    """In a process of its own, which starts with its first call, or in this one.

    Call it on the thread that runs the broker's loop (see `tiered.worker.process`). `close` it.

    Raises:
        RemoteStorageError, DiskError: Settings that cannot work; inline only. A process says so
            in its log, and every call raises TierProcessError with the reason.
    """
    if settings.tier_worker == "process":
        return TierClient(settings, TierProcesses(), timer=timer, clock=clock)
    # Cryptography and the object store, which the broker can do without otherwise.
    from tiered.worker.assembly import build_tier
    from tiered.worker.inline import InlineTier

    return InlineTier(build_tier(settings), settings)
