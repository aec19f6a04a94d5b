/* Records of Kafka's batches: where their fields lie, and their bytes gathered. Called by ctypes.
 *
 * What every function keeps, and its caller may rely on:
 *
 *   - It reads only data[0 .. size) and the arrays it is given, in the lengths it is given, and
 *     writes only arrays that its comment calls `out`. Whatever the bytes are, hostile ones
 *     included: every read is compared with the end of what it may read before it happens.
 *   - It keeps no pointer and no state, takes no memory, calls nothing but memcpy and memset, and may run in
 *     many threads at once. It knows no Python and needs no lock of it.
 *   - Positions are int32 (a buffer is below 2^31 bytes) and count from `data`. Records are judged
 *     as `pipeline.read.decode.record_table` says; `pipeline/read/decode/plain_kernel.py` is the same in Python,
 *     and says in words what is only refused here.
 *
 * Layout of a record, integers being zigzag varints (protocol/records/record.py):
 *
 *   length | attributes (1 byte) | timestamp delta (64 bit) | offset delta | key length | key
 *          | value length | value | header count | { key length | key | value length | value } ...
 *
 * CONTRACT is raised whenever an argument changes: the wrapper refuses another one.
 */

#include <stdint.h>
#include <string.h>

#define CONTRACT 1
#define EXPORT __attribute__((visibility("default")))

enum { FOUND = 0, CUT_OFF = 1, BROKEN = 2 };

enum { BATCH_HEADER = 61, BATCH_OVERHEAD = 12, BATCH_MAGIC_AT = 16, BATCH_MAGIC = 2 };

/* Blocks of records, `count` of each array; as `record_table.Blocks`. */
struct blocks {
    int64_t count;
    const int64_t *start, *end, *records;
    const int64_t *base_offset, *last_offset, *base_timestamp, *append_time, *max_timestamp;
};

/* Room for `capacity` records; as `record_table.RecordTable`. All arrays are out. */
struct record_table {
    int64_t capacity;
    int64_t *offset, *timestamp;
    int32_t *key_start, *key_size, *value_start, *value_size, *headers_start, *header_count, *end;
};

/* Room for headers; as `record_table.HeaderTable`. All arrays are out. */
struct header_table {
    int64_t capacity;
    int32_t *key_start, *key_size, *value_start, *value_size;
};

/* A signed 32-bit varint of at most 5 bytes at *at, which moves behind it. Nearly all have one byte
 * or two: those are read without a loop. */
static inline int read_varint(const uint8_t **at, const uint8_t *end, int32_t *value)
{
    const uint8_t *p = *at;
    uint32_t bits;
    if (p < end && p[0] < 0x80) {
        bits = p[0];
        p += 1;
    } else if (end - p >= 2 && p[1] < 0x80) {
        bits = (p[0] & 0x7F) | (uint32_t)p[1] << 7;
        p += 2;
    } else {
        bits = 0;
        for (int shift = 0;; shift += 7) {
            if (p >= end)
                return CUT_OFF;
            uint32_t byte = *p++;
            /* The fifth byte has four bits left, and must be the last. */
            if (shift == 28 && byte > 0x0F)
                return BROKEN;
            bits |= (byte & 0x7F) << shift;
            if (byte < 0x80)
                break;
        }
    }
    *value = (int32_t)((bits >> 1) ^ (0u - (bits & 1)));
    *at = p;
    return FOUND;
}

/* A signed 64-bit varint of at most 10 bytes, likewise. */
static inline int read_varlong(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    const uint8_t *p = *at;
    uint64_t bits;
    if (p < end && p[0] < 0x80) {
        bits = p[0];
        p += 1;
    } else if (end - p >= 2 && p[1] < 0x80) {
        bits = (p[0] & 0x7F) | (uint64_t)p[1] << 7;
        p += 2;
    } else {
        bits = 0;
        for (int shift = 0;; shift += 7) {
            if (p >= end)
                return CUT_OFF;
            uint64_t byte = *p++;
            if (shift == 63 && byte > 1)
                return BROKEN;
            bits |= (byte & 0x7F) << shift;
            if (byte < 0x80)
                break;
        }
    }
    *value = (int64_t)((bits >> 1) ^ (0u - (bits & 1)));
    *at = p;
    return FOUND;
}

/* The length of a field and where the field begins; *at moves behind the field. */
static inline int read_field(const uint8_t **at, const uint8_t *end, const uint8_t *data,
                             int32_t *start, int32_t *size)
{
    if (read_varint(at, end, size) != FOUND || *size < -1)
        return BROKEN;
    *start = (int32_t)(*at - data);
    if (*size > 0) {
        if (*size > end - *at)
            return BROKEN;
        *at += *size;
    }
    return FOUND;
}

/* One record at *at, which moves behind it; goes to `row` of the table. CUT_OFF: `block_end` comes
 * before the record's. A record that is whole in itself, and none, is BROKEN. */
static inline int read_record(const uint8_t **at, const uint8_t *block_end, const uint8_t *data,
                              const struct blocks *blocks, int64_t block, int64_t previous_offset,
                              const struct record_table *table, int64_t row)
{
    const uint8_t *p = *at;
    int32_t length, offset_delta, header_count;
    int64_t timestamp_delta;
    int state = read_varint(&p, block_end, &length);
    if (state != FOUND)
        return state;
    if (length < 0)
        return BROKEN;
    if (length > block_end - p)
        return CUT_OFF;
    const uint8_t *end = p + length;
    if (p >= end)
        return BROKEN;
    p += 1;
    if (read_varlong(&p, end, &timestamp_delta) != FOUND
        || read_varint(&p, end, &offset_delta) != FOUND)
        return BROKEN;
    int64_t base = blocks->base_offset[block];
    if (offset_delta < 0 || offset_delta > blocks->last_offset[block] - base
        || base + offset_delta <= previous_offset)
        return BROKEN;
    if (read_field(&p, end, data, &table->key_start[row], &table->key_size[row]) != FOUND
        || read_field(&p, end, data, &table->value_start[row], &table->value_size[row]) != FOUND
        || read_varint(&p, end, &header_count) != FOUND)
        return BROKEN;
    if (header_count < 0 || header_count > (end - p) / 2)
        return BROKEN;
    table->offset[row] = base + offset_delta;
    table->timestamp[row] = blocks->append_time[block]
        ? blocks->max_timestamp[block]
        : (int64_t)((uint64_t)blocks->base_timestamp[block] + (uint64_t)timestamp_delta);
    table->headers_start[row] = (int32_t)(p - data);
    table->header_count[row] = header_count;
    table->end[row] = (int32_t)(end - data);
    for (int32_t index = 0; index < header_count; index++) {
        int32_t start, key_size, value_size;
        if (read_field(&p, end, data, &start, &key_size) != FOUND || key_size < 0
            || read_field(&p, end, data, &start, &value_size) != FOUND)
            return BROKEN;
    }
    if (p != end)
        return BROKEN;
    *at = p;
    return FOUND;
}

/* Whether block `block` lies within the data. */
static inline int lies_within(const struct blocks *blocks, int64_t block, int64_t size)
{
    return blocks->start[block] >= 0 && blocks->start[block] <= blocks->end[block]
        && blocks->end[block] <= size;
}

EXPORT int64_t varve_records_contract(void)
{
    return CONTRACT;
}

/* Find all records of the blocks. Returns how many blocks are well formed before the first that is
 * not, or for which there is no room; their records are in the table, back to back. */
EXPORT int64_t varve_walk(const uint8_t *data, int64_t size, const struct blocks *blocks,
                          const struct record_table *table)
{
    int64_t row = 0;
    for (int64_t block = 0; block < blocks->count; block++) {
        if (!lies_within(blocks, block, size) || blocks->records[block] < 0
            || blocks->records[block] > table->capacity - row)
            return block;
        const uint8_t *p = data + blocks->start[block];
        const uint8_t *end = data + blocks->end[block];
        int64_t previous_offset = blocks->base_offset[block] - 1;
        int64_t stop = row + blocks->records[block];
        for (; row < stop; row++) {
            if (read_record(&p, end, data, blocks, block, previous_offset, table, row) != FOUND)
                return block;
            previous_offset = table->offset[row];
        }
        if (p != end)
            return block;
    }
    return blocks->count;
}

/* Find records of the one block, which is a window and may end within a record: at most
 * `records` of them, and what the table has room for. `rows` and `position` are out: how many, and
 * the byte behind the last. Returns FOUND, or BROKEN if what follows is no record. */
EXPORT int64_t varve_walk_window(const uint8_t *data, int64_t size, const struct blocks *blocks,
                                 int64_t previous_offset, const struct record_table *table,
                                 int64_t *rows, int64_t *position)
{
    int state = FOUND;
    int64_t row = 0;
    *rows = 0;
    *position = blocks->start[0];
    if (!lies_within(blocks, 0, size))
        return BROKEN;
    const uint8_t *p = data + blocks->start[0];
    const uint8_t *end = data + blocks->end[0];
    while (row < blocks->records[0] && row < table->capacity) {
        state = read_record(&p, end, data, blocks, 0, previous_offset, table, row);
        if (state != FOUND)
            break;
        previous_offset = table->offset[row];
        row++;
    }
    *rows = row;
    *position = p - data;
    return state == BROKEN ? BROKEN : FOUND;
}

/* Find the headers of `count` records: header_count[i] from header_start[i] on. Returns how many
 * there are, or -1 where the table has not room for them, or one is none. */
EXPORT int64_t varve_find_headers(const uint8_t *data, int64_t size, int64_t count,
                                  const int32_t *headers_start, const int32_t *header_count,
                                  const struct header_table *table)
{
    const uint8_t *end = data + size;
    int64_t row = 0;
    for (int64_t record = 0; record < count; record++) {
        if (headers_start[record] < 0 || headers_start[record] > size
            || header_count[record] > table->capacity - row)
            return -1;
        const uint8_t *p = data + headers_start[record];
        for (int32_t index = 0; index < header_count[record]; index++, row++) {
            if (read_field(&p, end, data, &table->key_start[row], &table->key_size[row]) != FOUND
                || table->key_size[row] < 0
                || read_field(&p, end, data, &table->value_start[row], &table->value_size[row])
                    != FOUND)
                return -1;
        }
    }
    return row;
}

/* Bytes that `count` fields have together; `nulls` is out: how many have size -1. */
EXPORT int64_t varve_measure(int64_t count, const int32_t *sizes, int64_t *nulls)
{
    int64_t total = 0, absent = 0;
    for (int64_t index = 0; index < count; index++) {
        total += sizes[index] > 0 ? sizes[index] : 0;
        absent += sizes[index] < 0;
    }
    *nulls = absent;
    return total;
}

/* Copy `count` fields back to back, as Arrow's binary arrays have them. Out: `content`, of
 * `capacity` bytes; `offsets`, count + 1 of them; `validity`, a bit for each field, lowest first,
 * or NULL where none is null. Returns the bytes of content, -1 where a field lies elsewhere. */
EXPORT int64_t varve_gather(const uint8_t *data, int64_t size, int64_t count,
                            const int32_t *starts, const int32_t *sizes, uint8_t *content,
                            int64_t capacity, int32_t *offsets, uint8_t *validity)
{
    int64_t total = 0;
    if (validity)
        memset(validity, 0, (size_t)((count + 7) / 8));
    for (int64_t index = 0; index < count; index++) {
        int64_t length = sizes[index];
        offsets[index] = (int32_t)total;
        if (length < 0)
            continue;
        if (validity)
            validity[index >> 3] |= (uint8_t)(1u << (index & 7));
        if (starts[index] < 0 || starts[index] > size - length || length > capacity - total)
            return -1;
        memcpy(content + total, data + starts[index], (size_t)length);
        total += length;
    }
    offsets[count] = (int32_t)total;
    return total;
}

/* Follow the lengths of batches from `position`: at most `count` whole ones of magic 2. Out:
 * `positions`, and `headers`, 61 bytes of each. Returns how many there are; the one behind them is
 * none, or is cut off, or begins at `size`. */
EXPORT int64_t varve_find_batches(const uint8_t *data, int64_t size, int64_t position,
                                  int64_t count, int64_t *positions, uint8_t *headers)
{
    int64_t found = 0;
    while (found < count && position >= 0 && size - position >= BATCH_HEADER) {
        const uint8_t *p = data + position;
        uint32_t length = (uint32_t)p[8] << 24 | (uint32_t)p[9] << 16 | (uint32_t)p[10] << 8 | p[11];
        int64_t whole = (int64_t)(int32_t)length + BATCH_OVERHEAD;
        if (p[BATCH_MAGIC_AT] != BATCH_MAGIC || whole < BATCH_HEADER || whole > size - position)
            break;
        memcpy(headers + found * BATCH_HEADER, p, BATCH_HEADER);
        positions[found++] = position;
        position += whole;
    }
    return found;
}
