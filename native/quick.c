/* `protocol.quick` in C: the same functions with the same results, whose docstrings are there.
 *
 * What is of another shape, or wrong, is None: the general code reads it again. So nothing here
 * raises, but for a missing argument, one of another type, memory that is not there, or what has to be
 * written and cannot be.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum {
    HEADER_SIZE = 10,       /* of a request, without the client id */
    BATCH_HEADER_SIZE = 61,
    LOG_OVERHEAD = 12,
    ATTRIBUTES_AT = 22,     /* of a batch: the lower byte */
    PLACE_SIZE = 16,        /* base offset, length, leader epoch: what a batch begins with */
    CRC_START = 21,
    CODEC_MASK = 0x07,
    CODEC_LAST = 4,
    ZSTD = 4,
    ZSTD_FROM_VERSION = 7,
    TOPIC_ID_FROM_VERSION = 13,   /* of a Fetch */
    REPLICA_TAG_FROM_VERSION = 15, /* of a Fetch; before, the replica id comes first */
    TRANSACTIONAL = 0x10,
    NOT_A_CLIENTS = 0x08 | 0x20, /* timestamp type, control */
    QUICK_CRC_MAX = 4096,   /* above, `fastcrc` is quicker than one instruction after the other */
};

static PyObject *crc32c; /* of `fastcrc` */

static inline int16_t int16_at(const unsigned char *at)
{
    return (int16_t)((uint16_t)at[0] << 8 | at[1]);
}

static inline uint32_t uint32_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int32_t int32_at(const unsigned char *at)
{
    return (int32_t)uint32_at(at);
}

static inline int64_t int64_at(const unsigned char *at)
{
    return (int64_t)((uint64_t)uint32_at(at) << 32 | uint32_at(at + 4));
}

static inline unsigned char *put32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
    return at + 4;
}

static inline unsigned char *put64(unsigned char *at, uint64_t value)
{
    return put32(put32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static int count_is(Py_ssize_t given, Py_ssize_t wanted, const char *name)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, %zd were given", name, wanted, given);
    return 0;
}

/* An integer that does not fit 64 bits is as good as the greatest or least that does. */
static int64_t clamped(PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : value;
}

/* Take a reference to each of `items`, which may be NULL for an error: a tuple of them, or NULL. */
static PyObject *tuple_of(PyObject **items, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int failed = tuple == NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        failed |= items[i] == NULL;
        if (tuple != NULL)
            PyTuple_SET_ITEM(tuple, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (failed)
        Py_CLEAR(tuple);
    return tuple;
}

static PyObject *slice_of(PyObject *data, Py_ssize_t begin, Py_ssize_t end)
{
    PyObject *first = PyLong_FromSsize_t(begin), *last = PyLong_FromSsize_t(end), *part = NULL;
    if (first != NULL && last != NULL) {
        PyObject *slice = PySlice_New(first, last, NULL);
        if (slice != NULL) {
            part = PyObject_GetItem(data, slice);
            Py_DECREF(slice);
        }
    }
    Py_XDECREF(first);
    Py_XDECREF(last);
    return part;
}

static PyObject *split_frames(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data;
    if (!count_is(count, 6, "split_frames"))
        return NULL;
    int64_t at = clamped(args[1]), end = clamped(args[2]);
    int64_t size_min = clamped(args[3]), size_max = clamped(args[4]), count_max = clamped(args[5]);
    if (PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *frames = PyList_New(0);
    if (size_min < 0)
        size_min = 0;
    if (end > data.len)
        end = data.len;
    while (frames != NULL && at >= 0 && at <= end - 4 && PyList_GET_SIZE(frames) < count_max) {
        int64_t size = int32_at((const unsigned char *)data.buf + at);
        if (size < size_min || size > size_max || size > end - at - 4)
            break;
        PyObject *frame = slice_of(args[0], at + 4, at + 4 + size);
        if (frame == NULL || PyList_Append(frames, frame) < 0)
            Py_CLEAR(frames);
        Py_XDECREF(frame);
        at += 4 + size;
    }
    PyBuffer_Release(&data);
    if (frames != NULL && PyList_GET_SIZE(frames) == 0) {
        Py_DECREF(frames);
        Py_RETURN_NONE;
    }
    PyObject *items[] = {frames, PyLong_FromLongLong(at)};
    return tuple_of(items, 2);
}

static PyObject *read_header(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer frame;
    if (!count_is(count, 2, "read_header"))
        return NULL;
    if (!PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "client_id must be bytes");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *at = frame.buf;
    if (frame.len < HEADER_SIZE) {
        PyBuffer_Release(&frame);
        Py_RETURN_NONE;
    }
    int16_t length = int16_at(at + 8);
    long end = -1, following = -1;
    if (length > 0 && length == PyBytes_GET_SIZE(args[1]) && HEADER_SIZE + length <= frame.len &&
        memcmp(at + HEADER_SIZE, PyBytes_AS_STRING(args[1]), (size_t)length) == 0) {
        end = HEADER_SIZE + length;
        following = end < frame.len ? at[end] : -1;
    }
    PyObject *items[] = {
        PyLong_FromLong(int16_at(at)),  PyLong_FromLong(int16_at(at + 2)),
        PyLong_FromLong(int32_at(at + 4)), PyLong_FromLong(length),
        PyLong_FromLong(end), PyLong_FromLong(following),
    };
    PyBuffer_Release(&frame);
    return tuple_of(items, 6);
}

/* Read an unsigned varint of at most four bytes, as lengths of less than 256 MiB are: where it
 * ends, or NULL. */
static const unsigned char *read_length(const unsigned char *at, const unsigned char *end,
                                        uint32_t *length)
{
    *length = 0;
    for (int shift = 0; shift <= 21; shift += 7) {
        if (at >= end)
            return NULL;
        *length |= (uint32_t)(*at & 0x7F) << shift;
        if (*at++ < 128)
            return at;
    }
    return NULL;
}

static PyObject *last_name;

/* The name of a topic: the object of the request before, if that had the same one, since its hash is
 * known. */
static PyObject *name_of(const char *at, Py_ssize_t length)
{
    Py_ssize_t known = -1;
    const char *last = last_name == NULL ? NULL : PyUnicode_AsUTF8AndSize(last_name, &known);
    if (last != NULL && known == length && memcmp(last, at, (size_t)length) == 0)
        return Py_NewRef(last_name);
    PyErr_Clear();
    PyObject *name = PyUnicode_DecodeUTF8(at, length, "replace");
    if (name != NULL)
        Py_XSETREF(last_name, Py_NewRef(name));
    return name;
}

/* Where one topic's fields of a Produce lie; 0 if it has another shape. */
typedef struct {
    Py_ssize_t id, id_length; /* transactional id; -1: null */
    Py_ssize_t topic, topic_length;
    Py_ssize_t records, records_end;
    int32_t acks, timeout_ms, index;
} ProduceShape;

static int find_produce(const unsigned char *at, Py_ssize_t size, Py_ssize_t here, int by_id,
                        ProduceShape *found)
{
    if (here < 0 || here >= size || at[here] > 127)
        return 0;
    found->id = here + 1;
    found->id_length = (Py_ssize_t)at[here] - 1;
    here += 1 + (found->id_length > 0 ? found->id_length : 0);
    if (size - here < 8) /* acks, timeout, count of topics, the topic's first byte */
        return 0;
    found->acks = int16_at(at + here);
    found->timeout_ms = int32_at(at + here + 2);
    if (at[here + 6] != 2)
        return 0;
    here += 7;
    if (by_id) {
        found->topic_length = 16;
    } else {
        if (at[here] == 0 || at[here] > 127)
            return 0;
        found->topic_length = (Py_ssize_t)at[here] - 1;
        here++;
    }
    found->topic = here;
    here += found->topic_length;
    if (size - here < 6 || at[here] != 2) /* count of partitions, index, length */
        return 0;
    found->index = int32_at(at + here + 1);
    uint32_t length;
    const unsigned char *records = read_length(at + here + 5, at + size, &length);
    if (records == NULL)
        return 0;
    here = records - at;
    if (length == 0 || size - here < (Py_ssize_t)length - 1 + 3)
        return 0;
    found->records = here;
    here += (Py_ssize_t)length - 1;
    found->records_end = here;
    /* No tagged fields of the partition, of the topic, of the body. */
    return at[here] == 0 && at[here + 1] == 0 && at[here + 2] == 0;
}

static PyObject *produce_topic(const char *at, const ProduceShape *found, int by_id)
{
    if (by_id)
        return PyBytes_FromStringAndSize(at + found->topic, found->topic_length);
    return name_of(at + found->topic, found->topic_length);
}

/* Whether records are one whole batch of format 2, as far as its length and magic say. */
static int are_one_batch(const unsigned char *at, Py_ssize_t size)
{
    return size >= BATCH_HEADER_SIZE && (int64_t)int32_at(at + 8) + LOG_OVERHEAD == size &&
           at[16] == 2;
}

/* Find a Produce in a function's arguments (data, position, by_id): whether it has the usual shape;
 * -1: an exception. Else `data` is held, and is to be released. */
static int open_produce(PyObject *const *args, Py_ssize_t count, const char *name, Py_buffer *data,
                        int *by_id, ProduceShape *found)
{
    if (!count_is(count, 3, name))
        return -1;
    Py_ssize_t position = PyLong_AsSsize_t(args[1]);
    *by_id = PyObject_IsTrue(args[2]);
    if ((position == -1 && PyErr_Occurred()) || *by_id < 0 ||
        PyObject_GetBuffer(args[0], data, PyBUF_SIMPLE) < 0)
        return -1;
    return find_produce(data->buf, data->len, position, *by_id, found);
}

static PyObject *read_produce(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data;
    ProduceShape found;
    int by_id, is_found = open_produce(args, count, "read_produce", &data, &by_id, &found);
    if (is_found < 0)
        return NULL;
    const char *at = data.buf;
    if (!is_found) {
        PyBuffer_Release(&data);
        Py_RETURN_NONE;
    }
    PyObject *id;
    if (found.id_length < 0)
        id = Py_NewRef(Py_None);
    else
        id = PyUnicode_DecodeUTF8(at + found.id, found.id_length, "replace");
    PyObject *items[] = {
        id,
        PyLong_FromLong(found.acks),
        PyLong_FromLong(found.timeout_ms),
        produce_topic(at, &found, by_id),
        PyLong_FromLong(found.index),
        slice_of(args[0], found.records, found.records_end),
    };
    PyBuffer_Release(&data);
    return tuple_of(items, 6);
}

static PyObject *read_plain_produce(PyObject *Py_UNUSED(self), PyObject *const *args,
                                    Py_ssize_t count)
{
    Py_buffer data;
    ProduceShape found;
    int by_id, is_found = open_produce(args, count, "read_plain_produce", &data, &by_id, &found);
    if (is_found < 0)
        return NULL;
    const unsigned char *at = data.buf;
    if (!is_found || found.id_length >= 0 ||
        !are_one_batch(at + found.records, found.records_end - found.records) ||
        (at[found.records + ATTRIBUTES_AT] & TRANSACTIONAL)) {
        PyBuffer_Release(&data);
        Py_RETURN_NONE;
    }
    PyObject *items[] = {
        PyLong_FromLong(found.acks),
        PyLong_FromLong(found.timeout_ms),
        produce_topic(data.buf, &found, by_id),
        PyLong_FromLong(found.index),
        slice_of(args[0], found.records, found.records_end),
    };
    PyBuffer_Release(&data);
    return tuple_of(items, 5);
}

/* Where one topic's fields of a Fetch lie. */
typedef struct {
    const unsigned char *head, *partition; /* from `max_wait_ms`; NULL: no topic */
    const char *topic, *rack;
    Py_ssize_t topic_length, rack_length;
    int32_t replica_id;
    int64_t replica_epoch;
} FetchShape;

static int find_fetch(const unsigned char *at, const unsigned char *end, int64_t version,
                      FetchShape *found)
{
    found->replica_id = -1;
    found->replica_epoch = -1;
    if (end - at < (version < REPLICA_TAG_FROM_VERSION ? 29 : 25))
        return 0;
    if (version < REPLICA_TAG_FROM_VERSION) {
        found->replica_id = int32_at(at);
        at += 4;
    }
    found->head = at;
    at += 21;
    found->partition = NULL;
    if (*at == 2) {
        at++;
        if (version >= TOPIC_ID_FROM_VERSION) {
            found->topic_length = 16;
        } else {
            if (*at == 0 || *at > 127)
                return 0;
            found->topic_length = (Py_ssize_t)*at++ - 1;
        }
        found->topic = (const char *)at;
        if (end - at < found->topic_length + 35 || at[found->topic_length] != 2)
            return 0;
        at += found->topic_length + 1;
        found->partition = at;
        at += 32;
        if (at[0] != 0 || at[1] != 0) /* tags of the partition, of the topic */
            return 0;
        at += 2;
    } else if (*at++ != 1) {
        return 0;
    }
    if (end - at < 3 || at[0] != 1) /* topics that are forgotten, then the rack */
        return 0;
    if (at[1] == 0 || at[1] > 127 || end - at < at[1] + 2)
        return 0;
    found->rack = (const char *)at + 2;
    found->rack_length = (Py_ssize_t)at[1] - 1;
    at += 2 + found->rack_length;
    if (*at == 0)
        return 1;
    if (version < REPLICA_TAG_FROM_VERSION || end - at < 16 || memcmp(at, "\1\1\x0d", 3) != 0 ||
        at[15] != 0)
        return 0;
    found->replica_id = int32_at(at + 3);
    found->replica_epoch = int64_at(at + 7);
    return 1;
}

static PyObject *read_fetch(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data;
    FetchShape found = {0};
    if (!count_is(count, 3, "read_fetch"))
        return NULL;
    Py_ssize_t position = PyLong_AsSsize_t(args[1]);
    int64_t version = clamped(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *at = data.buf;
    if (position < 0 || position > data.len ||
        !find_fetch(at + position, at + data.len, version, &found)) {
        PyBuffer_Release(&data);
        Py_RETURN_NONE;
    }
    const unsigned char *head = found.head, *one = found.partition;
    PyObject *topic;
    if (one == NULL)
        topic = Py_NewRef(Py_None);
    else if (version >= TOPIC_ID_FROM_VERSION)
        topic = PyBytes_FromStringAndSize(found.topic, found.topic_length);
    else
        topic = name_of(found.topic, found.topic_length);
    PyObject *items[] = {
        PyLong_FromLong(found.replica_id),
        PyLong_FromLongLong(found.replica_epoch),
        PyLong_FromLong(int32_at(head)),
        PyLong_FromLong(int32_at(head + 4)),
        PyLong_FromLong(int32_at(head + 8)),
        PyLong_FromLong((signed char)head[12]),
        PyLong_FromLong(int32_at(head + 13)),
        PyLong_FromLong(int32_at(head + 17)),
        PyUnicode_DecodeUTF8(found.rack, found.rack_length, "replace"),
        topic,
        PyLong_FromLong(one == NULL ? -1 : int32_at(one)),
        PyLong_FromLong(one == NULL ? -1 : int32_at(one + 4)),
        PyLong_FromLongLong(one == NULL ? -1 : int64_at(one + 8)),
        PyLong_FromLong(one == NULL ? -1 : int32_at(one + 16)),
        PyLong_FromLongLong(one == NULL ? -1 : int64_at(one + 20)),
        PyLong_FromLong(one == NULL ? -1 : int32_at(one + 28)),
    };
    PyBuffer_Release(&data);
    return tuple_of(items, 16);
}

static PyObject *read_fetched(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data;
    if (!count_is(count, 1, "read_fetched"))
        return NULL;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *at = data.buf, *end = at + data.len;
    const unsigned char *one = at + 28, *records = NULL;
    uint32_t length = 0;
    /* Head, one topic, its id, one partition with no aborted transaction and no preferred replica. */
    if (data.len >= 64 && at[10] == 2 && at[27] == 2 && one[30] <= 1)
        records = read_length(one + 35, end, &length);
    Py_ssize_t size = length > 0 ? (Py_ssize_t)length - 1 : 0;
    if (records == NULL || end - records < size + 2 || records[size] != 0 ||
        records[size + 1] != 0) {
        PyBuffer_Release(&data);
        Py_RETURN_NONE;
    }
    Py_ssize_t begin = records - at;
    PyObject *items[] = {
        PyLong_FromLong(int32_at(at)),
        PyLong_FromLong(int16_at(at + 4)),
        PyLong_FromLong(int32_at(at + 6)),
        PyBytes_FromStringAndSize((const char *)at + 11, 16),
        PyLong_FromLong(int32_at(one)),
        PyLong_FromLong(int16_at(one + 4)),
        PyLong_FromLongLong(int64_at(one + 6)),
        PyLong_FromLongLong(int64_at(one + 22)),
        slice_of(args[0], begin, begin + size),
    };
    PyBuffer_Release(&data);
    return tuple_of(items, 9);
}

static PyObject *is_one_batch(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer records;
    if (!count_is(count, 2, "is_one_batch"))
        return NULL;
    int64_t version = clamped(args[1]);
    if (version == -1 && PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(args[0], &records, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *at = records.buf;
    int is_one = are_one_batch(at, records.len) &&
                 (version >= ZSTD_FROM_VERSION || (at[ATTRIBUTES_AT] & CODEC_MASK) != ZSTD);
    PyBuffer_Release(&records);
    return PyBool_FromLong(is_one);
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_of(const unsigned char *at, size_t size)
{
    uint64_t sum = 0xFFFFFFFFu;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    uint32_t rest = (uint32_t)sum;
    for (; size > 0; at++, size--)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

static int has_crc_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t crc_of(const unsigned char *Py_UNUSED(at), size_t Py_UNUSED(size))
{
    return 0;
}

static int has_crc_instruction(void)
{
    return 0;
}
#endif

/* Whether the sum of a batch is what its header says; -1: an exception. */
static int sum_is_right(PyObject *records, const Py_buffer *view)
{
    const unsigned char *at = view->buf;
    uint32_t said = uint32_at(at + 17);
    if (view->len <= QUICK_CRC_MAX && has_crc_instruction())
        return crc_of(at + CRC_START, (size_t)view->len - CRC_START) == said;
    PyObject *part = slice_of(records, CRC_START, view->len);
    if (part == NULL)
        return -1;
    PyObject *sum = PyObject_CallOneArg(crc32c, part);
    Py_DECREF(part);
    if (sum == NULL)
        return -1;
    unsigned long value = PyLong_AsUnsignedLong(sum);
    Py_DECREF(sum);
    if (value == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    return value == said;
}

static PyObject *plain_batch(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer records;
    if (!count_is(count, 4, "plain_batch"))
        return NULL;
    int64_t size_max = clamped(args[1]), earliest = clamped(args[2]), latest = clamped(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(args[0], &records, PyBUF_SIMPLE) < 0)
        return NULL;
    const unsigned char *at = records.buf;
    if (records.len < BATCH_HEADER_SIZE || records.len > size_max) {
        PyBuffer_Release(&records);
        Py_RETURN_NONE;
    }
    int32_t length = int32_at(at + 8), delta = int32_at(at + 23), sequence = int32_at(at + 53);
    int32_t records_count = int32_at(at + 57);
    int16_t attributes = int16_at(at + 21);
    int64_t base_offset = int64_at(at), base_timestamp = int64_at(at + 27);
    int64_t max_timestamp = int64_at(at + 35), producer_id = int64_at(at + 43);
    int is_plain = (int64_t)length + LOG_OVERHEAD == records.len && at[16] == 2 &&
                   (attributes & CODEC_MASK) <= CODEC_LAST && base_offset == 0 &&
                   records_count > 0 && records_count == (int64_t)delta + 1 &&
                   !(attributes & NOT_A_CLIENTS) && !(producer_id >= 0 && sequence < 0) &&
                   max_timestamp <= latest && (base_timestamp >= earliest || base_timestamp == -1);
    if (is_plain)
        is_plain = sum_is_right(args[0], &records);
    if (is_plain <= 0) {
        PyBuffer_Release(&records);
        if (is_plain < 0)
            return NULL;
        Py_RETURN_NONE;
    }
    PyObject *items[] = {
        PyLong_FromLongLong(base_offset),
        PyLong_FromLong(length),
        PyLong_FromLong(int32_at(at + 12)),
        PyLong_FromLong(2),
        PyLong_FromUnsignedLong(uint32_at(at + 17)),
        PyLong_FromLong(attributes),
        PyLong_FromLong(delta),
        PyLong_FromLongLong(base_timestamp),
        PyLong_FromLongLong(max_timestamp),
        PyLong_FromLongLong(producer_id),
        PyLong_FromLong(int16_at(at + 51)),
        PyLong_FromLong(sequence),
        PyLong_FromLong(records_count),
    };
    PyBuffer_Release(&records);
    return tuple_of(items, 13);
}

/* A topic as it is written: its id, or its name and before it a compact length of one byte. */
typedef struct {
    const char *at;
    Py_ssize_t length;
    int is_name;
} Topic;

/* 1; 0 for a name that is too long; -1 for an exception. */
static int topic_of(PyObject *topic, Topic *found)
{
    found->is_name = PyUnicode_Check(topic);
    if (found->is_name) {
        found->at = PyUnicode_AsUTF8AndSize(topic, &found->length);
        if (found->at == NULL)
            return -1;
        return found->length < 127;
    }
    if (!PyBytes_Check(topic)) {
        PyErr_SetString(PyExc_TypeError, "topic must be str or bytes");
        return -1;
    }
    found->at = PyBytes_AS_STRING(topic);
    found->length = PyBytes_GET_SIZE(topic);
    return 1;
}

static unsigned char *put_topic(unsigned char *at, const Topic *topic)
{
    if (topic->is_name)
        *at++ = (unsigned char)(topic->length + 1);
    memcpy(at, topic->at, (size_t)topic->length);
    return at + topic->length;
}

static unsigned char *put16(unsigned char *at, uint16_t value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
    return at + 2;
}

/* Numbers for fields of so many bytes: 1; 0 if one does not fit its field; -1 for an exception. */
static int numbers_of(PyObject *const *args, const char *sizes, int64_t *found)
{
    for (; *sizes != '\0'; sizes++, args++, found++) {
        int overflow;
        *found = PyLong_AsLongLongAndOverflow(*args, &overflow);
        if (*found == -1 && PyErr_Occurred())
            return -1;
        if (overflow || (*sizes == '4' && *found != (int32_t)*found) ||
            (*sizes == '2' && *found != (int16_t)*found) || (*sizes == '1' && (*found & ~1)))
            return 0;
    }
    return 1;
}

static PyObject *place_batch(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    Py_buffer records;
    int64_t number[4] = {0};
    if (!count_is(count, 5, "place_batch"))
        return NULL;
    int fits = numbers_of(args + 1, "8844", number);
    if (fits < 0)
        return NULL;
    if (fits == 0) {
        PyErr_SetString(PyExc_OverflowError, "a number does not fit its field");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &records, PyBUF_WRITABLE) < 0)
        return NULL;
    int64_t position = number[0];
    if (position < 0 || position > records.len - PLACE_SIZE) {
        PyBuffer_Release(&records);
        PyErr_SetString(PyExc_ValueError, "there is no batch at the position");
        return NULL;
    }
    unsigned char *at = (unsigned char *)records.buf + position;
    put32(put32(put64(at, (uint64_t)number[1]), (uint32_t)number[2]), (uint32_t)number[3]);
    PyBuffer_Release(&records);
    Py_RETURN_NONE;
}

static PyObject *encode_produced(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (!count_is(count, 7, "encode_produced"))
        return NULL;
    Topic topic;
    int64_t index_to_throttle[6];
    int64_t *number = index_to_throttle;
    int is_usual = topic_of(args[0], &topic);
    if (is_usual > 0)
        is_usual = numbers_of(args + 1, "428884", number);
    if (is_usual < 0)
        return NULL;
    if (is_usual == 0)
        Py_RETURN_NONE;
    PyObject *body = PyBytes_FromStringAndSize(NULL, 1 + topic.is_name + topic.length + 40);
    if (body == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AS_STRING(body);
    *at++ = 2; /* one topic */
    at = put_topic(at, &topic);
    *at++ = 2; /* one partition */
    at = put32(at, (uint32_t)number[0]);
    at = put16(at, (uint16_t)number[1]);
    at = put64(at, (uint64_t)number[2]);
    at = put64(at, (uint64_t)number[3]);
    at = put64(at, (uint64_t)number[4]);
    at = put32(at, 0x01000000); /* no record errors, no message, no tags of partition and topic */
    at = put32(at, (uint32_t)number[5]);
    *at = 0;
    return body;
}

static PyObject *encode_fetched(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (!count_is(count, 12, "encode_fetched"))
        return NULL;
    Topic topic;
    int64_t number[11];
    int is_usual = topic_of(args[0], &topic);
    if (is_usual > 0)
        is_usual = numbers_of(args + 1, "42442888144", number);
    if (is_usual < 0)
        return NULL;
    if (is_usual == 0 || number[10] < 0 || number[10] == INT32_MAX)
        Py_RETURN_NONE;
    uint32_t length = (uint32_t)number[10] + 1; /* compact: one more */
    int length_size = 1;
    for (uint32_t rest = length >> 7; rest > 0; rest >>= 7)
        length_size++;
    Py_ssize_t size = 11 + topic.is_name + topic.length + 36 + length_size + (length == 1 ? 3 : 0);
    PyObject *body = PyBytes_FromStringAndSize(NULL, size);
    if (body == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AS_STRING(body);
    at = put32(at, (uint32_t)number[0]);
    at = put16(at, (uint16_t)number[1]);
    at = put32(at, (uint32_t)number[2]);
    *at++ = 2; /* one topic */
    at = put_topic(at, &topic);
    *at++ = 2; /* one partition */
    at = put32(at, (uint32_t)number[3]);
    at = put16(at, (uint16_t)number[4]);
    at = put64(at, (uint64_t)number[5]);
    at = put64(at, (uint64_t)number[6]);
    at = put64(at, (uint64_t)number[7]);
    *at++ = (unsigned char)number[8]; /* aborted transactions: null, or none */
    at = put32(at, (uint32_t)number[9]);
    for (uint32_t rest = length; at < (unsigned char *)PyBytes_AS_STRING(body) + size; rest >>= 7)
        *at++ = rest > 127 ? (unsigned char)(rest | 0x80) : (unsigned char)rest;
    return body;
}

static PyObject *frame_bytes(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
{
    if (!count_is(count, 4, "frame_bytes"))
        return NULL;
    if (!PyBytes_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "first must be bytes");
        return NULL;
    }
    int64_t number[2] = {0, 0};
    int has_tags = PyObject_IsTrue(args[1]);
    int fits = has_tags < 0 ? -1 : numbers_of(args, "4", number);
    if (fits > 0)
        fits = numbers_of(args + 3, "4", number + 1);
    Py_ssize_t first = PyBytes_GET_SIZE(args[2]);
    int64_t size = 4 + has_tags + first + number[1];
    if (fits == 0 || (fits > 0 && (number[1] < 0 || size != (int32_t)size))) {
        PyErr_SetString(PyExc_OverflowError, "correlation id or size does not fit 32 bits");
        return NULL;
    }
    if (fits < 0)
        return NULL;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, 8 + has_tags + first);
    if (frame == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AS_STRING(frame);
    at = put32(at, (uint32_t)size);
    at = put32(at, (uint32_t)number[0]);
    if (has_tags)
        *at++ = 0;
    memcpy(at, PyBytes_AS_STRING(args[2]), (size_t)first);
    return frame;
}

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION(read_header),     FUNCTION(read_produce),   FUNCTION(read_fetch),
    FUNCTION(read_fetched),    FUNCTION(is_one_batch),   FUNCTION(plain_batch),
    FUNCTION(encode_produced), FUNCTION(encode_fetched), FUNCTION(frame_bytes),
    FUNCTION(split_frames),    FUNCTION(place_batch),    FUNCTION(read_plain_produce),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "protocol.quick", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_quick(void)
{
    PyObject *sums = PyImport_ImportModule("fastcrc.crc32");
    if (sums == NULL)
        return NULL;
    crc32c = PyObject_GetAttrString(sums, "iscsi");
    Py_DECREF(sums);
    return crc32c == NULL ? NULL : PyModule_Create(&definition);
}
