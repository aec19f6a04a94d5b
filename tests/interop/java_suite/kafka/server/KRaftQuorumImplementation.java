package kafka.server;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;
import varve.Brokers;
import varve.StandIn;

import kafka.utils.Logging;
import scala.Option;

/**
 * The brokers of a test that extends `QuorumTestHarness`, made of processes of Varve.
 *
 * It has the name of the class of Kafka's that starts brokers within the test's Java, and stands before it on the
 * class path. The controller that the harness has started by then is left alone; brokers know nothing of it.
 */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private static final String SECURITY_MAP = "listener.security.protocol.map";

    /** Of controllers in a quorum; here a broker is one. */
    private static final String UNCLEAN = "unclean.leader.election.enable";

    private final ControllerServer started;
    private final FaultHandlerFactory faultHandlerFactory;
    private final File metadataDir;
    private final CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture;
    private final String clusterId;
    private final Logging log;
    private final FaultHandler faultHandler;
    private final Brokers brokers = new Brokers();
    private final StandIn standIn = new StandIn(brokers);
    private final ControllerServer controllerServer = standIn.controller();
    private boolean isStarted;
    private boolean hasFeatures;

    public KRaftQuorumImplementation(
        ControllerServer started, FaultHandlerFactory faultHandlerFactory, File metadataDir,
        CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture, String clusterId,
        Logging log, FaultHandler faultHandler
    ) {
        this.started = started;
        this.faultHandlerFactory = faultHandlerFactory;
        this.metadataDir = metadataDir;
        this.controllerQuorumVotersFuture = controllerQuorumVotersFuture;
        this.clusterId = clusterId;
        this.log = log;
        this.faultHandler = faultHandler;
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        Map<String, String> settings = new TreeMap<>();
        config.originals().forEach((key, value) -> settings.put(key, String.valueOf(value)));
        Object unclean = started.config().originals().get(UNCLEAN);
        if (unclean != null)
            settings.put(UNCLEAN, unclean.toString());
        // What the quorum is to know, and keys of certificates that no listener here has.
        settings.keySet().removeIf(key -> key.equals("metadata.log.dir") || key.startsWith("ssl."));
        for (String listener : settings.get("listeners").split(","))
            if (!settings.getOrDefault(SECURITY_MAP, "").contains(listener.split(":")[0] + ":PLAINTEXT"))
                throw StandIn.notHere("security");
        try {
            // Whether more are to come is not known, so the first has a store for many.
            if (!isStarted)
                brokers.startEtcd();
            isStarted = true;
            brokers.add(config.brokerId(), settings);
            KafkaBroker broker = standIn.broker(config.brokerId(), config, this::lowerFeatures);
            if (startup)
                broker.startup();
            return broker;
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new RuntimeException("broker not started, see " + brokers.directory(), error);
        }
    }

    /** As the harness has formatted its controller. */
    private void lowerFeatures() throws Exception {
        if (hasFeatures)
            return;
        Map<String, Short> levels = new TreeMap<>();
        started.bootstrapMetadata().records().forEach(it -> {
            if (it.message() instanceof FeatureLevelRecord feature)
                levels.put(feature.name(), feature.featureLevel());
        });
        brokers.lowerFeatures(levels);
        hasFeatures = true;
    }

    @Override
    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    @Override
    public boolean createBroker$default$3() {
        return true;
    }

    @Override
    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    @Override
    public void shutdown() {
        try {
            brokers.stop();
        } finally {
            started.shutdown();
        }
    }

    public ControllerServer controllerServer() {
        return controllerServer;
    }

    public FaultHandlerFactory faultHandlerFactory() {
        return faultHandlerFactory;
    }

    public File metadataDir() {
        return metadataDir;
    }

    public CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture() {
        return controllerQuorumVotersFuture;
    }

    public String clusterId() {
        return clusterId;
    }

    public Logging log() {
        return log;
    }

    public FaultHandler faultHandler() {
        return faultHandler;
    }
}
