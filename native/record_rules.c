/* Walks over the records of a batch, as a broker makes them: validation, and what is left of a batch
 * when it is compressed anew or compacted. Called by ctypes.
 *
 * What every function keeps, and its caller may rely on:
 *
 *   - It reads only data[0 .. size) and the arrays it is given, in the lengths it is given, and
 *     writes only what its comment calls `out`. Whatever the bytes are, hostile ones included:
 *     every read is compared with the end of what it may read before it happens.
 *   - It keeps no pointer and no state, takes no memory, calls nothing but memcpy, and may run in
 *     many threads at once. It knows no Python and needs no lock of it.
 *   - It says yes only to records in the plain form: numbers in as few bytes as they need,
 *     attributes 0, names of headers in UTF-8, sums that fit 64 bits. That is what clients write.
 *     All else, sound or not, is REFUSED, and the same rule in Python decides and says why
 *     (protocol/records/record.py, builder.py and cut.py, by storage/records/walks.py).
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

enum { REFUSED = -1 };

/* What is read of a record. `rest` begins with the offset delta. */
struct record {
    const uint8_t *start, *rest, *end, *key;
    int64_t timestamp_delta;
    int32_t offset_delta, key_size, value_size;
};

EXPORT int64_t varve_rules_contract(void)
{
    return CONTRACT;
}

/* A signed varint of at most 64 bits, in as few bytes as it needs, at *at, which moves behind it. 0:
 * there is none. Nearly all have one byte or two: those are read without a loop. */
static inline int read_varlong(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    const uint8_t *p = *at;
    uint64_t bits;
    if (p < end && p[0] < 0x80) {
        bits = p[0];
        p += 1;
    } else if (end - p >= 2 && p[1] < 0x80) {
        if (!p[1])
            return 0;
        bits = (p[0] & 0x7F) | (uint64_t)p[1] << 7;
        p += 2;
    } else {
        bits = 0;
        for (int shift = 0;; shift += 7) {
            if (p >= end)
                return 0;
            uint64_t byte = *p++;
            /* The tenth byte has one bit left, and must be the last. */
            if (shift == 63 && byte > 1)
                return 0;
            bits |= (byte & 0x7F) << shift;
            if (byte < 0x80) {
                if (!byte)
                    return 0;
                break;
            }
        }
    }
    *value = (int64_t)((bits >> 1) ^ (0u - (bits & 1)));
    *at = p;
    return 1;
}

/* Likewise of at most 32 bits. */
static inline int read_varint(const uint8_t **at, const uint8_t *end, int32_t *value)
{
    int64_t wide;
    if (!read_varlong(at, end, &wide) || wide != (int32_t)wide)
        return 0;
    *value = (int32_t)wide;
    return 1;
}

/* The length of a field, -1 where it is null, and the field, both of which *at moves behind. */
static inline int read_field(const uint8_t **at, const uint8_t *end, int32_t *size)
{
    if (!read_varint(at, end, size) || *size < -1)
        return 0;
    if (*size > 0) {
        if (*size > end - *at)
            return 0;
        *at += *size;
    }
    return 1;
}

/* Whether it is UTF-8 as Python's strict decoder takes it: no surrogates, nothing in more bytes
 * than it needs, nothing above U+10FFFF. */
static int is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        uint32_t lead = *p++;
        if (lead < 0x80)
            continue;
        int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        /* The second byte's range is what keeps long forms, surrogates and large numbers out. */
        uint32_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        uint32_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (lead < 0xC2 || lead > 0xF4 || end - p < more || p[0] < low || p[0] > high)
            return 0;
        for (int index = 1; index < more; index++)
            if ((p[index] & 0xC0) != 0x80)
                return 0;
        p += more;
    }
    return 1;
}

static int skip_headers(const uint8_t **at, const uint8_t *end)
{
    int32_t count, size;
    if (!read_varint(at, end, &count) || count < 0 || count > (end - *at) / 2)
        return 0;
    for (int32_t index = 0; index < count; index++) {
        if (!read_field(at, end, &size) || size < 0 || !is_utf8(*at - size, *at)
            || !read_field(at, end, &size))
            return 0;
    }
    return 1;
}

/* One record in the plain form at *at, which moves behind it. 0: there is none. */
static inline int read_record(const uint8_t **at, const uint8_t *block_end, struct record *record)
{
    const uint8_t *p = *at;
    int32_t length;
    record->start = p;
    if (!read_varint(&p, block_end, &length) || length <= 0 || length > block_end - p)
        return 0;
    const uint8_t *end = p + length;
    if (*p++ || !read_varlong(&p, end, &record->timestamp_delta))
        return 0;
    record->rest = p;
    if (!read_varint(&p, end, &record->offset_delta) || !read_field(&p, end, &record->key_size))
        return 0;
    record->key = record->key_size > 0 ? p - record->key_size : p;
    if (!read_field(&p, end, &record->value_size) || p >= end)
        return 0;
    if (*p)
        return skip_headers(&p, end) && p == end && (record->end = *at = end, 1);
    if (++p != end)
        return 0;
    record->end = *at = end;
    return 1;
}

/* Whether the block is `count` records and nothing else, with offset deltas 0, 1, ..., timestamps
 * of minimum to maximum, and keys where they are required. 1, or REFUSED. */
EXPORT int64_t varve_check_records(const uint8_t *data, int64_t size, int64_t count,
                                   int64_t base_timestamp, int64_t minimum, int64_t maximum,
                                   int64_t require_key)
{
    const uint8_t *p = data, *end = data + size;
    struct record record;
    int64_t timestamp;
    for (int64_t index = 0; index < count; index++) {
        if (!read_record(&p, end, &record) || record.offset_delta != index
            || (require_key && record.key_size < 0)
            || __builtin_add_overflow(base_timestamp, record.timestamp_delta, &timestamp)
            || timestamp < minimum || timestamp > maximum)
            return REFUSED;
    }
    return p == end ? 1 : REFUSED;
}

static inline int varint_size(uint64_t bits)
{
    return bits ? (70 - __builtin_clzll(bits)) / 7 : 1;
}

static inline uint8_t *write_varint(uint8_t *to, uint64_t bits)
{
    while (bits > 0x7F) {
        *to++ = (uint8_t)(bits | 0x80);
        bits >>= 7;
    }
    *to++ = (uint8_t)bits;
    return to;
}

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* The times of a batch: of the one there is, and of the one that is to be. */
struct times {
    int64_t old_base;        /* what the deltas count from */
    int64_t append_time;     /* of all records, where is_append_time */
    int64_t is_append_time;
    int64_t new_base;        /* what they are to count from, where has_new_base; */
    int64_t has_new_base;    /* else it is the first kept record's time */
};

/* Out. */
struct cut {
    int64_t base_timestamp, max_timestamp;
    int64_t as_it_was;       /* each kept record has the bytes that it had */
};

/* The block with those of its `count` records whose bit in `kept` is set, lowest first; all where
 * that is NULL. `out` gets it, of `capacity` bytes, or is NULL; `cut` is out. Returns its size, or
 * REFUSED, also where none is kept or there is not room. */
EXPORT int64_t varve_cut_records(const uint8_t *data, int64_t size, int64_t count,
                                 const uint8_t *kept, const struct times *times, uint8_t *out,
                                 int64_t capacity, struct cut *cut)
{
    const uint8_t *p = data, *end = data + size;
    struct record record;
    int64_t total = 0, base = times->new_base, latest = INT64_MIN, timestamp, delta;
    int has_base = times->has_new_base != 0, as_it_was = 1, found = 0;
    for (int64_t index = 0; index < count; index++) {
        if (!read_record(&p, end, &record))
            return REFUSED;
        if (kept && !(kept[index >> 3] >> (index & 7) & 1))
            continue;
        if (times->is_append_time)
            timestamp = times->append_time;
        else if (__builtin_add_overflow(times->old_base, record.timestamp_delta, &timestamp))
            return REFUSED;
        if (!has_base) {
            base = timestamp;
            has_base = 1;
        }
        if (timestamp > latest)
            latest = timestamp;
        found = 1;
        if (__builtin_sub_overflow(timestamp, base, &delta))
            return REFUSED;
        if (delta == record.timestamp_delta) {
            int64_t whole = record.end - record.start;
            if (out) {
                if (whole > capacity - total)
                    return REFUSED;
                memcpy(out + total, record.start, (size_t)whole);
            }
            total += whole;
            continue;
        }
        as_it_was = 0;
        int64_t rest = record.end - record.rest;
        int64_t body = 1 + varint_size(zigzag(delta)) + rest;
        int64_t whole = varint_size(zigzag(body)) + body;
        if (body > INT32_MAX)
            return REFUSED;
        if (out) {
            if (whole > capacity - total)
                return REFUSED;
            uint8_t *to = write_varint(out + total, zigzag(body));
            *to++ = 0;
            to = write_varint(to, zigzag(delta));
            memcpy(to, record.rest, (size_t)rest);
        }
        total += whole;
    }
    if (p != end || !found)
        return REFUSED;
    cut->base_timestamp = base;
    cut->max_timestamp = times->is_append_time ? times->append_time : latest;
    cut->as_it_was = as_it_was;
    return total;
}

/* Key to latest offset: open addressing, as storage/cleaner/offset_map.py lays it out, but for the
 * hash, which is SipHash-1-3 with 128 bits of output, and for the third word. */
struct offset_map {
    int64_t slots, count;    /* `count` changes */
    uint64_t key[2];         /* of the hash, a secret of the process */
    uint64_t *words;         /* three of a slot: the hash's two, and offset - INT64_MIN; 0: empty */
};

#define ROTATE(x, by) ((x) << (by) | (x) >> (64 - (by)))
#define SIP_ROUND(a, b, c, d)                                                                      \
    a += b, b = ROTATE(b, 13), b ^= a, a = ROTATE(a, 32), c += d, d = ROTATE(d, 16), d ^= c,       \
    a += d, d = ROTATE(d, 21), d ^= a, c += b, b = ROTATE(b, 17), b ^= c, c = ROTATE(c, 32)

struct hash {
    uint64_t first, second;
};

static inline struct hash hash_of(const uint8_t *key, int64_t size, const uint64_t secret[2])
{
    uint64_t a = secret[0] ^ 0x736f6d6570736575u, b = secret[1] ^ 0x646f72616e646f6du ^ 0xee;
    uint64_t c = secret[0] ^ 0x6c7967656e657261u, d = secret[1] ^ 0x7465646279746573u;
    uint64_t word;
    int64_t left = size;
    for (; left >= 8; left -= 8, key += 8) {
        memcpy(&word, key, 8);
        d ^= word;
        SIP_ROUND(a, b, c, d);
        a ^= word;
    }
    word = (uint64_t)size << 56;
    for (int64_t index = 0; index < left; index++)
        word |= (uint64_t)key[index] << (8 * index);
    d ^= word;
    SIP_ROUND(a, b, c, d);
    a ^= word;
    struct hash hash;
    c ^= 0xee;
    for (int round = 0; round < 3; round++)
        SIP_ROUND(a, b, c, d);
    hash.first = a ^ b ^ c ^ d;
    b ^= 0xdd;
    for (int round = 0; round < 3; round++)
        SIP_ROUND(a, b, c, d);
    hash.second = a ^ b ^ c ^ d;
    return hash;
}

static inline uint64_t *first_slot(const struct offset_map *map, struct hash hash)
{
    return map->words + 3 * (uint64_t)((unsigned __int128)hash.first * (uint64_t)map->slots >> 64);
}

/* The slot that has the hash, or the empty one where it belongs. One is always empty. */
static inline uint64_t *find_slot(const struct offset_map *map, struct hash hash)
{
    uint64_t *slot = first_slot(map, hash);
    const uint64_t *end = map->words + 3 * map->slots;
    while (slot[2] && (slot[0] != hash.first || slot[1] != hash.second)) {
        slot += 3;
        if (slot == end)
            slot = map->words;
    }
    return slot;
}

static inline int put(struct offset_map *map, struct hash hash, int64_t offset)
{
    uint64_t *slot = find_slot(map, hash);
    if (offset == INT64_MIN)
        return 0;
    if (!slot[2]) {
        if (map->count >= map->slots - 1)
            return 0;
        slot[0] = hash.first;
        slot[1] = hash.second;
        map->count++;
    }
    slot[2] = (uint64_t)offset - (uint64_t)INT64_MIN;
    return 1;
}

static inline int64_t get(const struct offset_map *map, struct hash hash)
{
    uint64_t word = find_slot(map, hash)[2];
    return word ? (int64_t)(word + (uint64_t)INT64_MIN) : -1;
}

/* Set the offset of a key. 1, or REFUSED where the map is full. `map` is out. */
EXPORT int64_t varve_map_put(struct offset_map *map, const uint8_t *key, int64_t size,
                             int64_t offset)
{
    return put(map, hash_of(key, size, map->key), offset) ? 1 : REFUSED;
}

/* The offset of a key, -1 if it was never put. */
EXPORT int64_t varve_map_get(const struct offset_map *map, const uint8_t *key, int64_t size)
{
    return get(map, hash_of(key, size, map->key));
}

/* Out. */
struct mapped {
    int64_t tombstones, keyless;    /* how many values, how many keys are null */
    int64_t last_delta;             /* -1 without records */
    int64_t records_read;           /* up to and with the one for which there was no room */
    int64_t full_at;                /* offset of that record, -1 where all are in */
};

/* Records between the hash of a key and its slot, which is on its way from memory meanwhile. */
enum { AHEAD = 16 };

/* Put the keys of a block from `start` on into the map, `keys_max` keys at most. `map` and `mapped`
 * are out. 1, or REFUSED, and nothing is put: also where offset deltas do not rise from 0 on. */
EXPORT int64_t varve_map_records(const uint8_t *data, int64_t size, int64_t count,
                                 int64_t base_offset, int64_t start, int64_t keys_max,
                                 struct offset_map *map, struct mapped *mapped)
{
    const uint8_t *p = data, *end = data + size;
    struct record record;
    struct mapped found = {0, 0, -1, 0, -1};
    for (int64_t index = 0; index < count; index++) {
        if (!read_record(&p, end, &record) || record.offset_delta <= found.last_delta)
            return REFUSED;
        found.last_delta = record.offset_delta;
        found.tombstones += record.value_size < 0;
        found.keyless += record.key_size < 0;
    }
    if (p != end || base_offset < 0 || base_offset > INT64_MAX - INT32_MAX - 1
        || keys_max > map->slots - 1)
        return REFUSED;
    p = data;
    while (found.records_read < count && found.full_at < 0) {
        struct hash hashes[AHEAD];
        int64_t offsets[AHEAD];
        int some = 0;
        for (; some < AHEAD && found.records_read + some < count; some++) {
            read_record(&p, end, &record);
            int64_t offset = base_offset + record.offset_delta;
            offsets[some] = record.key_size < 0 || offset < start ? -1 : offset;
            if (offsets[some] < 0)
                continue;
            hashes[some] = hash_of(record.key, record.key_size, map->key);
            __builtin_prefetch(first_slot(map, hashes[some]), 1);
        }
        for (int index = 0; index < some && found.full_at < 0; index++) {
            found.records_read++;
            if (offsets[index] < 0)
                continue;
            if (map->count >= keys_max)
                found.full_at = offsets[index];
            else
                put(map, hashes[index], offsets[index]);
        }
    }
    *mapped = found;
    return 1;
}

/* Which records of a block are not older than their keys' last. Out: `kept` and `tombstones`, a bit
 * for each record, lowest first, which are 0 before. 1, or REFUSED, also where a key is null. */
EXPORT int64_t varve_latest_records(const uint8_t *data, int64_t size, int64_t count,
                                    int64_t base_offset, const struct offset_map *map,
                                    uint8_t *kept, uint8_t *tombstones)
{
    const uint8_t *p = data, *end = data + size;
    struct record record;
    if (base_offset < 0 || base_offset > INT64_MAX - INT32_MAX - 1)
        return REFUSED;
    for (int64_t row = 0; row < count;) {
        struct hash hashes[AHEAD];
        int64_t offsets[AHEAD];
        int some = 0;
        for (; some < AHEAD && row + some < count; some++) {
            if (!read_record(&p, end, &record) || record.key_size < 0)
                return REFUSED;
            offsets[some] = base_offset + record.offset_delta;
            hashes[some] = hash_of(record.key, record.key_size, map->key);
            __builtin_prefetch(first_slot(map, hashes[some]));
            if (record.value_size < 0)
                tombstones[(row + some) >> 3] |= (uint8_t)(1u << ((row + some) & 7));
        }
        for (int index = 0; index < some; index++, row++)
            if (offsets[index] >= get(map, hashes[index]))
                kept[row >> 3] |= (uint8_t)(1u << (row & 7));
    }
    return p == end ? 1 : REFUSED;
}

/* Set the bit `offset - start` of every key's offset; those for which there is none are passed
 * over. `bits`, of `size` bytes, is out. */
EXPORT int64_t varve_map_mark(const struct offset_map *map, int64_t start, uint8_t *bits,
                              int64_t size)
{
    for (int64_t slot = 0; slot < map->slots; slot++) {
        uint64_t word = map->words[3 * slot + 2];
        uint64_t bit = word + (uint64_t)INT64_MIN - (uint64_t)start;
        if (word && bit >> 3 < (uint64_t)size)
            bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
    }
    return 1;
}
