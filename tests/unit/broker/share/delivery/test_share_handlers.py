"""ShareFetch and ShareAcknowledge behind the real router, over logs on a real disk."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.configs.share_group_config import ShareGroupConfig
from broker.controller.images.broker_records import BrokerEndpoint, BrokerImage
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from broker.coordinator.persister import ShareState
from broker.handlers import share_acknowledge, share_fetch
from broker.handlers.share_fetch import ShareFetchHandler
from broker.replicas.leader_hints import LeaderHints
from broker.requests.kafka_apis import Api, KafkaApis
from broker.share.delivery.share_partitions import SharePartitions
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode as E
from protocol.messages import share_acknowledge as ack_messages
from protocol.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from protocol.records.batch import iterate_batches
from protocol.records.control import build_end_transaction_marker
from protocol.records.record import iterate_records
from storage.errors import OffsetNotLocalError
from storage.types.append_origin import AppendOrigin
from tests.code_path import python_only
from tests.fakes.broker.offsets_partition import topic_image
from tests.fakes.broker.partition_persister import FakePersister
from tests.fakes.broker.remote_reader import FakeRemoteReader
from tests.fakes.environment import FakeEnvironment
from tests.unit.broker.world import NODE_ID, World, batch, topic_id
from tiered.errors import RemoteStorageError

GROUP = "group"
LOCK_MS = 30_000


class ShareWorld:
    """A world with share groups."""

    def __init__(self, world: World, slots: int = 10) -> None:
        self.w = world
        self.persister = FakePersister()
        self.persister.state = ShareState(0, 0, ())
        self.config = ShareGroupConfig(LOCK_MS)
        image = replace(ClusterImage.empty(), features={"share.version": 1})
        self.listeners: list[Any] = []
        controller: Any = SimpleNamespace(image=image, subscribe_now=self.listeners.append)
        self.controller = controller
        self.share = SharePartitions(
            BrokerConfig(group_share_max_share_sessions=slots),
            FakeEnvironment(timer=world.timer),
            world.replicas,
            controller,
            self.persister,
            lambda group_id: self.config,
        )
        services: Any = SimpleNamespace(share=self.share)
        modules: list[Any] = [
            SimpleNamespace(API_KEY=module.API_KEY, VERSIONS=module.VERSIONS, handle=handle)
            for module, handle in (
                (share_fetch, None),
                (share_acknowledge, share_acknowledge.handle),
            )
        ]
        world.apis = KafkaApis(services, map(Api, modules), world.clock)
        world.apis.by_key[ApiKey.SHARE_FETCH].hot = ShareFetchHandler(
            self.share, world.replicas, world.apis.open_reply, max_bytes=50 << 20
        )
        world.h.channel.connect(world.apis)

    def produce(self, *payloads: bytes, topic: str = "t", **more: Any) -> None:
        partition = self.w.replicas.replica_of(topic, 0)
        assert partition is not None
        partition.append(memoryview(batch(*payloads, **more)), self.w.clock.now_ms())

    def request(
        self,
        epoch: int,
        *topics: str,
        acks: Sequence[tuple[int, int, list[int]]] = (),
        forget: Sequence[str] = (),
        **more: Any,
    ) -> ShareFetchRequest:
        options: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": "a",
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **more,
        }
        batches = [
            AcknowledgementBatch(first_offset=f, last_offset=last, acknowledge_types=types)
            for f, last, types in acks
        ]
        return ShareFetchRequest(
            share_session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic_id=topic_id(topic),
                    partitions=[FetchPartition(partition_index=0, acknowledgement_batches=batches)],
                )
                for topic in topics
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id(topic), partitions=[0]) for topic in forget
            ],
            **options,
        )

    def fetch(self, epoch: int, *topics: str, version: int = 2, **more: Any) -> Any:
        return self.w.ask(ApiKey.SHARE_FETCH, version, self.request(epoch, *topics, **more))

    def send(self, epoch: int, *topics: str, **more: Any) -> None:
        self.w.send(ApiKey.SHARE_FETCH, 2, self.request(epoch, *topics, **more))

    def answer(self) -> Any:
        return self.w.answer(ApiKey.SHARE_FETCH, 2)

    def acknowledge(
        self,
        epoch: int,
        *batches: tuple[int, int, list[int]],
        version: int = 2,
        renew: bool = False,
        member_id: str = "a",
    ) -> Any:
        said = [
            ack_messages.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            for first, last, types in batches
        ]
        topics = [
            AcknowledgeTopic(
                topic_id=topic_id("t"),
                partitions=[AcknowledgePartition(partition_index=0, acknowledgement_batches=said)],
            )
        ]
        request = ack_messages.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=member_id,
            share_session_epoch=epoch,
            is_renew_ack=renew,
            topics=topics if said else [],
        )
        return self.w.ask(ApiKey.SHARE_ACKNOWLEDGE, version, request)


@pytest.fixture
async def s(world: World) -> ShareWorld:
    world.add("t")
    return ShareWorld(world)


def values(partition: Any) -> list[bytes | None]:
    data = memoryview(bytearray(partition.records or b""))
    found: list[bytes | None] = []
    for position, header in iterate_batches(data):
        part = data[position : position + header.size]
        found += [record.value for record in iterate_records(part, max_size=1 << 20)]
    return found


def only(response: Any) -> Any:
    assert response.error_code == 0, response.error_message
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def acquired(partition: Any) -> list[tuple[int, int, int]]:
    return [(r.first_offset, r.last_offset, r.delivery_count) for r in partition.acquired_records]


@pytest.mark.parametrize("version", [1, 2])
async def test_records_are_delivered(s: ShareWorld, version: int) -> None:
    s.produce(b"a", b"b")
    s.produce(b"c")
    response = s.fetch(0, "t", version=version)
    assert response.acquisition_lock_timeout_ms == LOCK_MS
    assert values(only(response)) == [b"a", b"b", b"c"]
    assert acquired(only(response)) == [(0, 2, 1)]
    assert s.fetch(1, version=version).responses == []


async def test_only_the_batches_that_are_acquired_leave(s: ShareWorld) -> None:
    for letter in (b"a", b"b", b"c", b"d"):
        s.produce(letter, letter)
    s.fetch(0, "t")
    response = s.fetch(1, "t", acks=[(0, 7, [1, 1, 1, 2, 2, 1, 1, 1])])
    partition = only(response)
    assert partition.acknowledge_error_code == 0
    assert acquired(partition) == [(3, 4, 2)]
    assert values(partition) == [b"b", b"b", b"c", b"c"]


async def test_a_leader_in_doubt_gives_nothing_out(s: ShareWorld) -> None:
    """Another may lead, and have ended what is free here."""
    s.produce(b"a", b"b")
    partition = s.w.replicas.replica_of("t", 0)
    assert partition is not None
    image = PartitionImage(0, NODE_ID, 5, 0, (NODE_ID, 2), (NODE_ID, 2))
    partition.become_leader(image, now_ms=s.w.clock.monotonic_ms())
    s.w.clock.advance(10_000)
    s.w.replicas.terms.validity = SimpleNamespace(until_ms=s.w.clock.monotonic_ms() - 1)
    refused = only(s.fetch(0, "t"))
    assert refused.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert acquired(refused) == []


async def test_who_is_refused_is_sent_to_the_leader(s: ShareWorld) -> None:
    """As by Fetch: the member goes there at once, and asks nobody for metadata."""
    s.produce(b"a")
    assert acquired(only(s.fetch(0, "t"))) == [(0, 0, 1)]
    other = PartitionImage(0, 2, 6, 0, (NODE_ID, 2), (NODE_ID, 2))
    topic = TopicImage("t", topic_id("t"), (other,), {}, internal=False)
    listener = s.w.h.connection.info.listener_name
    brokers = {2: BrokerImage(2, {listener: BrokerEndpoint("h", 9002)}, "rack")}
    image = replace(
        ClusterImage.empty(),
        topics={"t": topic},
        topics_by_id={topic.topic_id: topic},
        brokers=brokers,
    )
    s.w.replicas.leader_hints = LeaderHints(lambda: image)
    renewed = s.acknowledge(1, (0, 0, [4]), renew=True)
    assert (only(renewed).error_code, renewed.node_endpoints) == (0, [])
    s.persister.write_code = E.FENCED_STATE_EPOCH
    acknowledged = s.acknowledge(2, (0, 0, [1]))
    partition = s.w.replicas.replica_of("t", 0)
    assert partition is not None
    partition.become_follower(2, 6)
    for answer in (acknowledged, s.fetch(3, "t")):
        refused = only(answer)
        assert refused.error_code == E.NOT_LEADER_OR_FOLLOWER
        leader = refused.current_leader
        assert (leader.leader_id, leader.leader_epoch) == (2, 6)
        (node,) = answer.node_endpoints
        assert (node.node_id, node.host, node.port, node.rack) == (2, "h", 9002, "rack")


async def test_it_waits_for_records(s: ShareWorld) -> None:
    s.send(0, "t", max_wait_ms=500)
    assert not s.w.has_answer
    s.produce(b"a")
    await s.w.until(lambda: s.w.has_answer)
    assert acquired(only(s.answer())) == [(0, 0, 1)]


async def test_waiting_ends(s: ShareWorld) -> None:
    s.send(0, "t", max_wait_ms=500)
    s.w.timer.advance(500)
    assert acquired(only(s.answer())) == []
    assert s.share.purgatory.parked == 0


async def test_min_bytes(s: ShareWorld) -> None:
    s.produce(b"a")
    s.send(0, "t", max_wait_ms=500, min_bytes=100)
    assert not s.w.has_answer
    s.produce(b"b")
    await s.w.until(lambda: s.w.has_answer)
    assert acquired(only(s.answer())) == [(0, 1, 1)]


async def test_who_asks_for_no_bytes_does_not_wait(s: ShareWorld) -> None:
    answer = only(s.fetch(0, "t", max_wait_ms=500, min_bytes=0))
    assert acquired(answer) == []
    s.produce(b"a")
    assert acquired(only(s.fetch(1, max_wait_ms=500, min_bytes=0))) == [(0, 0, 1)]


async def test_lock_that_runs_out_wakes_who_waits(s: ShareWorld) -> None:
    s.produce(b"a")
    s.fetch(0, "t")
    s.send(0, "t", member_id="b", max_wait_ms=LOCK_MS + 1_000)
    s.w.timer.advance(LOCK_MS)
    assert acquired(only(s.answer())) == [(0, 0, 2)]


async def test_released_records_wake_who_waits(s: ShareWorld) -> None:
    s.produce(b"a", b"b")
    s.fetch(0, "t")
    s.send(0, "t", member_id="b", max_wait_ms=1_000)
    s.w.send(
        ApiKey.SHARE_ACKNOWLEDGE,
        2,
        ack_messages.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id="a",
            share_session_epoch=1,
            topics=[
                AcknowledgeTopic(
                    topic_id=topic_id("t"),
                    partitions=[
                        AcknowledgePartition(
                            partition_index=0,
                            acknowledgement_batches=[
                                ack_messages.AcknowledgementBatch(
                                    first_offset=1, last_offset=1, acknowledge_types=[2]
                                )
                            ],
                        )
                    ],
                )
            ],
        ),
    )
    assert acquired(only(s.answer())) == [(1, 1, 2)]


async def test_nobody_acquires_for_a_client_that_has_gone(s: ShareWorld) -> None:
    s.send(0, "t", max_wait_ms=1_000)
    s.w.h.connection.close(None)
    s.produce(b"a")
    assert s.share.purgatory.parked == 0
    assert len(s.share.sessions) == 0


async def test_acknowledged(s: ShareWorld) -> None:
    s.produce(b"a", b"b", b"c")
    s.fetch(0, "t")
    assert only(s.acknowledge(1, (0, 1, [1]))).error_code == 0
    response = s.acknowledge(2, (2, 2, [1]))
    assert only(response).error_code == 0
    assert response.acquisition_lock_timeout_ms == LOCK_MS
    again = only(s.acknowledge(3, (0, 2, [1])))
    assert again.error_code == 0, "done long ago"
    assert only(s.acknowledge(4, (3, 3, [1]))).error_code == E.INVALID_RECORD_STATE


async def test_answer_waits_for_the_write(s: ShareWorld) -> None:
    s.produce(b"a")
    s.fetch(0, "t")
    s.persister.hold = True
    s.send(1, "t", acks=[(0, 0, [1])])
    assert not s.w.has_answer
    s.persister.answer()
    assert only(s.answer()).acknowledge_error_code == 0


async def test_what_cannot_be_written_is_told(s: ShareWorld) -> None:
    s.produce(b"a")
    s.fetch(0, "t")
    s.persister.write_code = E.COORDINATOR_NOT_AVAILABLE
    told = only(s.fetch(1, "t", acks=[(0, 0, [1])]))
    assert told.acknowledge_error_code == E.COORDINATOR_NOT_AVAILABLE


async def test_fenced_state_is_read_anew(s: ShareWorld) -> None:
    s.produce(b"a")
    s.fetch(0, "t")
    s.persister.write_code = E.FENCED_STATE_EPOCH
    assert only(s.acknowledge(1, (0, 0, [1]))).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert len(s.share) == 0
    s.persister.write_code = E.NONE
    assert acquired(only(s.fetch(2))) == [(0, 0, 1)]


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0, [1])],
        [(0, 1, [1]), (0, 1, [1])],
        [(0, 1, [])],
        [(0, 1, [1, 1, 1])],
        [(0, 1, [5])],
        [(0, 1, [-1])],
        [(0, 1, [4])],
    ],
)
async def test_acknowledgements_that_make_no_sense(
    s: ShareWorld, batches: list[tuple[int, int, list[int]]]
) -> None:
    s.produce(b"a", b"b")
    s.fetch(0, "t")
    assert only(s.acknowledge(1, *batches)).error_code == E.INVALID_REQUEST
    told = only(s.fetch(2, "t", acks=batches))
    assert told.acknowledge_error_code == E.INVALID_REQUEST


async def test_renewal(s: ShareWorld) -> None:
    s.produce(b"a")
    s.fetch(0, "t")
    s.w.timer.advance(LOCK_MS - 1)
    assert only(s.acknowledge(1, (0, 0, [4]), renew=True)).error_code == 0
    s.w.timer.advance(LOCK_MS - 1)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "is_renew_ack": True}
    told = only(s.fetch(2, "t", acks=[(0, 0, [4])], **nothing))
    assert (told.acknowledge_error_code, acquired(told)) == (0, [])
    refused = s.fetch(3, "t", acks=[(0, 0, [4])], is_renew_ack=True)
    assert refused.error_code == E.INVALID_REQUEST
    assert "maxBytes must be set to 0" in refused.error_message


async def test_sessions(s: ShareWorld) -> None:
    assert s.fetch(1, "t").error_code == E.SHARE_SESSION_NOT_FOUND
    assert s.fetch(-1).error_code == E.SHARE_SESSION_NOT_FOUND
    assert s.acknowledge(1).error_code == E.SHARE_SESSION_NOT_FOUND
    assert s.acknowledge(0).error_code == E.INVALID_SHARE_SESSION_EPOCH
    assert s.fetch(0, "t", acks=[(0, 0, [1])]).error_code == E.INVALID_REQUEST
    s.fetch(0, "t")
    assert s.fetch(2).error_code == E.INVALID_SHARE_SESSION_EPOCH
    assert s.acknowledge(2).error_code == E.INVALID_SHARE_SESSION_EPOCH
    assert s.acknowledge(1).error_code == 0
    assert s.fetch(2).error_code == 0
    assert s.fetch(3, forget=["t"]).responses == []
    s.produce(b"a")
    assert s.fetch(4).responses == []
    assert acquired(only(s.fetch(5, "t"))) == [(0, 0, 1)]


async def test_last_epoch_gives_everything_back(s: ShareWorld) -> None:
    s.produce(b"a", b"b")
    s.fetch(0, "t")
    told = only(s.fetch(-1, "t", acks=[(0, 0, [1])]))
    assert (told.acknowledge_error_code, acquired(told)) == (0, [])
    assert len(s.share.sessions) == 0
    assert acquired(only(s.fetch(0, "t", member_id="b"))) == [(1, 1, 2)]
    assert s.acknowledge(-1, (1, 1, [1]), member_id="b").error_code == 0
    assert len(s.share.sessions) == 0


async def test_connection_that_closes_gives_everything_back(s: ShareWorld) -> None:
    s.produce(b"a", b"b")
    s.fetch(0, "t")
    s.w.h.connection.close(None)
    assert s.persister.writes[-1][2][0][2:] == (0, 1)
    assert len(s.share) == 0, "with the group's last session its share-partitions are forgotten"


async def test_too_many_sessions(world: World) -> None:
    world.add("t")
    s = ShareWorld(world, slots=1)
    s.fetch(0, "t")
    assert s.fetch(0, "t", member_id="b").error_code == E.SHARE_SESSION_LIMIT_REACHED
    s.send(0, "t", member_id="b", max_wait_ms=100)
    assert not s.w.has_answer
    s.w.timer.advance(100)
    assert s.answer().error_code == E.SHARE_SESSION_LIMIT_REACHED
    assert s.fetch(0, "t").error_code == 0, "a member's own does not count twice"


@pytest.mark.parametrize("member_id", ["", "x" * 37, None])
async def test_member_ids(s: ShareWorld, member_id: Any) -> None:
    assert s.fetch(0, "t", member_id=member_id).error_code == E.INVALID_REQUEST
    assert s.acknowledge(1, member_id=member_id).error_code == E.INVALID_REQUEST


async def test_share_groups_that_are_switched_off(s: ShareWorld) -> None:
    s.controller.image = replace(ClusterImage.empty(), features={"share.version": 0})
    assert s.fetch(0, "t").error_code == E.UNSUPPORTED_VERSION
    assert s.acknowledge(1).error_code == E.UNSUPPORTED_VERSION


async def test_unknown_topic(s: ShareWorld) -> None:
    assert only(s.fetch(0, "nowhere")).error_code == E.UNKNOWN_TOPIC_ID


async def test_state_that_cannot_be_read(s: ShareWorld) -> None:
    s.persister.read_code = E.COORDINATOR_NOT_AVAILABLE
    assert only(s.fetch(0, "t")).error_code == E.COORDINATOR_NOT_AVAILABLE
    s.persister.read_code = E.NONE
    assert only(s.fetch(1)).error_code == 0


async def test_topic_that_is_deleted_while_a_fetch_waits(s: ShareWorld) -> None:
    s.send(0, "t", max_wait_ms=1_000)
    s.w.replicas.remove_topic("t")
    assert only(s.answer()).error_code == E.UNKNOWN_TOPIC_ID


def image_of(s: ShareWorld, *, leader: int = NODE_ID, epoch: int = 0) -> ClusterImage:
    """What the image says of the partition."""
    topic = topic_image("t", 0, 1)
    topic = replace(
        topic,
        topic_id=topic_id("t"),
        partitions=[replace(topic.partitions[0], leader=leader, leader_epoch=epoch)],
    )
    image: ClusterImage = s.controller.image
    return replace(image, topics={"t": topic}, topics_by_id={topic.topic_id: topic})


@pytest.mark.parametrize(("leader", "epoch"), [(2, 1), (NODE_ID, 1), (-1, 1)])
async def test_another_leader_or_epoch_drops_what_is_in_flight(
    s: ShareWorld, leader: int, epoch: int
) -> None:
    """Acquired records are nobody's from then on; a write of ours that is late is fenced."""
    partition = s.w.replicas.replica_of("t", 0)
    assert partition is not None
    before = image_of(s, epoch=partition.leader_epoch)
    s.produce(b"a", b"b")
    s.fetch(0, "t")
    for listener in s.listeners:
        listener(before, image_of(s, epoch=partition.leader_epoch))
    assert len(s.share) == 1, "the topic's record has changed, not its leader"
    writes = len(s.persister.writes)
    for listener in s.listeners:
        listener(before, image_of(s, leader=leader, epoch=partition.leader_epoch + epoch))
    assert len(s.share) == 0
    s.w.timer.advance(LOCK_MS)
    assert len(s.persister.writes) == writes, "its locks end with it"


async def test_several_partitions_take_turns(s: ShareWorld) -> None:
    s.w.add("u")
    s.produce(b"a")
    s.produce(b"b", topic="u")
    first = s.fetch(0, "t", "u", max_records=1)
    told = {t.topic_id: acquired(t.partitions[0]) for t in first.responses}
    assert told == {topic_id("t"): [(0, 0, 1)], topic_id("u"): []}
    (second,) = s.fetch(1, max_records=1).responses
    assert second.topic_id == topic_id("u")


async def test_exact_number(s: ShareWorld) -> None:
    s.produce(b"a", b"b", b"c")
    assert acquired(only(s.fetch(0, "t", max_records=2, share_acquire_mode=1))) == [(0, 1, 1)]
    assert acquired(only(s.fetch(1, max_records=2, share_acquire_mode=1))) == [(2, 2, 1)]


async def test_log_start_above_what_is_wanted(s: ShareWorld) -> None:
    for _ in range(3):
        s.produce(b"a", b"b")
    partition = s.w.replicas.replica_of("t", 0)
    assert partition is not None
    partition.log.delete_records(4)
    assert acquired(only(s.fetch(0, "t"))) == [(4, 5, 1)]


@pytest.mark.parametrize("commit", [True, False])
async def test_read_committed(s: ShareWorld, commit: bool) -> None:
    s.config = s.config._replace(is_read_committed=True)
    s.produce(b"x", b"y", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    s.produce(b"plain")
    assert acquired(only(s.fetch(0, "t"))) == [], "the transaction is open"
    partition = s.w.replicas.replica_of("t", 0)
    assert partition is not None
    marker = build_end_transaction_marker(
        producer_id=1,
        producer_epoch=0,
        commit=commit,
        coordinator_epoch=0,
        timestamp_ms=s.w.clock.now_ms(),
    )
    partition.append(memoryview(marker), s.w.clock.now_ms(), AppendOrigin.COORDINATOR)
    told = only(s.fetch(1))
    assert acquired(told) == [(0, 3, 1)] if commit else [(2, 3, 1)]


async def test_where_a_new_group_begins(s: ShareWorld) -> None:
    s.persister.state = ShareState(0, -1, ())
    s.produce(b"a", b"b")
    assert acquired(only(s.fetch(0, "t", group_id="latest"))) == []
    s.config = s.config._replace(auto_offset_reset="earliest")
    assert acquired(only(s.fetch(0, "t", group_id="earliest"))) == [(0, 1, 1)]
    s.config = s.config._replace(auto_offset_reset="by_duration:PT1H")
    s.send(0, "t", group_id="hour", max_wait_ms=1_000)
    await s.w.until(lambda: s.w.has_answer)
    assert acquired(only(s.answer())) == [(0, 1, 1)]


async def test_stop_answers_who_waits(s: ShareWorld) -> None:
    s.send(0, "t", max_wait_ms=1_000)
    await s.share.stop()
    assert only(s.answer()).error_code == 0
    assert len(s.share) == 0


# -- remote storage --------------------------------------------------------------------------------


@pytest.fixture
def remote(s: ShareWorld) -> FakeRemoteReader:
    """The first four records, two to a batch, are in remote storage only; two more are local."""
    s.w.add("r")
    for values_of in ((b"a", b"b"), (b"c", b"d"), (b"e", b"f")):
        s.produce(*values_of)
        s.produce(*values_of, topic="r")
    everything = s.w.replicas.replica_of("r", 0)
    local = s.w.replicas.replica_of("t", 0)
    assert everything is not None
    assert local is not None
    reader = FakeRemoteReader(everything.log, at_once=False)
    s.w.replicas.remote.reader = reader
    original = local.log.reader.read

    def read(offset: int, **more: Any) -> Any:
        if offset < 4:
            raise OffsetNotLocalError(offset, 4, 6)
        return original(offset, **more)

    without_its_older_half: Any = LocalLog(local.log, read)
    local.log = without_its_older_half
    return reader


class LocalLog:
    """A log that has lost its older segments to remote storage."""

    def __init__(self, log: Any, read: Any) -> None:
        self._log = log
        self.reader = SimpleNamespace(read=read)
        self.local_log_start_offset = 4

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


@python_only
async def test_remote_records(s: ShareWorld, remote: FakeRemoteReader) -> None:
    s.send(0, "t", max_wait_ms=500)
    assert not s.w.has_answer
    remote.reads[0].finish()
    told = only(s.answer())
    assert acquired(told) == [(0, 3, 1)]
    assert values(told) == [b"a", b"b", b"c", b"d"]
    assert values(only(s.fetch(1))) == [b"e", b"f"]


@python_only
async def test_remote_records_are_cut_like_local_ones(
    s: ShareWorld, remote: FakeRemoteReader
) -> None:
    remote.at_once = True
    assert acquired(only(s.fetch(0, "t", max_records=2))) == [(0, 1, 1)]
    assert values(only(s.fetch(1, max_records=2))) == [b"c", b"d"]


@python_only
async def test_remote_records_that_come_too_late(s: ShareWorld, remote: FakeRemoteReader) -> None:
    s.send(0, "t", max_wait_ms=500)
    s.w.timer.advance(500)
    assert acquired(only(s.answer())) == []
    assert remote.reads[0].released
    remote.reads[0].finish()
    remote.at_once = True
    assert acquired(only(s.fetch(1))) == [(0, 3, 1)]


@python_only
async def test_remote_storage_that_fails_is_told_late(
    s: ShareWorld, remote: FakeRemoteReader
) -> None:
    s.send(0, "t", max_wait_ms=500)
    remote.reads[0].fail(RemoteStorageError("gone"))
    assert not s.w.has_answer
    s.w.timer.advance(500)
    assert only(s.answer()).error_code == E.KAFKA_STORAGE_ERROR


@python_only
async def test_client_that_goes_cancels_its_reads(s: ShareWorld, remote: FakeRemoteReader) -> None:
    s.send(0, "t", max_wait_ms=500)
    s.w.h.connection.close(None)
    assert remote.reads[0].cancelled
