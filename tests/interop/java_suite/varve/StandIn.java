package varve;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

import com.yammer.metrics.core.Meter;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerLifecycleManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import kafka.server.metadata.KRaftMetadataCache;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.ReplicatedLog;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;
import org.opentest4j.TestAbortedException;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Objects of Kafka's classes for what tests ask a broker or a controller object: answered by asking the process.
 *
 * What only the inside of a broker in Java could tell ends the test as "aborted", with a reason that begins with
 * NOT_HERE.
 */
public final class StandIn {
    private static final String NOT_HERE = "NOT_HERE ";
    private static final String UNCLEAN_ELECTIONS = "kafka_controller_controllerstats_uncleanleaderelections";

    /** Of the controller that only this Java knows of. */
    private static final int CONTROLLER = 3000;

    /** A broker writes its high watermarks every five seconds. */
    private static final long CHECKPOINT_MS = 6_000;

    private final Brokers brokers;

    public StandIn(Brokers brokers) {
        this.brokers = brokers;
    }

    public static TestAbortedException notHere(String what) {
        return new TestAbortedException(NOT_HERE + what);
    }

    /** To be done when it has started. */
    public interface Then {
        void run() throws Exception;
    }

    public KafkaBroker broker(int id, KafkaConfig config, Then then) {
        Map<String, Answer<Object>> answers = new HashMap<>();
        KRaftMetadataCache cache = of(KRaftMetadataCache.class, metadata(id));
        answers.put("config", call -> config);
        answers.put("metadataCache", call -> cache);
        answers.put("dataPlaneRequestProcessor", call -> of(KafkaApis.class, Map.of("metadataCache", it -> cache)));
        answers.put("brokerState", call -> brokers.isAlive(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING);
        answers.put("isShutdown", call -> !brokers.isAlive(id));
        answers.put("shutdown", call -> {
            if (brokers.isAlive(id))
                brokers.shutdown(id);
            return null;
        });
        answers.put("startup", call -> {
            if (brokers.isAlive(id))
                return null;
            brokers.launch(id);
            brokers.awaitReady(id);
            then.run();
            return null;
        });
        answers.put("awaitShutdown", call -> null);
        answers.put("clusterId", call -> brokers.clusterId(id));
        Answer<Object> port = call -> brokers.port(id, call.getArgument(0));
        answers.put("boundPort", port);
        answers.put("socketServer", call -> of(SocketServer.class, Map.of("boundPort", port)));
        answers.put("groupCoordinator", call -> of(GroupCoordinator.class,
            Map.of("groupMetadataTopicConfigs", it -> new Properties(), "groupConfig", it -> Optional.of(
                new GroupConfig(brokers.configs(id, ConfigResource.Type.GROUP, it.getArgument(0)))))));
        LogManager logs = of(LogManager.class, Map.of(
            "getLog", it -> log(id, it.getArgument(0)),
            "getLog$default$2", it -> false,
            "isLogDirOnline", it -> brokers.isOnline(id, it.getArgument(0)),
            "liveLogDirs", it -> CollectionConverters.asScala(
                brokers.logDirectories(id).stream().map(File::new).toList()).toSeq()));
        answers.put("logManager", call -> logs);
        answers.put("replicaManager", call -> of(ReplicaManager.class, Map.of(
            "logManager", it -> logs,
            "metadataCache", it -> cache,
            "localLog", it -> log(id, it.getArgument(0)),
            "localLogOrException", it -> log(id, it.getArgument(0)).get(),
            "getLogEndOffsetLag", it -> Math.max(0,
                brokers.highWatermark(id, it.getArgument(0)) - it.<Long>getArgument(1)),
            "checkpointHighWatermarks", it -> {
                Thread.sleep(CHECKPOINT_MS);
                return null;
            },
            "handleLogDirFailure$default$2", it -> true,
            "handleLogDirFailure", it -> {
                brokers.breakDirectory(it.getArgument(0));
                Thread.sleep(CHECKPOINT_MS);
                return null;
            },
            "onlinePartition", it -> replica(id, it.getArgument(0)))));
        answers.put("logDirFailureChannel", call -> of(LogDirFailureChannel.class, Map.of(
            "hasOfflineLogDir", it -> !brokers.isOnline(id, it.getArgument(0)))));
        answers.put("lifecycleManager", call -> of(BrokerLifecycleManager.class, Map.of(
            "initialUnfenceFuture", it -> CompletableFuture.completedFuture(null))));
        // No metadata log is to be waited for, but that it does what it has read there.
        answers.put("sharedServer", call -> of(SharedServer.class, Map.of("loader", it -> of(MetadataLoader.class,
            Map.of("lastAppliedOffset", last -> brokers.hasTakenRoles(id) ? Long.MAX_VALUE : Long.MIN_VALUE)))));
        return of(BrokerServer.class, answers);
    }

    /** One that knows the topics' ids, and of which nothing is to be waited for; a broker takes its requests. */
    public ControllerServer controller() {
        Controller inner = of(Controller.class, Map.of(
            "isActive", it -> true,
            "findAllTopicIds", it -> CompletableFuture.completedFuture(topicIds()),
            "findTopicIds", it -> {
                Map<String, Uuid> known = topicIds();
                return CompletableFuture.completedFuture(it.<java.util.Collection<String>>getArgument(1).stream()
                    .filter(known::containsKey)
                    .collect(Collectors.toMap(name -> name, name -> ResultOrError.of(known.get(name)))));
            }));
        ReplicatedLog log = of(ReplicatedLog.class, Map.of("endOffset", it -> new LogOffsetMetadata(0)));
        KafkaRaftClient<?> client = of(KafkaRaftClient.class, Map.of(
            "leaderAndEpoch", it -> new LeaderAndEpoch(OptionalInt.of(CONTROLLER), 0)));
        return of(ControllerServer.class, Map.of(
            "config", it -> of(KafkaConfig.class, Map.of("nodeId", of -> CONTROLLER)),
            "controller", it -> inner,
            "socketServer", it -> of(SocketServer.class, Map.of("boundPort", of -> brokers.anyPort(
                brokers.ids().stream().filter(brokers::isAlive).findFirst().orElseThrow()))),
            "raftManager", it -> of(KafkaRaftManager.class, Map.of(
                "client", of -> client, "replicatedLog", of -> log))));
    }

    private Map<String, Uuid> topicIds() {
        return brokers.topicIds(brokers.ids().iterator().next());
    }

    private Map<String, Answer<Object>> metadata(int id) {
        return Map.of(
            "getAliveBrokerNodes", call -> brokers.nodes(id),
            "getAliveBrokerNode", call -> brokers.nodes(id).stream()
                .filter(node -> node.id() == call.<Integer>getArgument(0)).findFirst(),
            "getBrokerNodes", call -> brokers.nodes(id),
            "hasAliveBroker", call -> brokers.nodes(id).stream()
                .anyMatch(node -> node.id() == call.<Integer>getArgument(0)),
            "numPartitions", call -> Optional.of(brokers.settledPartitions(id, call.getArgument(0)))
                .filter(count -> count > 0),
            "contains", call -> call.getArgument(0) instanceof TopicPartition one
                ? brokers.settledPartitions(id, one.topic()) > one.partition()
                : brokers.settledPartitions(id, call.getArgument(0)) > 0,
            "getTopicId", call -> brokers.topicIds(id).getOrDefault(call.<String>getArgument(0), Uuid.ZERO_UUID),
            "getTopicMetadata", call -> call.<Set<String>>getArgument(0).stream()
                .map(topic -> brokers.topic(id, topic)).toList(),
            "getLeaderAndIsr", call -> partition(id, call.getArgument(0), call.<Integer>getArgument(1))
                .map(it -> new LeaderAndIsr(it.leaderId.orElse(LeaderAndIsr.NO_LEADER), it.leaderEpoch.orElse(0),
                    it.inSyncReplicaIds, LeaderRecoveryState.RECOVERED, 0)));
    }

    private Optional<PartitionMetadata> partition(int id, String topic, int partition) {
        return brokers.partitions(id, topic).stream().filter(it -> it.partition() == partition).findFirst();
    }

    private Option<Partition> replica(int id, TopicPartition of) {
        Optional<PartitionMetadata> known = brokers.isAlive(id)
            ? partition(id, of.topic(), of.partition()).filter(it -> it.replicaIds.contains(id)) : Optional.empty();
        if (known.isEmpty() || known.get().leaderId.isEmpty())
            return Option.empty();
        int leader = known.get().leaderId.get();
        boolean isLeading = leader == id && brokers.isLeading(id, of);
        if (isLeading)
            countUncleanElections();
        return Option.apply(of(Partition.class, Map.of(
            "leaderReplicaIdOpt", it -> Option.apply(leader),
            "leaderLogIfLocal", it -> isLeading ? log(id, of) : Option.empty(),
            "inSyncReplicaIds", it -> CollectionConverters.asScala(
                new HashSet<Object>(known.get().inSyncReplicaIds)).toSet(),
            "getLeaderEpoch", it -> known.get().leaderEpoch.orElse(-1))));
    }

    /** Bring the meter of the controller in this Java, where tests look, to what the cluster has counted. */
    private void countUncleanElections() {
        KafkaYammerMetrics.defaultRegistry().allMetrics().forEach((name, metric) -> {
            if (name.getName().equals("UncleanLeaderElectionsPerSec") && metric instanceof Meter meter)
                meter.mark(Math.max(0, brokers.counted(UNCLEAN_ELECTIONS) - meter.count()));
        });
    }

    private Option<UnifiedLog> log(int id, TopicPartition of) {
        return brokers.logDirectories(id).stream().map(it -> new File(it, of.topic() + "-" + of.partition()))
            .filter(File::isDirectory).findFirst().map(it -> Option.apply(log(id, of, it.getAbsoluteFile())))
            .orElse(Option.empty());
    }

    private UnifiedLog log(int id, TopicPartition of, File directory) {
        return of(UnifiedLog.class, Map.of(
            "dir", it -> directory,
            "logEndOffset", it -> brokers.offset(id, of, ListOffsetsRequest.LATEST_TIMESTAMP),
            "logStartOffset", it -> brokers.offset(id, of, ListOffsetsRequest.EARLIEST_TIMESTAMP),
            "highWatermark", it -> brokers.highWatermark(id, of),
            "config", it -> new LogConfig(brokers.configs(id, ConfigResource.Type.TOPIC, of.topic())),
            "logSegments", it -> segments(directory),
            "partitionMetadataFile", it -> Optional.of(
                new PartitionMetadataFile(new File(directory, "partition.metadata"), null)),
            "numberOfSegments", it -> segmentFiles(directory).size(),
            "size", it -> segmentFiles(directory).stream().mapToLong(File::length).sum(),
            "producerStateManager", it -> of(ProducerStateManager.class,
                Map.of("activeProducers", producers -> producers(id, of)))));
    }

    private static List<File> segmentFiles(File directory) {
        return Arrays.stream(directory.listFiles((folder, name) -> name.endsWith(".log"))).sorted().toList();
    }

    /** Copies, as they are opened for writing. */
    private List<LogSegment> segments(File directory) throws IOException {
        File copies = Files.createTempDirectory("segments").toFile();
        List<LogSegment> opened = new ArrayList<>();
        for (File file : segmentFiles(directory)) {
            Files.copy(file.toPath(), copies.toPath().resolve(file.getName()));
            opened.add(LogSegment.open(copies, Long.parseLong(file.getName().replace(".log", "")),
                new LogConfig(Map.of()), Time.SYSTEM, true, 0, false, ""));
        }
        return opened;
    }

    private Map<Long, ProducerStateEntry> producers(int id, TopicPartition of) {
        Map<Long, ProducerStateEntry> found = new HashMap<>();
        for (DescribeProducersResponseData.ProducerState it : brokers.producers(id, of))
            found.put(it.producerId(), new ProducerStateEntry(it.producerId(), (short) it.producerEpoch(),
                it.coordinatorEpoch(), it.lastTimestamp(),
                it.currentTxnStartOffset() < 0 ? OptionalLong.empty() : OptionalLong.of(it.currentTxnStartOffset()),
                Optional.empty()));
        return found;
    }

    /** An object of a class whose methods of these names have answers, and no others. */
    public static <T> T of(Class<T> type, Map<String, Answer<Object>> answers) {
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
