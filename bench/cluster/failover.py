"""One fault on a cluster under steady work: how long nothing was acknowledged.

The work is a producer's, of a library or a raw one; for coordinators, commits of offsets, and
transactions. The topic of a sample is its own, with its leader where the fault wants it. A sample
is good only when everything acknowledged is there once and in order afterwards, and all replicas
are in sync and equal.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.cluster.cluster import Cluster
from bench.cluster.kinds import VarveCluster
from bench.cluster.namespaces import Namespaces
from bench.cluster.network import CLIENTS, STORE
from bench.cluster.numbered import NumberedProducer, compare
from bench.cluster.raw_clients import (
    GROUP,
    TRANSACTION,
    OffsetCommits,
    RawProducer,
    RawTransactions,
    RawWork,
    coordinator_of,
)
from bench.cluster.replicas import wait_until_equal
from bench.cluster.steady import Steady
from bench.etcd_server import EtcdCluster
from bench.node import NodeError

WARM_UP_ACKS: Final = 300
WARM_UP_WORK: Final = 50
WORK_PER_S_MAX: Final = 50.0
"""Commits and transactions a second: steady, not a load."""
AFTER_S: Final = 0.5
"""A record that was sent so long after the fault is acknowledged: the fault is over."""
SETTLE_S: Final = 1.0
GAVE_UP_S: Final = 90.0
ETCD_PAUSE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Roles:
    """Which broker is what when the fault comes."""

    leader: int
    followers: tuple[int, ...]
    controller: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to a cluster.

    Attributes:
        name: In the table.
        leader_is_controller: Whether the partition is led by the controller.
        strike: Does it; returns whether it has happened entirely, asked again until it has.
        kinds: The clusters that can be hit so.
        client: Settings of the producer that are not the library's defaults.
        coordinator: The broker hit is the coordinator of what `work` does, not a leader.
        work: What goes on meanwhile, where it is not producing.
        cuts: The network (`bench.cluster.network`): it needs proxies or namespaces.
        unplugs: A link; only namespaces have some.
    """

    name: str
    leader_is_controller: bool
    strike: Callable[[Cluster, Roles], Callable[[], bool]]
    kinds: tuple[str, ...] = ("varve", "kafka")
    client: Mapping[str, object] = field(default_factory=dict)
    coordinator: int | None = None
    work: Callable[[str, str, float], RawWork] | None = None
    cuts: bool = False
    unplugs: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """What one fault came to.

    Attributes:
        gap_s: The longest time without an acknowledgement, of any record.
        records: How many were acknowledged, all of them found again.
        in_sync_s: From the return of what was hit until all replicas were in sync.
    """

    gap_s: float
    records: int
    in_sync_s: float


HASTY: Final = {"socket.timeout.ms": 1000}
"""The library waits a minute for a broker that accepts and does not answer: that would be all."""


def _at_once() -> bool:
    return True


def _kill_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    cluster.kill(roles.leader)
    return _at_once


def _kill_follower(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    follower = next(n for n in roles.followers if n != roles.controller)
    cluster.kill(follower)
    return _at_once


def _terminate_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    node = cluster.nodes[roles.leader]
    cluster.terminate(roles.leader)
    return lambda: not node.is_running


def _pause_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    cluster.pause(roles.leader)
    return _at_once


def _etcd(cluster: Cluster) -> EtcdCluster:
    assert isinstance(cluster, VarveCluster)
    assert isinstance(cluster.etcd, EtcdCluster)
    return cluster.etcd


def _kill_etcd_leader(cluster: Cluster, _roles: Roles) -> Callable[[], bool]:
    leader = _etcd(cluster).leader
    assert leader is not None, "etcd has no leader"
    leader.kill()
    return _at_once


def _pause_etcd_leader(cluster: Cluster, _roles: Roles) -> Callable[[], bool]:
    leader = _etcd(cluster).leader
    assert leader is not None, "etcd has no leader"
    leader.pause()
    until = time.monotonic() + ETCD_PAUSE_S

    def is_over() -> bool:
        if time.monotonic() < until:
            return False
        leader.resume()
        return True

    return is_over


def _cut_leader_off(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    cluster.network.isolate(roles.leader)
    cluster.network.cut(roles.leader, CLIENTS)
    return _at_once


def _unplug_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    assert isinstance(cluster.network, Namespaces)
    cluster.network.unplug(roles.leader)
    return _at_once


def _mute_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    for other in _others(cluster, roles):
        cluster.network.cut_one_way(roles.leader, other)
    return _at_once


def _deafen_leader(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    for other in _others(cluster, roles):
        cluster.network.cut_one_way(other, roles.leader)
    return _at_once


def _others(cluster: Cluster, roles: Roles) -> list[int | str]:
    return [*roles.followers, *([STORE] if isinstance(cluster, VarveCluster) else []), CLIENTS]


def _cut_leader_from_store(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    cluster.network.cut(roles.leader, STORE)
    return _at_once


def _cut_leader_from_follower(cluster: Cluster, roles: Roles) -> Callable[[], bool]:
    cluster.network.cut(roles.leader, next(n for n in roles.followers if n != roles.controller))
    return _at_once


FAULTS: Final = (
    Fault("kill -9 leader", False, _kill_leader),
    Fault("kill -9 leader = controller", True, _kill_leader),
    Fault("kill -9 follower", False, _kill_follower),
    Fault("SIGTERM leader", False, _terminate_leader),
    Fault("SIGSTOP leader", False, _pause_leader, client=HASTY),
    Fault("kill -9 etcd leader", False, _kill_etcd_leader, ("varve",)),
    Fault("SIGSTOP etcd leader 5 s", False, _pause_etcd_leader, ("varve",)),
    Fault("kill -9 group coordinator", False, _kill_leader, coordinator=GROUP, work=OffsetCommits),
    Fault(
        "kill -9 transaction coordinator",
        False,
        _kill_leader,
        coordinator=TRANSACTION,
        work=RawTransactions,
    ),
    Fault("leader cut off", False, _cut_leader_off, client=HASTY, cuts=True),
    Fault("leader unplugged", False, _unplug_leader, client=HASTY, cuts=True, unplugs=True),
    Fault("nothing leaves leader", False, _mute_leader, client=HASTY, cuts=True),
    Fault("nothing reaches leader", False, _deafen_leader, client=HASTY, cuts=True),
    Fault("leader cut off from store", False, _cut_leader_from_store, ("varve",), cuts=True),
    Fault("leader, follower cut off", False, _cut_leader_from_follower, cuts=True),
)


def choose_roles(cluster: Cluster, fault: Fault) -> Roles:
    """Who is to lead: the controller, or the first broker that is not."""
    controller = cluster.controller_id()
    ids = sorted(cluster.nodes)
    if controller not in ids:
        raise NodeError(f"no controller: {controller}")
    leader = controller if fault.leader_is_controller else next(n for n in ids if n != controller)
    return Roles(leader, tuple(n for n in ids if n != leader), controller)


def _coordinated(cluster: Cluster, kind: int, topic: str) -> tuple[str, Roles]:
    """A name that begins like the topic's, and roles: its coordinator is not the controller."""
    controller = cluster.controller_id()
    for number in itertools.count():
        name = f"{topic}-{number}"
        found = -1

        def is_found(name: str = name) -> bool:
            nonlocal found
            # Whoever asks first has the internal topic made.
            with cluster.connected() as connection, contextlib.suppress(LookupError):
                found, _ = coordinator_of(connection, name, kind)
            return found >= 0

        cluster.wait_until(f"a coordinator of {name}", is_found)
        if found != controller:
            break
    followers = tuple(n for n in sorted(cluster.nodes) if n != found)
    return name, Roles(found, followers, controller)


def sample(
    cluster: Cluster, fault: Fault, topic: str, rate_per_s: float, *, is_raw: bool = False
) -> Sample:
    """Hit the cluster once; it is whole before and after.

    Args:
        cluster: In sync.
        fault: What happens.
        topic: A new one's name.
        rate_per_s: Of the work.
        is_raw: The producer is a raw one.

    Raises:
        NodeError: It does not come back; the text has the brokers' logs.
        AssertionError: A record that was acknowledged is lost, doubled or out of order.
    """
    if fault.coordinator is None:
        roles = choose_roles(cluster, fault)
        led_by = roles.leader
    else:
        topic, roles = _coordinated(cluster, fault.coordinator, topic)
        led_by = roles.controller  # the topic's own leader goes on
    others = [node_id for node_id in sorted(cluster.nodes) if node_id != led_by]
    cluster.create_topic(topic, [[led_by, *others]])
    # Who is cut off can still be reached where it listens, without proxies.
    asked = roles.followers if fault.cuts else tuple(sorted(cluster.nodes))
    bootstrap = ",".join(cluster.nodes[node_id].address for node_id in asked)
    producer: NumberedProducer | RawWork
    if fault.work is not None:
        producer = fault.work(bootstrap, topic, min(rate_per_s, WORK_PER_S_MAX))
    elif is_raw:
        producer = RawProducer(bootstrap, topic, rate_per_s)
    else:
        producer = NumberedProducer(bootstrap, topic, rate_per_s=rate_per_s, settings=fault.client)
    producer.start()
    try:
        producer.wait_for_acks(WARM_UP_ACKS if fault.work is None else WARM_UP_WORK)
        begin = time.monotonic()
        is_done = fault.strike(cluster, roles)
        done = _wait_until_over(producer, begin, is_done)
        time.sleep(SETTLE_S)
        end = time.monotonic()
        _heal(cluster)
        returned = time.monotonic()
        cluster.wait_for_all()
        cluster.wait_until_in_sync(timeout_s=GAVE_UP_S)
        in_sync_s = time.monotonic() - returned
        producer.finish()
        if isinstance(producer, NumberedProducer | RawProducer):
            found = compare(topic, producer.acknowledged, cluster.connected_to_leader)
            assert found.problems == [], found.problems[:5]
        wait_until_equal(cluster, topic, 1)
        assert done <= end
        return Sample(producer.longest_gap_s(begin, end), producer.acknowledged_count, in_sync_s)
    finally:
        producer.stop()


def _wait_until_over(producer: Steady, begin: float, is_done: Callable[[], bool]) -> float:
    """Until records that were sent after the fault are acknowledged; when that was."""
    done: float | None = None
    while True:
        assert not producer.failures, producer.failures[:5]
        now = time.monotonic()
        if done is None and is_done():
            done = now
        if done is not None and producer.last_ack_sent_at() > done + AFTER_S:
            return now
        if now - begin > GAVE_UP_S:
            raise NodeError(f"nothing acknowledged {GAVE_UP_S} s after the fault")
        time.sleep(0.01)


def _heal(cluster: Cluster) -> None:
    cluster.heal()
    if isinstance(cluster, VarveCluster):
        cluster.heal_etcd()


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below so many of all."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]
