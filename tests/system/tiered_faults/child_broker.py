"""A broker in a process of its own that is forked, not started: the next one is there in 0.1 s.

It can be told to die at the n-th change it makes to what is stored of the remote log: objects of
the filesystem store, records and snapshots of its metadata. `os._exit` is what SIGKILL is to what
is on disk: nothing is flushed, closed or taken back, and what was written stays.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from tests.system.conftest import SETTINGS, until

DIED = 99
"""Exit status of a broker that was told to die."""

COUNTED: Final = ("/objects", "/__remote_log_metadata-", "/varve-remote-metadata")
_CHANGES: Final = {
    "LocalFile": ("write_at", "sync", "truncate"),
    "LocalFilesystem": (
        "rename",
        "unlink",
        "mkdir",
        "remove_empty_directory",
        "sync_directory",
        "replace_bytes",
    ),
}

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.system.tiered_faults.child_broker_imports"])


class ChildBroker:
    """See the module.

    Attributes:
        port, admin_address: Once it is started.
        changes: Changes so far, for choosing where to die; counted from `arm`.
    """

    def __init__(self, directory: Path, settings: Mapping[str, object]) -> None:
        """Nothing is started."""
        directory.mkdir(parents=True, exist_ok=True)
        values = {**SETTINGS, "log_dirs": (str(directory / "data"),), **settings}
        self._ours, theirs = _CONTEXT.Pipe()
        self._changes = _CONTEXT.Value("q", 0, lock=False)
        self._die_at = _CONTEXT.Value("q", 0, lock=False)
        log = str(directory / "broker.log")
        self.process = _CONTEXT.Process(
            target=_main, args=(values, theirs, self._changes, self._die_at, log), daemon=False
        )
        self.port = 0
        self.admin_address = ""

    def start(self) -> None:
        """Fork it, and wait until it is ready."""
        self.process.start()
        assert self._ours.poll(30), "the broker does not start"
        self.port, self.admin_address = self._ours.recv()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def changes(self) -> int:
        return int(self._changes.value)

    def arm(self, die_at: int) -> None:
        """Die at the change with this number, 1 for the next one; 0: never."""
        self._changes.value = 0
        self._die_at.value = die_at

    @property
    def is_dead(self) -> bool:
        return self.process.exitcode is not None

    def kill(self) -> None:
        """SIGKILL, and wait."""
        if not self.is_dead:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.join()

    def stop(self) -> int:
        """SIGTERM, and wait; its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        return self.join()

    def join(self) -> int:
        """Wait for its end."""
        self.process.join(60)
        assert self.process.exitcode is not None, "the broker does not end"
        status = self.process.exitcode
        self._ours.close()
        return status


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may have ended since it was listed.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(word) for word in path.read_text().split()]
    return found


def _main(values: dict[str, Any], pipe: Connection, changes: Any, die_at: Any, log: str) -> None:
    with open(log, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    _count_changes(changes, die_at)
    from broker.app import new_loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(values, pipe))


async def _serve(values: dict[str, Any], pipe: Connection) -> None:
    from broker.broker import Broker
    from broker.runtime.logs import configure
    from config.broker import BrokerConfig

    settings = BrokerConfig().replace(**values)
    configure(log_format=settings.log_format, level=settings.log_level)
    broker = Broker(settings)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await broker.start()
    await until(lambda: broker.ready, timeout_s=30)
    pipe.send((broker.addresses[0][2], broker.admin_address))
    await over.wait()
    await broker.stop()


def _count_changes(changes: Any, die_at: Any) -> None:
    """Count what is done to stored things of the remote log, and die at one of them."""
    from storage.environment import local_filesystem

    lock = threading.Lock()

    def counted(change: Callable[..., Any], path_of: Callable[..., str]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **named: Any) -> Any:
            if any(part in path_of(self, *args) for part in COUNTED):
                with lock:
                    changes.value += 1
                    if changes.value == die_at.value:
                        os._exit(DIED)
            return change(self, *args, **named)

        return call

    for class_name, names in _CHANGES.items():
        changed = getattr(local_filesystem, class_name)
        of_file = class_name == "LocalFile"
        path_of: Callable[..., str] = (
            (lambda self, *_: str(self.path)) if of_file else (lambda _, path, *__: str(path))
        )
        for name in names:
            setattr(changed, name, counted(getattr(changed, name), path_of))
