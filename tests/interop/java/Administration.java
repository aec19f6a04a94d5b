import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.common.errors.UnknownMemberIdException;

/** What the Admin client asks about groups, transactions and features. */
class Administration {
    static void register(Map<String, Scenarios.Scenario> all) {
        all.put("admin_looks_at_transactions", Administration::transactions);
        all.put("admin_aborts_a_transaction", Administration::abort);
        all.put("admin_fences_producers", Administration::fence);
        all.put("admin_terminates_a_transaction", Administration::terminate);
        all.put("admin_describes_and_lists_groups", Administration::groups);
        all.put("admin_handles_offsets", Administration::offsets);
        all.put("admin_deletes_groups_classic", c -> delete(c, "classic"));
        all.put("admin_deletes_groups_consumer", c -> delete(c, "consumer"));
        all.put("admin_removes_members", Administration::remove);
        all.put("admin_configures_groups", Administration::configs);
        all.put("admin_describes_features", Administration::features);
        all.put("transactions_survive_a_change_of_version", Administration::versions);
    }

    static TransactionDescription describe(Scenarios.Client c, String id) throws Exception {
        return c.admin.describeTransactions(List.of(id)).description(id).get();
    }

    static List<String> listed(Scenarios.Client c, ListTransactionsOptions options) throws Exception {
        List<String> found = new ArrayList<>();
        for (TransactionListing each : c.admin.listTransactions(options).all().get()) {
            if (each.transactionalId().startsWith(c.name)) {
                found.add(each.transactionalId().substring(c.name.length()) + " " + each.state());
            }
        }
        found.sort(null);
        return found;
    }

    static void transactions(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 2);
        TopicPartition at = new TopicPartition(topic, 1);
        KafkaProducer<String, String> open = c.transactional("-open", "transaction.timeout.ms=50000");
        KafkaProducer<String, String> idle = c.transactional("-idle");
        open.initTransactions();
        idle.initTransactions();
        Scenarios.equal(List.of("-idle Empty", "-open Empty"), listed(c, new ListTransactionsOptions()), "listed");
        open.beginTransaction();
        open.send(new ProducerRecord<>(topic, 1, "k", "v")).get();
        TransactionDescription description = describe(c, c.name + "-open");
        Scenarios.equal(TransactionState.ONGOING, description.state(), "state");
        Scenarios.equal(Set.of(at), description.topicPartitions(), "partitions");
        Scenarios.equal(50_000L, description.transactionTimeoutMs(), "timeout");
        Scenarios.check(description.transactionStartTimeMs().isPresent(), "no start");
        Scenarios.equal(List.of("-open Ongoing"),
            listed(c, new ListTransactionsOptions().filterStates(List.of(TransactionState.ONGOING))), "ongoing");
        Scenarios.equal(List.of("-open Ongoing"),
            listed(c, new ListTransactionsOptions().filterProducerIds(List.of(description.producerId()))), "by producer");
        // One that never had a transaction counts as old.
        Scenarios.check(!listed(c, new ListTransactionsOptions().filterOnDuration(600_000)).contains("-open Ongoing"), "long");
        Scenarios.equal(List.of("-idle Empty"),
            listed(c, new ListTransactionsOptions().filterOnTransactionalIdPattern(c.name + "-i.*")), "by pattern");
        List<ProducerState> producers = c.admin.describeProducers(List.of(at)).partitionResult(at).get().activeProducers();
        Scenarios.equal(1, producers.size(), "producers");
        Scenarios.equal(description.producerId(), producers.get(0).producerId(), "producer");
        Scenarios.equal(0L, producers.get(0).currentTransactionStartOffset().getAsLong(), "start");
        open.commitTransaction();
        Scenarios.await("it is complete", () -> describe(c, c.name + "-open").state() == TransactionState.COMPLETE_COMMIT);
        Scenarios.check(c.admin.describeProducers(List.of(at)).partitionResult(at).get().activeProducers().get(0)
            .currentTransactionStartOffset().isEmpty(), "still open");
        Scenarios.fails(TransactionalIdNotFoundException.class, "an unknown id", () -> describe(c, c.name + "-none"));
    }

    static void abort(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        TopicPartition at = new TopicPartition(topic, 0);
        KafkaProducer<String, String> open = c.transactional("");
        open.initTransactions();
        open.beginTransaction();
        open.send(new ProducerRecord<>(topic, "k", "v")).get();
        c.producer().send(new ProducerRecord<>(topic, "k", "after")).get();
        Scenarios.equal(List.of(), c.values(topic, "read_committed"), "held back");
        ProducerState producer = c.admin.describeProducers(List.of(at)).partitionResult(at).get().activeProducers().stream()
            .filter(p -> p.currentTransactionStartOffset().isPresent()).findFirst().get();
        c.admin.abortTransaction(new AbortTransactionSpec(at, producer.producerId(), (short) producer.producerEpoch(),
            producer.coordinatorEpoch().orElse(0))).all().get();
        Scenarios.equal(List.of("after"), c.values(topic, "read_committed"), "after the abort");
    }

    static void fence(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> open = c.transactional("");
        open.initTransactions();
        open.beginTransaction();
        open.send(new ProducerRecord<>(topic, "k", "v")).get();
        short epoch = c.admin.fenceProducers(List.of(c.name)).epochId(c.name).get();
        Scenarios.check(epoch > 0, "epoch " + epoch);
        Scenarios.failure("a fenced producer's commit", () -> {
            open.commitTransaction();
            return null;
        });
        Scenarios.await("it is aborted", () -> describe(c, c.name).topicPartitions().isEmpty());
        Scenarios.equal(List.of(), c.values(topic, "read_committed"), "committed");
        c.admin.fenceProducers(List.of(c.name + "-new")).all().get();
    }

    static void terminate(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        KafkaProducer<String, String> open = c.transactional("");
        open.initTransactions();
        open.beginTransaction();
        open.send(new ProducerRecord<>(topic, "k", "v")).get();
        c.admin.forceTerminateTransaction(c.name).result().get();
        Scenarios.await("it is aborted", () -> describe(c, c.name).topicPartitions().isEmpty());
        Scenarios.equal(List.of(), c.values(topic, "read_committed"), "committed");
    }

    static Set<String> listed(Scenarios.Client c, ListGroupsOptions options) throws Exception {
        Set<String> found = new TreeSet<>();
        for (GroupListing each : c.admin.listGroups(options).all().get()) {
            if (each.groupId().startsWith(c.name)) {
                found.add(each.groupId().substring(c.name.length()) + " " + each.type().get() + " " + each.protocol() + " "
                    + each.groupState().get());
            }
        }
        return found;
    }

    static void groups(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 2);
        String old = "-old Classic consumer Stable";
        String young = "-young Consumer consumer Stable";
        String simple = "-simple Classic  Empty";
        Groups.Member a = Groups.member(c, "a", topic, "group.id=" + c.name + "-old", "group.protocol=classic");
        Groups.Member b = Groups.member(c, "b", topic, "group.id=" + c.name + "-young", "group.protocol=consumer",
            "client.rack=r1");
        c.admin.alterConsumerGroupOffsets(c.name + "-simple", Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(0)))
            .all().get();
        Groups.balanced(2, a);
        Groups.balanced(2, b);
        Scenarios.await("the new group is stable", () -> listed(c, new ListGroupsOptions()).contains(young));
        Scenarios.equal(Set.of(old, simple, young), listed(c, new ListGroupsOptions()), "all");
        Scenarios.equal(Set.of(old, simple, young), listed(c, ListGroupsOptions.forConsumerGroups()), "consumer groups");
        Scenarios.equal(Set.of(young), listed(c, new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER))), "by type");
        Scenarios.equal(Set.of(old, simple), listed(c, new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC))), "classic");
        Scenarios.equal(Set.of(simple), listed(c, new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY))), "by state");
        Scenarios.equal(Set.of(old), listed(c, new ListGroupsOptions().inGroupStates(Set.of(GroupState.STABLE))
            .withTypes(Set.of(GroupType.CLASSIC))), "by both");

        for (String suffix : List.of("-old", "-young")) {
            String id = c.name + suffix;
            ConsumerGroupDescription group = c.admin.describeConsumerGroups(List.of(id),
                new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).describedGroups().get(id).get();
            boolean isYoung = suffix.equals("-young");
            Scenarios.equal(GroupState.STABLE, group.groupState(), "state of " + id);
            Scenarios.equal(isYoung ? GroupType.CONSUMER : GroupType.CLASSIC, group.type(), "type of " + id);
            Scenarios.equal(isYoung ? "uniform" : "range", group.partitionAssignor(), "assignor of " + id);
            Scenarios.equal(1, group.members().size(), "members of " + id);
            MemberDescription member = group.members().iterator().next();
            Scenarios.equal(2, member.assignment().topicPartitions().size(), "assignment of " + id);
            Scenarios.equal(isYoung ? "b" : "a", member.clientId(), "client of " + id);
            Scenarios.equal(isYoung, member.memberEpoch().isPresent(), "epoch of " + id);
            Scenarios.equal(isYoung, group.groupEpoch().isPresent(), "group epoch of " + id);
            Scenarios.check(!group.authorizedOperations().isEmpty(), "no operations of " + id);
        }
        Scenarios.fails(GroupIdNotFoundException.class, "an unknown group",
            () -> c.admin.describeConsumerGroups(List.of(c.name + "-none")).describedGroups().get(c.name + "-none").get());
        a.stop();
        b.stop();
    }

    static void offsets(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 2);
        String other = c.topic("-other", 1);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        TopicPartition else_ = new TopicPartition(other, 0);
        c.admin.alterConsumerGroupOffsets(c.name, Map.of(zero, new OffsetAndMetadata(5, Optional.of(0), "text"),
            one, new OffsetAndMetadata(7), else_, new OffsetAndMetadata(9))).all().get();
        Map<TopicPartition, OffsetAndMetadata> found = c.admin.listConsumerGroupOffsets(c.name)
            .partitionsToOffsetAndMetadata().get();
        Scenarios.equal(Set.of(zero, one, else_), found.keySet(), "partitions");
        Scenarios.equal(new OffsetAndMetadata(5, Optional.of(0), "text"), found.get(zero), "offset");
        for (String protocol : List.of("classic", "consumer")) {
            Groups.Member m = Groups.member(c, "m-" + protocol, topic, "group.protocol=" + protocol,
                "auto.offset.reset=earliest");
            Groups.balanced(2, m);
            Scenarios.fails(UnknownMemberIdException.class, "altering offsets of an active group (" + protocol + ")",
                () -> c.admin.alterConsumerGroupOffsets(c.name, Map.of(zero, new OffsetAndMetadata(1))).all().get());
            Scenarios.fails(GroupSubscribedToTopicException.class, "deleting offsets in use (" + protocol + ")",
                () -> c.admin.deleteConsumerGroupOffsets(c.name, Set.of(zero)).all().get());
            m.stop();
        }
        c.admin.deleteConsumerGroupOffsets(c.name, Set.of(zero, else_)).all().get();
        Scenarios.equal(Set.of(one), c.admin.listConsumerGroupOffsets(c.name).partitionsToOffsetAndMetadata().get().keySet(),
            "what is left");
        Scenarios.fails(GroupIdNotFoundException.class, "deleting offsets of nobody",
            () -> c.admin.deleteConsumerGroupOffsets(c.name + "-none", Set.of(zero)).all().get());
    }

    static void delete(Scenarios.Client c, String protocol) throws Exception {
        String topic = c.topic("", 1);
        Groups.Member m = Groups.member(c, "m", topic, "group.protocol=" + protocol);
        Groups.balanced(1, m);
        Scenarios.fails(GroupNotEmptyException.class, "deleting an active group",
            () -> c.admin.deleteConsumerGroups(List.of(c.name)).all().get());
        m.stop();
        c.admin.deleteConsumerGroups(List.of(c.name)).all().get();
        Scenarios.fails(GroupIdNotFoundException.class, "deleting it again",
            () -> c.admin.deleteConsumerGroups(List.of(c.name)).all().get());
        Scenarios.equal(Map.of(), c.admin.listConsumerGroupOffsets(c.name).partitionsToOffsetAndMetadata().get(), "offsets");
    }

    static void remove(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 2);
        Groups.Member a = Groups.member(c, "a", topic, "group.protocol=classic", "group.instance.id=a");
        Groups.Member b = Groups.member(c, "b", topic, "group.protocol=classic", "group.instance.id=b");
        Groups.balanced(2, a, b);
        a.stop();
        Scenarios.equal(Set.of("a", "b"), Groups.instances(c), "instances");
        RemoveMembersFromConsumerGroupOptions who = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("a")));
        who.reason("it is gone");
        c.admin.removeMembersFromConsumerGroup(c.name, who).all().get();
        Scenarios.equal(Set.of("b"), Groups.instances(c), "instances that are left");
        Groups.balanced(2, b);
        Scenarios.fails(UnknownMemberIdException.class, "removing it again",
            () -> c.admin.removeMembersFromConsumerGroup(c.name, who).memberResult(new MemberToRemove("a")).get());
        b.stop();
        c.admin.removeMembersFromConsumerGroup(c.name, new RemoveMembersFromConsumerGroupOptions()).all().get();
        Scenarios.equal(Set.of(), Groups.instances(c), "instances in the end");
    }

    static void configs(Scenarios.Client c) throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, c.name);
        Map<String, String> before = entries(c, group);
        Scenarios.check(before.containsKey("consumer.session.timeout.ms"), "found " + before);
        Scenarios.check(before.containsKey("consumer.heartbeat.interval.ms"), "found " + before);
        set(c, group, "consumer.heartbeat.interval.ms", "400", AlterConfigOp.OpType.SET);
        set(c, group, "consumer.session.timeout.ms", "6000", AlterConfigOp.OpType.SET);
        Scenarios.equal("400", entries(c, group).get("consumer.heartbeat.interval.ms"), "interval");
        Scenarios.equal("6000", entries(c, group).get("consumer.session.timeout.ms"), "timeout");
        Scenarios.fails(InvalidConfigurationException.class, "too short a timeout",
            () -> set(c, group, "consumer.session.timeout.ms", "1", AlterConfigOp.OpType.SET));
        Scenarios.fails(InvalidConfigurationException.class, "an unknown key",
            () -> set(c, group, "consumer.nonsense", "1", AlterConfigOp.OpType.SET));
        Scenarios.check(c.admin.listConfigResources(Set.of(ConfigResource.Type.GROUP),
            new org.apache.kafka.clients.admin.ListConfigResourcesOptions()).all().get().contains(group), "not listed");
        set(c, group, "consumer.session.timeout.ms", "", AlterConfigOp.OpType.DELETE);
        Scenarios.equal(before.get("consumer.session.timeout.ms"), entries(c, group).get("consumer.session.timeout.ms"),
            "after deleting");
    }

    static Map<String, String> entries(Scenarios.Client c, ConfigResource resource) throws Exception {
        Map<String, String> found = new java.util.TreeMap<>();
        for (ConfigEntry entry : c.admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            found.put(entry.name(), entry.value());
        }
        return found;
    }

    static Void set(Scenarios.Client c, ConfigResource resource, String key, String value, AlterConfigOp.OpType type)
            throws Exception {
        Collection<AlterConfigOp> operations = List.of(new AlterConfigOp(new ConfigEntry(key, value), type));
        c.admin.incrementalAlterConfigs(Map.of(resource, operations)).all().get();
        return null;
    }

    static void features(Scenarios.Client c) throws Exception {
        FeatureMetadata features = c.admin.describeFeatures().featureMetadata().get();
        Scenarios.equal((short) 1, features.finalizedFeatures().get("group.version").maxVersionLevel(), "group.version");
        Scenarios.equal((short) 2, features.finalizedFeatures().get("transaction.version").maxVersionLevel(),
            "transaction.version");
        Scenarios.equal((short) 1, features.supportedFeatures().get("group.version").maxVersion(), "supported groups");
        Scenarios.equal((short) 2, features.supportedFeatures().get("transaction.version").maxVersion(),
            "supported transactions");
        Scenarios.check(features.finalizedFeaturesEpoch().isPresent(), "no epoch");
    }

    static void update(Scenarios.Client c, short level, FeatureUpdate.UpgradeType type) throws Exception {
        c.admin.updateFeatures(Map.of("transaction.version", new FeatureUpdate(level, type)), new UpdateFeaturesOptions())
            .all().get();
        Scenarios.await("the level is " + level, () -> {
            var found = c.admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version");
            return (found == null ? 0 : found.maxVersionLevel()) == level;
        });
    }

    static void versions(Scenarios.Client c) throws Exception {
        String topic = c.topic("", 1);
        try {
            update(c, (short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE);
            KafkaProducer<String, String> producer = c.transactional("");
            producer.initTransactions();
            int epoch = describe(c, c.name).producerEpoch();
            for (int i = 0; i < 3; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, "k", "old" + i));
                producer.commitTransaction();
            }
            Scenarios.equal(epoch, describe(c, c.name).producerEpoch(), "epoch in the old version");
            update(c, (short) 2, FeatureUpdate.UpgradeType.UPGRADE);
            KafkaProducer<String, String> next = c.transactional("");
            next.initTransactions();
            epoch = describe(c, c.name).producerEpoch();
            for (int i = 0; i < 3; i++) {
                next.beginTransaction();
                next.send(new ProducerRecord<>(topic, "k", "new" + i));
                next.commitTransaction();
            }
            Scenarios.await("it is complete", () -> describe(c, c.name).state() == TransactionState.COMPLETE_COMMIT);
            Scenarios.equal(epoch + 3, describe(c, c.name).producerEpoch(), "epoch in the new version");
        } finally {
            update(c, (short) 2, FeatureUpdate.UpgradeType.UPGRADE);
        }
        Scenarios.equal(List.of("old0", "old1", "old2", "new0", "new1", "new2"), c.values(topic, "read_committed"), "values");
    }
}
