// Writes the *.batch files of this folder with Kafka's own classes; see README.md.

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

public class GoldenRecords {
    static final Header[] NO_HEADERS = {};

    public static void main(String[] arguments) throws Exception {
        Map<String, Compression> codecs = Map.of(
            "none", Compression.NONE,
            "gzip", Compression.gzip().build(),
            "snappy", Compression.snappy().build(),
            "lz4", Compression.lz4().build(),
            "zstd", Compression.zstd().build());
        for (String codec : codecs.keySet()) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2, codecs.get(codec),
                TimestampType.CREATE_TIME, 42L, RecordBatch.NO_TIMESTAMP,
                1000L, (short) 3, 7, true, false, 5);
            builder.append(1700000000123L, "k0".getBytes(), "v0".getBytes(), NO_HEADERS);
            builder.append(1700000000000L, null, "no key".getBytes(), new Header[] {
                new RecordHeader("h", "x".getBytes()), new RecordHeader("\u00e9", null)});
            builder.append(1700000009999L, "tombstone".getBytes(), (byte[]) null, NO_HEADERS);
            byte[] steps = new byte[40000];
            for (int i = 0; i < steps.length; i++)
                steps[i] = (byte) (i / 500);
            builder.append(1700000000001L, "".getBytes(), steps, NO_HEADERS);
            write(codec, builder.build().buffer());
        }
        write("commit", marker(ControlRecordType.COMMIT));
        write("abort", marker(ControlRecordType.ABORT));
        ByteBuffer empty = ByteBuffer.allocate(61);
        DefaultRecordBatch.writeEmptyHeader(
            empty, RecordBatch.MAGIC_VALUE_V2, 1000L, (short) 3, 7, 42L, 45L, 5,
            TimestampType.CREATE_TIME, 1700000009999L, true, false);
        write("empty", empty.flip());
    }

    static ByteBuffer marker(ControlRecordType type) {
        return MemoryRecords.withEndTransactionMarker(
            9L, 1700000000123L, 4, 1000L, (short) 3, new EndTransactionMarker(type, 17)).buffer();
    }

    static void write(String name, ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        Files.write(Path.of(name + ".batch"), bytes);
    }
}
