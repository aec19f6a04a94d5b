package varve;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

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
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.ReplicatedLog;
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
            Map.of("groupMetadataTopicConfigs", it -> new Properties())));
        LogManager logs = of(LogManager.class, Map.of(
            "getLog", it -> log(id, it.getArgument(0)),
            "getLog$default$2", it -> false,
            "liveLogDirs", it -> CollectionConverters.asScala(
                brokers.logDirectories(id).stream().map(File::new).toList()).toSeq()));
        answers.put("logManager", call -> logs);
        answers.put("replicaManager", call -> of(ReplicaManager.class, Map.of(
            "logManager", it -> logs,
            "metadataCache", it -> cache,
            "localLog", it -> log(id, it.getArgument(0)),
            "onlinePartition", it -> replica(id, it.getArgument(0)))));
        answers.put("lifecycleManager", call -> of(BrokerLifecycleManager.class, Map.of(
            "initialUnfenceFuture", it -> CompletableFuture.completedFuture(null))));
        // No metadata log is to be waited for, but that it does what it has read there.
        answers.put("sharedServer", call -> of(SharedServer.class, Map.of("loader", it -> of(MetadataLoader.class,
            Map.of("lastAppliedOffset", last -> brokers.hasTakenRoles(id) ? Long.MAX_VALUE : Long.MIN_VALUE)))));
        return of(BrokerServer.class, answers);
    }

    /** One that knows the topics' ids, and of which nothing is to be waited for. */
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
        return of(ControllerServer.class, Map.of(
            "controller", it -> inner,
            "raftManager", it -> of(KafkaRaftManager.class, Map.of("replicatedLog", of -> log))));
    }

    private Map<String, Uuid> topicIds() {
        return brokers.topicIds(brokers.ids().iterator().next());
    }

    private Map<String, Answer<Object>> metadata(int id) {
        return Map.of(
            "getAliveBrokerNodes", call -> brokers.nodes(id),
            "getBrokerNodes", call -> brokers.nodes(id),
            "hasAliveBroker", call -> brokers.nodes(id).stream()
                .anyMatch(node -> node.id() == call.<Integer>getArgument(0)),
            "numPartitions", call -> Optional.of(brokers.settledPartitions(id, call.getArgument(0)))
                .filter(count -> count > 0),
            "contains", call -> call.getArgument(0) instanceof TopicPartition one
                ? brokers.settledPartitions(id, one.topic()) > one.partition()
                : brokers.settledPartitions(id, call.getArgument(0)) > 0,
            "getTopicId", call -> brokers.topicIds(id).getOrDefault(call.<String>getArgument(0), Uuid.ZERO_UUID),
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
        return Option.apply(of(Partition.class, Map.of(
            "leaderReplicaIdOpt", it -> Option.apply(leader),
            "leaderLogIfLocal", it -> isLeading ? log(id, of) : Option.empty(),
            "getLeaderEpoch", it -> known.get().leaderEpoch.orElse(-1))));
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
            "producerStateManager", it -> of(ProducerStateManager.class,
                Map.of("activeProducers", producers -> producers(id, of)))));
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
