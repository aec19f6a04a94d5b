"""A cluster in memory behind the few methods of kafka-python's clients that the commands use.

It answers as the library does: classes of errors where the library gives classes, dictionaries
where it gives dictionaries. `FakeCluster.admin`, `.producer` and `.consumer` are factories.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cli.admin.kafka_library import KafkaError, OffsetAndMetadata, OffsetSpec, TopicPartition

UNKNOWN_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG = 3, 36, 37, 40


def error_class(number: int) -> type[KafkaError]:
    """The library's class for an error code."""
    from kafka.errors import for_code

    found: type[KafkaError] = for_code(number)
    return found


@dataclass
class FakeRecord:
    """A record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp: int = 0
    key: bytes | None = None
    value: bytes | None = b""
    headers: Sequence[tuple[str, bytes]] = ()


@dataclass
class FakePartition:
    """`start` is the log start offset; records stand at their offset."""

    start: int = 0
    records: list[FakeRecord] = field(default_factory=list)
    leader: int = 1

    @property
    def end(self) -> int:
        return len(self.records)


@dataclass
class FakeTopic:
    partitions: list[FakePartition]
    configs: dict[str, str] = field(default_factory=dict)
    internal: bool = False


@dataclass
class FakeGroup:
    state: str = "Empty"
    members: list[dict[str, Any]] = field(default_factory=list)
    offsets: dict[Any, int] = field(default_factory=dict)
    type: str = "classic"
    """Or `consumer`, `share`; members are then as ConsumerGroupDescribe, ShareGroupDescribe say."""
    starts: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """Start offset and lag of a share group's partitions."""


class FakeCluster:
    """Broker 1 of a cluster of one."""

    def __init__(self) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.groups: dict[str, FakeGroup] = {}
        self.broker_configs: dict[str, str] = {}
        self.has_share_groups = True
        self.auto_create = True
        self.opened: list[dict[str, Any]] = []
        """Settings of every client so far."""
        self.closed = 0
        self.refuse: type[KafkaError] | None = None
        """An error every record sent comes back with."""

    def add_topic(self, name: str, *values: int, internal: bool = False) -> FakeTopic:
        """A topic with so many records in its partitions."""
        partitions = [
            FakePartition(records=[self._record(name, index, n) for n in range(count)])
            for index, count in enumerate(values or (0,))
        ]
        self.topics[name] = FakeTopic(partitions, internal=internal)
        return self.topics[name]

    @staticmethod
    def _record(topic: str, partition: int, offset: int) -> FakeRecord:
        value = b"%d-%d" % (partition, offset)
        return FakeRecord(topic, partition, offset, timestamp=1000 * offset, value=value)

    def partition(self, at: Any) -> FakePartition:
        found: FakePartition = self.topics[at.topic].partitions[at.partition]
        return found

    def open(self, settings: dict[str, Any]) -> None:
        self.opened.append(settings)

    def admin(self, **settings: Any) -> "FakeAdmin":
        self.open(settings)
        return FakeAdmin(self)

    def producer(self, **settings: Any) -> "FakeProducer":
        self.open(settings)
        return FakeProducer(self)

    def consumer(self, **settings: Any) -> "FakeConsumer":
        self.open(settings)
        return FakeConsumer(self, settings)


class FakeClient:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    def close(self) -> None:
        self.cluster.closed += 1


class FakeAdmin(FakeClient):
    """`KafkaAdminClient`."""

    def create_topics(self, topics: Mapping[str, Any], *, raise_errors: bool) -> dict[str, Any]:
        assert not raise_errors
        ((name, wanted),) = topics.items()
        if name in self.cluster.topics:
            said = f"Topic '{name}' already exists."
            return {"topics": [_answer(name, TOPIC_EXISTS, said)]}
        count = max(1, wanted["num_partitions"])
        topic = self.cluster.add_topic(name, *[0] * count)
        topic.configs = dict(wanted["configs"])
        answer = {"num_partitions": count, "replication_factor": 1, "topic_id": f"id-{name}"}
        return {"topics": [_answer(name) | answer]}

    def delete_topics(self, names: Iterable[str], *, raise_errors: bool) -> dict[str, Any]:
        assert not raise_errors
        answers = []
        for name in names:
            gone = self.cluster.topics.pop(name, None)
            answers.append(_answer(name, 0 if gone else UNKNOWN_TOPIC, "Some sentence."))
        return {"topics": answers}

    def create_partitions(self, counts: Mapping[str, int], *, raise_errors: bool) -> Any:
        assert not raise_errors
        ((name, count),) = counts.items()
        topic = self.cluster.topics.get(name)
        code, said = 0, None
        if topic is None:
            code = UNKNOWN_TOPIC
        elif count <= len(topic.partitions):
            code, said = INVALID_PARTITIONS, "That would not be an increase."
        else:
            topic.partitions += [FakePartition() for _ in range(count - len(topic.partitions))]
        return SimpleNamespace(results=[SimpleNamespace(error_code=code, error_message=said)])

    def delete_records(self, before: Mapping[Any, int]) -> dict[Any, Any]:
        ((at, offset),) = before.items()
        if at.topic not in self.cluster.topics:
            raise error_class(UNKNOWN_TOPIC)("a long text of the library")
        if offset > self.cluster.partition(at).end:
            raise error_class(1)("a long text of the library")
        self.cluster.partition(at).start = offset
        return {at: {"low_watermark": offset}}

    def describe_topics(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        wanted = self.cluster.topics if names is None else names
        return [self._metadata(name) for name in wanted]

    def _metadata(self, name: str) -> dict[str, Any]:
        topic = self.cluster.topics.get(name)
        partitions = [] if topic is None else list(enumerate(topic.partitions))
        return {
            "name": name,
            "topic_id": f"id-{name}",
            "error_code": UNKNOWN_TOPIC if topic is None else 0,
            "is_internal": topic is not None and topic.internal,
            # In no order, as a broker may answer.
            "partitions": [
                {
                    "partition_index": index,
                    "leader_id": partition.leader,
                    "replica_nodes": [1],
                    "isr_nodes": [1],
                }
                for index, partition in reversed(partitions)
            ],
        }

    def list_partition_offsets(self, wanted: Mapping[Any, Any]) -> dict[Any, Any]:
        return {at: SimpleNamespace(offset=self._offset(at, spec)) for at, spec in wanted.items()}

    def _offset(self, at: Any, spec: Any) -> int:
        assert self.cluster.partition(at).leader >= 0, "the library would not get an answer"
        partition = self.cluster.partition(at)
        if spec is OffsetSpec.EARLIEST:
            return partition.start
        if spec is OffsetSpec.LATEST:
            return partition.end
        later = [r.offset for r in partition.records if r.timestamp >= spec]
        return min(later, default=-1)

    def describe_log_dirs(self, partitions: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        topics = [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "partition_size": 100 * self.cluster.topics[name].partitions[index].end,
                        "is_future_key": False,
                    }
                    for index in indexes
                ],
            }
            for name, indexes in partitions.items()
        ]
        return [{"broker": 1, "log_dirs": [{"topics": topics}]}]

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": 1, "host": "h", "port": 9}]}

    def describe_configs(self, resources: Sequence[Any], *, config_filter: str) -> dict[str, Any]:
        assert config_filter == "all"
        answer: dict[str, Any] = {}
        for resource in resources:
            kind = resource.resource_type.name.lower()
            configs = self._configs(kind, resource.name)
            default = _config("d", "DEFAULT_CONFIG")
            answer.setdefault(kind, {})[resource.name] = {
                "a.default": default,
                **{key: _config(value, f"DYNAMIC_{kind.upper()}_CONFIG") for key, value in configs},
            }
        return answer

    def _configs(self, kind: str, name: str) -> Iterable[tuple[str, str]]:
        if kind == "topic":
            return self.cluster.topics[name].configs.items()
        return self.cluster.broker_configs.items()

    def alter_configs(self, resources: Sequence[Any], *, raise_on_unknown: bool) -> Any:
        assert not raise_on_unknown
        (resource,) = resources
        kind = resource.resource_type.name.lower()
        target = self.cluster.broker_configs
        if kind == "topic":
            if resource.name not in self.cluster.topics:
                said = f"The topic '{resource.name}' does not exist."
                return {kind: {resource.name: str(error_class(UNKNOWN_TOPIC)(said))}}
            target = self.cluster.topics[resource.name].configs
        for key, (operation, value) in resource.configs.items():
            if value == "bad":
                said = f"Invalid value bad for configuration {key}"
                return {kind: {resource.name: str(error_class(INVALID_CONFIG)(said))}}
            if operation.name == "SET":
                target[key] = value
            else:
                target.pop(key, None)
        return {kind: {resource.name: "OK"}}

    def list_groups(
        self,
        broker_ids: Sequence[int] | None = None,
        states_filter: Sequence[str] | None = None,
        types_filter: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        return [
            {
                "group_id": name,
                "group_state": group.state,
                "group_type": group.type,
                "protocol_type": "consumer",
            }
            for name, group in self.cluster.groups.items()
            if states_filter is None or group.state in states_filter
            if types_filter is None or group.type in types_filter
            if broker_ids is None or 1 in broker_ids
        ]

    def describe_groups(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self._group(name) for name in names}

    def _group(self, name: str) -> dict[str, Any]:
        group = self.cluster.groups.get(name)
        if group is not None and group.type != "classic":
            group = None
        return {
            "group_state": "Dead" if group is None else group.state,
            "error": "[Error 69] GroupIdNotFoundError" if group is None else None,
            "protocol_type": "consumer",
            "protocol_data": "range" if group and group.members else "",
            "members": [] if group is None else group.members,
        }

    def describe_consumer_groups(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        return {name: self._consumer_group(name) for name in names}

    def _consumer_group(self, name: str) -> dict[str, Any]:
        group = self.cluster.groups.get(name)
        if group is None or group.type != "consumer":
            return {"error_code": 69, "error_message": f"Group {name} not found."}
        return {
            "error_code": 0,
            "error_message": None,
            "group_state": group.state,
            "group_epoch": 7,
            "assignment_epoch": 6,
            "assignor_name": "uniform",
            "members": group.members,
        }

    def describe_share_groups(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        if not self.cluster.has_share_groups:
            raise error_class(35)()
        return {name: self._share_group(name) for name in names}

    def _share_group(self, name: str) -> dict[str, Any]:
        group = self.cluster.groups.get(name)
        if group is None or group.type != "share":
            return {"error_code": 69, "error_message": f"Group {name} not found."}
        return {
            "error_code": 0,
            "error_message": None,
            "group_state": group.state,
            "group_epoch": 5,
            "assignment_epoch": 4,
            "assignor_name": "simple",
            "members": group.members,
        }

    def share_group_offsets(self, name: str) -> dict[str, Any]:
        topics: dict[str, list[dict[str, int]]] = {}
        for at, (start, lag) in self.cluster.groups[name].starts.items():
            one = {"partition_index": at.partition, "start_offset": start, "lag": lag}
            topics.setdefault(at.topic, []).append(one | {"error_code": 0})
        listed = [{"topic_name": topic, "partitions": found} for topic, found in topics.items()]
        return {"error_code": 0, "error_message": None, "topics": listed}

    def remove_group_members(self, name: str, members: Sequence[Any]) -> dict[Any, Any]:
        group = self.cluster.groups[name]
        # By name, whatever the library's documentation says.
        return {
            member.member_id or member.group_instance_id: error_class(
                self._remove_member(group, member)
            )
            for member in members
        }

    @staticmethod
    def _remove_member(group: FakeGroup, member: Any) -> int:
        for one in group.members:
            if member.group_instance_id:
                found = one.get("group_instance_id") == member.group_instance_id
            else:
                found = one["member_id"] == member.member_id
            if found:
                group.members.remove(one)
                return 0
        return 25

    def list_group_offsets(self, wanted: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
        ((name, partitions),) = wanted.items()
        committed = self.cluster.groups[name].offsets if name in self.cluster.groups else {}
        if partitions is None:
            partitions = committed
        return {name: {at: OffsetAndMetadata(committed.get(at, -1), "", -1) for at in partitions}}

    def delete_groups(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self._delete_group(name) for name in names}

    def _delete_group(self, name: str) -> str:
        if name not in self.cluster.groups:
            return "GroupIdNotFoundError"
        if self.cluster.groups[name].members:
            return "NonEmptyGroupError"
        del self.cluster.groups[name]
        return "OK"

    def delete_group_offsets(self, name: str, partitions: Sequence[Any]) -> dict[Any, Any]:
        group = self.cluster.groups[name]
        number = 86 if group.members else 0
        for at in partitions:
            if not number:
                group.offsets.pop(at, None)
        return {at: error_class(number) for at in partitions}

    def alter_group_offsets(self, name: str, offsets: Mapping[Any, Any]) -> dict[Any, Any]:
        group = self.cluster.groups.setdefault(name, FakeGroup())
        number = 25 if group.members else 0
        if not number:
            group.offsets |= {at: found.offset for at, found in offsets.items()}
        return {at: error_class(number) for at in offsets}


def _answer(name: str, error_code: int = 0, message: str | None = None) -> dict[str, Any]:
    return {"name": name, "error_code": error_code, "error_message": message}


def _config(value: str, source: str) -> dict[str, Any]:
    return {
        "value": value,
        "config_source": source,
        "is_sensitive": value == "secret",
        "read_only": False,
    }


class FakeFuture:
    """Is done when it is asked."""

    def __init__(self, result: Any, error: KafkaError | None) -> None:
        self._result, self._error = result, error

    def add_callback(self, call: Any) -> None:
        if self._error is None:
            call(self._result)

    def add_errback(self, call: Any) -> None:
        if self._error is not None:
            call(self._error)


class FakeProducer(FakeClient):
    """`KafkaProducer`; the key's length, or nothing, chooses the partition."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        self.flushes = 0

    def partitions_for(self, topic: str) -> set[int]:
        if topic not in self.cluster.topics:
            if not self.cluster.auto_create:
                from kafka.errors import KafkaTimeoutError

                raise KafkaTimeoutError("no metadata")
            self.cluster.add_topic(topic)
        return set(range(len(self.cluster.topics[topic].partitions)))

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes,
        headers: Sequence[tuple[str, bytes]],
        partition: int | None,
    ) -> FakeFuture:
        if self.cluster.refuse is not None:
            return FakeFuture(None, self.cluster.refuse("a long text"))
        at = TopicPartition(topic, partition or 0)
        log = self.cluster.partition(at)
        log.records.append(FakeRecord(topic, at.partition, log.end, 0, key, value, headers))
        return FakeFuture(SimpleNamespace(partition=at.partition, offset=log.end - 1), None)

    def flush(self) -> None:
        self.flushes += 1


class FakeConsumer(FakeClient):
    """`KafkaConsumer`; a member of a group at once, and alone in it."""

    def __init__(self, cluster: FakeCluster, settings: Mapping[str, Any]) -> None:
        super().__init__(cluster)
        self.settings = settings
        self.positions: dict[Any, int] = {}
        self.on_empty: Any = None

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        if topic not in self.cluster.topics:
            return None
        return set(range(len(self.cluster.topics[topic].partitions)))

    def subscribe(self, topics: Sequence[str]) -> None:
        group = self.cluster.groups.setdefault(self.settings["group_id"], FakeGroup())
        for topic in topics:
            for index, partition in enumerate(self.cluster.topics[topic].partitions):
                at = TopicPartition(topic, index)
                earliest = self.settings["auto_offset_reset"] == "earliest"
                reset = partition.start if earliest else partition.end
                self.positions[at] = group.offsets.get(at, reset)

    def assign(self, partitions: Sequence[Any]) -> None:
        self.positions = dict.fromkeys(partitions, 0)

    def seek(self, at: Any, offset: int) -> None:
        self.positions[at] = offset

    def seek_to_beginning(self, *partitions: Any) -> None:
        for at in partitions:
            self.positions[at] = self.cluster.partition(at).start

    def seek_to_end(self, *partitions: Any) -> None:
        for at in partitions:
            self.positions[at] = self.cluster.partition(at).end

    def beginning_offsets(self, partitions: Sequence[Any]) -> dict[Any, int]:
        return {at: self.cluster.partition(at).start for at in partitions}

    def end_offsets(self, partitions: Sequence[Any]) -> dict[Any, int]:
        return {at: self.cluster.partition(at).end for at in partitions}

    def offsets_for_times(self, times: Mapping[Any, int]) -> dict[Any, Any]:
        found = {}
        for at, time_ms in times.items():
            later = [r.offset for r in self.cluster.partition(at).records if r.timestamp >= time_ms]
            found[at] = SimpleNamespace(offset=later[0]) if later else None
        return found

    def poll(self, *, timeout_ms: float, max_records: int) -> dict[Any, list[FakeRecord]]:
        for at, position in self.positions.items():
            records = self.cluster.partition(at).records[position:][:max_records]
            if records:
                self.positions[at] += len(records)
                return {at: records}
        if self.on_empty is not None:
            self.on_empty(timeout_ms)
        return {}

    def close(self) -> None:
        if self.settings["enable_auto_commit"]:
            group = self.cluster.groups[self.settings["group_id"]]
            group.offsets |= self.positions
        super().close()
