import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs scenarios of the released Java client in one process, a few at a time.
 *
 * A line of standard input is the name of a scenario, from which those of its topics and groups
 * are made; the answer is a line: the name, then "passed", or "failed" and the stack trace with its
 * newlines as "\n". Answers come in any order.
 */
public class Scenarios {
    interface Scenario {
        void run(Client client) throws Exception;
    }

    static final int THREADS = 4;

    static final Map<String, Scenario> ALL = new TreeMap<>();

    static class Failure extends RuntimeException {
        Failure(String message) {
            super(message);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Transactions.register(ALL);
        Groups.register(ALL);
        Administration.register(ALL);
        if (arguments[0].equals("list")) {
            ALL.keySet().forEach(System.out::println);
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String scenario = line;
            pool.execute(() -> {
                String answer = scenario + " " + run(arguments[0], scenario);
                synchronized (System.out) {
                    System.out.println(answer);
                    System.out.flush();
                }
            });
        }
        System.exit(0);
    }

    static String run(String address, String scenario) {
        try (Client client = new Client(address, scenario.replace('_', '-'))) {
            ALL.get(scenario).run(client);
            return "passed";
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            return "failed " + trace.toString().replace("\n", "\\n");
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new Failure(what);
        }
    }

    static void equal(Object expected, Object found, String what) {
        check(expected.equals(found), what + ": expected " + expected + ", found " + found);
    }

    /** Waits until it is so; a scenario's only way to wait. */
    static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + 90_000_000_000L;
        while (!condition.call()) {
            check(System.nanoTime() < deadline, "waited in vain until " + what);
            Thread.sleep(20);
        }
    }

    /** Runs what has to fail; gives the cause that a user would see. */
    static Throwable failure(String what, Callable<?> action) {
        try {
            action.call();
        } catch (ExecutionException error) {
            return error.getCause();
        } catch (Exception error) {
            return error;
        }
        throw new Failure(what + " did not fail");
    }

    static void fails(Class<?> expected, String what, Callable<?> action) {
        Throwable error = failure(what, action);
        check(expected.isInstance(error), what + ": expected " + expected.getSimpleName() + ", found " + error);
    }

    /** A broker's address and the scenario's name, and what is made with both. */
    static class Client implements AutoCloseable {
        final String address;
        final String name;
        final Admin admin;
        private final List<AutoCloseable> open = new ArrayList<>();

        Client(String address, String name) {
            this.address = address;
            this.name = name;
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", address);
            settings.put("default.api.timeout.ms", "30000");
            admin = Admin.create(settings);
        }

        @Override
        public void close() {
            for (AutoCloseable each : open) {
                try {
                    each.close();
                } catch (Exception ignored) {
                    // What the scenario says about its end is what counts.
                }
            }
            admin.close();
        }

        <T extends AutoCloseable> T closing(T one) {
            open.add(one);
            return one;
        }

        String topic(String suffix, int partitions) throws Exception {
            String topic = name + suffix;
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
            await(topic + " is led", () -> {
                try {
                    for (int i = 0; i < partitions; i++) {
                        TopicPartition at = new TopicPartition(topic, i);
                        admin.listOffsets(Map.of(at, OffsetSpec.latest()), new ListOffsetsOptions()).all().get();
                        admin.describeProducers(List.of(at)).all().get();
                    }
                    return true;
                } catch (ExecutionException error) {
                    return !(error.getCause() instanceof org.apache.kafka.common.errors.RetriableException);
                }
            });
            return topic;
        }

        /** Settings as "key=value" strings. */
        Map<String, Object> settings(String... pairs) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", address);
            settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            for (String pair : pairs) {
                int at = pair.indexOf('=');
                settings.put(pair.substring(0, at), pair.substring(at + 1));
            }
            return settings;
        }

        KafkaProducer<String, String> producer(String... pairs) {
            Map<String, Object> settings = settings(pairs);
            settings.putIfAbsent("max.block.ms", "30000");
            return closing(new KafkaProducer<>(settings));
        }

        KafkaProducer<String, String> transactional(String id, String... pairs) {
            List<String> all = new ArrayList<>(List.of(pairs));
            all.add("transactional.id=" + name + id);
            KafkaProducer<String, String> producer = producer(all.toArray(new String[0]));
            return producer;
        }

        KafkaConsumer<String, String> consumer(String... pairs) {
            Map<String, Object> settings = settings(pairs);
            settings.putIfAbsent("auto.offset.reset", "earliest");
            settings.putIfAbsent("enable.auto.commit", "false");
            if ("consumer".equals(settings.get("group.protocol"))) {
                settings.remove("session.timeout.ms");
                settings.remove("heartbeat.interval.ms");
            } else {
                settings.putIfAbsent("heartbeat.interval.ms", "300");
            }
            return new KafkaConsumer<>(settings);
        }

        void send(KafkaProducer<String, String> producer, String topic, int begin, int end) {
            for (int i = begin; i < end; i++) {
                producer.send(new ProducerRecord<>(topic, "" + i, "" + i));
            }
        }

        /** Values of a whole topic, up to where the isolation level lets one see. */
        List<String> values(String topic, String isolation) throws Exception {
            List<String> found = new ArrayList<>();
            try (KafkaConsumer<String, String> consumer = consumer("isolation.level=" + isolation)) {
                List<TopicPartition> partitions = new ArrayList<>();
                consumer.partitionsFor(topic).forEach(p -> partitions.add(new TopicPartition(topic, p.partition())));
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                await("all of " + topic + " is read", () -> {
                    for (ConsumerRecord<String, String> record : consumer.poll(java.time.Duration.ofMillis(50))) {
                        found.add(record.value());
                    }
                    return partitions.stream().allMatch(p -> consumer.position(p) >= ends.get(p));
                });
            }
            return found;
        }

        static List<String> numbers(int begin, int end) {
            List<String> numbers = new ArrayList<>();
            for (int i = begin; i < end; i++) {
                numbers.add("" + i);
            }
            return numbers;
        }
    }

    static <T> List<T> joined(Collection<T> first, Collection<T> second) {
        List<T> all = new ArrayList<>(first);
        all.addAll(second);
        return all;
    }
}
