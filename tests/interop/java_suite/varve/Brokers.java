package varve;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeLogDirsRequestData;
import org.apache.kafka.common.message.DescribeProducersRequestData;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.MetadataResponseData.MetadataResponseTopic;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;
import org.apache.kafka.common.requests.DescribeProducersRequest;
import org.apache.kafka.common.requests.DescribeProducersResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.common.requests.MetadataResponse.TopicMetadata;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.IntegrationTestUtils;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Processes of Varve that make up the cluster of one test, and the etcd they share if there is one.
 *
 * System properties: varve.forks (a program that forks a broker for each line it reads, see broker_forks.py), etcd (a
 * program), varve.directory (where each cluster gets a folder).
 */
public final class Brokers {
    private static final long WAIT_MS = 60_000;
    private static final short METADATA_VERSION = 12;
    private static final short LIST_OFFSETS_VERSION = 8;
    private static final short FETCH_VERSION = 12;
    private static final short DESCRIBE_CONFIGS_VERSION = 4;

    /** Names that only topics have, and that tests give brokers: Kafka's pass over them, Varve does not start. */
    private static final Set<String> OF_TOPICS =
        Set.of("remote.log.copy.disable", "remote.log.delete.on.disable", "retention.bytes");

    private static final String REMOTE_STORAGE = "remote.log.storage.manager.class.name";
    private static final String REMOTE_METADATA = "remote.log.metadata.manager.class.name";

    /** See `storage/checkpoints/member_note.py`. */
    private static final String MEMBER_NOTE = "varve-member";

    private static final int FIRST_PORT = 23_000;
    private static final int PORTS = 1_000;

    private static final AtomicInteger nextPort = new AtomicInteger(ThreadLocalRandom.current().nextInt(PORTS));
    private static Process forks;

    private final Path directory;
    private final Map<Integer, Map<String, String>> settings = new TreeMap<>();
    private final Map<Integer, Map<String, Integer>> ports = new TreeMap<>();
    private final Map<Integer, Integer> adminPorts = new TreeMap<>();
    private final Map<Integer, ProcessHandle> processes = new TreeMap<>();
    private Process etcd;
    private int etcdPort;

    public Brokers() {
        try {
            directory = Files.createTempDirectory(Path.of(System.getProperty("varve.directory")), "cluster");
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    /** Where logs of the processes are. */
    public Path directory() {
        return directory;
    }

    /** Let the brokers that start from now on share a store. */
    public void startEtcd() throws Exception {
        etcdPort = freePort();
        String client = "http://127.0.0.1:" + etcdPort;
        String peer = "http://127.0.0.1:" + freePort();
        etcd = run("etcd", System.getProperty("etcd"), "--name", "m0", "--data-dir", directory + "/etcd",
            "--unsafe-no-fsync", "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m0=" + peer);
        awaitPort(etcdPort, etcd::isAlive, "etcd");
    }

    /** Make a broker known; of its listeners, as NAME://host:port, the ports are chosen here. */
    public void add(int id, Map<String, String> wanted) throws IOException {
        Map<String, String> all = new TreeMap<>(Map.of("log.cleaner.dedupe.buffer.size", "2097152"));
        all.putAll(wanted);
        all.keySet().removeAll(OF_TOPICS);
        if (all.getOrDefault(REMOTE_STORAGE, "").endsWith(".NoOpRemoteStorageManager"))
            useOwnRemoteStorage(all);
        if (!all.containsKey("log.dirs") && !all.containsKey("log.dir"))
            throw new IllegalArgumentException("no log directory");
        Map<String, Integer> chosen = new TreeMap<>();
        for (String listener : all.getOrDefault("listeners", "PLAINTEXT://localhost:0").split(","))
            chosen.put(listener.trim().split(":")[0], freePort());
        all.put("node.id", "" + id);
        all.put("listeners", addresses(chosen, "127.0.0.1"));
        all.put("advertised.listeners", addresses(chosen, "localhost"));
        adminPorts.put(id, freePort());
        all.put("admin.listener", "127.0.0.1:" + adminPorts.get(id));
        ports.put(id, chosen);
        settings.put(id, all);
    }

    /** In place of a plugin that holds nothing, which is for tests of settings. */
    private void useOwnRemoteStorage(Map<String, String> settings) {
        settings.remove(REMOTE_STORAGE);
        settings.remove(REMOTE_METADATA);
        settings.put("rsm.config.storage.root", directory + "/objects");
    }

    private static String addresses(Map<String, Integer> chosen, String host) {
        return chosen.entrySet().stream().map(it -> it.getKey() + "://" + host + ":" + it.getValue())
            .collect(Collectors.joining(","));
    }

    /** Start a broker, or start it again, without waiting for it. */
    public void launch(int id) throws IOException {
        for (String directory : logDirectories(id))
            cutPowerIfUnclean(Path.of(directory));
        Map<String, String> all = new TreeMap<>(settings.get(id));
        if (etcd != null)
            all.put("metadata.store", "etcd://127.0.0.1:" + etcdPort);
        Path file = directory.resolve("broker-" + id + ".properties");
        Files.write(file, all.entrySet().stream().map(it -> it.getKey() + "=" + it.getValue()).toList());
        processes.remove(id);
        fork(file, log("broker-" + id)).ifPresent(process -> processes.put(id, process));
    }

    /**
     * A test that removes the mark of a clean stop means a loss of power: without the other file a broker knows
     * that the machine ran on, and that nothing was lost.
     */
    private static void cutPowerIfUnclean(Path directory) throws IOException {
        if (!Files.exists(directory.resolve(".kafka_cleanshutdown")))
            Files.deleteIfExists(directory.resolve(MEMBER_NOTE));
    }

    /** Wait until it answers, and shows itself. */
    public void awaitReady(int id) throws Exception {
        awaitPort(anyPort(id), () -> isAlive(id), "broker " + id);
        long end = System.currentTimeMillis() + WAIT_MS;
        while (nodes(id).stream().noneMatch(it -> it.id() == id)) {
            if (System.currentTimeMillis() > end)
                throw new AssertionError("broker " + id + " does not show itself, see " + directory);
            Thread.sleep(20);
        }
    }

    private Process run(String name, String... command) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        return builder.redirectOutput(ProcessBuilder.Redirect.appendTo(log(name).toFile())).start();
    }

    private Path log(String name) {
        return directory.resolve(name + ".log");
    }

    /** None if it has ended by now. */
    private static synchronized Optional<ProcessHandle> fork(Path settings, Path log) throws IOException {
        if (forks == null)
            forks = new ProcessBuilder(System.getProperty("varve.forks").split(" "))
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        forks.outputWriter().write(settings + "\t" + log + "\n");
        forks.outputWriter().flush();
        String pid = forks.inputReader().readLine();
        if (pid == null)
            throw new IOException("no more forks");
        return ProcessHandle.of(Long.parseLong(pid));
    }

    /** Below those that systems give to connections: one of them would be taken before the broker is up. */
    private static int freePort() throws IOException {
        for (int tried = 0; tried < PORTS; tried++) {
            int port = FIRST_PORT + nextPort.getAndIncrement() % PORTS;
            try (ServerSocket socket = new ServerSocket()) {
                socket.bind(new InetSocketAddress("127.0.0.1", port));
                return port;
            } catch (BindException taken) {
                // The next one.
            }
        }
        throw new IOException("no port is free");
    }

    private void awaitPort(int port, BooleanSupplier isAlive, String what) throws Exception {
        for (long end = System.currentTimeMillis() + WAIT_MS; System.currentTimeMillis() < end; Thread.sleep(20)) {
            if (!isAlive.getAsBoolean()) {
                String refusal = Files.readString(log(what.replace(' ', '-')));
                // A plugin class, a key that Kafka does not have either.
                if (refusal.contains("in the settings"))
                    throw StandIn.notHere("a setting: " + refusal);
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

    /** SIGTERM to one, and wait for its end. */
    public void shutdown(int id) {
        if (isAlive(id))
            processes.get(id).destroy();
        awaitEnd(id);
    }

    /** End everything. Logs of processes stay; the data goes, of which etcd alone has 64 MiB from the start. */
    public void stop() {
        processes.values().forEach(ProcessHandle::destroy);
        try {
            processes.keySet().forEach(this::awaitEnd);
        } finally {
            if (etcd != null)
                etcd.destroyForcibly().onExit().join();
            delete(directory.resolve("etcd"));
            settings.keySet().forEach(id -> logDirectories(id).forEach(it -> delete(Path.of(it))));
        }
    }

    private static void delete(Path data) {
        try {
            Utils.delete(data.toFile());
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    private void awaitEnd(int id) {
        long end = System.currentTimeMillis() + WAIT_MS;
        try {
            while (isAlive(id)) {
                if (System.currentTimeMillis() > end) {
                    processes.get(id).destroyForcibly();
                    throw new AssertionError("broker " + id + " does not stop, see " + directory);
                }
                Thread.sleep(10);
            }
        } catch (InterruptedException error) {
            throw new RuntimeException(error);
        }
    }

    public Set<Integer> ids() {
        return ports.keySet();
    }

    public boolean isAlive(int id) {
        return processes.containsKey(id) && processes.get(id).isAlive();
    }

    /** That of a listener, or of the only one, whatever its name. */
    public int port(int id, ListenerName listener) {
        return ports.get(id).getOrDefault(listener.value(), anyPort(id));
    }

    public int anyPort(int id) {
        return ports.get(id).values().iterator().next();
    }

    public List<String> logDirectories(int id) {
        Map<String, String> of = settings.get(id);
        return List.of(of.containsKey("log.dirs") ? of.get("log.dirs").split(",") : new String[] {of.get("log.dir")});
    }

    // -- what one of them knows --

    private MetadataResponse metadata(int id, MetadataRequest.Builder request) {
        int asked = isAlive(id) ? id : ids().stream().filter(this::isAlive).findFirst().orElse(id);
        return ask(asked, request.build(METADATA_VERSION));
    }

    public List<Node> nodes(int id) {
        return new ArrayList<>(metadata(id, new MetadataRequest.Builder(List.of(), false)).brokers());
    }

    public String clusterId(int id) {
        return metadata(id, new MetadataRequest.Builder(List.of(), false)).clusterId();
    }

    public Map<String, Uuid> topicIds(int id) {
        Map<String, Uuid> ids = new HashMap<>();
        metadata(id, MetadataRequest.Builder.allTopics()).topicMetadata()
            .forEach(it -> ids.put(it.topic(), it.topicId()));
        return ids;
    }

    public MetadataResponseTopic topic(int id, String topic) {
        return metadata(id, new MetadataRequest.Builder(List.of(topic), false)).data().topics().find(topic);
    }

    /** None of a topic that it does not know. */
    public List<PartitionMetadata> partitions(int id, String topic) {
        return metadata(id, new MetadataRequest.Builder(List.of(topic), false)).topicMetadata().stream()
            .filter(it -> it.error() == Errors.NONE).map(TopicMetadata::partitionMetadata)
            .flatMap(List::stream).toList();
    }

    /** Whether it answers as the partition's leader. */
    public boolean isLeading(int id, TopicPartition of) {
        return offset(id, of, ListOffsetsRequest.LATEST_TIMESTAMP, ListOffsetsRequest.CONSUMER_REPLICA_ID).errorCode()
            == Errors.NONE.code();
    }

    /** Whether it has begun to lead all that its metadata says it leads; one that has ended is not waited for. */
    public boolean hasTakenRoles(int id) {
        if (!isAlive(id))
            return true;
        List<ListOffsetsRequestData.ListOffsetsTopic> led = metadata(id, MetadataRequest.Builder.allTopics())
            .topicMetadata().stream().map(topic -> new ListOffsetsRequestData.ListOffsetsTopic()
                .setName(topic.topic()).setPartitions(topic.partitionMetadata().stream()
                    .filter(it -> it.leaderId.isPresent() && it.leaderId.get() == id)
                    .map(it -> new ListOffsetsRequestData.ListOffsetsPartition().setPartitionIndex(it.partition())
                        .setTimestamp(ListOffsetsRequest.LATEST_TIMESTAMP)).toList())).toList();
        ListOffsetsResponse answer = ask(id, ListOffsetsRequest.Builder
            .forReplica(LIST_OFFSETS_VERSION, ListOffsetsRequest.CONSUMER_REPLICA_ID)
            .setTargetTimes(led).build(LIST_OFFSETS_VERSION));
        return answer.topics().stream().flatMap(topic -> topic.partitions().stream())
            .noneMatch(it -> it.errorCode() == Errors.NOT_LEADER_OR_FOLLOWER.code());
    }

    /** An offset of its replica's log, leading or not, by ListOffsets' times. */
    public long offset(int id, TopicPartition of, long time) {
        ListOffsetsPartitionResponse answer = offset(id, of, time, ListOffsetsRequest.DEBUGGING_REPLICA_ID);
        if (answer.errorCode() != Errors.NONE.code())
            throw new IllegalStateException(of + " at " + id + ": " + Errors.forCode(answer.errorCode()));
        return answer.offset();
    }

    private ListOffsetsPartitionResponse offset(int id, TopicPartition of, long time, int asReplica) {
        ListOffsetsRequestData.ListOffsetsTopic topic = new ListOffsetsRequestData.ListOffsetsTopic()
            .setName(of.topic()).setPartitions(List.of(new ListOffsetsRequestData.ListOffsetsPartition()
                .setPartitionIndex(of.partition()).setTimestamp(time)));
        ListOffsetsResponse answer = ask(id, ListOffsetsRequest.Builder.forReplica(LIST_OFFSETS_VERSION, asReplica)
            .setTargetTimes(List.of(topic)).build(LIST_OFFSETS_VERSION));
        return answer.topics().get(0).partitions().get(0);
    }

    /** Bring features down to these levels; a test whose features it cannot have ends. */
    public void lowerFeatures(Map<String, Short> levels) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", "localhost:" + anyPort(ids().iterator().next())))) {
            Map<String, FeatureUpdate> updates = new HashMap<>();
            admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) -> {
                short wanted = levels.getOrDefault(name, range.maxVersionLevel());
                if (!name.equals(MetadataVersion.FEATURE_NAME) && wanted < range.maxVersionLevel())
                    updates.put(name, new FeatureUpdate(wanted, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE));
            });
            if (!updates.isEmpty())
                admin.updateFeatures(updates, new UpdateFeaturesOptions()).all().get();
        } catch (ExecutionException refusal) {
            throw StandIn.notHere("features " + levels + ": " + refusal.getCause());
        }
    }

    /** Producers that a leader knows of. */
    public List<DescribeProducersResponseData.ProducerState> producers(int id, TopicPartition of) {
        DescribeProducersRequestData.TopicRequest topic = new DescribeProducersRequestData.TopicRequest()
            .setName(of.topic()).setPartitionIndexes(List.of(of.partition()));
        DescribeProducersResponse answer = ask(id, new DescribeProducersRequest.Builder(
            new DescribeProducersRequestData().setTopics(List.of(topic))).build());
        return answer.data().topics().get(0).partitions().get(0).activeProducers();
    }

    /** What a consumer that reads there is told, be it a follower. */
    public long highWatermark(int id, TopicPartition of) {
        FetchRequest.PartitionData from = new FetchRequest.PartitionData(Uuid.ZERO_UUID,
            offset(id, of, ListOffsetsRequest.EARLIEST_TIMESTAMP), FetchRequest.INVALID_LOG_START_OFFSET, 1,
            Optional.empty());
        FetchResponse answer = ask(id, FetchRequest.Builder.forConsumer(FETCH_VERSION, 0, 0, Map.of(of, from))
            .build(FETCH_VERSION));
        return answer.responseData(Map.of(), FETCH_VERSION).get(of).highWatermark();
    }

    /** Values of a topic or a group, by name; those without a value are left out. */
    public Map<String, String> configs(int id, ConfigResource.Type type, String name) {
        DescribeConfigsRequestData.DescribeConfigsResource wanted =
            new DescribeConfigsRequestData.DescribeConfigsResource().setResourceType(type.id()).setResourceName(name);
        DescribeConfigsResponse answer = ask(id, new DescribeConfigsRequest.Builder(
            new DescribeConfigsRequestData().setResources(List.of(wanted))).build(DESCRIBE_CONFIGS_VERSION));
        return answer.data().results().get(0).configs().stream().filter(it -> it.value() != null)
            .collect(Collectors.toMap(it -> it.name(), it -> it.value()));
    }

    /** Whether it says that this directory can be used. */
    public boolean isOnline(int id, String directory) {
        DescribeLogDirsResponse answer = ask(id, new DescribeLogDirsRequest.Builder(
            new DescribeLogDirsRequestData().setTopics(null)).build());
        return answer.data().results().stream()
            .anyMatch(it -> it.logDir().equals(directory) && it.errorCode() == Errors.NONE.code());
    }

    /** Make writes to a log directory fail; the broker finds out by itself. */
    public void breakDirectory(String directory) throws IOException {
        delete(Path.of(directory));
        Files.createFile(Path.of(directory));
    }

    /** A number that those that are alive count together, by its name in Prometheus' format. */
    public long counted(String metric) {
        return ids().stream().filter(this::isAlive).flatMap(id -> metrics(id).lines())
            .filter(line -> line.startsWith(metric + "_total ") || line.startsWith(metric + " "))
            .mapToLong(line -> (long) Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    private String metrics(int id) {
        try (var stream = URI.create("http://127.0.0.1:" + adminPorts.get(id) + "/metrics").toURL().openStream()) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    private <T extends AbstractResponse> T ask(int id, AbstractRequest request) {
        try {
            return IntegrationTestUtils.connectAndReceive(request, anyPort(id));
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    /** How many of its partitions have a leader, or no replica that could be one. */
    public int settledPartitions(int id, String topic) {
        return (int) partitions(id, topic).stream()
            .filter(it -> it.leaderId.isPresent() || it.replicaIds.stream().noneMatch(this::isAlive)).count();
    }
}
