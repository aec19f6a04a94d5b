"""Faults of a cluster, and how long each lasts: what is struck is drawn when it happens.

    kill-*          SIGKILL to a process; it starts again when its time is over
    pause-*         SIGSTOP; longer than the session in half of all cases
    cut-pair        two brokers, both ways
    cut-one-way     from one broker to another, or between a broker and the store
    cut-store       one broker and the store
    cut-stores      all brokers and the store
    isolate         one broker, from all others and from the store
    unplug          one broker, from clients too; in network namespaces only
    slow            50 ms more on each way between brokers; by proxies only
    reset           the connections of two brokers end; by proxies only
    restart         SIGTERM; started again once it has ended
    elect           preferred leaders, where they are not
    reassign        a partition to other replicas, or in another order

`*` is leader (of a partition of clients), follower, controller, coordinator (of an internal
partition), two, all, or store: one member of it. Several may overlap; `heal` ends all.
"""

import contextlib
import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from socket import socket
from typing import Final, NamedTuple

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.kinds import VarveCluster
from bench.cluster.network import STORE, Place
from bench.cluster.state import NO_LEADER, PartitionState
from bench.etcd_server import EtcdServer
from bench.node import NodeError

KILLS: Final = tuple(
    f"kill-{who}" for who in ("leader", "follower", "controller", "coordinator", "two", "all")
)
PAUSES: Final = tuple(
    f"pause-{who}" for who in ("leader", "follower", "controller", "coordinator", "two", "all")
)
STORES: Final = ("kill-store", "pause-store")
CUTS: Final = (
    "cut-pair",
    "cut-one-way",
    "cut-store",
    "cut-stores",
    "isolate",
    "unplug",
    "slow",
    "reset",
)
CUTTING: Final = ("cut-pair", "cut-one-way", "cut-store", "isolate", "unplug")
OPERATIONS: Final = ("restart", "elect", "reassign")
CLUSTER_FAULTS: Final = (*KILLS, *PAUSES, *STORES, *CUTS, *OPERATIONS)

LASTING_S: Final = (0.3, 6.0)
LISTENING_S: Final = 0.2
"""For a connection to a broker that has just been started."""

SLOW_MS: Final = 50.0
DEAD_MAX: Final = 3
"""Faults at a time, at most."""

ELECT_LEADERS: Final = 43
ALTER_PARTITION_REASSIGNMENTS: Final = 45


class Struck(NamedTuple):
    """A fault that lasts."""

    name: str
    until: float
    mend: Callable[[], None]


class ClusterFaults:
    """Strikes and mends; every draw is from one seed, who is what is asked of the cluster.

    Attributes:
        done: How often each fault was struck.
        topics: Those of clients.
        kills: Broker processes that were killed.
        after_kill: Called with the node id of each, while it is dead.
        down: Node ids of brokers that were killed or asked to stop, and not started again.
        ended: Those that ended by themselves; never right, whatever is struck.
    """

    def __init__(self, cluster: Cluster, seed: int, *, topics: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self._random = random.Random(seed)
        self.topics = frozenset(topics)
        self._lasting: list[Struck] = []
        self._ending: set[int] = set()
        self._listening: dict[int, int] = {}
        self.down: set[int] = set()
        self.ended: list[int] = []
        self.done: Counter[str] = Counter()
        self.kills = 0
        self.after_kill: Callable[[int], None] = lambda _node_id: None

    @property
    def is_struck(self) -> bool:
        """Whether a fault lasts."""
        return bool(self._lasting)

    def has_majority(self) -> bool:
        """Whether clients can be served: most brokers listen and reach each other and the store."""
        lasting = set(self.lasting)
        if "cut-stores" in lasting:
            return False
        if isinstance(self.cluster, VarveCluster):
            # One member of the store is away at a time.
            away = not lasting.isdisjoint(STORES)
            if 2 * (len(self.cluster.members) - away) <= len(self.cluster.members):
                return False
        listening = sum(self._is_listening(node_id) for node_id in self._up())
        # A cut takes one of them from the others, at most: there is one cut at a time.
        listening -= not lasting.isdisjoint(CUTTING)
        return 2 * listening > len(self.cluster.nodes)

    def _is_listening(self, node_id: int) -> bool:
        """Whether the process that is there has accepted a connection."""
        node = self.cluster.nodes[node_id]
        if self._listening.get(node_id) == node.pid:
            return True
        try:
            with node.connect(LISTENING_S):
                self._listening[node_id] = node.pid
        except OSError:
            return False
        return True

    @property
    def lasting(self) -> list[str]:
        """The faults that last."""
        return [one.name for one in self._lasting]

    def strike(self, name: str, lasting_s: float | None = None) -> bool:
        """Begin a fault; False: there are enough, or nobody is left to strike.

        Args:
            name: Of `CLUSTER_FAULTS`.
            lasting_s: Drawn when it is None.
        """
        if len(self._lasting) >= DEAD_MAX:
            return False
        seconds = self._random.uniform(*LASTING_S) if lasting_s is None else lasting_s
        what, _, who = name.partition("-")
        mend: Callable[[], None] | None
        if name == "kill-store":
            mend = self._kill_member()
        elif name == "pause-store":
            mend = self._pause_member()
        elif what == "kill":
            mend = self._kill(self._victims(who))
        elif what == "pause":
            mend = self._pause(self._victims(who))
        else:
            mend = getattr(self, f"_{name.replace('-', '_')}")()
        if mend is None:
            return False
        self.done[name] += 1
        if mend is not _nothing:
            self._lasting.append(Struck(name, time.monotonic() + seconds, mend))
        return True

    def tend(self) -> None:
        """Mend what has lasted long enough; often."""
        now = time.monotonic()
        for one in [one for one in self._lasting if one.until <= now]:
            self._lasting.remove(one)
            one.mend()
        self.look_for_ended()

    def look_for_ended(self) -> None:
        """Note brokers that run no more, and were not made to end."""
        for node_id, node in sorted(self.cluster.nodes.items()):
            if node_id not in self.down and not node.is_running:
                self.down.add(node_id)
                self.ended.append(node_id)

    def heal(self) -> None:
        """Mend everything, also what ended by itself.

        Raises:
            NodeError: A broker that was asked to stop does not.
        """
        self.look_for_ended()
        lasting, self._lasting = self._lasting, []
        for one in lasting:
            one.mend()
        self._lasting.clear()
        for node_id in sorted(self._ending):
            self.cluster.nodes[node_id].stop()
        self._ending.clear()
        if isinstance(self.cluster, VarveCluster):
            self.cluster.heal_etcd()
        self.cluster.heal()
        self.down.clear()

    # Who is struck.

    def _partitions(self) -> tuple[PartitionState, ...]:
        with contextlib.suppress(NodeError, OSError, wire.WireError):
            return self.cluster.state().partitions
        return ()

    def _up(self) -> list[int]:
        """Brokers that run, are not paused and were not asked to stop."""
        up = {id(node) for node in self.cluster.answering}
        nodes = sorted(self.cluster.nodes.items())
        return [n for n, node in nodes if id(node) in up and n not in self._ending]

    def _victims(self, who: str) -> list[int]:
        up = self._up()
        if who == "all" or not up:
            return up
        if who == "two":
            return self._random.sample(up, min(2, len(up)))
        if who == "controller":
            with contextlib.suppress(NodeError, OSError, wire.WireError):
                controller = self.cluster.controller_id()
                if controller in up:
                    return [controller]
            return []
        shown = self._partitions()
        ours = [p for p in shown if (p.topic in self.topics) != (who == "coordinator")]
        if who == "coordinator":
            ours = [p for p in ours if p.topic.startswith("__")]
        if not ours:
            return [self._random.choice(up)]
        chosen = self._random.choice(ours)
        if who == "follower":
            wanted = [n for n in chosen.replicas if n != chosen.leader and n in up]
        else:
            wanted = [chosen.leader] if chosen.leader in up else []
        return [self._random.choice(wanted)] if wanted else []

    # Processes.

    def _kill(self, victims: list[int]) -> Callable[[], None] | None:
        if not victims:
            return None
        self.down.update(victims)
        for node_id in victims:
            self.cluster.kill(node_id)
            self.kills += 1
        for node_id in victims:
            self.after_kill(node_id)

        def start() -> None:
            for node_id in victims:
                self._start(node_id)

        return start

    def _start(self, node_id: int) -> None:
        node = self.cluster.nodes[node_id]
        if not node.is_running:
            node.stop()  # what is left of the process
            node.launch()
        self.down.discard(node_id)

    def _pause(self, victims: list[int]) -> Callable[[], None] | None:
        if not victims:
            return None
        for node_id in victims:
            self.cluster.pause(node_id)

        def resume() -> None:
            for node_id in victims:
                if self.cluster.nodes[node_id].is_running:
                    self.cluster.resume(node_id)

        return resume

    def _restart(self) -> Callable[[], None] | None:
        up = self._up()
        if not up:
            return None
        node_id = self._random.choice(up)
        self.down.add(node_id)
        self.cluster.terminate(node_id)
        self._ending.add(node_id)

        def start() -> None:
            node = self.cluster.nodes[node_id]
            if node.is_running:
                # It hands over first: as long as that takes.
                self._lasting.append(Struck("restart", time.monotonic() + 0.5, start))
                return
            self._ending.discard(node_id)
            self._start(node_id)

        return start

    # The store.

    @property
    def _varve(self) -> VarveCluster:
        assert isinstance(self.cluster, VarveCluster), "only ours has a store and links"
        return self.cluster

    def _member(self) -> EtcdServer | None:
        members = [member for member in self._varve.members if member.is_running]
        whole = len(members) == len(self._varve.members)
        return self._random.choice(members) if whole else None

    def _kill_member(self) -> Callable[[], None] | None:
        member = self._member()
        if member is None or any(name == "pause-store" for name in self.lasting):
            return None
        member.kill()
        return lambda: None if member.is_running else member.start()

    def _pause_member(self) -> Callable[[], None] | None:
        member = self._member()
        if member is None or any(name == "pause-store" for name in self.lasting):
            return None
        member.pause()

        def resume() -> None:
            if member.is_running:
                member.resume()

        return resume

    # The network: one fault of it at a time, since healing heals all.

    def _links_are_free(self) -> bool:
        return self._varve.network.is_whole

    def _two(self) -> tuple[int, int]:
        first, second = self._random.sample(sorted(self.cluster.nodes), 2)
        return first, second

    def _mend_links(self) -> None:
        self._varve.network.heal()

    def _cut_pair(self) -> Callable[[], None] | None:
        if not self._links_are_free():
            return None
        self._varve.network.cut(*self._two())
        return self._mend_links

    def _cut_one_way(self) -> Callable[[], None] | None:
        if not self._links_are_free():
            return None
        first, second = self._two()
        choices: list[tuple[Place, Place]] = [(first, second), (first, STORE), (STORE, first)]
        ends = self._random.choice(choices)
        self._varve.network.cut_one_way(*ends)
        return self._mend_links

    def _cut_store(self) -> Callable[[], None] | None:
        if not self._links_are_free():
            return None
        self._varve.network.cut(self._random.choice(sorted(self.cluster.nodes)), STORE)
        return self._mend_links

    def _cut_stores(self) -> Callable[[], None] | None:
        if not self._links_are_free():
            return None
        for node_id in sorted(self.cluster.nodes):
            self._varve.network.cut(node_id, STORE)
        return self._mend_links

    def _isolate(self) -> Callable[[], None] | None:
        if not self._links_are_free():
            return None
        leaders = [p.leader for p in self._partitions() if p.leader != NO_LEADER]
        self._varve.network.isolate(self._random.choice(leaders or sorted(self.cluster.nodes)))
        return self._mend_links

    def _unplug(self) -> Callable[[], None] | None:
        namespaces = self._varve.namespaces
        if namespaces is None or not self._links_are_free():
            return None
        namespaces.unplug(self._random.choice(sorted(self.cluster.nodes)))
        return self._mend_links

    def _slow(self) -> Callable[[], None] | None:
        if self._varve.links is None or not self._links_are_free():
            return None
        self._varve.linked.delay_all(SLOW_MS)
        return self._mend_links

    def _reset(self) -> Callable[[], None] | None:
        if self._varve.links is None:
            return None
        self._varve.linked.reset(*self._two())
        return _nothing

    # What operators do.

    def _ask_any(self, ask: Callable[[socket], object]) -> Callable[[], None] | None:
        for node in self.cluster.answering:
            with contextlib.suppress(OSError, wire.WireError), node.connect(3.0) as connection:
                ask(connection)
                return _nothing
        return None

    def _elect(self) -> Callable[[], None] | None:
        body = b"\0" + struct.pack(">ii", -1, 3_000)
        return self._ask_any(lambda one: wire.call(one, ELECT_LEADERS, 1, body))

    def _reassign(self) -> Callable[[], None] | None:
        """Without waiting for its end: another may come on top, as operators do it."""
        ours = [p for p in self._partitions() if p.topic in self.topics]
        if not ours:
            return None
        chosen = self._random.choice(ours)
        nodes = self._random.sample(sorted(self.cluster.nodes), len(chosen.replicas))
        body = reassignment(chosen.topic, chosen.index, nodes)
        request = wire.frame(ALTER_PARTITION_REASSIGNMENTS, 0, 7, body, flexible=True)

        def ask(connection: socket) -> None:
            connection.sendall(request)
            wire.receive(connection)

        return self._ask_any(ask)


def reassignment(topic: str, index: int, nodes: Sequence[int]) -> bytes:
    """The body of AlterPartitionReassignments v0 for one partition."""
    replicas = bytes([len(nodes) + 1]) + struct.pack(f">{len(nodes)}i", *nodes)
    partitions = b"\x02" + struct.pack(">i", index) + replicas + b"\0"
    topics = b"\x02" + wire.compact_string(topic) + partitions + b"\0"
    return struct.pack(">i", 10_000) + topics + b"\0"


def _nothing() -> None:
    """A fault that is over at once."""
