"""The `Tier` that the settings ask for."""

from storage.environment.clock import Clock
from storage.environment.timer import Timer
from tiered.settings import TierSettings
from tiered.tier import Tier
from tiered.worker.client import TierClient
from tiered.worker.process import TierProcesses


def open_tier(settings: TierSettings, *, timer: Timer, clock: Clock) -> Tier:
    """In a process of its own, which starts with its first call, or in this one.

    Call it on the thread that runs the broker's loop (see `tiered.worker.process`). `close` it.

    Raises:
        RemoteStorageError, DiskError: Settings that cannot work; inline only. A process says so
            in its log, and every call raises TierProcessError with the reason.
        ValueError: `worker` is neither "process" nor "inline".
    """
    match settings.worker:
        case "process":
            return TierClient(settings, TierProcesses(), timer=timer, clock=clock)
        case "inline":
            # Cryptography and the object store, which the broker can do without otherwise.
            from tiered.worker.assembly import build_tier
            from tiered.worker.inline import InlineTier

            return InlineTier(build_tier(settings), settings)
    raise ValueError(f"unknown tier.worker: {settings.worker!r}")
