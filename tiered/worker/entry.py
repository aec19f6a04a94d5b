"""Life cycle of the tier process: serve one broker over one socket, and end with it.

    socket ──> hello: settings ──> serving ──> end of the socket, or SIGTERM ──> ended

SIGTERM lets calls under way end first: a system that stops all processes of a service at once must
not abort the broker's copies. The end of the socket does not, since no caller waits any more.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from config.tier import TierConfig
from tiered.tier import Tier
from tiered.worker.bounded import BoundedTier
from tiered.worker.connection import MessageConnection
from tiered.worker.log_lines import configure
from tiered.worker.loop_timer import LoopTimer
from tiered.worker.own_process import die_with_parent, leave, settle
from tiered.worker.service import TierService

LOGGER = logging.getLogger(__name__)

FINISH_MS: Final = 5_000.0
"""What calls under way have after SIGTERM."""

CLOSE_MS: Final = 700.0
"""What aborting uploads and closing connections may take once the broker has gone. With the rest
it stays below a second."""

BuildTier = Callable[[TierConfig], Tier]


def main(socket_fd: int, build: BuildTier) -> None:
    """Serve the broker at the other end of `socket_fd`; does not return."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure("INFO")
    status = 1
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_serve_and_leave(socket.socket(fileno=socket_fd), build))
        status = 0
    except Exception:
        LOGGER.exception("tier process failed")
    leave(status)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve_and_leave(sock: socket.socket, build: BuildTier) -> None:
    await serve(sock, build)
    # Before the runner waits for threads, which may wait for a disk or a store.
    leave(0)


async def serve(sock: socket.socket, build: BuildTier) -> None:
    """Serve until the connection ends, then close the tier within CLOSE_MS."""
    loop = asyncio.get_running_loop()

    async def open_tier(hello: Mapping[str, Any]) -> Tier:
        logging.getLogger().setLevel(int(hello["log_level"]))
        settings = TierConfig.model_validate_json(json.dumps(hello["settings"]))
        for missing in settle([int(word) for word in settings.tier_cpu_affinity]):
            LOGGER.warning("tier process settings refused by the system: %s", missing)
        tier = BoundedTier(build(settings), settings)
        # What lives now lives as long as the process: the collector need not scan it again.
        gc.collect()
        gc.freeze()
        return tier

    service = TierService(open_tier, timer=LoopTimer(), pid=os.getpid())
    sock.setblocking(False)
    connection = MessageConnection(service.on_message, service.on_lost)
    service.serve(connection)
    await connection.open(sock)
    finishing: list[asyncio.Task[None]] = []
    loop.add_signal_handler(
        signal.SIGTERM, lambda: finishing.append(loop.create_task(service.finish(FINISH_MS)))
    )
    reason = await service.ended()
    LOGGER.info("tier process stopping reason=%s calls=%d", reason, service.calls_under_way)
    try:
        async with asyncio.timeout(CLOSE_MS / 1000):
            await service.close()
    except TimeoutError:
        LOGGER.warning("tier process stopped before all its calls were finished")
