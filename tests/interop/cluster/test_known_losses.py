"""Known ways in which replicated logs have lost data, by name, on three processes and an etcd.

Each is a case of Kafka's or of others, played on the real thing: by hand, with faults where the
story has them. docs/checking.md has a table of all of them, and of the tests that play those which
no process can be brought to do in time: in the simulation, or on single modules.
"""

import struct
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from socket import socket
from typing import Final

import pytest

from bench import wire
from bench.cluster.cluster import Cluster
from bench.cluster.kinds import VarveCluster
from bench.cluster.numbered import NumberedProducer, compare, read_numbers
from bench.cluster.state import ClusterState, create_assigned_topic
from bench.node import NodeError
from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.cluster.watched import WatchedCluster
from tests.harness.etcd import etcd_or_skip
from tests.interop.conftest import COORDINATOR_PROPERTIES, PROPERTIES

NOT_LEADER_OR_FOLLOWER: Final = 6
NOT_COORDINATOR: Final = 16
NOT_ENOUGH_REPLICAS: Final = 19
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75

SESSION_S: Final = 3.0
LONG_S: Final = 60.0


class Ground:
    """A cluster with links, its topics, and what is judged at the end of each case."""

    def __init__(self, cluster: VarveCluster) -> None:
        self.cluster = cluster
        self.watched = WatchedCluster(cluster, 1, topics=())
        self._count = 0

    def topic(self, replicas: Sequence[int] = (1, 2, 3), **configs: str) -> str:
        """A new one with one partition, in sync."""
        self._count += 1
        name = f"case-{self._count}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        self.cluster.create_topic(name, [list(replicas)], settings)
        return name

    def write(self, topic: str, numbers: Sequence[int]) -> None:
        """One record after the other with acks=all, each until it is acknowledged."""
        for number in numbers:
            self.cluster.wait_until(
                f"{number} acknowledged", partial(self._is_acknowledged, topic, number)
            )

    def _is_acknowledged(self, topic: str, number: int) -> bool:
        return self.send(topic, number) == 0

    def send(
        self,
        topic: str,
        number: int,
        *,
        acks: int = -1,
        to: int | None = None,
        timeout_s: float = 5.0,
    ) -> int:
        """One record; the error code, or -1 for no answer in time."""
        leader = self.cluster.leader_of(topic) if to is None else to
        if leader not in self.cluster.nodes:
            return NOT_LEADER_OR_FOLLOWER
        try:
            with self.cluster.nodes[leader].connect(timeout_s) as connection:
                wire.produce(connection, topic, 0, wire.record_batch([b"%d" % number]), acks=acks)
        except TimeoutError:
            return -1
        except wire.WireError as error:
            code = str(error).rpartition("error ")[2]
            if not code.isdigit():
                raise
            return int(code)
        return 0

    def led_by_another(self, topic: str, than: int) -> int:
        """Wait until another broker leads; which."""
        others = set(self.cluster.nodes) - {than}
        self.cluster.wait_until(
            f"another leader than {than}", lambda: self.cluster.leader_of(topic) in others
        )
        return self.cluster.leader_of(topic)

    def whole(self) -> None:
        """Heal, and wait for all; cases kill brokers themselves, so none has ended unasked."""
        self.watched.faults.down.update(self.cluster.nodes)
        self.watched.faults.heal()
        self.watched.wait_until_whole()

    def numbers(self, topic: str) -> list[int]:
        """What the topic has, by offset; waits while a new leader does not say how far it goes.

        A record may be there twice, one after the other: it is sent again after a lost answer.
        """
        found: list[int] = []

        def is_read() -> bool:
            with self.cluster.connected_to_leader(topic, 0) as connection:
                found[:] = read_numbers(connection, topic, 0)
            return True

        self.cluster.wait_until(f"{topic} can be read", is_read, poll_s=0.1)
        return [number for number, _ in groupby(found)]

    def findings(self) -> list[Anomaly]:
        """Of replicas, their past, and the store."""
        return self.watched.judge()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Three brokers behind links."""
    etcd_or_skip()
    directory: Path = tmp_path_factory.mktemp("losses")
    properties = {**PROPERTIES, **COORDINATOR_PROPERTIES}
    cluster = VarveCluster(directory, properties, links=True)
    try:
        cluster.start()
        yield Ground(cluster)
        cluster.stop()
    finally:
        cluster.close()


@pytest.fixture
def ground(running: Ground) -> Iterator[Ground]:
    """Whole before each case; afterwards nothing is found in files and store."""
    running.whole()
    yield running
    running.whole()
    assert running.findings() == []


def kill_all(cluster: Cluster) -> None:
    """At once, as far as that goes."""
    for node_id in cluster.nodes:
        cluster.kill(node_id)


def test_kip_101_a_what_was_acknowledged_outlives_high_watermarks(ground: Ground) -> None:
    """A follower that has a record, and not yet the news that it is committed, is killed and leads.

    It must not cut itself to its high watermark: nobody else may be there to ask.
    """
    cluster, topic = ground.cluster, ground.topic()
    for life in range(3):
        first = 10 * life
        ground.write(topic, range(first, first + 10))
        leader = cluster.leader_of(topic)
        followers = [node_id for node_id in cluster.nodes if node_id != leader]
        kill_all(cluster)
        for node_id in followers:
            cluster.restart(node_id)
        ground.led_by_another(topic, leader)
        numbers = ground.numbers(topic)
        assert sorted(set(numbers)) == list(range(first + 10))
        ground.whole()


@pytest.mark.parametrize("times", [1, 3], ids=["kip-101-b", "kip-279"])
def test_kip_101_b_and_279_what_a_leader_wrote_alone_is_cut(ground: Ground, times: int) -> None:
    """Every leader in turn has records that no other has; all logs end up the same.

    With one: KIP-101. With three, one after the other: the leader does not have the epoch of the
    follower's last records, or the follower not the leader's: KIP-279.
    """
    cluster, topic = ground.cluster, ground.topic()
    ground.write(topic, range(10))
    dead: list[int] = []
    for turn in range(times):
        leader = cluster.leader_of(topic)
        others = [n for n in cluster.nodes if n not in (leader, *dead)]
        for node_id in others:
            cluster.linked.cut(leader, node_id)
        for number in range(turn + 1):
            # acks=1: within the lease nobody else has to have it.
            assert ground.send(topic, 1000 + 100 * turn + number, acks=1, to=leader) == 0
        cluster.kill(leader)
        ground.watched.faults.after_kill(leader)
        for node_id in others:
            # What stalls is lost with the machine.
            cluster.linked.reset(leader, node_id)
        cluster.linked.heal()
        ground.led_by_another(topic, leader)
        if turn < times - 1:
            cluster.restart(leader)
            cluster.wait_for_all()
            cluster.wait_until_in_sync([topic])
        ground.write(topic, [100 + turn])
    ground.whole()
    numbers = ground.numbers(topic)
    assert [n for n in numbers if n < 1000] == [*range(10), *range(100, 100 + times)]
    assert not [n for n in numbers if n >= 1000]


def test_kip_320_fetches_of_other_leader_epochs_are_refused(ground: Ground) -> None:
    """A consumer of before a failover is fenced; one that is ahead of its broker waits."""
    cluster, topic = ground.cluster, ground.topic()
    ground.write(topic, range(3))
    leader = cluster.leader_of(topic)
    cluster.kill(leader)
    ground.led_by_another(topic, leader)
    partition = cluster.state([topic]).partition(topic, 0)
    assert partition is not None
    epoch = partition.leader_epoch
    assert epoch >= 1
    for asked, expected in ((epoch - 1, FENCED_LEADER_EPOCH), (epoch + 1, UNKNOWN_LEADER_EPOCH)):
        with cluster.connected_to_leader(topic, 0) as connection:
            assert end_offset_error(connection, topic, asked) == expected


def end_offset_error(connection: socket, topic: str, current_leader_epoch: int) -> int:
    """The error code of ListOffsets v4 for partition 0."""
    partition = struct.pack(">iiq", 0, current_leader_epoch, -1)
    body = struct.pack(">ib", -1, 0) + wire.array([wire.string(topic) + wire.array([partition])])
    reader = wire.call(connection, wire.LIST_OFFSETS, 4, body)
    reader.int32()
    codes = []
    for _ in reader.times():
        reader.string()
        for _ in reader.times():
            reader.int32()
            codes.append(reader.int16())
            reader.int64()
            reader.int64()
            reader.int32()
    return codes[0]


def test_kip_966_only_who_has_all_of_it_leads_alone(ground: Ground) -> None:
    """The ISR shrinks to one, which dies: who left it earlier is back first, and does not lead."""
    cluster, topic = ground.cluster, ground.topic()
    ground.write(topic, range(5))
    leader = cluster.leader_of(topic)
    early, late = (node_id for node_id in cluster.nodes if node_id != leader)
    cluster.kill(early)
    ground.write(topic, range(5, 10))
    cluster.kill(late)
    cluster.wait_until("alone in the ISR", lambda: isr_of(cluster, topic) == (leader,))
    # The leader takes the ISR over after the image; a record that no other has is cut.
    cluster.wait_until("refused", lambda: ground.send(topic, 99) == NOT_ENOUGH_REPLICAS, poll_s=0.1)
    cluster.kill(leader)
    cluster.restart(early)
    cluster.wait_until("the first is back", lambda: early in cluster.state([]).brokers)
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:
        assert cluster.leader_of(topic) != early
        time.sleep(0.1)
    cluster.restart(late)
    cluster.wait_until("an eligible leader", lambda: cluster.leader_of(topic) in {late, leader})
    ground.whole()
    assert ground.numbers(topic) == list(range(10))


def isr_of(cluster: Cluster, topic: str) -> tuple[int, ...]:
    """As the first broker that answers shows it."""
    partition = cluster.state([topic]).partition(topic, 0)
    return () if partition is None else partition.isr


def test_kafka_10527_a_leader_that_restarts_at_once_has_another_epoch(ground: Ground) -> None:
    """No offset and leader epoch ever name two batches, however quick it is back."""
    cluster, topic = ground.cluster, ground.topic()
    producer = NumberedProducer(cluster.bootstrap, topic, rate_per_s=300, value_size=20)
    producer.start()
    try:
        epochs = []
        for _ in range(4):
            producer.wait_for_acks(100)
            partition = cluster.state([topic]).partition(topic, 0)
            assert partition is not None
            epochs.append(partition.leader_epoch)
            cluster.kill(partition.leader)
            ground.watched.faults.after_kill(partition.leader)
            cluster.restart(partition.leader)
            cluster.wait_until("led", lambda: cluster.leader_of(topic) in cluster.nodes)
            cluster.wait_for_all()
            cluster.wait_until_in_sync([topic])
        assert epochs == sorted(set(epochs))
        producer.finish()
    finally:
        producer.stop()
    found = compare(topic, producer.acknowledged, cluster.connected_to_leader)
    assert found.problems == []


def test_a_topic_made_again_while_a_replica_was_away_is_another_one(ground: Ground) -> None:
    """What the returning broker has of the first is not the second's (LinkedIn 584)."""
    cluster, topic = ground.cluster, ground.topic()
    ground.write(topic, range(20))
    leader = cluster.leader_of(topic)
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    cluster.kill(away)
    cluster.wait_until("seen to be gone", lambda: away not in cluster.state([]).brokers)
    with cluster.connected(cluster.controller_id()) as connection:
        wire.delete_topics(connection, [topic])
    with cluster.connected(cluster.controller_id()) as connection:
        # Replicas on a broker that is away are allowed; it is not waited for.
        settings = {"min.insync.replicas": "1"}
        create_assigned_topic(connection, topic, [[leader, away]], settings)
    cluster.wait_until("led again", lambda: ground.send(topic, 500, acks=1) == 0)
    ground.whole()
    assert ground.numbers(topic) == [500]


@pytest.mark.parametrize("one_way", [False, True], ids=["both-ways", "it-hears-nobody"])
def test_an_isolated_leader_acknowledges_nothing(ground: Ground, one_way: bool) -> None:
    """Jepsen's first of Kafka: alone on its side, with clients that still reach it.

    acks=all is not acknowledged by it; acks=1 no longer once another may lead.
    """
    cluster, topic = ground.cluster, ground.topic()
    ground.write(topic, range(5))
    leader = cluster.leader_of(topic)
    links = cluster.linked
    if one_way:
        for other in cluster.nodes:
            if other != leader:
                links.cut_one_way(other, leader)
        links.cut_one_way("store", leader)
    else:
        links.isolate(leader)
    answer = ground.send(topic, 900, to=leader, timeout_s=SESSION_S + 4.0)
    assert answer != 0
    assert ground.send(topic, 901, acks=1, to=leader, timeout_s=LONG_S) == NOT_LEADER_OR_FOLLOWER
    others = [cluster.nodes[n] for n in cluster.nodes if n != leader]

    def seen_by_another() -> int:
        shown = cluster.state_at(others[0], [topic]).partition(topic, 0)
        return -1 if shown is None else shown.leader

    cluster.wait_until("the others elect", lambda: seen_by_another() not in {leader, -1})
    assert ground.send(topic, 5, to=seen_by_another()) == 0
    ground.whole()
    numbers = ground.numbers(topic)
    if one_way:
        # Followers may have had it; it was not acknowledged.
        numbers = [number for number in numbers if number != 900]
    assert numbers == [0, 1, 2, 3, 4, 5]


def test_a_controller_that_was_paused_changes_nothing_when_it_wakes(ground: Ground) -> None:
    """Another is the controller by then; the old one's change goes to it, or is refused."""
    cluster = ground.cluster
    old = cluster.controller_id()
    cluster.pause(old)
    cluster.wait_until("another controller", lambda: cluster.controller_id() not in {old, -1})
    before = ground.topic([n for n in cluster.nodes if n != old], min_insync_replicas="1")

    def is_shown(state: ClusterState) -> bool:
        return state.controller_id != old and state.partition(before, 0) is not None

    asked = cluster.nodes[old].connect(LONG_S)
    try:
        asked.sendall(elect_request())
        cluster.resume(old)
        wire.receive(asked)
    finally:
        asked.close()
    cluster.wait_for_all()
    cluster.wait_until(
        "all show the new controller and its topic",
        lambda: all(is_shown(cluster.state_at(n, [before])) for n in cluster.nodes.values()),
    )


def elect_request() -> bytes:
    """ElectLeaders v1 of all partitions: an order to the controller."""
    return wire.frame(43, 1, 7, b"\0" + struct.pack(">ii", -1, 10_000))


def test_a_coordinator_that_was_paused_gives_out_no_old_offset(ground: Ground) -> None:
    """Fetches of its followers lie in its sockets when it wakes: they are from before."""
    cluster, group = ground.cluster, "woken"
    topic = ground.topic()
    coordinator = coordinator_of(cluster, group)
    cluster.wait_until(
        "it takes a commit",
        lambda: commit(cluster, coordinator, group, topic, 10) == 0,
        poll_s=0.1,
    )
    waiting = [cluster.nodes[coordinator].connect(LONG_S) for _ in range(5)]
    try:
        cluster.pause(coordinator)
        for connection in waiting:
            connection.sendall(offset_fetch(group, topic))
        others = [n for n in cluster.nodes if n != coordinator]

        def is_committed() -> bool:
            return any(commit(cluster, other, group, topic, 20) == 0 for other in others)

        cluster.wait_until("another coordinator takes the commit", is_committed, poll_s=0.1)
        cluster.resume(coordinator)
        for connection in waiting:
            code, offset = committed(wire.receive(connection))
            assert code == NOT_COORDINATOR or offset == 20
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            with cluster.nodes[coordinator].connect() as connection:
                connection.sendall(offset_fetch(group, topic))
                code, offset = committed(wire.receive(connection))
            assert code != 0 or offset == 20
    finally:
        for connection in waiting:
            connection.close()


def coordinator_of(cluster: Cluster, group: str) -> int:
    """The broker that a group's requests go to."""
    found: list[int] = []

    def is_found() -> bool:
        with cluster.connected() as connection:
            reader = wire.call(connection, 10, 1, wire.string(group) + b"\0")
            reader.int32()
            code = reader.int16()
            reader.string()
            found.append(reader.int32())
        return code == 0

    cluster.wait_until("there is a coordinator", is_found, poll_s=0.1)
    return found[-1]


def commit(cluster: Cluster, node_id: int, group: str, topic: str, offset: int) -> int:
    """Commit an offset of partition 0 without a member, at one broker; the error code."""
    partition = struct.pack(">iq", 0, offset) + wire.string(None)
    topics = wire.array([wire.string(topic) + wire.array([partition])])
    body = (
        wire.string(group)
        + struct.pack(">i", -1)
        + wire.string("")
        + struct.pack(">q", -1)
        + topics
    )
    try:
        with cluster.nodes[node_id].connect(5.0) as connection:
            reader = wire.call(connection, 8, 2, body)
    except OSError as error:
        raise NodeError(str(error)) from error
    for _ in reader.times():
        reader.string()
        for _ in reader.times():
            reader.int32()
            return reader.int16()
    return -1


def offset_fetch(group: str, topic: str) -> bytes:
    """OffsetFetch v3 of partition 0."""
    topics = wire.array([wire.string(topic) + wire.array([struct.pack(">i", 0)])])
    return wire.frame(9, 3, 7, wire.string(group) + topics)


def committed(answer: bytes | bytearray) -> tuple[int, int]:
    """The error code of an OffsetFetch v3 answer, and the offset; -1 for none."""
    reader = wire.Reader(answer)
    reader.int32()
    reader.int32()
    offset = -1
    for _ in reader.times():
        reader.string()
        for _ in reader.times():
            reader.int32()
            offset = reader.int64()
            reader.string()
            code = reader.int16()
            if code:
                return code, -1
    return reader.int16(), offset
