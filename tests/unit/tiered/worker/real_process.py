"""Real processes under a test: started, waited for without asking again and again."""

import asyncio
import os
import select
from pathlib import Path

from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.timer import Timer
from tiered.worker.client import TierClient
from tiered.worker.loop_timer import LoopTimer
from tiered.worker.process import TierProcesses

FAKE = "tests.fakes.tiered.scripted_tier_process"


def client(
    behaviour: str = "", *, timer: Timer | None = None, module: str = FAKE, drain_ms: float = 50.0
) -> TierClient:
    """For a process around a fake tier."""
    settings = TierConfig(
        rsm_config_storage_s3_bucket_name=behaviour,
        rsm_config_storage_aws_secret_access_key="hush-hush",
    )
    return TierClient(
        settings,
        TierProcesses(module),
        timer=timer or LoopTimer(),
        clock=SystemClock(),
        drain_ms=drain_ms,
    )


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits to be taken away."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(b")")[2].split()[0] in (b"Z", b"X")


async def wait_for_end(pid: int, limit_s: float) -> bool:
    """Whether a process, anybody's child, ends within the limit."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ready, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], limit_s)
        return bool(ready)
    finally:
        os.close(pidfd)
