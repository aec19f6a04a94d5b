import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a share group that does what it is told, a line at a time, and answers each with a
 * line of its own. The group reads its topic from the beginning. Arguments: bootstrap servers, group, topic, mode (explicit or implicit), then
 * settings of the consumer as name=value.
 *
 *   poll MS                 until there are records, MS at most: "records p:offset:deliveries ..."
 *   accept p:offset ...     also release, reject, renew: "said"
 *   commit                  "committed p=ok ...", or with the class of the error
 *   lock                    "lock MS", as the broker told it
 *   close                   "closed"
 */
public final class ShareMember {
    private final KafkaShareConsumer<String, String> consumer;
    private final Map<String, ConsumerRecord<String, String>> polled = new TreeMap<>();

    private ShareMember(Properties properties, String topic) {
        consumer = new KafkaShareConsumer<>(
                properties, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[1]);
        properties.put("share.acknowledgement.mode", arguments[3]);
        for (String setting : Arrays.asList(arguments).subList(4, arguments.length)) {
            properties.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        readFromTheBeginning(arguments[0], arguments[1]);
        ShareMember member = new ShareMember(properties, arguments[2]);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = member.obey(line.strip().split(" +"));
            } catch (KafkaException | IllegalStateException error) {
                answer = "error " + error.getClass().getSimpleName() + " " + error.getMessage();
            }
            System.out.println(answer.strip());
            System.out.flush();
            if (line.startsWith("close")) {
                return;
            }
        }
    }

    private static void readFromTheBeginning(String address, String group) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        ConfigEntry entry = new ConfigEntry("share.auto.offset.reset", "earliest");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.incrementalAlterConfigs(Map.of(
                    resource, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
        }
    }

    private String obey(String[] words) {
        List<String> named = Arrays.asList(words).subList(1, words.length);
        switch (words[0]) {
            case "poll":
                return poll(Long.parseLong(words[1]));
            case "commit":
                return commit();
            case "lock":
                return "lock " + consumer.acquisitionLockTimeoutMs().orElse(-1);
            case "close":
                consumer.close(Duration.ofSeconds(10));
                return "closed";
            default:
                AcknowledgeType type = AcknowledgeType.valueOf(words[0].toUpperCase());
                for (String name : named) {
                    consumer.acknowledge(polled.get(name), type);
                }
                return "said";
        }
    }

    private String poll(long milliseconds) {
        long until = System.nanoTime() + milliseconds * 1_000_000;
        List<String> found = new ArrayList<>();
        do {
            long left = Math.max((until - System.nanoTime()) / 1_000_000, 0);
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(left))) {
                String name = record.partition() + ":" + record.offset();
                polled.put(name, record);
                found.add(name + ":" + record.deliveryCount().orElse((short) -1)
                        + ":" + record.value());
            }
        } while (found.isEmpty() && System.nanoTime() < until);
        return "records " + String.join(" ", found);
    }

    private String commit() {
        StringBuilder answer = new StringBuilder("committed");
        Map<TopicIdPartition, Optional<KafkaException>> outcomes =
                consumer.commitSync(Duration.ofSeconds(20));
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> outcome : outcomes.entrySet()) {
            answer.append(' ').append(outcome.getKey().partition()).append('=').append(
                    outcome.getValue().map(error -> error.getClass().getSimpleName()).orElse("ok"));
        }
        return answer.toString();
    }
}
