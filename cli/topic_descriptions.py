"""Descriptions of topics, gathered from four of a broker's APIs.

Metadata has the partitions, DescribeConfigs the overrides, ListOffsets the first and the next
offset, DescribeLogDirs the size on the leader's disk. The answers are not of one moment.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition; offsets are None without a leader, the size where no answer had it."""

    partition: int
    leader: int
    """Broker id, -1 for none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    """Offset the next record will get."""
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in order."""

    name: str
    topic_id: str | None
    internal: bool
    overrides: dict[str, str | None]
    partitions: tuple[PartitionDescription, ...]

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {"topic": self.name} | {k: v for k, v in asdict(self).items() if k != "name"}


def existing_topics(admin: Any, *, internal: bool) -> list[dict[str, Any]]:
    """Metadata of the topics there are, by name; the broker's own ones when asked for."""
    topics = [t for t in admin.describe_topics() if internal or not t["is_internal"]]
    return sorted(topics, key=lambda topic: str(topic["name"]))


def describe_topics(
    admin: Any, names: Sequence[str], *, internal: bool
) -> tuple[list[TopicDescription], list[str]]:
    """Describe the named topics, or all of them.

    Returns:
        The topics, in the order of `names` or else by name; and the names that are no topics.
    """
    missing: list[str] = []
    if names:
        # Asked for in one go, never created by the question.
        found = {t["name"]: t for t in admin.describe_topics(list(dict.fromkeys(names)))}
        missing = [n for n in names if n not in found or found[n]["error_code"] != 0]
        topics = [found[name] for name in dict.fromkeys(names) if name not in missing]
    else:
        topics = existing_topics(admin, internal=internal)
    if not topics:
        return [], missing
    overrides = _overrides(admin, [topic["name"] for topic in topics])
    starts, ends = _offsets(admin, topics)
    sizes = _sizes(admin, topics)
    return [
        TopicDescription(
            name=topic["name"],
            topic_id=None if topic.get("topic_id") is None else str(topic["topic_id"]),
            internal=topic["is_internal"],
            overrides=overrides.get(topic["name"], {}),
            partitions=tuple(
                PartitionDescription(
                    partition=partition["partition_index"],
                    leader=partition["leader_id"],
                    replicas=tuple(partition["replica_nodes"]),
                    isr=tuple(partition["isr_nodes"]),
                    start_offset=starts.get((topic["name"], partition["partition_index"])),
                    end_offset=ends.get((topic["name"], partition["partition_index"])),
                    size_bytes=sizes.get(
                        (topic["name"], partition["partition_index"], partition["leader_id"])
                    ),
                )
                for partition in _in_order(topic)
            ),
        )
        for topic in topics
    ], missing


def _in_order(topic: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(topic["partitions"], key=lambda partition: int(partition["partition_index"]))


def _overrides(admin: Any, names: list[str]) -> dict[str, dict[str, str | None]]:
    from cli.admin.kafka_library import ConfigResource

    answer = admin.describe_configs(
        [ConfigResource("topic", name) for name in names], config_filter="all"
    )
    return {
        name: {
            key: config["value"]
            for key, config in sorted(configs.items())
            if config["config_source"] == "DYNAMIC_TOPIC_CONFIG"
        }
        for name, configs in answer.get("topic", {}).items()
    }


Offsets = dict[tuple[str, int], int]


def _offsets(admin: Any, topics: list[dict[str, Any]]) -> tuple[Offsets, Offsets]:
    from cli.admin.kafka_library import OffsetSpec, TopicPartition

    led = [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in topics
        for partition in topic["partitions"]
        if partition["leader_id"] >= 0
    ]
    if not led:
        return {}, {}
    starts = admin.list_partition_offsets(dict.fromkeys(led, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(led, OffsetSpec.LATEST))
    return (
        {tuple(at): found.offset for at, found in starts.items()},
        {tuple(at): found.offset for at, found in ends.items()},
    )


def _sizes(admin: Any, topics: list[dict[str, Any]]) -> dict[tuple[str, int, int], int]:
    """Size of each replica, by topic, partition and broker."""
    wanted = {t["name"]: [p["partition_index"] for p in t["partitions"]] for t in topics}
    return {
        (topic["name"], partition["partition_index"], answer["broker"]): partition["partition_size"]
        for answer in admin.describe_log_dirs(wanted)
        for directory in answer["log_dirs"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    }
