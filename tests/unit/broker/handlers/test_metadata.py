"""Metadata: which topics, which errors, which fields, in every version."""

from functools import partial
from uuid import UUID

import pytest

from broker.controller.controller import Controller
from broker.controller.images.cluster_image import BrokerEndpoint, TopicImage
from broker.controller.images.metadata_records import chunks
from broker.controller.images.partition_image import PartitionImage
from broker.controller.store.metadata_store import Put
from broker.controller.topics.topics import NewTopic
from broker.handlers import metadata
from protocol.error_codes import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.fakes.broker.controller import CLUSTER_ID, context_of, open_controller, services_of
from tests.fakes.broker.metadata_store import MemoryStore
from tests.fakes.broker.wire import call, versions_of

VERSIONS = versions_of(metadata)


def ask(*names: str, create: bool = False, **options: bool) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
        **options,
    )


def errors_of(response: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in response.topics}


async def created(controller: Controller, name: str) -> TopicImage | None:
    """The topic once its creation, which a request has begun, is over."""
    creation = controller.auto_create(name)
    assert creation is not None
    return (await creation).topic


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_topics(version: int) -> None:
    """Null, or in version 0 an empty list; with everything the version has fields for."""
    controller = await open_controller(broker_rack="r1")
    await controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 1, 1)])
    await controller.ensure_internal_topic("__consumer_offsets")
    request = MetadataRequest(topics=[] if version == 0 else None)
    response = await call(metadata, services_of(controller), request, version)
    assert errors_of(response) == dict.fromkeys(("a", "b", "__consumer_offsets"), ErrorCode.NONE)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "broker.example", 9092)
    topic = response.topics[0]
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    partition = topic.partitions[1]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
    if version >= 1:
        assert broker.rack == "r1"
        assert response.controller_id == 1
        assert [t.is_internal for t in response.topics] == [False, False, True]
    if version >= 2:
        assert response.cluster_id == CLUSTER_ID
    if version >= 5:
        assert partition.offline_replicas == []
    if version >= 7:
        assert partition.leader_epoch == 0
    if version >= 8:
        assert topic.topic_authorized_operations == -(2**31)
    if version >= 10:
        assert topic.topic_id == controller.image.topics["a"].topic_id


@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_empty_list_asks_for_no_topics(version: int) -> None:
    """Clients use it to find brokers."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    response = await call(metadata, services_of(controller), ask(), version)
    assert response.topics == []
    assert len(response.brokers) == 1


@pytest.mark.parametrize("version", VERSIONS[4:])
async def test_unknown_names_are_told(version: int) -> None:
    """Illegal ones as such; each once, in the order asked for."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    request = ask("none", "a", "bad name", "none", "__consumer_offsets")
    response = await call(metadata, services_of(controller), request, version)
    assert [(t.name, ErrorCode(t.error_code)) for t in response.topics] == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert [t.is_internal for t in response.topics] == [False, False, False, True]
    assert set(controller.image.topics) == {"a"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_missing_topics_are_unknown_and_created_afterwards(version: int) -> None:
    """Before version 4 a client cannot say that it does not want that."""
    controller = await open_controller(num_partitions=3)
    request = ask("new", "bad name", create=True)
    response = await call(metadata, services_of(controller), request, version)
    assert errors_of(response) == {
        "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    await created(controller, "new")
    assert set(controller.image.topics) == {"new"}
    response = await call(metadata, services_of(controller), ask("new", create=True), version)
    assert errors_of(response) == {"new": ErrorCode.NONE}
    assert len(response.topics[0].partitions) == 3


async def test_broker_may_forbid_automatic_creation() -> None:
    controller = await open_controller(auto_create_topics_enable=False)
    response = await call(metadata, services_of(controller), ask("new", create=True), 12)
    assert errors_of(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert controller.image.topics == {}


async def test_internal_topic_is_created_with_its_own_settings() -> None:
    controller = await open_controller(offsets_topic_num_partitions=5)
    request = ask("__consumer_offsets", create=True)
    response = await call(metadata, services_of(controller), request, 12)
    assert response.topics[0].is_internal
    topic = await created(controller, "__consumer_offsets")
    assert topic is not None
    assert len(topic.partitions) == 5
    assert topic.overrides["cleanup.policy"] == "compact"


async def test_name_that_collides_stays_unknown() -> None:
    """That it collides is found by whoever creates it, which nobody waits for."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a.b", 1, 1)])
    for _ in range(2):
        response = await call(metadata, services_of(controller), ask("a_b", create=True), 12)
        assert errors_of(response) == {"a_b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert await created(controller, "a_b") is None


async def test_topic_that_cannot_be_created_is_unknown() -> None:
    """As in Kafka; the reason is in the log."""
    controller = await open_controller(default_replication_factor=3)
    response = await call(metadata, services_of(controller), ask("new", create=True), 12)
    assert errors_of(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_many_who_ask_share_one_creation() -> None:
    store = MemoryStore()
    controller = await open_controller(store)
    services = services_of(controller)
    store.gate.clear()
    for _ in range(3):
        response = await call(metadata, services, ask("new", create=True), 12)
        assert errors_of(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    before = store.disk.revision
    store.gate.set()
    assert await created(controller, "new") is not None
    assert store.disk.revision == before + 1


@pytest.mark.parametrize("version", [12, 13])
async def test_topics_by_id(version: int) -> None:
    """Unknown ids have no name; names beside ids are ignored, as in Kafka."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1), NewTopic("b", 1, 1)])
    known, unknown = controller.image.topics["a"].topic_id, UUID(int=77)
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(topic_id=unknown, name=None),
            MetadataRequestTopic(topic_id=known, name=None),
            MetadataRequestTopic(name="b"),
        ]
    )
    response = await call(metadata, services_of(controller), request, version)
    assert [(t.name, t.topic_id, ErrorCode(t.error_code)) for t in response.topics] == [
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
        ("a", known, ErrorCode.NONE),
    ]


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_before_version_12_are_refused(version: int) -> None:
    """The field is there, but never worked: Kafka answers INVALID_REQUEST for every topic."""
    controller = await open_controller()
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(topic_id=UUID(int=7), name=None),
            MetadataRequestTopic(name="b"),
        ]
    )
    response = await call(metadata, services_of(controller), request, version)
    assert [(t.name, ErrorCode(t.error_code)) for t in response.topics] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    assert controller.image.topics == {}


async def test_neither_name_nor_id_is_refused() -> None:
    controller = await open_controller()
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    response = await call(metadata, services_of(controller), request, 13)
    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS[8:])
async def test_authorized_operations_when_asked(version: int) -> None:
    """All that make sense, while there is no authorizer; of the cluster only up to version 10."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    options = {"include_topic_authorized_operations": True}
    if version <= 10:
        options["include_cluster_authorized_operations"] = True
    asked = (
        ask("a", **options),
        ask("none", **options),
        MetadataRequest(topics=None, **options),
    )
    for request in asked:
        response = await call(metadata, services_of(controller), request, version)
        assert response.topics[0].topic_authorized_operations == 3576
        if version <= 10:
            assert response.cluster_authorized_operations == 8096
    plain = await call(metadata, services_of(controller), MetadataRequest(topics=None), version)
    assert plain.topics[0].topic_authorized_operations == -(2**31)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (0, ErrorCode.LEADER_NOT_AVAILABLE),
        (5, ErrorCode.LEADER_NOT_AVAILABLE),
        (6, ErrorCode.LISTENER_NOT_FOUND),
        (13, ErrorCode.LISTENER_NOT_FOUND),
    ],
)
async def test_listener_the_leader_does_not_have(version: int, error: ErrorCode) -> None:
    """No broker is told, and why there is no leader depends on the version."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    response = await call(metadata, services_of(controller), ask("a"), version, listener="OTHER")
    (partition,) = response.topics[0].partitions
    assert response.brokers == []
    assert (partition.leader_id, partition.error_code) == (-1, error)
    if version == 0:
        assert partition.replica_nodes == []
    elif version >= 5:
        assert (partition.replica_nodes, partition.offline_replicas) == ([1], [1])


async def test_endpoints_are_those_of_the_clients_listener() -> None:
    controller = await open_controller()
    controller.advertise(
        {"INSIDE": BrokerEndpoint("inside", 1), "OUTSIDE": BrokerEndpoint("outside", 2)}
    )
    for listener, host in (("INSIDE", "inside"), ("OUTSIDE", "outside")):
        response = await call(
            metadata, services_of(controller), MetadataRequest(topics=None), 9, listener=listener
        )
        assert [b.host for b in response.brokers] == [host]


async def test_answers_about_all_topics_are_kept_until_something_changes() -> None:
    """The same bytes, and never old ones: topics, settings of brokers, endpoints."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    services, context = services_of(controller), context_of(metadata.API_KEY, 12)
    request = MetadataRequest(topics=None)
    first = metadata.handle(services, context, request)
    assert isinstance(first, bytes)
    assert metadata.handle(services, context, request) is first
    assert metadata.handle(services, context_of(metadata.API_KEY, 9), request) != first
    await controller.create_topics([NewTopic("b", 1, 1)])
    second = await call(metadata, services, request, 12)
    assert set(errors_of(second)) == {"a", "b"}
    controller.advertise({"PLAINTEXT": BrokerEndpoint("moved", 1)})
    third = await call(metadata, services, request, 12)
    assert third.brokers[0].host == "moved"
    await controller.delete_topics([controller.image.topics["a"].topic_id])
    assert set(errors_of(await call(metadata, services, request, 12))) == {"b"}


async def test_who_may_have_been_replaced_does_not_name_itself() -> None:
    """Neither to who asks for all topics, from the cache, nor to who asks for one."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    services = services_of(controller)
    for topics in (None, [MetadataRequestTopic(name="a")]):
        for isolated in (False, True, False):
            controller.is_isolated = partial(bool, isolated)
            response = await call(metadata, services, MetadataRequest(topics=topics), 9)
            named = [broker.node_id for broker in response.brokers]
            assert named == ([] if isolated else [controller.settings.node_id])


async def test_structures_of_deleted_topics_are_not_kept() -> None:
    """The cache of partitions does not grow with every topic there ever was."""
    controller = await open_controller()
    services, request = services_of(controller), MetadataRequest(topics=None)
    for number in range(5):
        (result,) = await controller.create_topics([NewTopic(f"t{number}", 1, 1)])
        await call(metadata, services, request, 12)
        assert result.topic is not None
        await controller.delete_topics([result.topic.topic_id])
    await call(metadata, services, request, 12)
    assert [len(kept) for kept in controller.topic_metadata._kept.values()] == [0]


async def test_partition_without_a_leader_is_told() -> None:
    """Its leader is not among the brokers."""
    store = MemoryStore()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("a", 1, 1)])
    topic_id = controller.image.topics["a"].topic_id
    moved = chunks(topic_id, [PartitionImage(0, 9, 4, 4, (9,), (9,))])
    await store.txn(then=[Put(key, value) for key, value in moved])
    again = await open_controller(MemoryStore(disk=store.disk))
    response = await call(metadata, services_of(again), ask("a"), 12)
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (-1, 4)
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert partition.offline_replicas == [9]
