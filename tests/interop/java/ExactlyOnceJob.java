import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Read, process, write, exactly once: each input number becomes two output records, in two partitions,
 * in one transaction with the input's offset. Every output says how many its transaction has.
 *
 * Arguments: address, group protocol, group, transactional id, source, sink, partitions of the sink.
 * Ends with 3 when its clients can only be made anew: whoever started it starts it again.
 */
public class ExactlyOnceJob {
    public static void main(String[] arguments) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
        try {
            run(arguments);
        } catch (Throwable error) {
            System.err.println("ends: " + error);
            Runtime.getRuntime().halt(3);
        }
    }

    static Map<String, Object> settings(String address) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        for (String side : List.of("key", "value")) {
            settings.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        settings.put("reconnect.backoff.ms", "20");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("retry.backoff.ms", "20");
        settings.put("retry.backoff.max.ms", "200");
        return settings;
    }

    static void run(String[] arguments) {
        String source = arguments[4];
        String sink = arguments[5];
        int partitions = Integer.parseInt(arguments[6]);
        Map<String, Object> forProducer = settings(arguments[0]);
        forProducer.put("transactional.id", arguments[3]);
        forProducer.put("transaction.timeout.ms", "8000");
        Map<String, Object> forConsumer = settings(arguments[0]);
        forConsumer.put("group.protocol", arguments[1]);
        forConsumer.put("group.id", arguments[2]);
        forConsumer.put("isolation.level", "read_committed");
        forConsumer.put("auto.offset.reset", "earliest");
        forConsumer.put("enable.auto.commit", "false");
        forConsumer.put("max.poll.records", "100");
        if (arguments[1].equals("classic")) {
            forConsumer.put("session.timeout.ms", "3000");
            forConsumer.put("heartbeat.interval.ms", "300");
            forConsumer.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        Random random = new Random();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(forProducer);
             KafkaConsumer<String, String> consumer = new KafkaConsumer<>(forConsumer)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                String tag = UUID.randomUUID() + "/" + 2 * records.count();
                try {
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                    for (ConsumerRecord<String, String> record : records) {
                        int number = Integer.parseInt(record.value());
                        for (int half = 0; half < 2; half++) {
                            producer.send(new ProducerRecord<>(sink, (number + half) % partitions, tag,
                                number + "/" + half));
                        }
                        positions.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
                    if (random.nextInt(10) == 0) {
                        producer.abortTransaction();
                        rewind(consumer);
                    } else {
                        producer.commitTransaction();
                    }
                } catch (KafkaException error) {
                    System.err.println("aborts: " + error);
                    // Throws when the producer is fenced or broken: then this process ends.
                    producer.abortTransaction();
                    rewind(consumer);
                }
            }
        }
    }

    static void rewind(KafkaConsumer<String, String> consumer) {
        Collection<TopicPartition> assignment = consumer.assignment();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(java.util.Set.copyOf(assignment));
        for (TopicPartition at : assignment) {
            OffsetAndMetadata position = committed.get(at);
            consumer.seek(at, position == null ? 0 : position.offset());
        }
    }
}
