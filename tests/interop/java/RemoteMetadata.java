import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;

/** Reads events of remote segments and writes them again; says which metadata partition is asked. */
public final class RemoteMetadata {
    public static void main(String[] arguments) {
        RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            if (words[0].equals("record")) {
                byte[] bytes = HexFormat.of().parseHex(words[1]);
                System.out.println(HexFormat.of().formatHex(serde.serialize(serde.deserialize(bytes))));
            } else {
                TopicPartition partition = new TopicPartition("t", Integer.parseInt(words[2]));
                TopicIdPartition id = new TopicIdPartition(Uuid.fromString(words[1]), partition);
                RemoteLogMetadataTopicPartitioner places =
                    new RemoteLogMetadataTopicPartitioner(Integer.parseInt(words[3]));
                System.out.println(places.metadataPartition(id));
            }
        }
    }
}
