"""The hash of a group's topics, and that of released Kafka."""

from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from broker.groups.modern.metadata_hash import group_hash, topic_hash
from storage.types.uuid_text import format_uuid
from tests.differential.kafka_classes import kafka_program

pytestmark = pytest.mark.interop

HASH = """
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.*;
import org.apache.kafka.coordinator.group.Utils;

public class Hash {
    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    record Topic(Uuid id, String name, int partitionCount, Map<Integer, List<String>> racks)
        implements CoordinatorMetadataImage.TopicMetadata {
        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.getOrDefault(partition, List.of()));
        }
    }

    record Image(Topic topic) implements CoordinatorMetadataImage {
        public Set<Uuid> topicIds() { return Set.of(topic.id()); }
        public Set<String> topicNames() { return Set.of(topic.name()); }
        public Optional<TopicMetadata> topicMetadata(String name) { return Optional.of(topic); }
        public Optional<TopicMetadata> topicMetadata(Uuid id) { return Optional.of(topic); }
        public CoordinatorMetadataDelta emptyDelta() { return null; }
        public long version() { return 0; }
        public boolean isEmpty() { return false; }
    }

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            Map<String, Long> hashes = new HashMap<>();
            for (String word : lines.nextLine().split(" ")) {
                String[] fields = word.split(";", -1);
                Map<Integer, List<String>> racks = new HashMap<>();
                for (String place : fields[3].split(",")) {
                    if (place.isEmpty()) continue;
                    String[] sides = place.split("=", -1);
                    racks.computeIfAbsent(Integer.parseInt(sides[0]), __ -> new ArrayList<>())
                        .add(text(sides[1]));
                }
                String name = text(fields[1]);
                Uuid id = Uuid.fromString(fields[0]);
                Topic topic = new Topic(id, name, Integer.parseInt(fields[2]), racks);
                hashes.put(name, Utils.computeTopicHash(name, new Image(topic)));
            }
            System.out.println(Utils.computeGroupHash(hashes));
        }
    }
}
"""


def test_same_numbers(tmp_path: Path) -> None:
    """Groups of random topics, with and without racks; names of topics are ASCII."""
    ask = kafka_program(tmp_path, "Hash", HASH)
    random = Random(1)
    questions, expected = [], []
    for _ in range(500):
        words, hashes = [], {}
        for _ in range(random.randrange(1, 6)):
            topic_id = UUID(int=random.getrandbits(128))
            name = "".join(random.choices("abAB._-09", k=random.choice([1, 5, 30, 249])))
            count = random.choice([1, 2, 3, 17, 100])
            racks: dict[int, list[str]] = {}
            for partition in range(count):
                for _ in range(random.choice([0, 0, 1, 3])):
                    racks.setdefault(partition, []).append(
                        random.choice(["r1", "", "räck", "z" * 40])
                    )
            places = ",".join(
                f"{partition}={rack.encode().hex()}"
                for partition, partition_racks in racks.items()
                for rack in partition_racks
            )
            words.append(f"{format_uuid(topic_id)};{name.encode().hex()};{count};{places}")
            hashes[name] = topic_hash(topic_id, name, count, racks)
        questions.append(" ".join(words))
        expected.append(str(group_hash(hashes)))
    assert ask(questions) == expected
