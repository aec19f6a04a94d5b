"""Our assignors and those of released Kafka, on the same groups.

Kafka walks over hash tables, so its answer depends on the hashes of names. The program therefore
gives it members and partitions in order, and a group of equal subscriptions has topic ids whose
hashes are in order: then both must say the same, partition by partition. With random topic ids both
must be equally even and leave equally many partitions where they were.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from broker.groups.consumer.assignors.builtin import BUILTIN_ASSIGNORS
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.assignor import MemberSpec, TopicSpec
from storage.types.uuid_text import format_uuid
from tests.differential.kafka_classes import Ask, kafka_program

pytestmark = pytest.mark.interop

ASSIGN = """
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

public class Assign {
    static Map<Uuid, Set<Integer>> assignment(String text) {
        Map<Uuid, Set<Integer>> assignment = new TreeMap<>();
        for (String topic : text.split(",")) {
            if (topic.isEmpty()) continue;
            String[] sides = topic.split("=");
            Set<Integer> partitions = new TreeSet<>();
            for (String partition : sides[1].split("\\\\."))
                partitions.add(Integer.parseInt(partition));
            assignment.put(Uuid.fromString(sides[0]), partitions);
        }
        return assignment;
    }

    static String text(Map<Uuid, Set<Integer>> assignment) {
        StringJoiner topics = new StringJoiner(",");
        for (Map.Entry<Uuid, Set<Integer>> topic : new TreeMap<>(assignment).entrySet()) {
            StringJoiner partitions = new StringJoiner(".");
            for (Integer partition : new TreeSet<>(topic.getValue()))
                partitions.add(partition.toString());
            topics.add(topic.getKey() + "=" + partitions);
        }
        return topics.toString();
    }

    static String answer(String question) {
        String[] words = question.split(" ");
        ConsumerGroupPartitionAssignor assignor =
            words[0].equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : words[1].split(",")) {
            String[] sides = topic.split("=");
            counts.put(Uuid.fromString(sides[0]), Integer.parseInt(sides[1]));
        }
        SortedMap<String, MemberSubscriptionAndAssignmentImpl> members = new TreeMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (int i = 2; i < words.length; i++) {
            String[] fields = words[i].split(";", -1);
            Set<Uuid> subscribed = new TreeSet<>();
            for (String topic : fields[2].split(","))
                if (!topic.isEmpty()) subscribed.add(Uuid.fromString(topic));
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> assignment = assignment(fields[3]);
            assignment.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, fields[0])));
            Optional<String> instance =
                fields[1].isEmpty() ? Optional.empty() : Optional.of(fields[1]);
            members.put(fields[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed, new Assignment(assignment)));
        }
        GroupAssignment result = assignor.assign(
            new GroupSpecImpl(
                members,
                subscriptions.size() == 1
                    ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
                owners
            ),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid topic) { return counts.getOrDefault(topic, -1); }
                public Set<String> racksForPartition(Uuid topic, int p) { return Set.of(); }
            }
        );
        StringJoiner line = new StringJoiner(" ");
        for (String member : members.keySet()) {
            MemberAssignment assignment = result.members().get(member);
            line.add(member + ";" + (assignment == null ? "" : text(assignment.partitions())));
        }
        return line.toString();
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) System.out.println(answer(lines.nextLine()));
    }
}
"""

Group = tuple[dict[str, MemberSpec], dict[UUID, TopicSpec]]
Targets = dict[str, Assignment]

ORDERED_IDS = [UUID(int=number) for number in range(2, 16)]
"""Few enough that a Java hash table of them is in order."""


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    return kafka_program(tmp_path, "Assign", ASSIGN)


def question(assignor: str, group: Group) -> str:
    members, topics = group
    words = [assignor]
    words.append(
        ",".join(f"{format_uuid(topic)}={spec.partition_count}" for topic, spec in topics.items())
    )
    for member_id, spec in members.items():
        subscribed = ",".join(format_uuid(topic) for topic in spec.subscribed_topic_ids)
        owned = ",".join(
            f"{format_uuid(topic)}={'.'.join(map(str, partitions))}"
            for topic, partitions in spec.assignment.items()
        )
        words.append(f"{member_id};{spec.instance_id or ''};{subscribed};{owned}")
    return " ".join(words)


def parse(answer: str, topics: dict[UUID, TopicSpec]) -> Targets:
    names = {format_uuid(topic): topic for topic in topics}
    targets: Targets = {}
    for word in answer.split(" "):
        member_id, _, owned = word.partition(";")
        targets[member_id] = {
            names[topic]: tuple(map(int, partitions.split(".")))
            for topic, _, partitions in (part.partition("=") for part in owned.split(",") if part)
        }
    return targets


def subscriptions_are_equal(members: dict[str, MemberSpec]) -> bool:
    return len({frozenset(spec.subscribed_topic_ids) for spec in members.values()}) == 1


def histories(
    random: Random, ids: list[UUID] | None, assignor: str, *, mixed: bool
) -> Iterator[Group]:
    """Groups on their way: members come and go, topics grow, subscriptions change."""
    while True:
        chosen = ids or [UUID(int=random.getrandbits(128)) for _ in range(14)]
        topics = {
            topic: TopicSpec(f"t{number}", random.choice([1, 2, 3, 5, 8, 30, 100]))
            for number, topic in enumerate(random.sample(chosen, random.randrange(1, 9)))
        }
        wanted = frozenset(topics)
        members: dict[str, MemberSpec] = {}
        for _ in range(random.randrange(2, 8)):
            for _ in range(random.choice([0, 1, 1, 2, 10, 40])):
                name = f"m{random.randrange(10**6)}"
                instance = f"i{random.randrange(10**9)}" if random.random() < 0.3 else None
                members[name] = MemberSpec(instance, None, wanted)
            for name in random.sample(sorted(members), random.randrange(len(members) // 2 + 1)):
                del members[name]
            if random.random() < 0.3:
                topic = random.choice(sorted(topics))
                more = topics[topic].partition_count + random.randrange(20)
                topics[topic] = topics[topic]._replace(partition_count=more)
            if random.random() < 0.2:
                wanted = frozenset(random.sample(sorted(topics), random.randrange(len(topics) + 1)))
                members = {
                    name: spec._replace(subscribed_topic_ids=wanted)
                    for name, spec in members.items()
                }
            if mixed:
                for name, spec in members.items():
                    if random.random() < 0.4:
                        some = random.sample(sorted(topics), random.randrange(len(topics) + 1))
                        members[name] = spec._replace(subscribed_topic_ids=frozenset(some))
            if members and not (mixed and subscriptions_are_equal(members)):
                yield members, dict(topics)
            targets = BUILTIN_ASSIGNORS[assignor].assign(members, topics)
            members = {
                name: spec._replace(assignment=targets[name]) for name, spec in members.items()
            }


def sizes(targets: Targets) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def kept(group: Group, targets: Targets) -> int:
    """Partitions that stay with their owner."""
    members, _ = group
    return sum(
        len(set(partitions) & set(targets[name].get(topic, ())))
        for name, spec in members.items()
        for topic, partitions in spec.assignment.items()
    )


@pytest.mark.parametrize(
    ("assignor", "mixed", "ids"),
    [
        ("uniform", False, ORDERED_IDS),
        ("uniform", True, ORDERED_IDS),
        ("uniform", True, None),
        ("range", False, None),
        ("range", True, None),
    ],
)
def test_same_assignments(ask: Ask, assignor: str, mixed: bool, ids: list[UUID] | None) -> None:
    """Partition by partition, where Kafka's answer does not depend on hashes."""
    source = histories(Random(f"{assignor} {mixed}"), ids, assignor, mixed=mixed)
    groups = [next(source) for _ in range(800)]
    answers = ask([question(assignor, group) for group in groups])
    for (members, topics), answer in zip(groups, answers, strict=True):
        assert BUILTIN_ASSIGNORS[assignor].assign(members, topics) == parse(answer, topics)


def test_as_even_and_as_sticky(ask: Ask) -> None:
    """Equal subscriptions, random topic ids: which partition moves depends on hashes there."""
    source = histories(Random(7), None, "uniform", mixed=False)
    groups = [next(source) for _ in range(800)]
    answers = ask([question("uniform", group) for group in groups])
    for group, answer in zip(groups, answers, strict=True):
        ours = BUILTIN_ASSIGNORS["uniform"].assign(*group)
        kafkas = parse(answer, group[1])
        assert sizes(ours) == sizes(kafkas)
        assert kept(group, ours) == kept(group, kafkas)
