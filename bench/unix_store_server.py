"""A metadata store on a Unix socket as a process of its own; killed, stopped and started at will.

    python -m bench.unix_store_server DIRECTORY

`varve serve --brokers` serves it within its supervisor; here it can be hit alone.
"""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from bench.node import REPOSITORY
from bench.server_process import ServerProcess
from broker.controller.store.unix.store_host import SOCKET_FILE, StoreHost
from broker.offline.opening import command_environment


class UnixStoreServer(ServerProcess):
    """A store in a process of its own, as `bench.etcd_server.EtcdServer` is.

    Attributes:
        socket: Path of the socket; the same after a restart.
        directory: Of the store.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.directory = folder / "store"
        self.socket = str(self.directory / SOCKET_FILE)
        self._folder = folder

    @property
    def address(self) -> str:
        """What brokers have as `metadata.store`."""
        return f"unix:{self.socket}"

    def start(self) -> None:
        """Start it, again on what it left behind. It may answer a little later."""
        assert self._process is None, "it runs"
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "store.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.unix_store_server", str(self.directory)],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
            )

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(30)
        self._process = None
        return status


async def _serve(directory: str) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    with command_environment() as environment:
        host = await StoreHost.open(directory, environment)
        await ended.wait()
        await host.aclose()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
