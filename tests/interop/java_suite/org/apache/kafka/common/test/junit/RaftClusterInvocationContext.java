package org.apache.kafka.common.test.junit;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;
import varve.Brokers;
import varve.StandIn;

/**
 * The cluster of one of Kafka's own tests (`@ClusterTest`), made of processes of Varve.
 *
 * It has the name of the class of Kafka's that starts brokers within the test's Java, and stands before it on the
 * class path.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private static final long WAIT_MS = 60_000;

    private final String name;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean isCombined) {
        this.name = name;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int index) {
        return name + " [" + index + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Instance instance = new Instance(config, isCombined);
        BeforeEachCallback before = context -> {
            if (isCombined && config.clusterTypes().contains(Type.KRAFT))
                throw StandIn.notHere("same as with controllers apart");
            if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT)
                throw StandIn.notHere("security");
            if (config.isAutoStart())
                instance.start();
        };
        AfterTestExecutionCallback after = context -> instance.stop();
        return List.of(before, after, new ClusterInstanceParameterResolver(instance));
    }

    private static final class Instance implements ClusterInstance {
        private final ClusterConfig config;
        private final boolean isCombined;
        private Brokers brokers;
        private StandIn standIn;
        private boolean isStopped;

        Instance(ClusterConfig config, boolean isCombined) {
            this.config = config;
            this.isCombined = isCombined;
        }

        // -- processes --

        @Override
        public void start() {
            if (brokers != null)
                return;
            brokers = new Brokers();
            standIn = new StandIn(brokers);
            try {
                if (config.numBrokers() > 1)
                    brokers.startEtcd();
                for (int id = 0; id < config.numBrokers(); id++)
                    brokers.add(id, settings(id));
                for (int id : brokers.ids())
                    brokers.launch(id);
                for (int id : brokers.ids())
                    brokers.awaitReady(id);
                waitForReadyBrokers();
                Map<String, Short> levels = new TreeMap<>();
                config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
                brokers.lowerFeatures(levels);
            } catch (TestAbortedException error) {
                stop();
                throw error;
            } catch (Exception error) {
                stop();
                throw new RuntimeException("cluster not started, see " + brokers.directory(), error);
            }
        }

        private Map<String, String> settings(int id) {
            Map<String, String> settings = new TreeMap<>(config.serverProperties());
            settings.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
            settings.put("listeners", "PLAINTEXT://localhost:0");
            settings.put("log.dirs", IntStream.range(0, Math.max(1, config.numDisksPerBroker()))
                .mapToObj(disk -> brokers.directory() + "/broker-" + id + "/" + disk).collect(Collectors.joining(",")));
            return settings;
        }

        @Override
        public void stop() {
            if (isStopped)
                return;
            isStopped = true;
            if (brokers != null)
                brokers.stop();
        }

        @Override
        public void shutdownBroker(int id) {
            brokers.shutdown(id);
        }

        @Override
        public void startBroker(int id) {
            try {
                brokers.launch(id);
                brokers.awaitReady(id);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }

        @Override
        public boolean started() {
            return brokers != null;
        }

        @Override
        public boolean stopped() {
            return isStopped;
        }

        // -- waiting --

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            awaitEverywhere(id -> brokers.nodes(id).size() == config.numBrokers(), "brokers");
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            awaitEverywhere(id -> brokers.settledPartitions(id, topic) == partitions, topic);
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            awaitEverywhere(id -> brokers.partitions(id, topic).isEmpty(), topic + " gone");
        }

        @Override
        public void ensureConsistentMetadata() {
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> all) {
        }

        private void awaitEverywhere(Predicate<Integer> isSo, String what) throws InterruptedException {
            for (int id : brokers.ids())
                if (brokers.isAlive(id))
                    TestUtils.waitForCondition(() -> isSo.test(id), WAIT_MS, "broker " + id + " does not show " + what);
        }

        // -- what is asked of it --

        @Override
        public Type type() {
            return isCombined ? Type.CO_KRAFT : Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public Set<Integer> brokerIds() {
            return brokers.ids();
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return brokers.ids().stream().map(brokers::anyPort).toList();
        }

        @Override
        public String bootstrapServers() {
            return brokerBoundPorts().stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
        }

        @Override
        public String clusterId() {
            return brokers.clusterId(0);
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public Set<Integer> controllerIds() {
            return Set.of(3000);
        }

        @Override
        public String bootstrapControllers() {
            throw StandIn.notHere("bootstrapControllers");
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            throw StandIn.notHere("controllerBoundPorts");
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        // -- objects of brokers --

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return new TreeMap<>(brokers.ids().stream().collect(Collectors.toMap(id -> id, this::brokerOf)));
        }

        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            Map<Integer, KafkaBroker> alive = brokers();
            alive.keySet().removeIf(id -> !brokers.isAlive(id));
            return alive;
        }

        /** None to go through, as nothing of theirs is to be waited for; one knows the topics' ids. */
        @Override
        public Map<Integer, ControllerServer> controllers() {
            return new HashMap<>() {
                @Override
                public ControllerServer get(Object id) {
                    return standIn.controller();
                }
            };
        }

        private KafkaBroker brokerOf(int id) {
            Answer<Object> number = call -> Integer.parseInt(setting(call.getArgument(0)));
            return standIn.broker(id, StandIn.of(KafkaConfig.class, Map.of(
                "brokerId", call -> id,
                "nodeId", call -> id,
                "logDirs", call -> brokers.logDirectories(id),
                "getInt", number,
                "getShort", call -> Short.parseShort(setting(call.getArgument(0))),
                "unstableApiVersionsEnabled", call -> false)), () -> { });
        }

        private String setting(String key) {
            String byDefault = key.endsWith("num.partitions") ? "50" : key.endsWith("replication.factor") ? "3" : null;
            String value = config.serverProperties().getOrDefault(key, byDefault);
            if (value == null)
                throw StandIn.notHere("setting " + key);
            return value;
        }
    }
}
