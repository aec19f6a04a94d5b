package org.apache.kafka.common.test.junit;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.metadata.KRaftMetadataCache;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;

/**
 * The cluster of one of Kafka's own tests (`@ClusterTest`), made of processes of Varve.
 *
 * It has the name of the class of Kafka's that starts brokers within the test's Java, and stands before it on the
 * class path. What tests ask a broker object is answered by asking the broker; what only the inside of a broker in
 * Java could tell ends the test as "aborted", with a reason that begins with NOT_HERE.
 *
 * System properties: varve, etcd (programs), varve.directory (where each cluster gets a folder).
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private static final String NOT_HERE = "NOT_HERE ";
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
                throw notHere("same as with controllers apart");
            if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT)
                throw notHere("security");
            if (config.features().containsValue((short) 0))
                throw notHere("a feature switched off");
            if (config.isAutoStart())
                instance.start();
        };
        AfterTestExecutionCallback after = context -> instance.stop();
        return List.of(before, after, new ClusterInstanceParameterResolver(instance));
    }

    private static TestAbortedException notHere(String what) {
        return new TestAbortedException(NOT_HERE + what);
    }

    private interface Ask<T> {
        T of(Admin admin) throws Exception;
    }

    private static final class Instance implements ClusterInstance {
        private final ClusterConfig config;
        private final boolean isCombined;
        private final Map<Integer, Process> processes = new TreeMap<>();
        private final Map<Integer, Integer> ports = new TreeMap<>();
        private Process etcd;
        private int etcdPort;
        private Path directory;
        private boolean isStarted;
        private boolean isStopped;

        Instance(ClusterConfig config, boolean isCombined) {
            this.config = config;
            this.isCombined = isCombined;
        }

        // -- processes --

        @Override
        public void start() {
            if (isStarted)
                return;
            isStarted = true;
            try {
                directory = Files.createTempDirectory(Path.of(System.getProperty("varve.directory")), "cluster");
                if (config.numBrokers() > 1)
                    startEtcd();
                for (int id = 0; id < config.numBrokers(); id++)
                    ports.put(id, freePort());
                for (int id : ports.keySet())
                    launch(id);
                for (int id : ports.keySet())
                    awaitPort(ports.get(id), processes.get(id), "broker " + id);
                waitForReadyBrokers();
            } catch (Exception error) {
                stop();
                throw new RuntimeException("cluster not started, see " + directory, error);
            }
        }

        private void startEtcd() throws Exception {
            etcdPort = freePort();
            String client = "http://127.0.0.1:" + etcdPort;
            String peer = "http://127.0.0.1:" + freePort();
            etcd = run("etcd", System.getProperty("etcd"), "--name", "m0", "--data-dir", directory + "/etcd",
                "--unsafe-no-fsync", "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m0=" + peer);
            awaitPort(etcdPort, etcd, "etcd");
        }

        private void launch(int id) throws Exception {
            Map<String, String> settings = new TreeMap<>(Map.of("log.cleaner.dedupe.buffer.size", "2097152"));
            settings.putAll(config.serverProperties());
            settings.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
            settings.put("node.id", "" + id);
            settings.put("listeners", "PLAINTEXT://127.0.0.1:" + ports.get(id));
            settings.put("advertised.listeners", "PLAINTEXT://localhost:" + ports.get(id));
            settings.put("admin.listener", "127.0.0.1:0");
            settings.put("log.dirs", String.join(",", logDirectories(id)));
            if (etcd != null)
                settings.put("metadata.store", "etcd://127.0.0.1:" + etcdPort);
            Path file = directory.resolve("broker-" + id + ".properties");
            Files.write(file, settings.entrySet().stream().map(it -> it.getKey() + "=" + it.getValue()).toList());
            processes.put(id, run("broker-" + id, System.getProperty("varve"), "serve", "--config", file.toString()));
        }

        private List<String> logDirectories(int id) {
            return IntStream.range(0, Math.max(1, config.numDisksPerBroker()))
                .mapToObj(disk -> directory + "/broker-" + id + "/" + disk).toList();
        }

        private Process run(String name, String... command) throws IOException {
            ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
            Path log = directory.resolve(name + ".log");
            return builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        }

        private static int freePort() throws IOException {
            try (ServerSocket socket = new ServerSocket()) {
                socket.bind(new InetSocketAddress("127.0.0.1", 0));
                return socket.getLocalPort();
            }
        }

        private void awaitPort(int port, Process process, String what) throws Exception {
            for (long end = System.currentTimeMillis() + WAIT_MS; System.currentTimeMillis() < end; Thread.sleep(20)) {
                if (!process.isAlive()) {
                    String refusal = Files.readString(directory.resolve(what.replace(' ', '-') + ".log"));
                    // A plugin class, a key that Kafka does not have either.
                    if (refusal.contains("in the settings"))
                        throw notHere("a setting: " + refusal);
                    throw new AssertionError(what + " ended: " + refusal);
                }
                try (Socket socket = new Socket("127.0.0.1", port)) {
                    return;
                } catch (IOException refused) {
                    // Not yet.
                }
            }
            throw new AssertionError(what + " is not reachable, see " + directory);
        }

        @Override
        public void stop() {
            if (isStopped)
                return;
            isStopped = true;
            processes.values().forEach(Process::destroy);
            processes.keySet().forEach(this::awaitEnd);
            if (etcd != null)
                etcd.destroyForcibly();
        }

        private void awaitEnd(int id) {
            try {
                if (!processes.get(id).waitFor(WAIT_MS, TimeUnit.MILLISECONDS)) {
                    processes.get(id).destroyForcibly();
                    throw new AssertionError("broker " + id + " does not stop, see " + directory);
                }
            } catch (InterruptedException error) {
                throw new RuntimeException(error);
            }
        }

        @Override
        public void shutdownBroker(int id) {
            processes.get(id).destroy();
            awaitEnd(id);
        }

        @Override
        public void startBroker(int id) {
            try {
                launch(id);
                awaitPort(ports.get(id), processes.get(id), "broker " + id);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }

        @Override
        public boolean started() {
            return isStarted;
        }

        @Override
        public boolean stopped() {
            return isStopped;
        }

        // -- waiting --

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            awaitEverywhere(admin -> admin.describeCluster().nodes().get().size() == config.numBrokers(), "brokers");
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            awaitEverywhere(admin -> partitionsOf(admin, topic).stream()
                .filter(it -> it.leader() != null && it.leader().id() >= 0).count() == partitions, topic);
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            awaitEverywhere(admin -> !admin.listTopics().names().get().contains(topic), topic + " gone");
        }

        @Override
        public void ensureConsistentMetadata() {
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> all) {
        }

        private void awaitEverywhere(Ask<Boolean> isSo, String what) throws InterruptedException {
            for (int id : ports.keySet())
                if (processes.get(id).isAlive())
                    TestUtils.waitForCondition(() -> ask(id, isSo), WAIT_MS, "broker " + id + " does not show " + what);
        }

        private <T> T ask(int id, Ask<T> question) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", "localhost:" + ports.get(id)))) {
                return question.of(admin);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }

        private static List<TopicPartitionInfo> partitionsOf(Admin admin, String topic) throws InterruptedException {
            try {
                return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions();
            } catch (ExecutionException unknown) {
                return List.of();
            }
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
            return ports.keySet();
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return List.copyOf(ports.values());
        }

        @Override
        public String bootstrapServers() {
            return ports.values().stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
        }

        @Override
        public String clusterId() {
            return ask(0, admin -> admin.describeCluster().clusterId().get());
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
            throw notHere("bootstrapControllers");
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            throw notHere("controllerBoundPorts");
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
            return new TreeMap<>(ports.keySet().stream().collect(Collectors.toMap(id -> id, this::brokerOf)));
        }

        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            Map<Integer, KafkaBroker> alive = brokers();
            alive.keySet().removeIf(id -> !processes.get(id).isAlive());
            return alive;
        }

        /** None to go through, as nothing of theirs is to be waited for; one knows the topics' ids. */
        @Override
        public Map<Integer, ControllerServer> controllers() {
            return new HashMap<>() {
                @Override
                public ControllerServer get(Object id) {
                    return standIn(ControllerServer.class, Map.of("controller", it -> standIn(Controller.class,
                        Map.of("findAllTopicIds", call -> CompletableFuture.completedFuture(topicIds())))));
                }
            };
        }

        private Map<String, Uuid> topicIds() {
            Map<String, Uuid> ids = new HashMap<>();
            ask(0, admin -> {
                admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get()
                    .forEach(it -> ids.put(it.name(), it.topicId()));
                return null;
            });
            return ids;
        }

        private KafkaBroker brokerOf(int id) {
            Map<String, Answer<Object>> answers = new HashMap<>();
            answers.put("metadataCache", call -> standIn(KRaftMetadataCache.class, metadata(id)));
            answers.put("isShutdown", call -> !processes.get(id).isAlive());
            answers.put("shutdown", call -> {
                shutdownBroker(id);
                return null;
            });
            answers.put("startup", call -> {
                startBroker(id);
                return null;
            });
            answers.put("awaitShutdown", call -> null);
            answers.put("clusterId", call -> clusterId());
            answers.put("boundPort", call -> ports.get(id));
            answers.put("socketServer", call -> standIn(SocketServer.class, Map.of("boundPort", it -> ports.get(id))));
            answers.put("config", call -> standIn(KafkaConfig.class, settings(id)));
            answers.put("groupCoordinator", call -> standIn(GroupCoordinator.class,
                Map.of("groupMetadataTopicConfigs", it -> new Properties())));
            return standIn(BrokerServer.class, answers);
        }

        private Map<String, Answer<Object>> settings(int id) {
            Answer<Object> number = call -> Integer.parseInt(setting(call.getArgument(0)));
            return Map.of("brokerId", call -> id, "nodeId", call -> id, "logDirs", call -> logDirectories(id),
                "getInt", number, "getShort", call -> Short.parseShort(setting(call.getArgument(0))),
                "unstableApiVersionsEnabled", call -> false);
        }

        private String setting(String key) {
            String byDefault = key.endsWith("num.partitions") ? "50" : key.endsWith("replication.factor") ? "3" : null;
            String value = config.serverProperties().getOrDefault(key, byDefault);
            if (value == null)
                throw notHere("setting " + key);
            return value;
        }

        private Map<String, Answer<Object>> metadata(int id) {
            Answer<Object> nodes = call -> ask(id, admin -> new ArrayList<>(admin.describeCluster().nodes().get()));
            return Map.of(
                "getAliveBrokerNodes", nodes,
                "getBrokerNodes", nodes,
                "hasAliveBroker", call -> ask(id, admin -> admin.describeCluster().nodes().get()).stream()
                    .anyMatch(node -> node.id() == call.<Integer>getArgument(0)),
                "numPartitions", call -> Optional.of(count(id, call.getArgument(0))).filter(count -> count > 0),
                "contains", call -> call.getArgument(0) instanceof TopicPartition one
                    ? count(id, one.topic()) > one.partition() : count(id, call.getArgument(0)) > 0,
                "getTopicId", call -> topicIds().getOrDefault(call.<String>getArgument(0), Uuid.ZERO_UUID),
                "getLeaderAndIsr", call -> ask(id, admin -> partitionsOf(admin, call.getArgument(0))).stream()
                    .filter(it -> it.partition() == call.<Integer>getArgument(1) && it.leader() != null)
                    .map(it -> new LeaderAndIsr(it.leader().id(), it.isr().stream().map(Node::id).toList()))
                    .findFirst());
        }

        private int count(int id, String topic) {
            return ask(id, admin -> partitionsOf(admin, topic)).size();
        }

        /** An object of a class whose methods of these names have answers, and no others. */
        private static <T> T standIn(Class<T> type, Map<String, Answer<Object>> answers) {
            Answer<Object> answer = call -> {
                String method = call.getMethod().getName();
                return switch (method) {
                    case "toString" -> type.getSimpleName();
                    case "hashCode" -> System.identityHashCode(call.getMock());
                    case "equals" -> call.getMock() == call.getArgument(0);
                    default -> answered(answers, type.getSimpleName() + "." + method, method, call);
                };
            };
            return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(answer));
        }

        private static Object answered(
            Map<String, Answer<Object>> answers, String what, String method, InvocationOnMock call
        ) throws Throwable {
            Answer<Object> found = answers.get(method);
            if (found == null)
                throw notHere(what);
            return found.answer(call);
        }
    }
}
