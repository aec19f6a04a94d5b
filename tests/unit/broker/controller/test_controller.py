"""The controller: what it stores, what it tells, and in which order."""

import asyncio
from uuid import UUID

import pytest

from broker.controller.cluster_opening import ClusterIdError
from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.controller import (
    Controller,
    RemoteStorageDisabledError,
)
from broker.controller.images.cluster_image import (
    BrokerEndpoint,
    ClusterImage,
    ConfigResource,
    ResourceType,
)
from broker.controller.store.metadata_store import Put
from broker.controller.topics.topics import NewPartitions, NewTopic
from broker.runtime.errors import ApiError
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.randomness import SeededRandomness
from tests.fakes.broker.controller import CLUSTER_ID, open_controller
from tests.fakes.broker.metadata_store import Fault, MemoryStore

TOPIC = ResourceType.TOPIC


async def reopened(controller: Controller, store: MemoryStore) -> Controller:
    """What the next process finds, without anybody having closed anything."""
    return await open_controller(MemoryStore(disk=store.disk), seed=99)


def same(one: ClusterImage, two: ClusterImage) -> bool:
    return (
        one.topics == two.topics
        and one.topics_by_id == two.topics_by_id
        and one.configs == two.configs
        and one.cluster_id == two.cluster_id
        and one.revision == two.revision
    )


async def test_created_topic_is_there_everywhere() -> None:
    """In the answer, in the image by name and by id, and after a restart."""
    store = MemoryStore()
    controller = await open_controller(store)
    (result,) = await controller.create_topics(
        [NewTopic("t", 3, 1, configs=[("retention.ms", "1000")])]
    )
    assert (result.name, result.error, result.message) == ("t", ErrorCode.NONE, None)
    topic = controller.image.topics["t"]
    assert result.topic == topic
    assert controller.image.topics_by_id[topic.topic_id] is topic
    assert [p.index for p in topic.partitions] == [0, 1, 2]
    assert topic.overrides == {"retention.ms": "1000"}
    assert topic.topic_id.version == 4
    assert same((await reopened(controller, store)).image, controller.image)


async def test_each_topic_of_a_request_stands_by_itself() -> None:
    """Refused ones do not keep others from being created; results are in order."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("there", 1, 1), NewTopic("a.b", 1, 1)])
    results = await controller.create_topics(
        [
            NewTopic("new", 1, 1),
            NewTopic("there", 1, 1),
            NewTopic("bad name", 1, 1),
            NewTopic("a_b", 1, 1),
            NewTopic("x", 1, 2),
            NewTopic("y", 1, 1, configs=[("no.such.key", "1")]),
            NewTopic("z", 1, 1, configs=[("retention.ms", None)]),
            NewTopic("c.d", 1, 1),
            NewTopic("c_d", 1, 1),
        ]
    )
    assert [(r.name, r.error) for r in results] == [
        ("new", ErrorCode.NONE),
        ("there", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x", ErrorCode.INVALID_REPLICATION_FACTOR),
        ("y", ErrorCode.INVALID_CONFIG),
        ("z", ErrorCode.INVALID_CONFIG),
        ("c.d", ErrorCode.NONE),
        ("c_d", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert results[1].message == "Topic 'there' already exists."
    assert results[3].message == "Topic 'a_b' collides with existing topic: a.b"
    assert set(controller.image.topics) == {"there", "a.b", "new", "c.d"}


async def test_too_large_a_request_is_refused_for_every_topic() -> None:
    controller = await open_controller()
    results = await controller.create_topics([NewTopic("a", 1, 1), NewTopic("b", 10_000, 1)])
    assert {r.error for r in results} == {ErrorCode.POLICY_VIOLATION}
    assert controller.image.topics == {}


async def test_validate_only_changes_nothing() -> None:
    """But answers as the real thing would."""
    store = MemoryStore()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("there", 1, 1)])
    before, commits = controller.image, store.commits
    good, bad = await controller.create_topics(
        [NewTopic("t", 4, 1), NewTopic("there", 1, 1)], validate_only=True
    )
    assert good.topic is not None
    assert len(good.topic.partitions) == 4
    assert bad.error is ErrorCode.TOPIC_ALREADY_EXISTS
    extended = await controller.create_partitions(
        [NewPartitions("there", 3), NewPartitions("none", 3)], validate_only=True
    )
    assert [r.error for r in extended] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    resource = ConfigResource(TOPIC, "there")
    altered = await controller.alter_configs({resource: {"retention.ms": "1"}}, validate_only=True)
    assert altered[resource].error is ErrorCode.NONE
    assert controller.image is before
    assert store.commits == commits


async def test_listeners_run_after_the_commit_and_before_the_answer() -> None:
    """What they see is durable, in order, old and new; the answer waits for them."""
    store = MemoryStore()
    controller = await open_controller(store)
    seen: list[tuple[str, ...]] = []
    release = asyncio.Event()

    async def slow(old: ClusterImage, new: ClusterImage) -> None:
        durable = {k.removeprefix("topics/") for k in store.disk.items if k.startswith("topics/")}
        assert durable == set(new.topics)
        assert controller.image is new
        seen.append(("slow", *sorted(set(new.topics) - set(old.topics))))
        await release.wait()

    async def quick(old: ClusterImage, new: ClusterImage) -> None:
        seen.append(("quick", *sorted(set(new.topics) - set(old.topics))))

    controller.subscribe(slow)
    controller.subscribe(quick)
    one = asyncio.ensure_future(controller.create_topics([NewTopic("a", 1, 1)]))
    two = asyncio.ensure_future(controller.create_topics([NewTopic("b", 1, 1)]))
    for _ in range(20):
        await asyncio.sleep(0)
    assert seen == [("slow", "a")]
    assert not one.done()
    release.set()
    await asyncio.gather(one, two)
    assert seen == [("slow", "a"), ("quick", "a"), ("slow", "b"), ("quick", "b")]


async def test_failing_listener_does_not_undo_the_change(caplog: pytest.LogCaptureFixture) -> None:
    """The metadata is the truth; the others are told all the same, and the failure is logged."""
    controller = await open_controller()
    told: list[str] = []

    async def broken(old: ClusterImage, new: ClusterImage) -> None:
        raise OSError("disk full")

    async def fine(old: ClusterImage, new: ClusterImage) -> None:
        told.extend(new.topics)

    controller.subscribe(broken)
    controller.subscribe(fine)
    (result,) = await controller.create_topics([NewTopic("a", 1, 1)])
    assert result.error is ErrorCode.NONE
    assert told == ["a"]
    assert "disk full" in caplog.text


async def test_client_that_leaves_does_not_stop_its_change() -> None:
    """It is carried out to the end, listeners included."""
    store = MemoryStore()
    controller = await open_controller(store)
    told: list[str] = []

    async def listen(old: ClusterImage, new: ClusterImage) -> None:
        told.extend(new.topics)

    controller.subscribe(listen)
    store.gate.clear()
    creating = asyncio.ensure_future(controller.create_topics([NewTopic("a", 1, 1)]))
    await asyncio.sleep(0)
    creating.cancel()
    await asyncio.gather(creating, return_exceptions=True)
    store.gate.set()
    await controller.aclose()
    assert told == ["a"]
    assert "a" in controller.image.topics


async def test_thousand_topics_are_a_few_transactions() -> None:
    """One call, about twenty commits, an image of each."""
    store = MemoryStore()
    controller = await open_controller(store)
    calls = 0

    async def listen(old: ClusterImage, new: ClusterImage) -> None:
        nonlocal calls
        calls += 1

    controller.subscribe(listen)
    before = store.commits
    results = await controller.create_topics([NewTopic(f"t{i}", 1, 1) for i in range(1000)])
    assert {r.error for r in results} == {ErrorCode.NONE}
    assert store.commits - before <= 1000 * 2 // 126 + 1
    assert calls == store.commits - before


async def test_store_that_refuses_is_told_per_topic() -> None:
    """With the retriable code that says nobody knows, and nothing is there."""
    store = MemoryStore()
    controller = await open_controller(store)
    store.faults = [Fault.REFUSED]
    (result,) = await controller.create_topics([NewTopic("a", 1, 1)])
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    assert result.error.retriable
    assert result.topic is None
    assert controller.image.topics == {}
    (again,) = await controller.create_topics([NewTopic("a", 1, 1)])
    assert again.error is ErrorCode.NONE


async def test_part_of_a_request_that_was_stored_is_there() -> None:
    """The first pack is stored, the second refused: image and answers agree."""
    store = MemoryStore()
    controller = await open_controller(store)
    store.faults = [None, Fault.REFUSED]
    results = await controller.create_topics([NewTopic(f"t{i}", 1, 1) for i in range(150)])
    created = {r.name for r in results if r.error is ErrorCode.NONE}
    assert 0 < len(created) < 150
    assert set(controller.image.topics) == created
    assert same((await reopened(controller, store)).image, controller.image)


async def test_topic_somebody_else_has_created_is_a_conflict() -> None:
    """Compare-and-set: what is in the store is not overwritten, and the others are created."""
    store = MemoryStore()
    controller = await open_controller(store)
    await store.txn(then=[Put("topics/b", b"not ours")])
    results = await controller.create_topics([NewTopic(n, 1, 1) for n in ("a", "b", "c")])
    assert [r.error is ErrorCode.NONE for r in results] == [True, False, True]
    assert set(controller.image.topics) == {"a", "c"}
    assert store.disk.items["topics/b"].value == b"not ours"


async def test_deleted_topic_leaves_nothing_behind() -> None:
    """No partitions, no settings; a new topic of the same name is another one."""
    store = MemoryStore()
    controller = await open_controller(store)
    (old,) = await controller.create_topics(
        [NewTopic("t", 300, 1, configs=[("retention.ms", "1")])]
    )
    assert old.topic is not None
    keys = set(store.disk.items)
    results = await controller.delete_topics([old.topic.topic_id])
    assert results == {old.topic.topic_id: results[old.topic.topic_id]}
    assert results[old.topic.topic_id].error is ErrorCode.NONE
    assert set(store.disk.items) == {"cluster/id", "features", "configs/broker/"}
    assert len(keys) == 8
    (new,) = await controller.create_topics([NewTopic("t", 1, 1)])
    assert new.topic is not None
    assert new.topic.topic_id != old.topic.topic_id
    assert new.topic.overrides == {}
    assert same((await reopened(controller, store)).image, controller.image)


async def test_unknown_topic_id_cannot_be_deleted() -> None:
    controller = await open_controller()
    result = (await controller.delete_topics([UUID(int=7)]))[UUID(int=7)]
    assert result.error is ErrorCode.UNKNOWN_TOPIC_ID


async def test_extended_topic_keeps_its_partitions() -> None:
    """Across chunks of the store, also after a restart."""
    store = MemoryStore()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("t", 100, 1)])
    old = controller.image.topics["t"]
    results = await controller.create_partitions(
        [NewPartitions("t", 300), NewPartitions("none", 1), NewPartitions("t2", 1)]
    )
    assert [r.error for r in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    new = controller.image.topics["t"]
    assert new.topic_id == old.topic_id
    assert new.partitions[:100] == old.partitions
    assert [p.index for p in new.partitions] == list(range(300))
    assert len(old.partitions) == 100
    assert same((await reopened(controller, store)).image, controller.image)


async def test_settings_are_set_deleted_and_replaced() -> None:
    """One by one, or all at once; the image and the next start agree."""
    store = MemoryStore()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("t", 1, 1, configs=[("retention.ms", "1")])])
    resource = ConfigResource(TOPIC, "t")
    await controller.incremental_alter_configs(
        {
            resource: [
                ConfigOperation("segment.bytes", Operation.SET, "2000000"),
                ConfigOperation("retention.ms", Operation.DELETE),
                ConfigOperation("cleanup.policy", Operation.APPEND, "compact"),
            ]
        }
    )
    assert controller.image.topics["t"].overrides == {
        "segment.bytes": "2000000",
        "cleanup.policy": "delete,compact",
    }
    await controller.incremental_alter_configs(
        {resource: [ConfigOperation("cleanup.policy", Operation.SUBTRACT, "delete")]}
    )
    assert controller.image.topics["t"].overrides["cleanup.policy"] == "compact"
    await controller.alter_configs({resource: {"flush.ms": "5"}})
    assert controller.image.topics["t"].overrides == {"flush.ms": "5"}
    assert same((await reopened(controller, store)).image, controller.image)
    await controller.alter_configs({resource: {}})
    assert controller.image.topics["t"].overrides == {}
    assert "configs/topic/t" not in store.disk.items


async def test_change_that_changes_nothing_is_not_stored() -> None:
    store = MemoryStore()
    controller = await open_controller(store)
    await controller.create_topics([NewTopic("t", 1, 1, configs=[("retention.ms", "1")])])
    commits = store.commits
    resource = ConfigResource(TOPIC, "t")
    results = await controller.alter_configs({resource: {"retention.ms": "1"}})
    assert results[resource].error is ErrorCode.NONE
    assert store.commits == commits


async def test_settings_of_a_topic_that_does_not_exist_are_refused() -> None:
    """After the settings themselves have been judged, as in Kafka."""
    controller = await open_controller()
    resource = ConfigResource(TOPIC, "none")
    good = await controller.alter_configs({resource: {"retention.ms": "1"}})
    assert good[resource].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert good[resource].message == "The topic 'none' does not exist."
    bad = await controller.alter_configs({resource: {"retention.ms": "x"}})
    assert bad[resource].error is ErrorCode.INVALID_CONFIG


async def test_broker_settings_take_effect_and_survive() -> None:
    """On all brokers, then on this one, over what it was started with."""
    store = MemoryStore()
    controller = await open_controller(store)
    everybody = ConfigResource(ResourceType.BROKER, "")
    me = ConfigResource(ResourceType.BROKER, "1")
    told: list[int] = []

    async def listen(old: ClusterImage, new: ClusterImage) -> None:
        told.append(controller.effective_settings.log_cleaner_backoff_ms)

    controller.subscribe(listen)
    for resource, value in ((everybody, "100"), (me, "200")):
        results = await controller.incremental_alter_configs(
            {resource: [ConfigOperation("log.cleaner.backoff.ms", Operation.SET, value)]}
        )
        assert results[resource].error is ErrorCode.NONE
    assert told == [100, 200]
    again = await reopened(controller, store)
    assert again.effective_settings.log_cleaner_backoff_ms == 200
    assert again.settings.log_cleaner_backoff_ms == BrokerConfig().log_cleaner_backoff_ms


async def test_internal_topic_is_created_once() -> None:
    """On one node, with default settings; and found again after a restart."""
    store = MemoryStore()
    controller = await open_controller(store)
    topics = await asyncio.gather(
        *(controller.ensure_internal_topic("__consumer_offsets") for _ in range(5))
    )
    assert len({topic.topic_id for topic in topics}) == 1
    topic = controller.image.topics["__consumer_offsets"]
    assert topic.internal
    assert len(topic.partitions) == BrokerConfig().offsets_topic_num_partitions
    assert topic.overrides["cleanup.policy"] == "compact"
    again = await reopened(controller, store)
    assert await again.ensure_internal_topic("__consumer_offsets") == topic


async def test_internal_topic_that_cannot_be_created_is_an_error() -> None:
    store = MemoryStore()
    controller = await open_controller(store)
    store.faults = [Fault.REFUSED]
    with pytest.raises(ApiError) as caught:
        await controller.ensure_internal_topic("__consumer_offsets")
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_cluster_id_is_given_once() -> None:
    """By the settings, the caller, or at random in Kafka's form; later starts keep it."""
    store = MemoryStore()

    async def start(wanted: str | None, **settings: object) -> str:
        controller = await Controller.open(
            MemoryStore(disk=store.disk),
            BrokerConfig().replace(**settings),
            randomness=SeededRandomness(1),
            cluster_id=wanted,
        )
        return controller.image.cluster_id

    drawn = await start(None)
    assert len(drawn) == 22
    assert await start(None) == drawn
    assert await start(drawn) == drawn
    with pytest.raises(ClusterIdError, match=drawn):
        await start(CLUSTER_ID)
    store = MemoryStore()
    assert await start(None, cluster_id=CLUSTER_ID) == CLUSTER_ID
    assert await start(CLUSTER_ID, cluster_id=CLUSTER_ID) == CLUSTER_ID


async def test_a_cluster_id_that_the_directories_contradict_is_refused() -> None:
    """Another cluster's disk is mounted, or the settings are another broker's."""
    with pytest.raises(ClusterIdError, match=r"log directories belong to cluster of-directories"):
        await Controller.open(
            MemoryStore(),
            BrokerConfig(cluster_id=CLUSTER_ID),
            randomness=SeededRandomness(1),
            cluster_id="of-directories",
        )


async def test_topic_ids_are_never_reserved_or_like_an_option() -> None:
    """Kafka's tools take an id that begins with a dash for an option."""

    class Drawn(SeededRandomness):
        def __init__(self) -> None:
            super().__init__(0)
            self.ids = [UUID(int=0), UUID(int=1), UUID(int=0xFB << 120), UUID(int=5)]

        def uuid4(self) -> UUID:
            return self.ids.pop(0) if self.ids else super().uuid4()

    controller = await Controller.open(
        MemoryStore(), BrokerConfig(), randomness=Drawn(), cluster_id=CLUSTER_ID
    )
    (result,) = await controller.create_topics([NewTopic("t", 1, 1)])
    assert result.topic is not None
    assert result.topic.topic_id == UUID(int=5)


async def test_advertised_endpoints_can_be_replaced() -> None:
    """Once the ports are known; the image changes, the stored state does not."""
    controller = await open_controller()
    before = controller.image
    controller.advertise({"PLAINTEXT": BrokerEndpoint("h", 12345)})
    after = controller.image
    assert after.brokers[1].listeners["PLAINTEXT"].port == 12345
    assert before.brokers[1].listeners["PLAINTEXT"].port == 9092
    assert after.revision == before.revision
    assert after.broker_revision > before.broker_revision


async def test_directories_that_do_not_work_stay_so_when_listeners_change() -> None:
    controller = await open_controller()
    controller.report_offline([UUID(int=2), UUID(int=1)])
    controller.advertise({"PLAINTEXT": BrokerEndpoint("h", 12345)})
    me = controller.image.brokers[1]
    assert me.failed_directories == (UUID(int=1), UUID(int=2))
    assert me.listeners["PLAINTEXT"].port == 12345
    controller.report_offline([])
    assert controller.image.brokers[1].failed_directories == ()


async def test_without_endpoints_the_settings_are_advertised() -> None:
    controller = await Controller.open(
        MemoryStore(), BrokerConfig(), randomness=SeededRandomness(0)
    )
    assert controller.image.brokers[1].listeners == {"PLAINTEXT": BrokerEndpoint("127.0.0.1", 9092)}


async def test_a_start_without_remote_storage_is_refused_while_topics_need_it() -> None:
    """With Kafka's sentence, and the names of some."""
    store = MemoryStore()
    controller = await open_controller(store, remote_log_storage_system_enable=True)
    configs = [("remote.storage.enable", "true")]
    topics = [NewTopic(f"t{n}", 1, 1, configs=configs) for n in range(7)]
    assert {r.error for r in await controller.create_topics(topics)} == {ErrorCode.NONE}
    with pytest.raises(
        RemoteStorageDisabledError,
        match=r"You have to delete all topics with the property remote\.storage\.enable=true "
        r"before disabling tiered storage cluster-wide \(7: t0, t1, t2, t3, t4\)",
    ):
        await open_controller(MemoryStore(disk=store.disk))
    await open_controller(MemoryStore(disk=store.disk), remote_log_storage_system_enable=True)


async def test_the_remote_logs_topic_gets_its_own_settings() -> None:
    """On disk when acknowledged, and never tiered itself."""
    controller = await open_controller(
        rlmm_config_remote_log_metadata_topic_num_partitions=4,
        remote_log_storage_system_enable=True,
    )
    topic = await controller.ensure_internal_topic("__remote_log_metadata")
    assert (len(topic.partitions), topic.replication_factor, topic.internal) == (4, 1, False)
    assert topic.overrides == {
        "cleanup.policy": "delete",
        "flush.messages": "1",
        "message.timestamp.after.max.ms": "9223372036854775807",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }
