import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A Java client of another release against a broker: every codec, read-process-write, administration.
 * Written in what the interfaces of 2.1 to 4.4 have in common, and by name where they have nothing;
 * `java Other ADDRESS`.
 *
 * Prints a line for every step and ends with status 1 at the first that goes wrong.
 */
public class Other {
    private static final int PER_CODEC = 200;
    private static final List<String> CODECS = Arrays.asList("none", "gzip", "snappy", "lz4", "zstd");
    private static final int TOTAL = PER_CODEC * CODECS.size();

    private static final short REPLICAS =
            Short.parseShort(System.getenv().getOrDefault("VARVE_INTEROP_REPLICAS", "1"));

    private static String address;
    private static final String TOPIC = "older-" + System.nanoTime();
    private static final String OUT = TOPIC + "-out";

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        try (AdminClient admin = AdminClient.create(settings())) {
            step("create topics", () -> admin.createTopics(Arrays.asList(
                    new NewTopic(TOPIC, 3, REPLICAS), new NewTopic(OUT, 2, REPLICAS))).all().get());
            for (String codec : CODECS) {
                step("produce " + codec, () -> produce(codec));
            }
            step("read-process-write, every third transaction aborted", Other::move);
            step("read committed, by pattern", Other::readCommitted);
            step("administration", () -> administer(admin));
        }
    }

    private static void step(String name, Callable<?> run) {
        try {
            run.call();
        } catch (Exception error) {
            System.out.println("FAILED " + name);
            error.printStackTrace(System.out);
            System.exit(1);
        }
        System.out.println("ok " + name);
    }

    private static void expect(boolean holds, String message) {
        if (!holds) {
            throw new IllegalStateException(message);
        }
    }

    private static Properties settings(String... pairs) {
        Properties made = new Properties();
        made.put("bootstrap.servers", address);
        for (int i = 0; i < pairs.length; i += 2) {
            made.put(pairs[i], pairs[i + 1]);
        }
        return made;
    }

    private static KafkaProducer<String, String> producer(String... pairs) {
        return new KafkaProducer<>(settings(pairs), new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        return new KafkaConsumer<>(
                settings("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
                        "isolation.level", "read_committed", "max.poll.records", "100"),
                new StringDeserializer(), new StringDeserializer());
    }

    private static Void produce(String codec) throws Exception {
        try (KafkaProducer<String, String> producer =
                producer("enable.idempotence", "true", "compression.type", codec)) {
            List<Future<?>> sent = new ArrayList<>();
            for (int i = 0; i < PER_CODEC; i++) {
                sent.add(producer.send(new ProducerRecord<>(TOPIC, "key" + i, "value" + i)));
            }
            for (Future<?> one : sent) {
                one.get();
            }
        }
        return null;
    }

    private static Void move() throws Exception {
        try (KafkaProducer<String, String> producer = producer("transactional.id", TOPIC);
                KafkaConsumer<String, String> consumer = consumer("move-" + TOPIC)) {
            producer.initTransactions();
            consumer.subscribe(Collections.singleton(TOPIC));
            long end = System.currentTimeMillis() + 60_000;
            int moved = 0;
            for (int round = 1; moved < TOTAL; round++) {
                expect(System.currentTimeMillis() < end, "moved " + moved);
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(300));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                Map<TopicPartition, Long> first = new HashMap<>();
                for (ConsumerRecord<String, String> one : records) {
                    TopicPartition partition = new TopicPartition(one.topic(), one.partition());
                    producer.send(new ProducerRecord<>(OUT, one.key(), one.value()));
                    offsets.put(partition, new OffsetAndMetadata(one.offset() + 1));
                    first.putIfAbsent(partition, one.offset());
                }
                sendOffsets(producer, offsets, consumer);
                if (round % 3 == 0) {
                    producer.abortTransaction();
                    first.forEach(consumer::seek);
                } else {
                    producer.commitTransaction();
                    moved += records.count();
                }
            }
            expect(moved == TOTAL, "moved " + moved);
        }
        return null;
    }

    /** Until 3.9 for a group's name, from 2.5 on for the consumer's place in it. */
    private static void sendOffsets(
            KafkaProducer<String, String> producer,
            Map<TopicPartition, OffsetAndMetadata> offsets,
            KafkaConsumer<String, String> consumer) throws Exception {
        for (Method one : KafkaProducer.class.getMethods()) {
            if (one.getName().equals("sendOffsetsToTransaction") && one.getParameterTypes()[1] == String.class) {
                one.invoke(producer, offsets, "move-" + TOPIC);
                return;
            }
        }
        Object place = KafkaConsumer.class.getMethod("groupMetadata").invoke(consumer);
        Class<?> type = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
        KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, type).invoke(producer, offsets, place);
    }

    private static Method either(Class<?> of, String older, String newer) throws NoSuchMethodException {
        try {
            return of.getMethod(older);
        } catch (NoSuchMethodException gone) {
            return of.getMethod(newer);
        }
    }

    private static Void readCommitted() {
        try (KafkaConsumer<String, String> consumer = consumer("read-" + TOPIC)) {
            consumer.subscribe(Pattern.compile(OUT));
            long end = System.currentTimeMillis() + 60_000;
            int read = 0;
            while (read < TOTAL && System.currentTimeMillis() < end) {
                read += consumer.poll(Duration.ofMillis(300)).count();
            }
            read += consumer.poll(Duration.ofMillis(300)).count();
            expect(read == TOTAL, "read " + read);
            consumer.commitSync();
        }
        return null;
    }

    private static Void administer(AdminClient admin) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed =
                admin.listConsumerGroupOffsets("move-" + TOPIC).partitionsToOffsetAndMetadata().get();
        long sum = committed.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        // Markers take offsets too.
        expect(sum >= TOTAL, "committed " + sum);
        admin.describeConsumerGroups(Collections.singleton("read-" + TOPIC)).all().get();
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        expect(admin.describeConfigs(Collections.singleton(topic)).all().get().get(topic).entries().size() > 20,
                "few settings");
        admin.deleteRecords(Collections.singletonMap(
                new TopicPartition(TOPIC, 0), RecordsToDelete.beforeOffset(2))).all().get();
        admin.createPartitions(Collections.singletonMap(TOPIC, NewPartitions.increaseTo(5))).all().get();
        Object logDirs = admin.describeLogDirs(
                Collections.singleton(admin.describeCluster().controller().get().id()));
        // Until 3.9 all(), from 2.7 on allDescriptions().
        ((Future<?>) either(logDirs.getClass(), "all", "allDescriptions").invoke(logDirs)).get();
        admin.deleteConsumerGroups(Arrays.asList("move-" + TOPIC, "read-" + TOPIC)).all().get();
        admin.deleteTopics(Arrays.asList(TOPIC, OUT)).all().get();
        return null;
    }
}
