"""A whole run: broker, clients, faults; recovery, final reads, judgement."""

import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.cluster.namespaces import Namespaces
from bench.kafka_release import KafkaRelease
from bench.node import REPOSITORY, OwnedNode
from tests.checker.anomalies.analysis import Report, analyse
from tests.checker.brokers import ReplicatedBrokers, create_topic, new_broker
from tests.checker.clients.client_process import KEYS, WorkerOptions
from tests.checker.clients.java_client import compiled
from tests.checker.clients.raw import CommittedReader, RetryPolicy
from tests.checker.clients.routes import Address
from tests.checker.cluster.faults import ClusterFaults
from tests.checker.cluster.nemesis import ClusterNemesis, expand
from tests.checker.cluster.watched import WatchedCluster
from tests.checker.delayed import final_read
from tests.checker.faults.nemesis import Clients as NemesisClients
from tests.checker.faults.nemesis import Nemesis
from tests.checker.faults.progress import WORK, Progress, kind_of, progress_of
from tests.checker.history import Recorder, read_history
from tests.checker.share_end import Marker, drain, values_given
from tests.checker.workloads import JAVA, JOBS, MEMBERS, TRANSACTIONAL, WRITERS
from tests.fakes.network.fault_proxy import ProxyProcess

DRAIN_S: Final = 60.0
SHARE_DRAIN_S: Final = 120.0
"""At least: a Java client may need ten seconds to begin, and a silence is waited for twice."""

SUCCESS: Final = re.compile(rb'"type":"ok","f":"(%b)"' % "|".join(sorted(WORK)).encode())
"""In a line of a history."""

MakeBroker = Callable[[Path, int | None], OwnedNode]
MakeNemesis = Callable[[ClusterFaults, NemesisClients, Recorder], ClusterNemesis]


@dataclass(slots=True)
class RunOptions:
    """What a run is made of."""

    seconds: float = 20.0
    seed: int = 1
    broker: str = "varve"
    brokers: int = 1
    """With several, every topic has three replicas; proxies are between brokers and store then."""

    etcd_members: int = 1
    namespaces: bool = False
    """Servers are in network namespaces, and this process too, in the place of proxies."""

    faults: tuple[str, ...] = ("kill", "pause")
    fault_share: float = 0.45
    """Probability of each fault in each round."""
    workload: tuple[str, ...] = TRANSACTIONAL
    rate_per_s: float = 40.0
    make_broker: MakeBroker | None = None
    make_nemesis: MakeNemesis | None = None
    """For several brokers: in place of one that draws its faults."""

    properties: dict[str, str] = field(default_factory=dict)
    topic_configs: dict[str, str] = field(default_factory=dict)
    drain_s: float = DRAIN_S
    asks_for_progress: bool = True


@dataclass(slots=True)
class RunOutcome:
    """What came of it."""

    report: Report
    faults: Counter[str]
    undrained: list[str]
    worker_errors: list[str]
    hangs: list[str]
    """Client processes that waited for ever and were replaced, and where."""

    progress: Progress
    stalls: list[str]

    @property
    def is_clean(self) -> bool:
        """No anomaly, and everything went on under faults and after them."""
        return not (self.report.forbidden or self.undrained or self.worker_errors or self.stalls)

    def text(self) -> str:
        """For people."""
        lines = [f"faults: {dict(self.faults) or 'none'}", self.report.text()]
        lines.append(self.progress.text())
        lines += [f"STALLED {what}" for what in self.stalls]
        lines += [f"UNFINISHED {what}" for what in self.undrained]
        lines += [f"client hung: {which}" for which in self.hangs]
        lines += [f"CLIENT ERROR {what}" for what in self.worker_errors]
        return "\n".join(lines)


class _Clients:
    """The client processes; a killed one has a successor in its slot."""

    def __init__(self, options: RunOptions, directory: Path, address: str) -> None:
        self._options = options
        self._directory = directory
        self._address = address
        self._random = random.Random(options.seed + 77)
        self._running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._generation: Counter[tuple[str, int]] = Counter()
        self._frozen: dict[tuple[str, int], float] = {}
        self.paths: list[Path] = []
        self.errors: list[str] = []
        self.hangs: list[str] = []
        for kind in options.workload:
            self._start(kind, sum(1 for known, _ in self._running if known == kind))

    def _start(self, kind: str, slot: int) -> None:
        self._generation[kind, slot] += 1
        proc = f"{kind}{slot}.{self._generation[kind, slot]}"
        history, log = self._directory / f"{proc}.jsonl", self._directory / f"{proc}.log"
        told = WorkerOptions(
            kind,
            slot,
            proc,
            str(history),
            self._address,
            self._random.randrange(1 << 30),
            self._options.rate_per_s,
        )
        with log.open("wb") as output:
            self._running[kind, slot] = subprocess.Popen(
                [sys.executable, "-m", "tests.checker.worker", told.as_argument()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                # A client may be two processes: signals go to its group.
                start_new_session=True,
            )
        self.paths.append(history)

    def add(self, kind: str) -> None:
        """One client more."""
        self._start(kind, 0)

    def paths_of(self, kind: str) -> list[Path]:
        """The histories of a kind's clients."""
        return [path for path in self.paths if kind_of(path.stem) == kind]

    def wait_until_started(self, timeout_s: float = 60.0) -> None:
        """Until all have begun their histories: faults are to find them at work."""
        deadline = time.monotonic() + timeout_s
        while not all(path.exists() for path in self.paths) and time.monotonic() < deadline:
            time.sleep(0.05)

    def all_work(self) -> bool:
        """Whether each has had a success."""
        return all(path.exists() and SUCCESS.search(path.read_bytes()) for path in self.paths)

    def kill_one(self) -> None:
        """SIGKILL, and a successor."""
        slot = self._random.choice(sorted(self._running))
        process = self._running.pop(slot)
        _signal(process, signal.SIGKILL)
        process.wait()
        self._start(*slot)

    def freeze_one(self, seconds: float) -> bool:
        """SIGSTOP to a member of a group; `watch` wakes it."""
        slots = [slot for slot in self._running if slot[0] in MEMBERS and slot not in self._frozen]
        if not slots or len(self._frozen) >= 2:
            return False
        slot = self._random.choice(sorted(slots))
        _signal(self._running[slot], signal.SIGSTOP)
        self._frozen[slot] = time.monotonic() + seconds
        return True

    def thaw(self, before: float = float("inf")) -> None:
        """SIGCONT to those whose time has come."""
        for slot, until in list(self._frozen.items()):
            if until <= before:
                del self._frozen[slot]
                if slot in self._running:
                    _signal(self._running[slot], signal.SIGCONT)

    def watch(self) -> None:
        """Look after them: wake the frozen, and start those again that have ended."""
        self.thaw(time.monotonic())
        self._restart()

    def _restart(self) -> None:
        """Start those again that have ended by themselves; they should not have."""
        for slot, process in list(self._running.items()):
            if process.poll() == -signal.SIGALRM:
                proc = f"{slot[0]}{slot[1]}.{self._generation[slot]}"
                self.hangs.append(f"{proc} {_where(self._directory / f'{proc}.log')}")
                self._start(*slot)
            elif process.poll() is not None:
                log = self._directory / f"{slot[0]}{slot[1]}.{self._generation[slot]}.log"
                tail = log.read_text(errors="replace").strip().splitlines()[-3:]
                self.errors.append(f"{slot} ended with {process.returncode}: {' / '.join(tail)}")
                self._start(*slot)

    def stop(self, kinds: frozenset[str] | None = None, timeout_s: float = 90.0) -> None:
        """SIGTERM to some kinds or all, and wait; who does not end is killed."""
        chosen = [slot for slot in self._running if kinds is None or slot[0] in kinds]
        for slot in chosen:
            self._running[slot].send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        for slot in chosen:
            process = self._running.pop(slot)
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()


def end_orderly_on_sigterm() -> None:
    """For programs: whoever ends a run ends its clients and its broker."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _where(log: Path) -> str:
    """The innermost frame of the traceback that a hung process has left."""
    lines = log.read_text(errors="replace").splitlines()
    at = [n for n, line in enumerate(lines) if "most recent call first" in line]
    return lines[at[-1] + 1].strip() if at and at[-1] + 1 < len(lines) else "(no traceback)"


async def _drained(
    address: Address, groups: list[str], drain_s: float, watch: Callable[[], None]
) -> list[str]:
    """Wait until the jobs have committed all of their input; returns which have not."""
    reader = CommittedReader(address, RetryPolicy(8.0, drain_s, 0.05))
    last: dict[int, int] = {}
    deadline = time.monotonic() + drain_s
    for index in range(KEYS["in"]):
        offset, last[index] = 0, 0
        while True:
            fetched = await reader.fetch(("in", index), offset, max_bytes=4 << 20)
            if fetched.records:
                last[index] = fetched.records[-1][0] + 1
            moved, offset = fetched.next_offset > offset, fetched.next_offset
            if offset >= fetched.high_watermark or (not moved and time.monotonic() > deadline):
                break
    left = list(groups)
    deadline = time.monotonic() + drain_s
    while left and time.monotonic() < deadline:
        for group in list(left):
            done = await reader.committed(group, "in", KEYS["in"])
            if all(done[index] >= last[index] for index in last):
                left.remove(group)
        watch()
        await asyncio.sleep(0.2)
    found = [
        f"{group}: committed {await reader.committed(group, 'in', KEYS['in'])}, inputs end {last}"
        for group in left
    ]
    reader.close()
    return found


def _prepare(options: RunOptions, node: OwnedNode | ReplicatedBrokers) -> None:
    """Topics; and what Java clients and share groups need."""
    for topic, count in KEYS.items():
        create_topic(node, topic, count, options.topic_configs)
    if not set(JAVA).isdisjoint(options.workload):
        compiled(KafkaRelease.resolve())
    if "jshare" in options.workload and options.broker == "varve":
        # Kafka 4.2 has it on in a new cluster.
        command = [str(Path(sys.executable).parent / "varve"), "features"]
        command += ["--bootstrap-server", node.address, "upgrade", "share.version=1"]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)


class _LastSharer:
    """A new member of the share group, which never dawdles; see `share_end.LastMember`.

    It sees, too, what it should not get any more.
    """

    def __init__(self, clients: _Clients) -> None:
        self._clients = clients
        self._begin = time.time()
        clients.add("jsharelast")

    def quiet_s(self) -> float:
        """See `LastMember.quiet_s`; at most since it was started."""
        paths = self._clients.paths_of("jsharelast")
        times = [path.stat().st_mtime for path in paths if path.exists()]
        return time.time() - max([self._begin, *times])

    def values(self) -> list[str]:
        """See `LastMember.values`."""
        return values_given(self._clients.paths_of("jsharelast"))

    def rest(self, seconds: float) -> None:
        """Look after the clients meanwhile."""
        self._clients.watch()
        time.sleep(seconds)


def _share_drained(clients: _Clients, address: str, directory: Path, drain_s: float) -> list[str]:
    """Until a new member has got all there is; returns whose group does not end."""
    clients.stop(frozenset({"jshare"}))
    member = _LastSharer(clients)
    marks = directory / "mark0.1.jsonl"
    mark = Marker(address, marks)
    clients.paths.append(marks)
    return drain(member, mark, timeout_s=max(drain_s, SHARE_DRAIN_S), rest=member.rest)


def run(options: RunOptions, directory: Path) -> RunOutcome:
    """Do it all in `directory`, which keeps the history."""
    directory.mkdir(parents=True, exist_ok=True)
    make = options.make_broker
    node: OwnedNode | ReplicatedBrokers
    if options.brokers > 1:
        node = ReplicatedBrokers(
            options.broker,
            directory / "broker",
            brokers=options.brokers,
            properties=options.properties,
            etcd_members=options.etcd_members,
            namespaces=Namespaces() if options.namespaces else None,
        )
    elif make is not None:
        node = make(directory / "broker", None)
    else:
        node = new_broker(options.broker, directory / "broker", properties=options.properties)
    proxy = None
    if "proxy" in options.faults and isinstance(node, OwnedNode):
        proxy = ProxyProcess(("127.0.0.1", node.port), seed=options.seed)
        node.properties["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{proxy.port}"
    clients: _Clients | None = None
    faults = directory / "nemesis.jsonl"
    try:
        node.start()
        _prepare(options, node)
        address = node.address if proxy is None else f"127.0.0.1:{proxy.port}"
        clients = _Clients(options, directory, address)
        nemesis: Nemesis | ClusterNemesis
        watched: WatchedCluster | None = None
        if isinstance(node, ReplicatedBrokers):
            watched = WatchedCluster(node.cluster, options.seed, topics=list(KEYS))
            recorder = Recorder(faults, "nemesis")
            if options.make_nemesis is not None:
                nemesis = options.make_nemesis(watched.faults, clients, recorder)
            else:
                nemesis = ClusterNemesis(
                    watched.faults,
                    clients,
                    names=expand(options.faults),
                    seed=options.seed,
                    recorder=recorder,
                )
        else:
            nemesis = Nemesis(
                node,
                proxy,
                clients,
                faults=options.faults,
                seed=options.seed,
                share=options.fault_share,
                recorder=Recorder(faults, "nemesis"),
            )
        clients.wait_until_started()
        begin_ns = time.monotonic_ns()
        nemesis.run_until(time.monotonic() + options.seconds)
        nemesis.heal()
        end_ns = time.monotonic_ns()
        if watched is not None:
            watched.wait_until_whole()
        clients.thaw()
        clients.stop(WRITERS, 60.0)
        groups = sorted({group for kind, group in JOBS.items() if kind in options.workload})
        undrained = asyncio.run(_drained(address, groups, options.drain_s, clients.watch))
        if "jshare" in options.workload:
            undrained += _share_drained(clients, address, directory, options.drain_s)
        time.sleep(1.0)  # for one more question after the groups' offsets
        clients.stop()
        final = directory / "final.jsonl"
        keys = [(topic, index) for topic, count in KEYS.items() for index in range(count)]
        asyncio.run(final_read(address, keys, Recorder(final, "final"), options.drain_s))
        ops = read_history([*clients.paths, faults, final])
        served = nemesis.served if isinstance(nemesis, ClusterNemesis) else None
        progress = progress_of(ops, nemesis.disturbed, (begin_ns, end_ns), served)
        report = analyse(ops)
        if watched is not None:
            report.add(watched.judge())
            report.notes += watched.notes
        return RunOutcome(
            report,
            nemesis.done,
            undrained,
            clients.errors,
            clients.hangs,
            progress,
            progress.stalls(options.workload) if options.asks_for_progress else [],
        )
    finally:
        if clients is not None:
            clients.stop(timeout_s=0.1)
        if isinstance(node, ReplicatedBrokers):
            node.close()
        else:
            node.kill()
        if proxy is not None:
            proxy.stop()
