/* The limit of catching up from S3: ranges of objects to files, and from those to one consumer.
 *
 *     relay PORT RANGES_IN_FLIGHT DIRECTORY|- < lines of TARGET POSITION LENGTH
 *
 * What a broker with a chunk cache on disk cannot do without, and nothing else: threads that GET
 * ranges (HTTP/1.1, one connection each, 127.0.0.1) and write each to a new file, one thread that
 * sends the files in their order by sendfile(2), and a process that receives them. No protocol, no
 * index, no checksum, and each file goes as soon as it is open: its place is taken by the next.
 * With - for the directory no file is written: ranges are sent by send(2) from the memory that they
 * were received into, which is used again and again. sendfile(2) of such memory would be wrong, as
 * what is not received yet lies in it still.
 * Prints bytes a second, and CPU seconds a byte of the threads and of the receiving process. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_MAX = 16, RANGES_MAX = 16384, TARGET_MAX = 1400, HEAD_MAX = 16384, TAKE = 1 << 20 };

static struct range {
    char target[TARGET_MAX];
    int64_t position;
    size_t length;
    int file, is_there;
    char *body;
} *ranges;
static size_t range_count, begun, sent;
static const char *directory; /* NULL: in memory */
static char *places[AHEAD_MAX];
static struct sockaddr_in server = {.sin_family = AF_INET};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int connected(const struct sockaddr_in *to)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (connect(descriptor, (const struct sockaddr *)to, sizeof *to))
        fail("connect");
    return descriptor;
}

/* The next range, once it is near enough to what is being sent; NULL when there is none. */
static struct range *next_range(void)
{
    struct range *found = NULL;
    pthread_mutex_lock(&lock);
    if (begun < range_count) {
        size_t at = begun++;
        while (at >= sent + AHEAD_MAX)
            pthread_cond_wait(&changed, &lock);
        found = &ranges[at];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static char *get(int descriptor, const struct range *wanted, char *memory)
{
    char *body = NULL;
    size_t filled = 0, end = HEAD_MAX;
    int size = snprintf(memory, HEAD_MAX,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nRange: bytes=%lld-%lld\r\n\r\n",
                        wanted->target, ntohs(server.sin_port), (long long)wanted->position,
                        (long long)wanted->position + (long long)wanted->length - 1);
    if (send(descriptor, memory, (size_t)size, MSG_NOSIGNAL) != size)
        fail("send");
    while (filled < end) {
        ssize_t count = recv(descriptor, memory + filled, end - filled, 0);
        if (count <= 0)
            fail("recv");
        filled += (size_t)count;
        if (!body && (body = memmem(memory, filled, "\r\n\r\n", 4))) {
            const char *length;
            *body = 0;
            length = strcasestr(memory, "\r\nContent-Length:");
            if (memcmp(memory, "HTTP/1.1 206", 12) || !length ||
                strtoull(length + 17, NULL, 10) != wanted->length) {
                fprintf(stderr, "%.*s\n", (int)(body - memory), memory);
                exit(1);
            }
            body += 4;
            end = (size_t)(body - memory) + wanted->length;
        }
    }
    return body;
}

static int kept(size_t number, const char *body, size_t length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%zu", directory, number);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || write(file, body, length) != (ssize_t)length || unlink(path))
        fail(path);
    return file;
}

static void *fetch(void *longest)
{
    char *memory = malloc(HEAD_MAX + *(size_t *)longest);
    int descriptor = connected(&server);
    for (struct range *one; (one = next_range());) {
        size_t at = (size_t)(one - ranges);
        char *body = get(descriptor, one, directory ? memory : places[at % AHEAD_MAX]);
        int file = directory ? kept(at, body, one->length) : -1;
        pthread_mutex_lock(&lock);
        one->file = file;
        one->body = body;
        one->is_there = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* A process that takes what comes on a connection; the other end of it. */
static int consumer(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int unsent = 128 * 1024; /* broker/network/stream.py says why */
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1))
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    if (!fork()) {
        char *memory = malloc(TAKE);
        int descriptor = connected(&address);
        while (recv(descriptor, memory, TAKE, 0) > 0)
            continue;
        exit(0);
    }
    int descriptor = accept(listener, NULL, NULL);
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return descriptor;
}

static void send_range(int descriptor, struct range *one)
{
    off_t position = 0;
    pthread_mutex_lock(&lock);
    while (!one->is_there)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (directory) {
        while ((size_t)position < one->length)
            if (sendfile(descriptor, one->file, &position, one->length - (size_t)position) <= 0)
                fail("sendfile");
        close(one->file);
    } else if (send(descriptor, one->body, one->length, MSG_NOSIGNAL) != (ssize_t)one->length)
        fail("send");
    pthread_mutex_lock(&lock);
    sent++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_s(int whose)
{
    struct rusage used;
    getrusage(whose, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    size_t longest = 0;
    double total = 0;
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons((uint16_t)atoi(arguments[1]));
    directory = strcmp(arguments[3], "-") ? arguments[3] : NULL;
    ranges = calloc(RANGES_MAX, sizeof *ranges);
    for (struct range *to = ranges; range_count < RANGES_MAX; to++, range_count++) {
        long long position;
        if (scanf("%1399s %lld %zu", to->target, &position, &to->length) != 3)
            break;
        to->position = position;
        total += (double)to->length;
        longest = to->length > longest ? to->length : longest;
    }
    for (size_t at = 0; at < AHEAD_MAX; at++)
        places[at] = malloc(HEAD_MAX + longest);
    int descriptor = consumer();
    double began_s = now_s();
    for (int thread = 0; thread < atoi(arguments[2]); thread++) {
        pthread_t made;
        if (pthread_create(&made, NULL, fetch, &longest))
            fail("pthread_create");
    }
    for (size_t at = 0; at < range_count; at++)
        send_range(descriptor, &ranges[at]);
    close(descriptor);
    wait(NULL);
    printf("%.0f %.3e %.3e\n", total / (now_s() - began_s), cpu_s(RUSAGE_SELF) / total,
           cpu_s(RUSAGE_CHILDREN) / total);
    return 0;
}
