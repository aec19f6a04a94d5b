import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/** Reads records of the group coordinator and writes them again; keys and values in hexadecimal. */
public final class GroupRecords {
    public static void main(String[] arguments) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            CoordinatorRecord record = serde.deserialize(
                ByteBuffer.wrap(HexFormat.of().parseHex(words[0])),
                ByteBuffer.wrap(HexFormat.of().parseHex(words[1]))
            );
            System.out.println(
                HexFormat.of().formatHex(serde.serializeKey(record)) + " "
                    + HexFormat.of().formatHex(serde.serializeValue(record))
            );
        }
    }
}
