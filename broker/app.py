"""The process of a broker: its event loop, signals, garbage collector, and what it prints at first.

What it is made of, and in which order that starts and stops, is `broker.broker`'s.
"""

import asyncio
import gc
import logging
import sys
from typing import TYPE_CHECKING

from broker.broker import Broker
from broker.runtime.lifeline import Lifeline, Listening
from broker.runtime.logs import configure
from broker.runtime.machine import THREADS_AT_START, can_start_threads
from broker.runtime.startup_errors import StartupError
from broker.runtime.stop_signals import last_ignoring_signals, on_stop_signal
from config.listeners import Endpoint, Listener
from native.library import RECORD_RULES, load_wanted
from native.loader import code_path
from storage.environment.descriptors import raise_descriptor_limit, share_out
from storage.environment.local_filesystem import describe_missing as describe_missing_of_disk
from storage.environment.page_cache import describe_missing as describe_missing_of_cache

if TYPE_CHECKING:
    from config.load import LoadedConfig

LOGGER = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1

LOOK_S = 0.1
"""Between two looks whether a start that is to end waits for what may never come."""

LET_IN_S = 10.0
"""How long the supervisor does not hear that this broker listens while it is not yet let in."""

COLLECT_AFTER = (20_000, 2, 25)
"""Thresholds of the garbage collector: new objects, and collections of the younger generation.

What is freed by its count alone never gets there. A few hundred requests that wait for their answer
are ten thousand objects, which Python's own 700 made it traverse again and again: a fifth of what a
gathered commit costs. Traversing 60,000 takes the loop three milliseconds.
"""

SWITCH_INTERVAL_S = 0.001
"""How long a thread may keep the interpreter from the loop; Python's default is 5 ms."""


def run(loaded: "LoadedConfig", *, lifeline: Lifeline | None = None) -> int:
    """Run a broker until SIGTERM, SIGINT or SIGHUP, or the end of its supervisor.

    Args:
        loaded: The settings.
        lifeline: To the supervisor that has started it; None: there is none.

    Returns:
        The exit status.
    """
    settings = loaded.broker
    configure(
        log_format=settings.log_format,
        level=settings.log_level,
        broker="" if lifeline is None else str(settings.node_id),
    )
    for warning in loaded.warnings:
        LOGGER.warning("%s", warning)
    for lacking in (*describe_missing_of_disk(), *describe_missing_of_cache()):
        LOGGER.warning("this platform has %s", lacking)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        if not can_start_threads():
            raise StartupError(
                f"the system refuses the {THREADS_AT_START} threads that a start needs. Raise the "
                "limit on processes: `ulimit -u`, or pids.max of the cgroup (TasksMax= of systemd, "
                "--pids-limit of docker)"
            )
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(last_ignoring_signals(serve(loaded, lifeline)))
    except StartupError as error:
        sys.stderr.write(f"varve: {error}\n")
        return EXIT_FAILED


def new_loop() -> asyncio.AbstractEventLoop:
    """Uvloop's loop, or asyncio's where uvloop has no build."""
    try:
        import uvloop
    except ImportError:
        LOGGER.warning("uvloop is not installed: requests cost about twice the CPU")
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve(loaded: "LoadedConfig", lifeline: Lifeline | None = None) -> int:
    """Start, wait for a signal or the supervisor's end, stop."""
    descriptors = share_out(raise_descriptor_limit())
    if descriptors.is_low:
        LOGGER.warning("too few file descriptors: %s", descriptors)
    broker = Broker(loaded.broker, descriptors=descriptors)
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    if lifeline is not None:
        lifeline.watch(lambda: _orphaned(stop))
    try:
        if not await _start(broker, stop):
            await broker.stop()
            return EXIT_OK
    except BaseException:
        await broker.stop()
        raise
    LOGGER.info("code %s", code_path().describe())
    LOGGER.info("record walks %s", load_wanted(RECORD_RULES).describe())
    if lifeline is None:
        sys.stdout.write(banner(broker))
        sys.stdout.flush()
    # What lives now lives for good: the collector need not traverse it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    broker.failed.add_done_callback(lambda _: stop.set())
    try:
        if lifeline is not None:
            await _report(broker, lifeline, stop)
        await stop.wait()
    finally:
        LOGGER.info("broker stopping")
        await broker.stop()
    if broker.failed.done() and not broker.failed.cancelled():
        LOGGER.error("broker failed error=%s", broker.failed.result())
        return EXIT_FAILED
    LOGGER.info("broker stopped")
    return EXIT_OK


def _orphaned(stop: asyncio.Event) -> None:
    if not stop.is_set():
        LOGGER.warning("the supervisor has ended, so this broker stops, too")
        stop.set()


async def _report(broker: Broker, lifeline: Lifeline, stop: asyncio.Event) -> None:
    """Report to the supervisor where this broker listens, once the cluster has let it in.

    So that the first topics are spread over all brokers. Recovery may take long: it is not awaited.
    """
    for _ in range(int(LET_IN_S / LOOK_S)):
        if broker.ready or stop.is_set():
            break
        await asyncio.sleep(LOOK_S)
    lifeline.report(
        Listening(broker.cluster_id, tuple(broker.addresses), broker.admin_address or "")
    )


async def _start(broker: Broker, stop: asyncio.Event) -> bool:
    """Start; False: it was waiting for the metadata store, and a signal has ended that."""
    starting = asyncio.ensure_future(broker.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    while not starting.done():
        if broker.is_waiting:
            starting.cancel()
        await asyncio.wait([starting], timeout=LOOK_S)
    if starting.cancelled():
        return False
    await starting
    return True


def banner(broker: Broker) -> str:
    """The lines printed at a start: addresses, and commands to try."""
    listeners = ", ".join(str(Listener(*address)) for address in broker.addresses)
    _, host, port = broker.addresses[0]
    address = str(Endpoint(host or "127.0.0.1", port))
    lines = [
        f"varve {broker.version}  cluster {broker.cluster_id}  node {broker.settings.node_id}",
        f"  listeners  {listeners}",
        f"  data       {', '.join(broker.settings.log_dirs)}",
    ]
    lines.append(f"  code       {code_path().describe()}")
    if broker.remote is not None:
        lines.append(f"  objects    {broker.remote.location}")
    if broker.admin_address:
        lines.append(f"  admin      http://{broker.admin_address}/metrics")
    if broker.local.descriptors.is_low:
        lines.append(f"  limit      {broker.local.descriptors}")
    lines += [
        f"  try        echo hello | kcat -b {address} -t first -P",
        f"             kcat -b {address} -t first -C -o beginning -e",
        f'  python     KafkaProducer(bootstrap_servers="{address}").send("first", b"hello").get()',
        "",
    ]
    return "\n".join(lines)
