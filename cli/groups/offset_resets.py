"""New offsets for a consumer group that is not running, as Kafka's `kafka-consumer-groups` does it.

First a plan, which can be shown; then the same plan is committed. An offset outside a partition
becomes the nearest one inside; a time behind the last record is the end.

Source: Kafka, ConsumerGroupCommand.java.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, NamedTuple

from cli.connection import CommandError, answer_text
from cli.groups.group_descriptions import led_partitions
from cli.options import TopicPartitions

INACTIVE = ("Empty", "Dead")
"""States without members. An unknown group counts as Dead, and may get offsets."""


class Reset(Enum):
    """Target of a reset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"
    CURRENT = "current"
    PLAN = "plan"
    """Each partition to the offset that a file gives it."""


class ResetRule(NamedTuple):
    """Target of a reset, with the offset, distance or milliseconds since 1970 UTC it needs."""

    reset: Reset
    value: int = 0


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """Change of one partition's committed offset."""

    topic: str
    partition: int
    old_offset: int | None
    """None when the group has committed none."""
    new_offset: int
    remark: str
    """Why it is not the offset asked for; empty when it is."""

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def inactive_problem(group: str, state: str) -> str:
    """Why a group with members is left alone: their next commit would undo the reset."""
    return (
        f"offsets can only be reset while the group is inactive: {group!r} is {state}, "
        "stop its consumers first"
    )


def read_plan(path: str, groups: Sequence[str]) -> dict[str, dict[Any, int]]:
    """New offsets by group and partition, as `--export` and Kafka's tool write them.

    Args:
        path: A file with lines `topic,partition,offset`, when there is one group, or
            `group,topic,partition,offset`.
        groups: What the command line names.

    Raises:
        CommandError: It cannot be read, or a line is something else.
    """
    from cli.admin.kafka_library import TopicPartition

    plans: dict[str, dict[Any, int]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise CommandError(f"{path}: {reason}") from error
    for number, row in enumerate(rows, 1):
        words = [word.strip() for word in row]
        if len(words) == 3 and len(groups) == 1:
            words = [groups[0], *words]
        if len(words) != 4 or not (words[2].isdecimal() and words[3].isdecimal()):
            raise CommandError(
                f"{path}: line {number} is not [group,]topic,partition,offset"
                + (": with several groups each line needs its group" if len(words) == 3 else "")
            )
        group, topic, partition, offset = words
        plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plans


def planned_partitions(admin: Any, plan: Mapping[Any, int]) -> list[Any]:
    """The partitions of a plan, in order.

    Raises:
        CommandError: One of them does not exist.
    """
    led = led_partitions(admin, {at.topic for at in plan})
    for at in sorted(plan):
        if at not in led:
            raise CommandError(f"partition {at.topic}-{at.partition} does not exist")
    return sorted(plan)


def selected_partitions(
    admin: Any, group: str, selection: Sequence[TopicPartitions] | None
) -> list[Any]:
    """The partitions to reset, in order.

    Args:
        admin: The client.
        group: Whose.
        selection: Topics or parts of them; None for whatever the group has offsets of.

    Raises:
        CommandError: One of them does not exist, or the group has no offsets.
    """
    from cli.admin.kafka_library import TopicPartition

    if selection is None:
        committed = admin.list_group_offsets({group: None})[group]
        wanted = {at for at, found in committed.items() if found.offset >= 0}
        # What remains of a deleted topic has no offset to go to.
        wanted &= led_partitions(admin, {at.topic for at in wanted})
        if not wanted:
            raise CommandError(f"group {group!r} has no offsets")
        return sorted(wanted)
    led = led_partitions(admin, {topic for topic, _ in selection})
    wanted = set()
    for topic, partitions in selection:
        whole = {at for at in led if at.topic == topic}
        if not whole:
            raise CommandError(f"topic {topic!r} does not exist")
        some = {TopicPartition(topic, partition) for partition in partitions or ()}
        for at in sorted(some - whole):
            raise CommandError(f"partition {at.topic}-{at.partition} does not exist")
        wanted |= some if partitions is not None else whole
    return sorted(wanted)


def plan_changes(
    admin: Any,
    group: str,
    partitions: Sequence[Any],
    rule: ResetRule,
    plan: Mapping[Any, int] | None = None,
) -> list[OffsetChange]:
    """Old and new offset of each partition; changes nothing. `plan` is for Reset.PLAN.

    Raises:
        CommandError: To shift an offset there must be one.
    """
    from cli.admin.kafka_library import OffsetSpec

    committed = {
        at: found.offset
        for at, found in admin.list_group_offsets({group: list(partitions)})[group].items()
        if found.offset >= 0
    }
    starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    at_time = {}
    if rule.reset is Reset.TIME:
        at_time = admin.list_partition_offsets(dict.fromkeys(partitions, rule.value))
    changes = []
    for at in partitions:
        start, end, old = starts[at].offset, ends[at].offset, committed.get(at)
        if rule.reset is Reset.EARLIEST:
            wanted = start
        elif rule.reset is Reset.LATEST:
            wanted = end
        elif rule.reset is Reset.TIME:
            # -1: no record is so late.
            wanted = end if at_time[at].offset < 0 else at_time[at].offset
        elif rule.reset is Reset.OFFSET:
            wanted = rule.value
        elif rule.reset is Reset.PLAN:
            assert plan is not None
            wanted = plan[at]
        elif rule.reset is Reset.CURRENT:
            # Kafka does not check whether the offset is still there; it is what is committed.
            changes.append(
                OffsetChange(at.topic, at.partition, old, end if old is None else old, "")
            )
            continue
        elif old is None:
            raise CommandError(
                f"{at.topic}-{at.partition}: there is no committed offset that could be shifted"
            )
        else:
            wanted = old + rule.value
        new, remark = _inside(wanted, start, end)
        changes.append(OffsetChange(at.topic, at.partition, old, new, remark))
    return changes


def _inside(wanted: int, start: int, end: int) -> tuple[int, str]:
    if wanted > end:
        return end, f"{wanted} is beyond the end"
    if wanted < start:
        return start, f"{wanted} is before the start"
    return wanted, ""


def apply_changes(admin: Any, group: str, changes: Sequence[OffsetChange]) -> None:
    """Commit the new offsets.

    Raises:
        CommandError: The coordinator refuses, as when a member has joined in between.
    """
    from cli.admin.kafka_library import OffsetAndMetadata, TopicPartition

    answers = admin.alter_group_offsets(
        group,
        {
            TopicPartition(change.topic, change.partition): OffsetAndMetadata(
                change.new_offset, "", -1
            )
            for change in changes
        },
    )
    for at, error in answers.items():
        if error.errno != 0:
            raise CommandError(answer_text(f"{at.topic}-{at.partition}", error.errno))
