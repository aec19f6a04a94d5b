"""`make cluster`: etcd and three brokers on this machine, until Ctrl-C.

    etcd members (127.0.0.1:2379 ...)   data in DIR/etcd-1 ...
    broker 1  127.0.0.1:9092            data in DIR/broker-1, what it prints in DIR/broker-1.log
    broker 2  127.0.0.1:9093            ...
    broker 3  127.0.0.1:9094
    with --remote: objects of topics with remote.storage.enable in DIR/objects, shared by the three

    python -m bench.local_cluster [--directory DIR] [--remote] [--set KEY=VALUE ...]
    python -m bench.local_cluster --broker 2        one of the three again, after it was killed

The process ids are in DIR/broker-<id>.pid and DIR/etcd-<number>.pid. What is started stays until it
is killed, or Ctrl-C (SIGTERM, the end of the terminal) ends all, also in the middle of the start:
brokers first, then etcd; data stays. A second Ctrl-C kills what has not ended yet. Exit status 1:
something did not start, or etcd has ended.
"""

import argparse
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.cluster.kinds import REPLICATED
from bench.etcd_server import find_etcd
from bench.node import REPOSITORY

HOST: Final = "127.0.0.1"
BROKERS: Final = 3
ETCD_MEMBERS_MAX: Final = 5
DIRECTORY: Final = Path("data/cluster")
STARTED_S: Final = 120.0
STOPPED_S: Final = 60.0
POLL_S: Final = 0.05


class LocalClusterError(Exception):
    """It cannot be started; with a sentence for who asked for it."""


class Places(NamedTuple):
    """Where everything is.

    Attributes:
        port: Of broker 1; the others follow.
        admin_port: Likewise.
        etcd_port: For clients of the first member; each member takes two.
        etcd_members: How many.
    """

    directory: Path
    port: int = 9092
    admin_port: int = 9644
    etcd_port: int = 2379
    etcd_members: int = 1

    def address(self, node_id: int) -> str:
        """Of a broker's listener."""
        return f"{HOST}:{self.port + node_id - 1}"

    def admin(self, node_id: int) -> str:
        """Of its admin port."""
        return f"{HOST}:{self.admin_port + node_id - 1}"

    def data(self, node_id: int) -> Path:
        """Its log directory."""
        return self.directory / f"broker-{node_id}"

    def log(self, name: str) -> Path:
        """What a process prints."""
        return self.directory / f"{name}.log"

    @property
    def objects(self) -> Path:
        """The object store of all brokers; it is there when they have remote storage."""
        return self.directory / "objects"

    def pid_file(self, node_id: int) -> Path:
        """With the process id of a broker."""
        return self.directory / f"broker-{node_id}.pid"

    def etcd_data(self, number: int) -> Path:
        """Of a member of etcd, the first is 0."""
        return self.directory / f"etcd-{number + 1}"

    def etcd_pid_file(self, number: int) -> Path:
        """With the process id of a member of etcd."""
        return self.directory / f"etcd-{number + 1}.pid"

    @property
    def etcd_endpoints(self) -> list[str]:
        """`host:port` for clients, of each member."""
        return [f"{HOST}:{self.etcd_port + 2 * number}" for number in range(self.etcd_members)]

    @property
    def etcd_peers(self) -> list[str]:
        """Addresses for each other, of each member."""
        return [
            f"http://{HOST}:{self.etcd_port + 2 * number + 1}"
            for number in range(self.etcd_members)
        ]

    @property
    def ports(self) -> list[int]:
        """All that must be free."""
        etcd = range(self.etcd_port, self.etcd_port + 2 * self.etcd_members)
        return [
            *etcd,
            *range(self.port, self.port + BROKERS),
            *range(self.admin_port, self.admin_port + BROKERS),
        ]


def broker_command(places: Places, node_id: int, given: Sequence[str]) -> list[str]:
    """The command line of a broker; `given`: further settings, KEY=VALUE each, which win."""
    settings = {
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{places.address(node_id)}",
        "admin.listener": places.admin(node_id),
        "log.dirs": str(places.data(node_id)),
        "metadata.store": f"etcd://{','.join(places.etcd_endpoints)}",
        **REPLICATED,
    }
    if places.objects.exists():
        settings |= {
            "remote.log.storage.system.enable": "true",
            "rsm.config.storage.root": str(places.objects),
        }
    pairs = [f"{key}={value}" for key, value in settings.items()]
    words = [word for pair in (*pairs, *given) for word in ("--set", pair)]
    return [sys.executable, "-m", "cli.main", "serve", *words]


def etcd_command(program: str, places: Places, number: int) -> list[str]:
    """The command line of a member of etcd."""
    client, peer = f"http://{places.etcd_endpoints[number]}", places.etcd_peers[number]
    members = ",".join(f"m{n + 1}={address}" for n, address in enumerate(places.etcd_peers))
    return [
        *(program, "--name", f"m{number + 1}"),
        *("--data-dir", str(places.etcd_data(number))),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", members, "--log-level", "warn"),
        # What is older than an hour is of use to none of the brokers.
        *("--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h"),
    ]


def again(places: Places, node_id: int, given: Sequence[str] = ()) -> str:
    """The command that starts one of these brokers again, with the settings it had."""
    usual = Places(DIRECTORY.absolute())
    words = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in places._asdict().items()
        if value != usual._asdict()[name] and name != "etcd_members"
    ]
    words += [f"--set {shlex.quote(setting)}" for setting in given]
    options = f' ARGS="{" ".join(words)}"' if words else ""
    members = f" ETCD_MEMBERS={places.etcd_members}" if places.etcd_members != 1 else ""
    return f"make cluster-broker ID={node_id}{options}{members}"


def banner(places: Places, given: Sequence[str] = ()) -> str:
    """What who has started it needs to know."""
    address, directory = places.address(1), places.directory
    brokers = ", ".join(places.address(node_id) for node_id in range(1, BROKERS + 1))
    remote = (
        f"{places.objects}, of topics with remote.storage.enable=true"
        if places.objects.exists()
        else 'none: make cluster ARGS="--remote"'
    )
    return "\n".join(
        [
            f"varve cluster of {BROKERS} brokers; topics get 3 replicas, min.insync.replicas is 2",
            f"  brokers    {brokers}",
            f"  etcd       {', '.join(places.etcd_endpoints)}",
            f"  data       {directory}, what broker 1 prints in {places.log('broker-1')}",
            f"  remote     {remote}",
            f"  admin      http://{places.admin(1)}/metrics, and the next two ports",
            f"  try        echo hello | kcat -b {address} -t first -P",
            f"             kcat -b {places.address(2)} -t first -C -o beginning -e",
            f"             .venv/bin/varve topics describe first --bootstrap-server {address}",
            f"  kill one   kill -9 $(cat {places.pid_file(2)})",
            f"  again      {again(places, 2, given)}, from another terminal",
            "  end        Ctrl-C: brokers, then etcd; the data stays; twice: at once",
            "",
        ]
    )


class StopRequests:
    """Ctrl-C and its like, counted: the first one ends in order, a second one at once.

    Attributes:
        stop: There was one.
        at_once: There were two.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.at_once = threading.Event()

    def add(self) -> None:
        """One more."""
        (self.at_once if self.stop.is_set() else self.stop).set()

    @contextlib.contextmanager
    def by_signals(self) -> Iterator[None]:
        """Let signals of this process be such requests."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            # Ignored it is under `nohup`: then it is meant to go on.
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, lambda *_: self.add()) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class LocalCluster:
    """The processes; `start`, `watch` until something ends it, `stop`."""

    def __init__(
        self,
        places: Places,
        given: Sequence[str],
        say: Callable[[str], None],
        requests: StopRequests | None = None,
        *,
        with_remote: bool = False,
    ) -> None:
        """Nothing runs yet.

        Args:
            places: Where.
            given: Settings of brokers, KEY=VALUE each.
            say: Called with what who has started it should know.
            requests: To stop; looked for whenever something is waited for.
            with_remote: Make a directory of objects; else there is remote storage if there is one.
        """
        self._places = places
        self._given = given
        self._say = say
        self._requests = StopRequests() if requests is None else requests
        self._with_remote = with_remote
        self._etcd: list[subprocess.Popen[bytes]] = []
        self._brokers: dict[int, subprocess.Popen[bytes]] = {}
        self._ended: set[int] = set()

    def start(self) -> None:
        """Start all, and wait until each broker serves, or a stop is asked for.

        Raises:
            LocalClusterError: Something is in the way, or does not start.
        """
        places = self._places
        program = find_etcd()
        if program is None:
            raise LocalClusterError("no etcd: `.ci/etcd` builds it, or ETCD names its program")
        running = running_processes(places)
        if running:
            names = ", ".join(f"{name} is process {pid}" for name, pid in running.items())
            raise LocalClusterError(
                f"the cluster in {places.directory} runs already ({names}): end it by Ctrl-C where "
                f"it was started, or: kill {' '.join(map(str, running.values()))}"
            )
        members = sum(places.etcd_data(number).exists() for number in range(ETCD_MEMBERS_MAX))
        if members not in (0, places.etcd_members):
            # Fewer would have no majority, and those that are new would be an etcd of their own.
            raise LocalClusterError(
                f"the data in {places.directory} are of {members} servers of etcd, not "
                f"{places.etcd_members}: ETCD_MEMBERS={members}, or another --directory"
            )
        for port in places.ports:
            if not _is_free(port):
                raise LocalClusterError(
                    f"{HOST}:{port} is in use: does a cluster or a broker run already?"
                )
        places.directory.mkdir(parents=True, exist_ok=True)
        if self._with_remote:
            places.objects.mkdir(exist_ok=True)
        for number in range(places.etcd_members):
            command = etcd_command(program, places, number)
            process = _spawn(command, places.log(f"etcd-{number + 1}"))
            places.etcd_pid_file(number).write_text(f"{process.pid}\n")
            self._etcd.append(process)
        for node_id in range(1, BROKERS + 1):
            command = broker_command(places, node_id, self._given)
            process = _spawn(command, places.log(f"broker-{node_id}"))
            places.pid_file(node_id).write_text(f"{process.pid}\n")
            self._brokers[node_id] = process
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + STARTED_S
        waiting = set(self._brokers)
        while waiting and not self._requests.stop.is_set():
            for node_id in sorted(waiting):
                if self._brokers[node_id].poll() is not None:
                    raise LocalClusterError(self._failure(f"broker-{node_id}"))
                if is_ready(self._places.admin(node_id)):
                    waiting.discard(node_id)
            if self._etcd_failed():
                raise LocalClusterError(self._failure("etcd-1"))
            if time.monotonic() > deadline:
                late = ", ".join(map(str, sorted(waiting)))
                raise LocalClusterError(
                    f"not ready after {STARTED_S:.0f} s: broker {late}; "
                    f"see {self._places.log(f'broker-{min(waiting)}')}"
                )
            self._requests.stop.wait(POLL_S)

    def watch(self) -> int:
        """Report brokers that end, until a stop is asked for or etcd has ended; the exit status."""
        while not self._requests.stop.wait(POLL_S):
            for node_id, process in self._brokers.items():
                status = process.poll()
                if status is not None and node_id not in self._ended:
                    self._ended.add(node_id)
                    self._say(
                        f"broker {node_id} has ended (status {status}); "
                        f"start it again: {again(self._places, node_id, self._given)}"
                    )
            if self._etcd_failed():
                self._say(self._failure("etcd-1"))
                return 1
        return 0

    def stop(self) -> None:
        """SIGTERM to the brokers, those too that were started again elsewhere; then to etcd.

        What takes too long, or is still there when a second stop is asked for, is killed.
        """
        for process in self._brokers.values():
            if process.poll() is None:
                process.terminate()
        again = [node_id for node_id in self._ended if self._signal_again(node_id, signal.SIGTERM)]
        self._end(self._brokers.values())
        deadline = time.monotonic() + STOPPED_S
        while again := [n for n in again if running_pid(self._places, n) is not None]:
            if self._requests.at_once.wait(POLL_S) or time.monotonic() > deadline:
                for node_id in again:
                    self._signal_again(node_id, signal.SIGKILL)
                break
        for process in self._etcd:
            process.terminate()
        self._end(self._etcd)

    def _signal_again(self, node_id: int, number: signal.Signals) -> bool:
        """A signal to one that was started again elsewhere; False: it does not run."""
        pid = running_pid(self._places, node_id)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    def _end(self, processes: Iterable[subprocess.Popen[bytes]]) -> None:
        """Wait until they have ended."""
        deadline = time.monotonic() + STOPPED_S
        for process in processes:
            while process.poll() is None:
                if self._requests.at_once.wait(POLL_S) or time.monotonic() > deadline:
                    process.kill()
                    process.wait()

    def _etcd_failed(self) -> bool:
        """Whether more members have ended than a majority can spare."""
        dead = sum(process.poll() is not None for process in self._etcd)
        return dead > (len(self._etcd) - 1) // 2

    def _failure(self, name: str) -> str:
        log = self._places.log(name)
        last = log.read_text(errors="replace").splitlines()[-1:] if log.exists() else []
        return f"{name} has ended; {log} ends: {last[0] if last else 'empty'}"


def run_broker(places: Places, node_id: int, given: Sequence[str]) -> int:
    """One broker in the place of this process, so that its signals are this one's."""
    pid = running_pid(places, node_id)
    if pid is not None:
        raise LocalClusterError(f"broker {node_id} runs already, as process {pid}")
    if not _answers(places.etcd_port):
        raise LocalClusterError(
            f"no etcd at {places.etcd_endpoints[0]}: start the cluster first, `make cluster`"
        )
    places.directory.mkdir(parents=True, exist_ok=True)
    places.pid_file(node_id).write_text(f"{os.getpid()}\n")
    command = broker_command(places, node_id, given)
    os.chdir(REPOSITORY)
    os.execv(command[0], command)
    raise AssertionError("it is another program now")


def running_pid(places: Places, node_id: int) -> int | None:
    """The process of a broker of this cluster, if it runs: known by its log directory."""
    return _pid_with(places.pid_file(node_id), f"log.dirs={places.data(node_id)}")


def running_processes(places: Places) -> dict[str, int]:
    """Brokers and members of etcd that run on these data, with their process ids."""
    found = {f"broker {n}": running_pid(places, n) for n in range(1, BROKERS + 1)}
    for number in range(places.etcd_members):
        pid = _pid_with(places.etcd_pid_file(number), str(places.etcd_data(number)))
        found[f"etcd {number + 1}"] = pid
    return {name: pid for name, pid in found.items() if pid is not None}


def _pid_with(file: Path, argument: str) -> int | None:
    """The process whose id a file has, if it has this argument, too: ids are given away again."""
    try:
        pid = int(file.read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if argument.encode() in words else None


def is_ready(admin: str) -> bool:
    """Whether a broker's `/readyz` says so."""
    try:
        with urllib.request.urlopen(f"http://{admin}/readyz", timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """A process of its own group: Ctrl-C reaches it through `stop` alone."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=REPOSITORY,
            start_new_session=True,
        )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=2.0).close()
    except OSError:
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description="etcd and three brokers on this machine")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="data and logs")
    parser.add_argument("--broker", type=int, choices=range(1, BROKERS + 1), help="only this one")
    parser.add_argument(
        "--remote",
        action="store_true",
        help="remote storage in a directory of all three; stays on with these data",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="setting")
    parser.add_argument("--port", type=int, default=9092, help="of broker 1")
    parser.add_argument("--admin-port", type=int, default=9644, help="of broker 1")
    parser.add_argument("--etcd-port", type=int, default=2379, help="of the first member")
    parser.add_argument(
        "--etcd-members",
        type=int,
        choices=(1, 3, ETCD_MEMBERS_MAX),
        default=int(os.environ.get("ETCD_MEMBERS", "1")),
        help="servers of etcd",
    )
    args = parser.parse_args(argv)
    places = Places(
        args.directory.absolute(), args.port, args.admin_port, args.etcd_port, args.etcd_members
    )
    if args.remote and args.broker is not None:
        parser.error("--remote is of all brokers: start the cluster with it")
    try:
        if args.broker is not None:
            return run_broker(places, args.broker, args.set)
        return _run(places, args.set, with_remote=args.remote)
    except LocalClusterError as error:
        sys.stderr.write(f"cluster: {error}\n")
        return 1


def _run(places: Places, given: Sequence[str], *, with_remote: bool) -> int:
    requests = StopRequests()
    cluster = LocalCluster(places, given, _say, requests, with_remote=with_remote)
    with requests.by_signals():
        _say("starting etcd and three brokers")
        try:
            cluster.start()
            if not requests.stop.is_set():
                _say(banner(places, given))
            return cluster.watch()
        finally:
            _say("stopping")
            cluster.stop()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
