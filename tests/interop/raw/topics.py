"""Scripts about topics: automatic creation, elections of leaders."""

from collections.abc import Sequence

from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.update_features import UpdateFeaturesRequest
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script


def ask(
    d: Dialogue, what: str, *names: str, version: int = 12, create: bool = True
) -> list[ErrorCode]:
    """Metadata of topics; notes error and number of partitions."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
    )
    topics = sorted(d.ask_quietly(request, version).topics, key=lambda topic: str(topic.name))
    codes = [ErrorCode(topic.error_code) for topic in topics]
    d.note(
        what,
        [
            (topic.name, code.name, len(topic.partitions), topic.is_internal)
            for topic, code in zip(topics, codes, strict=True)
        ],
    )
    return codes


def wait_for(d: Dialogue, name: str) -> None:
    """Until the topic is there."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    d.wait(lambda: not d.ask_quietly(request, 12).topics[0].error_code, f"topic {name}")


@script
def topics_that_asking_creates(d: Dialogue) -> None:
    """The first answer is that there is none, in every version; then there is one."""
    for version in (1, 3, 4, 9, 12, 13):
        name = f"{d.name}-{version}"
        ask(d, f"v{version}", name, version=version)
        wait_for(d, name)
        ask(d, f"v{version} again", name, version=version)
    ask(d, "bad names", "", ".", "a b", "x" * 250)
    ask(d, "not wanted", f"{d.name}-other", create=False)
    ask(d, "not wanted either", f"{d.name}-other", create=False)


@script
def topics_that_collide(d: Dialogue) -> None:
    """Who asks is told that there is none, as often as it asks."""
    ask(d, "dot", f"{d.name}.a")
    wait_for(d, f"{d.name}.a")
    for number in range(3):
        ask(d, f"bar {number}", f"{d.name}_a")
    ask(d, "both", f"{d.name}_a", f"{d.name}.a")


@script
def topics_that_come_back(d: Dialogue) -> None:
    """Whoever looks whether a deleted topic is gone is told so, and brings it back by asking."""
    for create in (False, True):
        topic = d.create_topic(f"-{create}", partitions=3)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
        d.ask_quietly(request)
        # Kafka's brokers learn of a deletion a moment after its answer.
        gone = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        d.wait(lambda: d.ask_quietly(gone, 12).topics[0].error_code, f"end of {topic}")  # noqa: B023  because it is over before the next
        ask(d, f"{create} gone", topic, create=create)
        if create:
            wait_for(d, topic)
        ask(d, f"{create} then", topic, create=create)


@script
def deletions_that_name_a_topic_in_two_ways(d: Dialogue) -> None:
    """Refused, and the topic stays; also where its id alone was refused."""
    topic = d.create_topic()
    by_name, by_id = DeleteTopicState(name=topic), DeleteTopicState(topic_id=d.topic_id(topic))
    for what, asked in (
        ("name twice", [by_name, by_name]),
        ("id twice", [by_id, by_id]),
        ("id and name", [by_id, by_name]),
        ("id twice and name", [by_id, by_id, by_name]),
        ("name between", [by_id, by_name, by_id]),
        ("id and name in one", [DeleteTopicState(name=topic, topic_id=d.topic_id(topic))]),
        ("neither", [DeleteTopicState()]),
    ):
        d.ask(what, DeleteTopicsRequest(topics=asked, timeout_ms=10_000))
        ask(d, f"{what}, then", topic, create=False)


@script
def elections_that_change_nothing(d: Dialogue) -> None:
    """Each topic of the request has its result, and each partition; without a list all topics."""
    topic = d.create_topic(partitions=2)
    for version, kind in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, -1)):
        for what, pairs in (
            ("none", []),
            ("one", [(topic, [0])]),
            ("no partitions", [(topic, [])]),
            ("no such partition", [(topic, [1, 7, -1])]),
            ("one twice", [(topic, [0, 0])]),
            ("a topic twice", [(topic, [0]), (topic, [1]), (topic, [0])]),
            ("no such topic", [(f"{topic}-none", [0]), ("", [0])]),
        ):
            request = ElectLeadersRequest(
                election_type=kind,
                topic_partitions=[
                    TopicPartitions(topic=name, partitions=indexes) for name, indexes in pairs
                ],
            )
            d.ask(f"v{version} type {kind}, {what}", request, version)
        answer = d.ask_quietly(
            ElectLeadersRequest(election_type=kind, topic_partitions=None), version
        )
        # Other scripts create and delete topics meanwhile.
        answer.replica_election_results = [
            result for result in answer.replica_election_results if result.topic == topic
        ]
        d.note(f"v{version} type {kind}, all", answer)


def _create(d: Dialogue, what: str, topics: Sequence[CreatableTopic], version: int = 7) -> None:
    """Try to create topics, and note the errors."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=True)
    results = d.ask_quietly(request, version).topics
    d.note(what, sorted((one.name, ErrorCode(one.error_code).name) for one in results))


@script
def topics_that_may_not_be_created(d: Dialogue) -> None:
    """By their names, numbers, replicas and settings; each by itself."""
    there = d.create_topic(".there")
    names = ("", ".", "..", "a b", "a/b", "x" * 249, "x" * 250, "__cluster_metadata", there)
    for version in (2, 4, 7):
        named = [CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in names]
        _create(d, f"v{version} names", [*named, named[5], named[8]], version)
        _create(
            d,
            f"v{version} numbers",
            [
                CreatableTopic(
                    name=f"{d.name}-{count}-{factor}",
                    num_partitions=count,
                    replication_factor=factor,
                )
                for count in (-2, -1, 0, 1)
                for factor in (-2, -1, 0, 1, 2)
            ],
            version,
        )
    big = [CreatableTopic(name=f"{d.name}-{n}", num_partitions=6_000) for n in range(2)]
    for one in big:
        one.replication_factor = 1
    _create(d, "too many partitions", big)
    _create(d, "too like another", [CreatableTopic(name=f"{d.name}_there", num_partitions=1)])
    replicas: list[dict[int, list[int]]] = [
        {0: [1]},
        {0: []},
        {0: [1, 1]},
        {0: [7]},
        {0: [-1]},
        {1: [1]},
        {-1: [1]},
        {0: [1], 2: [1]},
        {0: [1], 1: [1, 7]},
        {0: [1], 1: []},
    ]
    for number, assignments in enumerate(replicas):
        for count, factor in ((-1, -1), (1, -1), (-1, 1)):
            topic = CreatableTopic(
                name=f"{d.name}-{number}",
                num_partitions=count,
                replication_factor=factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
                    for index, nodes in assignments.items()
                ],
            )
            _create(d, f"replicas {assignments}, {count} and {factor}", [topic])
    for key, value in (
        ("retention.ms", None),
        ("retention.ms", ""),
        ("retention.ms", " 1000 "),
        ("retention.ms", "-2"),
        ("retention.ms", "9223372036854775808"),
        ("nothing", "1"),
        ("", "1"),
        ("RETENTION.MS", "1"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,"),
        ("compression.type", "ZSTD"),
        ("compression.zstd.level", "23"),
        ("preallocate", "TRUE"),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.insync.replicas", "99"),
        ("segment.bytes", "2147483648"),
        ("leader.replication.throttled.replicas", "0:1,*"),
        ("message.timestamp.type", "logappendtime"),
        ("message.format.version", "2.0"),
        ("local.retention.ms", "-3"),
        ("segment.ms", "0"),
    ):
        setting = CreatableTopicConfig(name=key, value=value)
        topic = CreatableTopic(
            name=d.name, num_partitions=1, replication_factor=1, configs=[setting]
        )
        _create(d, f"{key}={value}", [topic])


@script
def pages_of_partitions(d: Dialogue) -> None:
    """As many partitions as one may have, from the cursor on; a cursor has to be of a topic."""
    first, last = d.create_topic("-a", partitions=3), d.create_topic("-b", partitions=2)
    for limit in (2_000, 0, -1, 1, 2, 3, 4, 5):
        for what, names, cursor in (
            ("both", (last, first), None),
            ("twice", (first, first), None),
            ("one that is not there", (first, f"{first}-none", last), None),
            ("a name that none has", ("a b", first), None),
            ("from the second on", (first, last), (first, 1)),
            ("from the end on", (first, last), (first, 3)),
            ("from behind the end on", (first, last), (first, 9)),
            ("from another topic on", (first, last), (last, 1)),
            ("negative", (first, last), (first, -1)),
            ("not asked for", (first, last), (f"{first}x", 0)),
            ("not there any more", (first, last, f"{first}x"), (f"{first}x", 2)),
        ):
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names],
                response_partition_limit=limit,
            )
            if cursor is not None:
                request.cursor = DescribeTopicPartitionsRequestCursor(
                    topic_name=cursor[0], partition_index=cursor[1]
                )
            d.ask(f"{what}, {limit}", request)


@script
def changes_without_time(d: Dialogue) -> None:
    """A time-out of nothing, or less, is over before the controller begins: nothing is changed."""
    topic = d.create_topic(partitions=2)
    for timeout_ms in (0, -1, -(2**31)):
        name = f"{d.name}-{timeout_ms}"
        _create_without_time(d, name, timeout_ms)
        _extend_without_time(d, topic, name, timeout_ms)
        _delete_without_time(d, topic, name, timeout_ms)
        moved, kept = ReassignablePartition(replicas=[1]), ReassignablePartition(replicas=None)
        for what, moves in (
            ("nothing", []),
            ("no partition", [ReassignableTopic(name=topic)]),
            ("one", [ReassignableTopic(name=topic, partitions=[moved])]),
            ("back", [ReassignableTopic(name=topic, partitions=[kept])]),
        ):
            request = AlterPartitionReassignmentsRequest(topics=moves, timeout_ms=timeout_ms)
            for version in (0, 1):
                d.ask(f"move {what} v{version} {timeout_ms}", request, version)
        d.ask(f"moves {timeout_ms}", ListPartitionReassignmentsRequest(timeout_ms=timeout_ms))
        for what, pairs in (
            ("one", [TopicPartitions(topic=topic, partitions=[0, 9])]),
            ("none", []),
            ("all", None),
        ):
            for version, kind in ((0, 0), (1, 0), (2, 1), (2, 7)):
                election = ElectLeadersRequest(
                    election_type=kind, timeout_ms=timeout_ms, topic_partitions=pairs
                )
                d.ask(f"elect {what} v{version} type {kind} {timeout_ms}", election, version)
        d.ask(f"features {timeout_ms}", UpdateFeaturesRequest(timeout_ms=timeout_ms))
        ask(d, f"then {timeout_ms}", topic, name, create=False)


def _create_without_time(d: Dialogue, name: str, timeout_ms: int) -> None:
    new = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    bad = CreatableTopic(name="a b", num_partitions=1, replication_factor=1)
    raft = CreatableTopic(name="__cluster_metadata", num_partitions=1, replication_factor=1)
    for what, topics in (
        ("one", [new]),
        ("none", []),
        ("two of a name", [new, new]),
        ("a bad name", [bad, new]),
        ("a bad name twice", [bad, bad, new]),
        ("the controller's", [raft]),
        ("the controller's and one", [raft, new]),
    ):
        for version, only_validate in ((2, False), (4, False), (5, True), (7, False)):
            request = CreateTopicsRequest(
                topics=topics, timeout_ms=timeout_ms, validate_only=only_validate
            )
            d.ask(f"create {what} v{version} {timeout_ms}", request, version)


def _extend_without_time(d: Dialogue, topic: str, other: str, timeout_ms: int) -> None:
    for what, names in (
        ("one", [topic]),
        ("none", []),
        ("what is not there", [other]),
        ("one twice", [topic, topic]),
        ("one twice and another", [topic, topic, other]),
    ):
        for version, only_validate in ((0, False), (2, True), (3, False)):
            request = CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=name, count=3) for name in names],
                timeout_ms=timeout_ms,
                validate_only=only_validate,
            )
            d.ask(f"extend {what} v{version} {timeout_ms}", request, version)


def _delete_without_time(d: Dialogue, topic: str, other: str, timeout_ms: int) -> None:
    for what, names in (
        ("one", [topic]),
        ("none", []),
        ("what is not there", [other]),
        ("one twice", [topic, topic]),
        ("one twice and another", [topic, topic, other]),
    ):
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
        for version in (1, 4, 5):
            d.ask(f"delete {what} v{version} {timeout_ms}", request, version)
    by_name, by_id = DeleteTopicState(name=topic), DeleteTopicState(topic_id=d.topic_id(topic))
    in_two_ways = DeleteTopicState(name=topic, topic_id=d.topic_id(topic))
    neither = DeleteTopicState()
    for what, states in (
        ("name", [by_name]),
        ("id", [by_id]),
        ("id twice", [by_id, by_id]),
        ("id and name", [by_id, by_name]),
        ("id twice and name", [by_id, by_id, by_name]),
        ("both in one", [in_two_ways]),
        ("both in one and name", [in_two_ways, by_name]),
        ("neither", [neither]),
        ("neither and name", [neither, by_name]),
    ):
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
        d.ask(f"delete by {what} {timeout_ms}", request)
