import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;
import org.apache.kafka.common.errors.WakeupException;

/** What applications do with consumer groups of both protocols. */
class Groups {
    static void register(Map<String, Scenarios.Scenario> all) {
        for (String protocol : List.of("classic", "consumer")) {
            all.put("members_share_and_take_over_" + protocol, c -> share(c, protocol, ""));
            all.put("static_member_returns_without_rebalance_" + protocol, c -> staticMember(c, protocol));
            all.put("instance_id_twice_" + protocol, c -> twice(c, protocol));
        }
        all.put("members_share_with_range_of_the_broker", c -> share(c, "consumer", "group.remote.assignor=range"));
        all.put("cooperative_sticky_moves_only_what_must", c -> incremental(c, "classic"));
        all.put("consumer_protocol_moves_only_what_must", c -> incremental(c, "consumer"));
        all.put("regular_expression_follows_topics", Groups::regex);
        all.put("bad_regular_expression", Groups::badRegex);
        all.put("migration_there_and_back", Groups::migration);
        all.put("topic_grows_under_a_group_classic", c -> grows(c, "classic"));
        all.put("topic_grows_under_a_group_consumer", c -> grows(c, "consumer"));
    }

    /** A consumer in a thread of its own; remembers what it was given and what it read. */
    static class Member implements ConsumerRebalanceListener, Runnable, AutoCloseable {
        final String name;
        final KafkaConsumer<String, String> consumer;
        final Set<TopicPartition> assigned = new ConcurrentSkipListSet<>((a, b) -> a.toString().compareTo(b.toString()));
        final List<String> events = new CopyOnWriteArrayList<>();
        final List<String> values = new CopyOnWriteArrayList<>();
        volatile Throwable error;
        private volatile CloseOptions closing = CloseOptions.timeout(Duration.ofSeconds(10));
        private volatile boolean stopping;
        private final Thread thread;

        Member(Scenarios.Client c, String name, Consumer<Member> subscribe, String... pairs) {
            this.name = name;
            List<String> all = new ArrayList<>(List.of("group.id=" + c.name, "client.id=" + name));
            all.addAll(List.of(pairs));
            consumer = c.consumer(all.toArray(new String[0]));
            c.closing(this);
            subscribe.accept(this);
            thread = new Thread(this, name);
            thread.start();
        }

        @Override
        public void run() {
            try {
                while (!stopping) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                        values.add(record.value());
                    }
                    if (!assigned.isEmpty()) {
                        consumer.commitSync();
                    }
                }
            } catch (WakeupException ignored) {
                // It is to stop.
            } catch (org.apache.kafka.clients.consumer.CommitFailedException
                    | org.apache.kafka.common.errors.RebalanceInProgressException retried) {
                if (!stopping) {
                    run();
                    return;
                }
            } catch (Throwable thrown) {
                error = thrown;
            }
            try {
                consumer.close(closing);
            } catch (Throwable thrown) {
                if (error == null) {
                    error = thrown;
                }
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assigned.addAll(partitions);
            events.add("assigned " + sorted(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            assigned.removeAll(partitions);
            events.add("revoked " + sorted(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            assigned.removeAll(partitions);
            events.add("lost " + sorted(partitions));
        }

        static String sorted(Collection<TopicPartition> partitions) {
            Set<String> names = new TreeSet<>();
            partitions.forEach(p -> names.add(p.toString()));
            return names.toString();
        }

        void stop() throws Exception {
            stopping = true;
            thread.join(20_000);
            Scenarios.check(!thread.isAlive(), name + " did not stop");
        }

        /** As when the process is restarted: a static member stays, a dynamic one leaves. */
        void stopWith(CloseOptions options) throws Exception {
            closing = options;
            stop();
        }

        void healthy() {
            if (error != null) {
                throw new RuntimeException(name + " failed", error);
            }
        }

        @Override
        public void close() throws Exception {
            stop();
        }
    }

    static Member member(Scenarios.Client c, String name, String topic, String... pairs) {
        return new Member(c, name, m -> m.consumer.subscribe(List.of(topic), m), pairs);
    }

    static void balanced(int partitions, Member... members) throws Exception {
        Scenarios.await(members.length + " members share " + partitions + " partitions", () -> {
            Set<TopicPartition> all = new java.util.HashSet<>();
            int sum = 0;
            for (Member member : members) {
                member.healthy();
                if (member.assigned.size() < partitions / members.length) {
                    return false;
                }
                all.addAll(member.assigned);
                sum += member.assigned.size();
            }
            return all.size() == partitions && sum == partitions;
        });
    }

    static void write(KafkaProducer<String, String> producer, String topic, int begin, int end, int partitions) {
        for (int i = begin; i < end; i++) {
            producer.send(new ProducerRecord<>(topic, i % partitions, "k", "" + i));
        }
        producer.flush();
    }

    static void readAll(int count, Member... members) throws Exception {
        Scenarios.await(count + " values are read", () -> {
            Set<String> all = new java.util.HashSet<>();
            for (Member member : members) {
                member.healthy();
                all.addAll(member.values);
            }
            return all.size() == count;
        });
    }

    static ConsumerGroupDescription describe(Scenarios.Client c) throws Exception {
        return c.admin.describeConsumerGroups(List.of(c.name)).describedGroups().get(c.name).get();
    }

    static String[] with(String protocol, String... more) {
        List<String> all = new ArrayList<>(List.of("group.protocol=" + protocol));
        for (String one : more) {
            if (!one.isEmpty()) {
                all.add(one);
            }
        }
        return all.toArray(new String[0]);
    }

    static void share(Scenarios.Client c, String protocol, String setting) throws Exception {
        String topic = c.topic("", 6);
        KafkaProducer<String, String> producer = c.producer();
        write(producer, topic, 0, 60, 6);
        Member a = member(c, "a", topic, with(protocol, setting));
        balanced(6, a);
        readAll(60, a);
        Member b = member(c, "b", topic, with(protocol, setting));
        balanced(6, a, b);
        Scenarios.equal(3, a.assigned.size(), "partitions of a");
        write(producer, topic, 60, 120, 6);
        readAll(120, a, b);
        a.stop();
        balanced(6, b);
        write(producer, topic, 120, 180, 6);
        readAll(180, a, b);
        b.stop();
        Scenarios.equal(180, a.values.size() + b.values.size(), "values, none twice");
        Scenarios.await("the group is empty", () -> describe(c).groupState() == GroupState.EMPTY);
        long committed = c.admin.listConsumerGroupOffsets(c.name).partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(at -> at.offset()).sum();
        Scenarios.equal(180L, committed, "committed");
    }

    static void incremental(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 6);
        String strategy = protocol.equals("classic")
            ? "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor" : "";
        Member a = member(c, "a", topic, with(protocol, strategy));
        balanced(6, a);
        Member b = member(c, "b", topic, with(protocol, strategy));
        balanced(6, a, b);
        List<String> revoked = new ArrayList<>();
        for (String event : a.events) {
            if (event.startsWith("revoked") && !event.equals("revoked []")) {
                revoked.add(event);
            }
            Scenarios.check(!event.startsWith("lost"), "a lost partitions: " + a.events);
        }
        Scenarios.equal(1, revoked.size(), "revocations of a: " + a.events);
        Scenarios.equal(3, revoked.get(0).split(",").length, "revoked: " + revoked);
        b.stop();
        balanced(6, a);
        a.stop();
    }

    static void staticMember(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 4);
        String[] first = with(protocol, "group.instance.id=first");
        Member a = member(c, "a", topic, first);
        Member b = member(c, "b", topic, with(protocol, "group.instance.id=second"));
        balanced(4, a, b);
        String before = Member.sorted(a.assigned);
        int events = b.events.size();
        int generation = describe(c).groupEpoch().orElse(-1);
        a.stopWith(CloseOptions.timeout(Duration.ofSeconds(10)));
        Member again = member(c, "again", topic, first);
        balanced(4, again, b);
        Scenarios.equal(before, Member.sorted(again.assigned), "partitions after the restart");
        Scenarios.equal(events, b.events.size(), "events of the other member " + b.events);
        Scenarios.equal(generation, describe(c).groupEpoch().orElse(-1), "epoch");
        Scenarios.equal(Set.of("first", "second"), instances(c), "instances");
        // Asked to leave, even a static member leaves.
        again.stopWith(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        Scenarios.await("one instance is left", () -> instances(c).equals(Set.of("second")));
        balanced(4, b);
        b.stop();
    }

    static Set<String> instances(Scenarios.Client c) throws Exception {
        Set<String> names = new TreeSet<>();
        describe(c).members().forEach(m -> m.groupInstanceId().ifPresent(names::add));
        return names;
    }

    static void twice(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 2);
        String[] settings = with(protocol, "group.instance.id=only");
        Member a = member(c, "a", topic, settings);
        balanced(2, a);
        Member b = member(c, "b", topic, settings);
        if (protocol.equals("classic")) {
            balanced(2, b);
            Scenarios.await("the first is fenced", () -> a.error != null);
            Scenarios.check(a.error instanceof FencedInstanceIdException, "the first: " + a.error);
            b.stop();
        } else {
            Scenarios.await("the second is refused", () -> b.error != null);
            Scenarios.check(b.error instanceof UnreleasedInstanceIdException, "the second: " + b.error);
            a.healthy();
            a.stop();
        }
    }

    static void regex(Scenarios.Client c) throws Exception {
        c.topic("-one", 2);
        c.topic("-other", 2);
        SubscriptionPattern pattern = new SubscriptionPattern(c.name + "-(one|two|three[0-9]+)");
        Member m = new Member(c, "m", x -> x.consumer.subscribe(pattern, x), with("consumer"));
        balanced(2, m);
        KafkaProducer<String, String> producer = c.producer();
        write(producer, c.name + "-one", 0, 10, 2);
        c.topic("-three33", 2);
        balanced(4, m);
        write(producer, c.name + "-three33", 10, 20, 2);
        readAll(20, m);
        m.stop();
        m.healthy();
    }

    static void badRegex(Scenarios.Client c) throws Exception {
        Member m = new Member(c, "m", x -> x.consumer.subscribe(new SubscriptionPattern("(")), with("consumer"));
        Scenarios.await("it fails", () -> m.error != null);
        Scenarios.check(m.error instanceof InvalidRegularExpression, "found " + m.error);
    }

    static void migration(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 6);
        KafkaProducer<String, String> producer = c.producer();
        write(producer, topic, 0, 60, 6);
        Member a = member(c, "a", topic, with("classic"));
        Member b = member(c, "b", topic, with("classic"));
        balanced(6, a, b);
        readAll(60, a, b);
        Scenarios.equal(GroupType.CLASSIC, describe(c).type(), "type at first");
        Member x = member(c, "x", topic, with("consumer"));
        balanced(6, a, b, x);
        ConsumerGroupDescription mixed = describe(c);
        Scenarios.equal(GroupType.CONSUMER, mixed.type(), "type with a new member");
        Scenarios.equal(2L, mixed.members().stream().filter(m -> m.upgraded().equals(java.util.Optional.of(false))).count(),
            "classic members");
        write(producer, topic, 60, 120, 6);
        readAll(120, a, b, x);
        a.stop();
        balanced(6, b, x);
        b.stop();
        balanced(6, x);
        Scenarios.equal(GroupType.CONSUMER, describe(c).type(), "type after the upgrade");
        write(producer, topic, 120, 180, 6);
        readAll(180, a, b, x);
        // And back, again without a stop.
        Member z = member(c, "z", topic, with("classic"));
        balanced(6, x, z);
        write(producer, topic, 180, 240, 6);
        readAll(240, a, b, x, z);
        x.stop();
        balanced(6, z);
        Scenarios.equal(GroupType.CLASSIC, describe(c).type(), "type after the downgrade");
        write(producer, topic, 240, 300, 6);
        readAll(300, a, b, x, z);
        z.stop();
        for (Member member : List.of(a, b, x, z)) {
            member.healthy();
        }
    }

    static void grows(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 1);
        Member m = member(c, "m", topic, with(protocol, "metadata.max.age.ms=300"));
        balanced(1, m);
        c.admin.createPartitions(Map.of(topic, org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))).all().get();
        balanced(3, m);
        m.stop();
    }
}
