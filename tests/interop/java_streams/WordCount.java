import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams counting words exactly once: two subtopologies with a repartition topic between
 * them, a store with its changelog, offsets, all in one transaction.
 *
 *     WordCount create ADDRESS APPLICATION
 *     WordCount feed   ADDRESS APPLICATION COUNT PAUSE_MS   hundred words at a time
 *     WordCount count  ADDRESS APPLICATION DIRECTORY        until it is killed
 *     WordCount check  ADDRESS APPLICATION COUNT PATIENCE_MS
 *
 * `check` reads committed counts: each word's must grow, and in the end they add up to COUNT.
 */
public class WordCount {
    private static final int WORDS = 100;

    public static void main(String[] arguments) throws Exception {
        String address = arguments[1];
        String application = arguments[2];
        switch (arguments[0]) {
            case "create" -> create(address, application);
            case "feed" -> feed(address, application, Integer.parseInt(arguments[3]), Long.parseLong(arguments[4]));
            case "count" -> count(address, application, arguments[3]);
            case "check" -> check(address, application, Long.parseLong(arguments[3]), Long.parseLong(arguments[4]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static Properties settings(String address) {
        Properties made = new Properties();
        made.put("bootstrap.servers", address);
        return made;
    }

    private static void create(String address, String application) throws Exception {
        try (AdminClient admin = AdminClient.create(settings(address))) {
            admin.createTopics(List.of(
                    new NewTopic(application + "-in", Optional.of(4), Optional.empty()),
                    new NewTopic(application + "-out", Optional.of(4), Optional.empty()))).all().get();
        }
    }

    private static void feed(String address, String application, int count, long pauseMs) throws Exception {
        Properties settings = settings(address);
        settings.put("delivery.timeout.ms", "600000");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(application + "-in", "key" + i % 7, "word" + i % WORDS));
                if (i % WORDS == 0) {
                    producer.flush();
                    Thread.sleep(pauseMs);
                }
            }
        }
    }

    private static void count(String address, String application, String directory) throws Exception {
        Properties settings = settings(address);
        settings.put("application.id", application);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("num.stream.threads", "2");
        settings.put("state.dir", directory);
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "1000");
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> words = builder.stream(
                application + "-in", Consumed.with(Serdes.String(), Serdes.String()));
        words.groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .to(application + "-out", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        new CountDownLatch(1).await();
    }

    private static void check(String address, String application, long count, long patienceMs) {
        Properties settings = settings(address);
        settings.put("group.id", application + "-check");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        Map<String, Long> counts = new HashMap<>();
        long backwards = 0;
        long sum = 0;
        try (KafkaConsumer<String, Long> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(application + "-out"));
            long end = System.currentTimeMillis() + patienceMs;
            while (sum < count && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, Long> one : consumer.poll(Duration.ofMillis(300))) {
                    Long before = counts.put(one.key(), one.value());
                    if (before != null && one.value() <= before) {
                        backwards++;
                    }
                }
                sum = counts.values().stream().mapToLong(Long::longValue).sum();
            }
        }
        System.out.println("words=" + counts.size() + " sum=" + sum + " backwards=" + backwards);
        System.exit(sum == count && backwards == 0 && counts.size() == WORDS ? 0 : 1);
    }
}
