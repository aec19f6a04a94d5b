"""The process of a supervisor: its loop, signals, and what it prints at first.

SIGTERM, SIGINT or SIGHUP: brokers stop one after the other; a second one: all at once.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

from broker.offline.opening import command_environment
from broker.runtime.logs import configure
from broker.runtime.startup_errors import StartupError
from broker.runtime.stop_signals import last_ignoring_signals, on_stop_signal
from broker.supervisor.admin_pages import AdminPages
from broker.supervisor.broker_process import LocalLaunch
from broker.supervisor.supervisor import Supervisor
from config.listeners import Endpoint, Listener
from config.load import LoadedConfig
from config.version import VERSION
from native.loader import code_path

LOGGER = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1


def run(loaded: LoadedConfig, count: int, *, command: Sequence[str]) -> int:
    """Run several brokers until SIGTERM, SIGINT or SIGHUP.

    Args:
        loaded: Settings of the first.
        count: How many; 0: only their metadata store.
        command: Command line of one broker with these settings.

    Returns:
        The exit status.
    """
    settings = loaded.broker
    configure(log_format=settings.log_format, level=settings.log_level)
    try:
        return asyncio.run(last_ignoring_signals(_serve(loaded, count, command)))
    except StartupError as error:
        sys.stderr.write(f"varve: {error}\n")
        return EXIT_FAILED


async def _serve(loaded: LoadedConfig, count: int, command: Sequence[str]) -> int:
    with command_environment() as environment:
        supervisor = Supervisor(
            loaded,
            count,
            launch=LocalLaunch(command),
            environment=environment,
            machine_name=os.uname().nodename,
        )
        stop = asyncio.Event()

        def signalled() -> None:
            if stop.is_set():
                supervisor.hurry()
            stop.set()

        on_stop_signal(signalled)
        pages = AdminPages(supervisor, loaded.broker.admin_listener, environment.run_blocking)
        try:
            await supervisor.open()
            await pages.listen()
            supervisor.start()
            if await _served(supervisor, stop):
                sys.stdout.write(banner(loaded, supervisor, pages.address))
                sys.stdout.flush()
                await stop.wait()
        finally:
            await supervisor.stop()
            await pages.aclose()
        LOGGER.info("supervisor stopped")
        return EXIT_OK


async def _served(supervisor: Supervisor, stop: asyncio.Event) -> bool:
    """Wait until all serve; False: a signal came first."""
    serving = asyncio.ensure_future(supervisor.served())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not serving.done():
        serving.cancel()
        return False
    await serving
    return True


def banner(loaded: LoadedConfig, supervisor: Supervisor, admin: str) -> str:
    """The lines printed when all brokers serve: addresses, and commands to try."""
    settings = loaded.broker
    served = [(b.plan.node_id, b.listening) for b in supervisor.brokers if b.listening is not None]
    if not served:
        return f"varve {VERSION}  metadata store alone  {supervisor.store_address}\n"
    _, first = served[0]
    count = "1 broker" if len(served) == 1 else f"{len(served)} brokers"
    lines = [f"varve {VERSION}  cluster {first.cluster_id}  {count}"]
    addresses = []
    for node_id, listening in served:
        listeners = ", ".join(str(Listener(*address)) for address in listening.addresses)
        lines.append(f"  broker {node_id:<4}{listeners}")
        _, host, port = listening.addresses[0]
        addresses.append(str(Endpoint(host or "127.0.0.1", port)))
    lines += [
        f"  data       {', '.join(settings.log_dirs)}",
        f"  metadata   {supervisor.store_address}",
        f"  code       {code_path().describe()}",
        *([f"  admin      http://{admin}/metrics"] if admin else []),
        f"  try        echo hello | kcat -b {addresses[0]} -t first -P",
        f"             kcat -b {addresses[-1]} -t first -C -o beginning -e",
        f'  python     KafkaProducer(bootstrap_servers="{addresses[0]}")'
        '.send("first", b"hello").get()',
        "",
    ]
    return "\n".join(lines)
