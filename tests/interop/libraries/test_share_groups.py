"""Share groups (KIP-932) with the released KafkaShareConsumer, also over kill -9.

Each member is a process that does what the test says, so that tests decide who has which records
when. Offsets are those of a topic of one partition.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka_release import KafkaRelease
from bench.node import OwnedNode
from tests.interop.conftest import BROKER, new_node
from tests.interop.java_programs import command_of

LOCK_MS = 2_000
PROPERTIES = {
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
}


class Member:
    """One KafkaShareConsumer; see `java/ShareMember.java`."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def begin(self, line: str) -> None:
        """Have it do something; `end` takes the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """The answer."""
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().strip()
        assert answer, self._log.read_text(encoding="utf-8")[-4000:]
        return answer

    def tell(self, line: str) -> str:
        """Have it do something, and wait for the answer."""
        self.begin(line)
        return self.end()

    def poll(self, timeout_ms: int = 15_000) -> dict[int, int]:
        """Offsets with their delivery counts."""
        answer = self.tell(f"poll {timeout_ms}")
        word, *found = answer.split()
        assert word == "records", answer
        records = [record.split(":") for record in found]
        return {int(offset): int(count) for _, offset, count, _ in records}

    def say(self, kind: str, *offsets: int) -> None:
        """Acknowledge; `commit` sends it."""
        assert self.tell(" ".join([kind, *(f"0:{offset}" for offset in offsets)])) == "said"

    def commit(self) -> str:
        """What the broker says of what was acknowledged."""
        return self.tell("commit").removeprefix("committed").strip()


Join = Callable[..., Member]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnedNode]:
    node = new_node(tmp_path_factory.mktemp("share"), PROPERTIES)
    node.start()
    if BROKER == "varve":
        # Kafka 4.2 has it on in a new cluster.
        command = [str(Path(sys.executable).parent / "varve"), "features"]
        command += ["--bootstrap-server", node.address, "upgrade", "share.version=1"]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    yield node
    node.stop()


@pytest.fixture
def join(
    node: OwnedNode, topic: str, kafka_release: KafkaRelease, tmp_path: Path
) -> Iterator[Join]:
    """Members of the test's own group."""
    admin = AdminClient({"bootstrap.servers": node.address})
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result()
    members: list[Member] = []

    def start(mode: str = "explicit", **settings: str) -> Member:
        arguments = [node.address, f"group-{topic}"[:100], topic, mode]
        arguments += [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        command = command_of(kafka_release, "ShareMember", *arguments)
        members.append(Member(command, tmp_path / f"member-{len(members)}.log"))
        return members[-1]

    yield start
    for member in members:
        with member:
            pass


def produce(node: OwnedNode, topic: str, count: int, first: int = 0) -> None:
    """One batch of records whose values are their numbers."""
    producer = Producer({"bootstrap.servers": node.address, "linger.ms": 50})
    for number in range(first, first + count):
        producer.produce(topic, str(number))
    assert producer.flush(20) == 0


def test_accept_release_reject(node: OwnedNode, topic: str, join: Join) -> None:
    member = join()
    produce(node, topic, 6)
    assert member.poll() == dict.fromkeys(range(6), 1)
    assert member.tell("lock") == f"lock {LOCK_MS}"
    member.say("accept", 0, 1, 4, 5)
    member.say("release", 2)
    member.say("reject", 3)
    assert member.commit() == "0=ok"
    assert member.poll() == {2: 2}
    member.say("accept", 2)
    assert member.commit() == "0=ok"
    assert member.poll(2_000) == {}
    assert member.tell("close") == "closed"


def test_given_up_after_five_deliveries(node: OwnedNode, topic: str, join: Join) -> None:
    member = join()
    produce(node, topic, 1)
    for count in range(1, 6):
        assert member.poll() == {0: count}
        member.say("release", 0)
        assert member.commit() == "0=ok"
    assert member.poll(2_000) == {}
    produce(node, topic, 1, 1)
    assert member.poll() == {1: 1}


def test_lock_runs_out(node: OwnedNode, topic: str, join: Join) -> None:
    slow = join()
    produce(node, topic, 3)
    assert slow.poll() == {0: 1, 1: 1, 2: 1}
    other = join()
    assert other.poll() == {0: 2, 1: 2, 2: 2}
    slow.say("accept", 0, 1, 2)
    assert slow.commit() == "0=InvalidRecordStateException"
    other.say("accept", 0, 1, 2)
    assert other.commit() == "0=ok"


@pytest.mark.slow
def test_renewed_lock(node: OwnedNode, topic: str, join: Join) -> None:
    member, other = join(), join()
    produce(node, topic, 2)
    assert member.poll() == {0: 1, 1: 1}
    for _ in range(3):
        other.begin(f"poll {LOCK_MS // 2}")
        member.say("renew", 0, 1)
        assert member.commit() == "0=ok"
        assert other.end() == "records"
        assert member.poll() == {0: 1, 1: 1}, "renewed records are polled again"
    member.say("accept", 0, 1)
    assert member.commit() == "0=ok"
    assert other.poll(LOCK_MS + 1_000) == {}


def test_member_that_is_killed_gives_its_records_back(
    node: OwnedNode, topic: str, join: Join
) -> None:
    victim, other = join(), join()
    produce(node, topic, 3)
    assert victim.poll() == {0: 1, 1: 1, 2: 1}
    victim.say("accept", 0)
    assert victim.commit() == "0=ok"
    victim.process.kill()
    assert other.poll() == {1: 2, 2: 2}


@pytest.mark.slow
def test_member_that_closes_gives_its_records_back(node: OwnedNode, topic: str, join: Join) -> None:
    first = join(max_poll_records="2")
    produce(node, topic, 4)
    polled = first.poll()
    first.say("accept", *polled)
    assert first.tell("close") == "closed"
    found = join().poll(5_000)
    assert not set(found) & set(polled)


@pytest.mark.slow
def test_two_members_share_a_partition(node: OwnedNode, topic: str, join: Join) -> None:
    """Every record to one of them, once, in implicit mode."""
    members = [join("implicit"), join("implicit")]
    for member in members:
        member.begin("poll 5000")
    for member in members:
        assert member.end() == "records"
    seen: list[dict[int, int]] = [{}, {}]
    for part in range(10):
        produce(node, topic, 100, 100 * part)
        for member in members:
            member.begin("poll 300")
        for found, member in zip(seen, members, strict=True):
            _, *records = member.end().split()
            found.update({int(r.split(":")[1]): int(r.split(":")[2]) for r in records})
    for _ in range(3):
        for found, member in zip(seen, members, strict=True):
            found.update(member.poll(300))
    for member in members:
        assert member.tell("close") == "closed"
    assert sorted([*seen[0], *seen[1]]) == list(range(1000))
    assert {count for found in seen for count in found.values()} == {1}
    assert all(seen)


def test_broker_is_killed(topic: str, join: Join, node: OwnedNode) -> None:
    """What was acknowledged stays so; what was in work is delivered again."""
    member = join()
    produce(node, topic, 6)
    assert member.poll() == dict.fromkeys(range(6), 1)
    member.say("accept", 0, 1, 3)
    member.say("reject", 5)
    member.say("release", 4)
    member.say("release", 2)
    assert member.commit() == "0=ok"
    node.kill()
    node.start()
    found: dict[int, int] = {}
    for _ in range(5):
        polled = member.poll()
        found.update(polled)
        if polled:
            member.say("accept", *polled)
            member.commit()
        if set(found) == {2, 4}:
            break
    assert found == {2: 2, 4: 2}
    assert member.poll(2_000) == {}
