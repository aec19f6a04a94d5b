/* The limit of hot consumers: answers to Fetch v12 by one thread that does nothing else.
 *
 *     limit TOPIC BATCH_BYTES BATCH_RECORDS SEGMENT...     prints its port, ends with its input
 *
 * The segments hold batches of one size, so an offset becomes a position by division: no index, no
 * header of a batch, no look into the page cache. What is left is what any broker's answer costs
 * the kernel: a head, a slice by sendfile(2), and the three bytes behind it. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1024, SEGMENTS_MAX = 64, REQUEST_MAX = 512, NAME_MAX_BYTES = 100 };
enum { OFFSET_AT = 29, MAX_BYTES_AT = 9 }; /* from the end of a request: bench/wire.py */

static struct connection {
    char request[REQUEST_MAX], head[NAME_MAX_BYTES + 128];
    size_t received, head_size, head_sent, left, tail_left;
    off_t position;
    int file;
} connections[CONNECTIONS_MAX];

static struct { int file; int64_t size; } segments[SEGMENTS_MAX];
static size_t segment_count, name_size;
static int64_t batch_bytes, batch_records;
static const char *name;
static int poller;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *put(char *to, uint64_t value, int bytes)
{
    for (int shift = bytes * 8 - 8; shift >= 0; shift -= 8)
        *to++ = (char)(value >> shift);
    return to;
}

static int64_t get(const char *from, int bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | (uint8_t)*from++;
    return (int64_t)value;
}

/* A whole request has come: the head of its answer, and which bytes of which file. */
static void begin_answer(struct connection *c)
{
    const char *end = c->request + c->received;
    int64_t position = get(end - OFFSET_AT, 8) / batch_records * batch_bytes, length = 0;
    int64_t most = get(end - MAX_BYTES_AT, 4) / batch_bytes * batch_bytes;
    for (size_t at = 0; at < segment_count; position -= segments[at++].size) {
        if (position >= segments[at].size)
            continue;
        length = segments[at].size - position;
        c->file = segments[at].file;
        c->position = position;
        break;
    }
    if (length > most)
        length = most;
    memcpy(c->head + 4, c->request + 8, 4); /* correlation id */
    char *to = put(c->head + 8, 0, 11);     /* no tags, throttle time, error, session */
    to = put(put(to, 2, 1), name_size + 1, 1);
    memcpy(to, name, name_size);
    to = put(put(to + name_size, 2, 1), 0, 6);            /* partition 0, no error */
    to = put(put(to, INT64_MAX, 8), INT64_MAX, 8);        /* high watermark, last stable offset */
    to = put(put(put(to, 0, 8), 0, 1), UINT32_MAX, 4);    /* log start; no other replica */
    uint64_t rest = (uint64_t)length + 1;
    for (; rest > 0x7f; rest >>= 7)
        *to++ = (char)(rest | 0x80);
    *to++ = (char)rest;
    c->left = (size_t)length;
    c->tail_left = 3; /* no tags, three times */
    c->head_size = (size_t)(to - c->head);
    c->received = c->head_sent = 0;
    put(c->head, c->head_size - 4 + c->left + c->tail_left, 4);
}

/* Send as much as the socket takes; false when the peer has gone. */
static int go_on(int descriptor, struct connection *c)
{
    ssize_t sent = 1;
    while (sent > 0 && c->tail_left) {
        if (c->head_sent < c->head_size) {
            const char *from = c->head + c->head_sent;
            sent = send(descriptor, from, c->head_size - c->head_sent, MSG_MORE | MSG_NOSIGNAL);
            c->head_sent += sent > 0 ? (size_t)sent : 0;
        } else if (c->left) {
            sent = sendfile(descriptor, c->file, &c->position, c->left);
            c->left -= sent > 0 ? (size_t)sent : 0;
        } else {
            sent = send(descriptor, "\0\0\0", c->tail_left, MSG_NOSIGNAL);
            c->tail_left -= sent > 0 ? (size_t)sent : 0;
        }
    }
    return sent > 0 || (sent < 0 && errno == EAGAIN);
}

static void watch(int operation, int descriptor, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.fd = descriptor};
    if (epoll_ctl(poller, operation, descriptor, &wanted))
        fail("epoll_ctl");
}

static void serve(int descriptor, uint32_t events)
{
    struct connection *c = &connections[descriptor];
    if (!c->tail_left) {
        size_t room = sizeof c->request - c->received;
        ssize_t count = recv(descriptor, c->request + c->received, room, 0);
        if (count <= 0) {
            close(descriptor);
            return;
        }
        c->received += (size_t)count;
        if (c->received < 4 || (int64_t)c->received < 4 + get(c->request, 4))
            return;
        begin_answer(c);
    }
    if (!go_on(descriptor, c)) {
        close(descriptor);
        return;
    }
    uint32_t wanted = c->tail_left ? EPOLLOUT : EPOLLIN;
    if (!(events & wanted))
        watch(EPOLL_CTL_MOD, descriptor, wanted);
}

static void begin_connection(int listener)
{
    int one = 1, unsent = 128 * 1024; /* broker/network/stream.py says why */
    int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (descriptor < 0 || descriptor >= CONNECTIONS_MAX)
        fail("accept");
    memset(&connections[descriptor], 0, sizeof connections[descriptor]);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    watch(EPOLL_CTL_ADD, descriptor, EPOLLIN);
}

int main(int count, char **arguments)
{
    if (count < 5 || count - 4 > SEGMENTS_MAX || strlen(arguments[1]) > NAME_MAX_BYTES)
        return 2;
    name = arguments[1];
    name_size = strlen(name);
    batch_bytes = atoll(arguments[2]);
    batch_records = atoll(arguments[3]);
    for (; segment_count < (size_t)count - 4; segment_count++) {
        const char *path = arguments[4 + segment_count];
        struct stat found;
        int file = open(path, O_RDONLY);
        if (file < 0 || fstat(file, &found))
            fail(path);
        segments[segment_count].file = file;
        segments[segment_count].size = found.st_size / batch_bytes * batch_bytes;
    }
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    poller = epoll_create1(0);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN);
    for (;;) {
        struct epoll_event ready[64];
        int found = epoll_wait(poller, ready, 64, -1);
        for (int at = 0; at < found; at++) {
            if (ready[at].data.fd == STDIN_FILENO)
                return 0;
            if (ready[at].data.fd == listener)
                begin_connection(listener);
            else
                serve(ready[at].data.fd, ready[at].events);
        }
    }
}
