// Asks released Kafka what it thinks of settings; the .tsv files beside this one are its answers.
//
//   java -cp <kafka_2.13:4.2.0 and what it depends on, from Maven> Ask.java definitions|answers|properties

import java.io.FileInputStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.server.DynamicBrokerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManagerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.jdk.javaapi.CollectionConverters;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "definitions" -> {
                define("topic", LogConfig.configDefCopy());
                define("broker", AbstractKafkaConfig.CONFIG_DEF);
                define("metadata", metadataManager());
                for (String name : new TreeSet<>(CollectionConverters.asJava(DynamicBrokerConfig.AllDynamicConfigs())))
                    tell("dynamic", name, "", "", "");
            }
            case "answers" -> answer();
            case "properties" -> properties();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void define(String scope, ConfigDef definition) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            String fallback = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "<none>";
            tell(scope, key.name, key.type, fallback, key.validator);
        }
    }

    private static ConfigDef metadataManager() throws Exception {
        Field field = TopicBasedRemoteLogMetadataManagerConfig.class.getDeclaredField("CONFIG");
        field.setAccessible(true);
        return (ConfigDef) field.get(null);
    }

    private static void tell(Object... cells) {
        List<String> texts = new ArrayList<>();
        for (Object cell : cells)
            texts.add(String.valueOf(cell).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f"));
        System.out.println(String.join("\t", texts));
    }

    private static void properties() throws Exception {
        Properties read = new Properties();
        // The sample is ASCII, which ISO-8859-1 and UTF-8 agree on.
        try (FileInputStream stream = new FileInputStream("sample.properties")) {
            read.load(stream);
        }
        for (Map.Entry<Object, Object> entry : new TreeMap<>(read).entrySet()) tell(entry.getKey(), entry.getValue());
    }

    private static void answer() {
        Map<String, String> broker = new HashMap<>(Map.of(
            "process.roles", "broker", "node.id", "1", "controller.listener.names", "C",
            "controller.quorum.voters", "2@host:1", "listeners", "PLAINTEXT://:9092",
            "listener.security.protocol.map", "C:PLAINTEXT,PLAINTEXT:PLAINTEXT"));
        Map<String, Object> defaults = new kafka.server.KafkaConfig(broker, false).extractLogConfigMap();
        for (String[] question : QUESTIONS) {
            Properties overrides = new Properties();
            List<Object> cells = new ArrayList<>();
            for (int i = 1; i < question.length; i += 2) overrides.put(question[i], question[i + 1]);
            String said = "";
            try {
                judge(question[0], overrides, broker, defaults);
            } catch (Exception refusal) {
                said = refusal.getMessage();
            }
            cells.add(question[0]);
            cells.add(said);
            for (int i = 1; i < question.length; i++) cells.add(question[i]);
            tell(cells.toArray());
        }
    }

    // Where a text is judged:
    //   local, tiered   set on a new topic, without and with remote storage in the broker
    //   was-tiered      set on a topic that has remote.storage.enable=true
    //   stored          found on a topic at the start of a broker without remote storage
    //   broker          a setting of the broker, with remote storage
    private static void judge(String scope, Properties overrides, Map<String, String> broker, Map<String, Object> defaults) {
        switch (scope) {
            case "was-tiered" ->
                LogConfig.validate(Map.of("remote.storage.enable", "true"), overrides, defaults, true);
            case "stored" ->
                LogConfig.validateRemoteStorageOnlyIfSystemEnabled(LogConfig.fromProps(defaults, overrides).values(), false, true);
            case "broker" -> {
                Map<String, String> settings = new HashMap<>(broker);
                overrides.forEach((key, text) -> settings.put((String) key, (String) text));
                LogConfig.validateBrokerLogConfigValues(new kafka.server.KafkaConfig(settings, false).extractLogConfigMap(), true);
            }
            default -> LogConfig.validate(Map.of(), overrides, defaults, scope.equals("tiered"));
        }
    }

    private static final String[][] QUESTIONS = {
        {"local", "foo", "1"},
        {"local", "segment.bytes", "1"}, {"local", "segment.bytes", "x"}, {"local", "segment.bytes", "1.5"},
        {"local", "segment.bytes", ""}, {"local", "segment.bytes", " 2000000 "},
        {"local", "segment.bytes", "99999999999"}, {"local", "segment.bytes", "+2000000"},
        {"local", "segment.bytes", "0x200000"}, {"local", "segment.bytes", "2_000_000"},
        {"local", "segment.bytes", "2147483647"}, {"local", "segment.bytes", "2147483648"},
        {"local", "segment.bytes", "-2147483649"},
        {"local", "preallocate", "yes"}, {"local", "preallocate", "TRUE"}, {"local", "preallocate", ""},
        {"local", "preallocate", " false "},
        {"local", "cleanup.policy", "foo"}, {"local", "cleanup.policy", ""},
        {"local", "cleanup.policy", "compact,delete"}, {"local", "cleanup.policy", "compact,compact"},
        {"local", "cleanup.policy", "Compact"}, {"local", "cleanup.policy", "compact,"},
        {"local", "cleanup.policy", "compact, delete"}, {"local", "cleanup.policy", ","},
        {"local", "compression.type", "foo"}, {"local", "compression.type", "none"},
        {"local", "compression.type", "zstd"}, {"local", "compression.type", "GZIP"},
        {"local", "compression.gzip.level", "0"}, {"local", "compression.gzip.level", "-1"},
        {"local", "compression.gzip.level", "10"}, {"local", "compression.gzip.level", "9"},
        {"local", "compression.lz4.level", "18"}, {"local", "compression.lz4.level", "0"},
        {"local", "compression.zstd.level", "23"}, {"local", "compression.zstd.level", "-131073"},
        {"local", "min.cleanable.dirty.ratio", "2"}, {"local", "min.cleanable.dirty.ratio", "x"},
        {"local", "min.cleanable.dirty.ratio", "-0.1"}, {"local", "min.cleanable.dirty.ratio", "1e-1"},
        {"local", "min.cleanable.dirty.ratio", ".5"}, {"local", "min.cleanable.dirty.ratio", ""},
        {"local", "leader.replication.throttled.replicas", "x"},
        {"local", "leader.replication.throttled.replicas", "*"},
        {"local", "leader.replication.throttled.replicas", "0:1,1:2"},
        {"local", "leader.replication.throttled.replicas", ""},
        {"local", "leader.replication.throttled.replicas", "*,0:1"},
        {"local", "follower.replication.throttled.replicas", "0:-1"},
        {"local", "retention.ms", "-2"}, {"local", "retention.ms", "-1"}, {"local", "retention.bytes", "-5"},
        {"local", "retention.ms", "9223372036854775807"}, {"local", "retention.ms", "9223372036854775808"},
        {"local", "min.compaction.lag.ms", "100", "max.compaction.lag.ms", "10"},
        {"local", "min.compaction.lag.ms", "10", "max.compaction.lag.ms", "10"},
        {"local", "message.timestamp.type", "x"}, {"local", "message.timestamp.type", "logappendtime"},
        {"local", "max.message.bytes", "-1"}, {"local", "max.message.bytes", "0"},
        {"local", "flush.messages", "0"}, {"local", "flush.ms", "0"}, {"local", "segment.ms", "0"},
        {"local", "min.insync.replicas", "0"}, {"local", "index.interval.bytes", "-1"},
        {"local", "segment.index.bytes", "3"}, {"local", "max.compaction.lag.ms", "0"},
        {"local", "message.format.version", "3.0"}, {"local", "message.downconversion.enable", "true"},
        {"local", "local.retention.ms", "-3"}, {"local", "local.retention.ms", "1000000000000"},
        {"local", "local.retention.bytes", "5"}, {"local", "internal.segment.bytes", "100"},
        {"local", "remote.storage.enable", "true"}, {"local", "remote.storage.enable", "x"},
        {"local", "remote.log.copy.disable", "true"}, {"local", "remote.log.delete.on.disable", "true"},
        {"tiered", "remote.storage.enable", "true"},
        {"tiered", "remote.storage.enable", "true", "cleanup.policy", "compact"},
        {"tiered", "remote.storage.enable", "true", "cleanup.policy", "compact,delete"},
        {"tiered", "remote.storage.enable", "true", "cleanup.policy", ""},
        {"tiered", "remote.storage.enable", "true", "local.retention.ms", "-1"},
        {"tiered", "remote.storage.enable", "true", "local.retention.ms", "-1", "retention.ms", "-1"},
        {"tiered", "remote.storage.enable", "true", "local.retention.ms", "1000", "retention.ms", "10"},
        {"tiered", "remote.storage.enable", "true", "local.retention.ms", "10", "retention.ms", "10"},
        {"tiered", "remote.storage.enable", "true", "local.retention.bytes", "-1", "retention.bytes", "10"},
        {"tiered", "remote.storage.enable", "true", "local.retention.bytes", "100", "retention.bytes", "10"},
        {"tiered", "remote.storage.enable", "true", "remote.log.copy.disable", "true"},
        {"tiered", "remote.storage.enable", "true", "remote.log.delete.on.disable", "true"},
        {"tiered", "remote.storage.enable", "true", "remote.log.copy.disable", "true", "local.retention.ms", "5"},
        {"tiered", "remote.storage.enable", "true", "remote.log.copy.disable", "true", "local.retention.bytes", "5"},
        {"tiered", "remote.storage.enable", "true", "remote.log.copy.disable", "true",
            "local.retention.bytes", "5", "retention.bytes", "10", "local.retention.ms", "5"},
        {"tiered", "remote.storage.enable", "true", "remote.log.copy.disable", "true",
            "local.retention.bytes", "10", "retention.bytes", "10", "local.retention.ms", "604800000"},
        {"tiered", "remote.log.copy.disable", "true", "local.retention.ms", "5"},
        {"tiered", "remote.storage.enable", "false"}, {"tiered", "remote.storage.enable", "TRUE "},
        {"was-tiered", "remote.storage.enable", "false"}, {"was-tiered", "retention.ms", "5"},
        {"was-tiered", "remote.storage.enable", "false", "remote.log.delete.on.disable", "true"},
        {"was-tiered", "remote.log.delete.on.disable", "true"},
        {"was-tiered", "remote.storage.enable", "true", "local.retention.ms", "5"},
        {"was-tiered", "remote.storage.enable", "true", "cleanup.policy", "compact"},
        {"stored", "remote.storage.enable", "true"}, {"stored", "remote.storage.enable", "false"},
        {"broker", "log.local.retention.ms", "5"}, {"broker", "log.local.retention.ms", "-1"},
        {"broker", "log.local.retention.ms", "604800001"}, {"broker", "log.local.retention.bytes", "5"},
        {"broker", "log.local.retention.bytes", "5", "log.retention.bytes", "4"},
        {"broker", "log.local.retention.bytes", "-1", "log.retention.bytes", "4"},
        {"broker", "log.local.retention.ms", "-1", "log.retention.ms", "-1"},
    };
}
