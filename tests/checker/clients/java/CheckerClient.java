import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The released Java client as a process that does what it is told: a JSON object a line on standard
 * input, another as the answer on standard output. It knows nothing of histories: its master
 * (`tests/checker/clients/java_client.py`) decides what an answer means. When standard input ends it is
 * gone at once, so that nobody works on without a master.
 *
 *   {"do": "producer", "settings": {...}}                a new one; with a transactional.id, initialised
 *   {"do": "begin" | "commit" | "abort"}                 a transaction
 *   {"do": "send", "records": [[topic, partition, value], ...]}   no waiting
 *   {"do": "flush"}                                      {"offsets": [offset or null, ...], "errors": [...]}
 *   {"do": "consumer", "settings": {...}, "topics": [...]}        or "assign": [[topic, partition, atEnd]]
 *   {"do": "poll", "ms": 200}                            {"records": [[topic, partition, offset, value], ...],
 *                                                         "moved": [[topic, partition], ...]}
 *   {"do": "commitOffsets", "offsets": [[topic, partition, offset], ...]}
 *   {"do": "offsetsToTransaction", "offsets": ...}
 *   {"do": "rewind"}                                     to what is committed: {"moved": ...}
 *   {"do": "share", "settings": {...}, "topics": [...]}
 *   {"do": "sharePoll", "ms": 200}                       {"records": [[topic, partition, offset, value, count], ...],
 *                                                         "said": [[topic, partition, [offset, ...], error or null]]}
 *   {"do": "acknowledge", "acks": [[topic, partition, offset, "ACCEPT"], ...]}
 *   {"do": "shareCommit", "ms": 5000}                    {"said": ...}
 *   {"do": "group", "name": ..., "settings": {...}}      configuration of a group
 *   {"do": "close"}
 *
 * An exception is {"error": class, "message": text}.
 */
public final class CheckerClient {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String address;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private final List<TopicPartition> moved = new ArrayList<>();
    private final Map<String, ConsumerRecord<String, String>> delivered = new HashMap<>();
    private ArrayNode said = JSON.createArrayNode();
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;
    private KafkaShareConsumer<String, String> sharer;

    private CheckerClient(String address) {
        this.address = address;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(lines));
        reader.setDaemon(true);
        reader.start();
        CheckerClient client = new CheckerClient(arguments[0]);
        while (true) {
            JsonNode task = JSON.readTree(lines.take());
            ObjectNode answer = JSON.createObjectNode();
            try {
                client.obey(task, answer);
            } catch (Exception error) {
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", String.valueOf(error.getMessage()));
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static void read(BlockingQueue<String> lines) {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                lines.add(line);
            }
        } catch (java.io.IOException error) {
            System.err.println("standard input: " + error);
        } finally {
            Runtime.getRuntime().halt(0);
        }
    }

    private void obey(JsonNode task, ObjectNode answer) throws Exception {
        switch (task.get("do").asText()) {
            case "producer" -> newProducer(task);
            case "begin" -> {
                // What an aborted one has left is nobody's.
                sent.clear();
                producer.beginTransaction();
            }
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "send" -> send(task.get("records"));
            case "flush" -> flush(answer);
            case "consumer" -> newConsumer(task);
            case "poll" -> poll(task, answer);
            case "commitOffsets" -> consumer.commitSync(offsets(task));
            case "offsetsToTransaction" ->
                producer.sendOffsetsToTransaction(offsets(task), consumer.groupMetadata());
            case "rewind" -> rewind(answer);
            case "share" -> newSharer(task);
            case "sharePoll" -> sharePoll(task, answer);
            case "acknowledge" -> acknowledge(task.get("acks"));
            case "shareCommit" -> {
                sharer.commitSync(Duration.ofMillis(task.get("ms").asLong()));
                answer.set("said", takeSaid());
            }
            case "group" -> configureGroup(task);
            case "close" -> close(answer);
            default -> throw new IllegalArgumentException(task.toString());
        }
    }

    private Properties settings(JsonNode task) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("reconnect.backoff.ms", "20");
        properties.put("reconnect.backoff.max.ms", "500");
        // Of a network that swallows everything the defaults think well for ten seconds.
        properties.put("socket.connection.setup.timeout.ms", "1000");
        properties.put("socket.connection.setup.timeout.max.ms", "3000");
        properties.put("retry.backoff.ms", "20");
        properties.put("retry.backoff.max.ms", "300");
        task.get("settings").properties().forEach(
                one -> properties.put(one.getKey(), one.getValue().asText()));
        return properties;
    }

    private void newProducer(JsonNode task) {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        sent.clear();
        Properties properties = settings(task);
        producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        if (properties.containsKey("transactional.id")) {
            producer.initTransactions();
        }
    }

    private void send(JsonNode records) {
        for (JsonNode one : records) {
            sent.add(producer.send(new ProducerRecord<>(
                    one.get(0).asText(), one.get(1).asInt(), null, one.get(2).asText())));
        }
    }

    private void flush(ObjectNode answer) throws InterruptedException {
        producer.flush();
        ArrayNode offsets = answer.putArray("offsets");
        ArrayNode errors = answer.putArray("errors");
        for (Future<RecordMetadata> one : sent) {
            try {
                RecordMetadata metadata = one.get();
                if (metadata.hasOffset()) {
                    offsets.add(metadata.offset());
                } else {
                    offsets.addNull();
                }
                errors.addNull();
            } catch (ExecutionException error) {
                offsets.addNull();
                errors.add(error.getCause().getClass().getSimpleName());
            }
        }
        sent.clear();
    }

    private void newConsumer(JsonNode task) {
        closeConsumer();
        consumer = new KafkaConsumer<>(settings(task), new StringDeserializer(), new StringDeserializer());
        if (task.has("topics")) {
            consumer.subscribe(texts(task.get("topics")), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    moved.addAll(partitions);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    moved.addAll(partitions);
                }
            });
            return;
        }
        List<TopicPartition> all = new ArrayList<>();
        List<TopicPartition> atEnd = new ArrayList<>();
        for (JsonNode one : task.get("assign")) {
            TopicPartition partition = new TopicPartition(one.get(0).asText(), one.get(1).asInt());
            all.add(partition);
            if (one.get(2).asBoolean()) {
                atEnd.add(partition);
            }
        }
        consumer.assign(all);
        if (!atEnd.isEmpty()) {
            consumer.seekToEnd(atEnd);
        }
    }

    private void closeConsumer() {
        if (consumer != null) {
            KafkaConsumer<String, String> old = consumer;
            consumer = null;
            old.close(Duration.ofSeconds(5));
            moved.clear();
        }
    }

    private void poll(JsonNode task, ObjectNode answer) {
        ArrayNode records = JSON.createArrayNode();
        for (ConsumerRecord<String, String> record :
                consumer.poll(Duration.ofMillis(task.get("ms").asLong()))) {
            records.addArray().add(record.topic()).add(record.partition())
                    .add(record.offset()).add(record.value());
        }
        answer.set("records", records);
        answer.set("moved", takeMoved());
    }

    private ArrayNode takeMoved() {
        ArrayNode partitions = JSON.createArrayNode();
        for (TopicPartition one : moved) {
            partitions.addArray().add(one.topic()).add(one.partition());
        }
        moved.clear();
        return partitions;
    }

    private void rewind(ObjectNode answer) {
        Set<TopicPartition> assignment = Set.copyOf(consumer.assignment());
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(assignment);
        for (TopicPartition at : assignment) {
            OffsetAndMetadata position = committed.get(at);
            consumer.seek(at, position == null ? 0 : position.offset());
        }
        moved.addAll(assignment);
        answer.set("moved", takeMoved());
    }

    private void newSharer(JsonNode task) {
        closeSharer();
        delivered.clear();
        sharer = new KafkaShareConsumer<>(settings(task), new StringDeserializer(), new StringDeserializer());
        sharer.setAcknowledgementCommitCallback(this::takeOutcome);
        sharer.subscribe(texts(task.get("topics")));
    }

    private void closeSharer() {
        if (sharer != null) {
            KafkaShareConsumer<String, String> old = sharer;
            sharer = null;
            old.close(Duration.ofSeconds(5));
        }
    }

    private void takeOutcome(Map<TopicIdPartition, Set<Long>> offsets, Exception error) {
        offsets.forEach((partition, some) -> {
            ArrayNode one = said.addArray().add(partition.topic()).add(partition.partition());
            ArrayNode listed = one.addArray();
            some.forEach(listed::add);
            one.add(error == null ? null : error.getClass().getSimpleName());
        });
    }

    private ArrayNode takeSaid() {
        ArrayNode taken = said;
        said = JSON.createArrayNode();
        return taken;
    }

    private void sharePoll(JsonNode task, ObjectNode answer) {
        ArrayNode records = JSON.createArrayNode();
        delivered.clear();
        for (ConsumerRecord<String, String> record :
                sharer.poll(Duration.ofMillis(task.get("ms").asLong()))) {
            delivered.put(record.topic() + "-" + record.partition() + "@" + record.offset(), record);
            records.addArray().add(record.topic()).add(record.partition()).add(record.offset())
                    .add(record.value()).add(record.deliveryCount().orElse((short) -1));
        }
        answer.set("records", records);
        answer.set("said", takeSaid());
    }

    private void acknowledge(JsonNode acks) {
        for (JsonNode one : acks) {
            String name = one.get(0).asText() + "-" + one.get(1).asInt() + "@" + one.get(2).asLong();
            sharer.acknowledge(delivered.get(name), AcknowledgeType.valueOf(one.get(3).asText()));
        }
    }

    private void configureGroup(JsonNode task) throws Exception {
        ConfigResource resource =
                new ConfigResource(ConfigResource.Type.GROUP, task.get("name").asText());
        List<AlterConfigOp> changes = new ArrayList<>();
        task.get("settings").properties().forEach(one -> changes.add(new AlterConfigOp(
                new ConfigEntry(one.getKey(), one.getValue().asText()), AlterConfigOp.OpType.SET)));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address,
                "default.api.timeout.ms", "15000", "request.timeout.ms", "5000"))) {
            admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        }
    }

    private void close(ObjectNode answer) {
        closeSharer();
        answer.set("said", takeSaid());
        closeConsumer();
        if (producer != null) {
            producer.close(Duration.ofSeconds(5));
            producer = null;
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode task) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode one : task.get("offsets")) {
            offsets.put(new TopicPartition(one.get(0).asText(), one.get(1).asInt()),
                    new OffsetAndMetadata(one.get(2).asLong()));
        }
        return offsets;
    }

    private static List<String> texts(JsonNode array) {
        List<String> found = new ArrayList<>();
        array.forEach(one -> found.add(one.asText()));
        return found;
    }
}
