import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** What applications do with transactions. */
class Transactions {
    static void register(Map<String, Scenarios.Scenario> all) {
        all.put("commit_and_abort", Transactions::commitAndAbort);
        all.put("read_committed_waits_for_open_transactions", Transactions::lastStableOffset);
        all.put("consume_transform_produce_classic", c -> consumeTransformProduce(c, "classic"));
        all.put("consume_transform_produce_consumer", c -> consumeTransformProduce(c, "consumer"));
        all.put("zombie_producer_is_fenced", Transactions::zombie);
        all.put("zombie_group_member_is_fenced_classic", c -> zombieMember(c, "classic"));
        all.put("zombie_group_member_is_fenced_consumer", c -> zombieMember(c, "consumer"));
        all.put("transaction_times_out", Transactions::timeout);
        all.put("failed_transaction_is_aborted_and_repeated", Transactions::repeat);
        all.put("many_partitions_in_one_transaction", Transactions::manyPartitions);
    }

    static void commitAndAbort(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> producer = c.transactional("");
        producer.initTransactions();
        for (int round = 0; round < 6; round++) {
            producer.beginTransaction();
            c.send(producer, topic, round * 10, round * 10 + 10);
            if (round % 2 == 0) {
                producer.commitTransaction();
            } else {
                producer.flush();
                producer.abortTransaction();
            }
        }
        List<String> committed = new ArrayList<>();
        for (int round = 0; round < 6; round += 2) {
            committed.addAll(Scenarios.Client.numbers(round * 10, round * 10 + 10));
        }
        Scenarios.equal(committed, c.values(topic, "read_committed"), "committed");
        Scenarios.equal(Scenarios.Client.numbers(0, 60), c.values(topic, "read_uncommitted"), "all");
        // 60 records and 6 markers.
        try (KafkaConsumer<String, String> consumer = c.consumer("isolation.level=read_committed")) {
            TopicPartition at = new TopicPartition(topic, 0);
            Scenarios.equal(66L, consumer.endOffsets(List.of(at)).get(at), "end");
        }
    }

    static void lastStableOffset(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        TopicPartition at = new TopicPartition(topic, 0);
        KafkaProducer<String, String> open = c.transactional("-open");
        KafkaProducer<String, String> plain = c.producer();
        open.initTransactions();
        plain.send(new ProducerRecord<>(topic, "k", "before")).get();
        open.beginTransaction();
        open.send(new ProducerRecord<>(topic, "k", "in")).get();
        plain.send(new ProducerRecord<>(topic, "k", "after")).get();
        Scenarios.equal(List.of("before"), c.values(topic, "read_committed"), "while open");
        Scenarios.equal(List.of("before", "in", "after"), c.values(topic, "read_uncommitted"), "while open");
        try (KafkaConsumer<String, String> committed = c.consumer("isolation.level=read_committed");
             KafkaConsumer<String, String> any = c.consumer()) {
            Scenarios.equal(1L, committed.endOffsets(List.of(at)).get(at), "stable end");
            Scenarios.equal(3L, any.endOffsets(List.of(at)).get(at), "end");
            committed.assign(List.of(at));
            committed.seekToBeginning(List.of(at));
            List<String> seen = new ArrayList<>();
            Scenarios.await("the first record", () -> {
                committed.poll(Duration.ofMillis(50)).forEach(r -> seen.add(r.value()));
                return !seen.isEmpty();
            });
            open.abortTransaction();
            Scenarios.await("the rest", () -> {
                committed.poll(Duration.ofMillis(50)).forEach(r -> seen.add(r.value()));
                return seen.size() >= 2;
            });
            Scenarios.equal(List.of("before", "after"), seen, "after the abort");
        }
    }

    static void consumeTransformProduce(Scenarios.Client c, String protocol) throws Exception {
        String source = c.topic("-source", 2);
        String sink = c.topic("-sink", 2);
        int count = 200;
        KafkaProducer<String, String> input = c.producer();
        c.send(input, source, 0, count);
        input.flush();
        KafkaProducer<String, String> producer = c.transactional("");
        producer.initTransactions();
        int done = 0;
        int round = 0;
        try (KafkaConsumer<String, String> consumer = c.consumer("group.id=" + c.name, "group.protocol=" + protocol,
                "isolation.level=read_committed", "max.poll.records=30")) {
            consumer.subscribe(List.of(source));
            long deadline = System.nanoTime() + 40_000_000_000L;
            while (done < count) {
                Scenarios.check(System.nanoTime() < deadline, "only " + done + " were copied");
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(sink, record.key(), "copy of " + record.value()));
                    positions.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1, Optional.empty(), "m"));
                }
                producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
                if (round++ % 3 == 1) {
                    producer.abortTransaction();
                    Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
                    for (TopicPartition at : consumer.assignment()) {
                        OffsetAndMetadata position = committed.get(at);
                        consumer.seek(at, position == null ? 0 : position.offset());
                    }
                } else {
                    producer.commitTransaction();
                    done += records.count();
                }
            }
        }
        Scenarios.equal(count, done, "copied");
        List<String> copies = new ArrayList<>(c.values(sink, "read_committed"));
        List<String> expected = new ArrayList<>();
        Scenarios.Client.numbers(0, count).forEach(n -> expected.add("copy of " + n));
        copies.sort(null);
        expected.sort(null);
        Scenarios.equal(expected, copies, "copies");
        Scenarios.equal((long) count, committed(c, source, 0) + committed(c, source, 1), "committed positions");
    }

    /** The stable position. Asked for by partition: one that is only pending is not among "all". */
    static long committed(Scenarios.Client c, String topic, int partition) throws Exception {
        TopicPartition at = new TopicPartition(topic, partition);
        return c.admin.listConsumerGroupOffsets(
            Map.of(c.name, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(at))),
            new ListConsumerGroupOffsetsOptions().requireStable(true))
            .partitionsToOffsetAndMetadata(c.name).get().get(at).offset();
    }

    static void zombie(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> old = c.transactional("");
        old.initTransactions();
        old.beginTransaction();
        old.send(new ProducerRecord<>(topic, "k", "old")).get();
        KafkaProducer<String, String> young = c.transactional("");
        young.initTransactions();
        Throwable error = Scenarios.failure("a zombie's send", () -> old.send(new ProducerRecord<>(topic, "k", "late")).get());
        Scenarios.check(error instanceof InvalidProducerEpochException || error instanceof ProducerFencedException,
            "a zombie's send: " + error);
        Throwable end = Scenarios.failure("a zombie's commit", () -> {
            old.commitTransaction();
            return null;
        });
        Scenarios.check(end instanceof KafkaException, "a zombie's commit: " + end);
        young.beginTransaction();
        young.send(new ProducerRecord<>(topic, "k", "young"));
        young.commitTransaction();
        Scenarios.equal(List.of("young"), c.values(topic, "read_committed"), "committed");
    }

    static void zombieMember(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 1);
        c.producer().send(new ProducerRecord<>(topic, "k", "v")).get();
        KafkaProducer<String, String> producer = c.transactional("");
        producer.initTransactions();
        ConsumerGroupMetadata before;
        try (KafkaConsumer<String, String> consumer = c.consumer("group.id=" + c.name, "group.protocol=" + protocol)) {
            consumer.subscribe(List.of(topic));
            Scenarios.await("the record", () -> !consumer.poll(Duration.ofMillis(100)).isEmpty());
            before = consumer.groupMetadata();
        }
        Map<TopicPartition, OffsetAndMetadata> position = Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1));
        producer.beginTransaction();
        Throwable error = Scenarios.failure("offsets of a member that left", () -> {
            producer.sendOffsetsToTransaction(position, before);
            producer.commitTransaction();
            return null;
        });
        Scenarios.check(error instanceof KafkaException, "offsets of a member that left: " + error);
        producer.abortTransaction();
        producer.beginTransaction();
        producer.sendOffsetsToTransaction(position, new ConsumerGroupMetadata(c.name));
        producer.commitTransaction();
        Scenarios.equal(1L, committed(c, topic, 0), "committed");
    }

    static void timeout(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> slow = c.transactional("", "transaction.timeout.ms=600");
        slow.initTransactions();
        slow.beginTransaction();
        slow.send(new ProducerRecord<>(topic, "k", "slow")).get();
        String id = c.name;
        Scenarios.await("it is aborted", () -> c.admin.describeTransactions(List.of(id)).description(id).get().state()
            == TransactionState.COMPLETE_ABORT);
        Throwable error = Scenarios.failure("a late commit", () -> {
            slow.commitTransaction();
            return null;
        });
        // Which one depends on what the producer hears of first.
        Scenarios.check(error instanceof InvalidProducerEpochException || error instanceof ProducerFencedException
            || error instanceof InvalidTxnStateException, "a late commit: " + error);
        slow.close();
        Scenarios.equal(List.of(), c.values(topic, "read_committed"), "committed");
        KafkaProducer<String, String> next = c.transactional("");
        next.initTransactions();
        next.beginTransaction();
        next.send(new ProducerRecord<>(topic, "k", "next"));
        next.commitTransaction();
        Scenarios.equal(List.of("next"), c.values(topic, "read_committed"), "committed in the end");
        Throwable refused = Scenarios.failure("too long a timeout", () -> {
            c.transactional("-long", "transaction.timeout.ms=900001").initTransactions();
            return null;
        });
        Scenarios.check(refused.getMessage().contains("timeout is larger than the maximum"), "too long: " + refused);
    }

    static void repeat(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> producer = c.transactional("", "max.request.size=100000000", "buffer.memory=100000000");
        producer.initTransactions();
        producer.beginTransaction();
        c.send(producer, topic, 0, 5);
        producer.send(new ProducerRecord<>(topic, "k", "x".repeat(2_000_000)));
        Scenarios.failure("a transaction with a record too large", () -> {
            producer.commitTransaction();
            return null;
        });
        producer.abortTransaction();
        producer.beginTransaction();
        c.send(producer, topic, 0, 5);
        producer.commitTransaction();
        Scenarios.equal(Scenarios.Client.numbers(0, 5), c.values(topic, "read_committed"), "committed");
    }

    static void manyPartitions(Scenarios.Client c) throws Exception {
        String first = c.topic("-1", 12);
        String second = c.topic("-2", 12);
        KafkaProducer<String, String> producer = c.transactional("");
        producer.initTransactions();
        for (int round = 0; round < 4; round++) {
            producer.beginTransaction();
            for (int i = 0; i < 240; i++) {
                producer.send(new ProducerRecord<>(i % 2 == 0 ? first : second, i / 2 % 12, "k", "" + round));
            }
            if (round == 2) {
                producer.abortTransaction();
            } else {
                producer.commitTransaction();
            }
        }
        for (String topic : List.of(first, second)) {
            List<String> values = c.values(topic, "read_committed");
            Scenarios.equal(360, values.size(), "committed in " + topic);
            Scenarios.check(!values.contains("2"), "an aborted record was read");
        }
    }
}
