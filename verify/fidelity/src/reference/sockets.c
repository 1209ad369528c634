/* Plain loops over sockets: two processes, each pinned to its own core.
 *
 * usage: sockets stream|ping|connect tcp|mptcp|unix BYTES WINDOW MILLISECONDS [STREAMS]
 *
 * Prints one line of JSON: the nanoseconds of each iteration. An iteration is a window of messages and a receipt of one byte,
 * or one message in each direction. With several streams, message i of a window goes over stream i modulo their number.
 * An iteration of connect is a connection, a message in each direction over it, and its abortive close. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 20, FEWEST = 30, MOST_STREAMS = 128, COOKIE = 8, MPTCP = 262 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin(int which)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && which-- == 0)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void give(int end, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(end, from, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            exit(0);
        from += sent, bytes -= sent;
    }
}

static void take(int end, char *into, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = recv(end, into, bytes, 0);
        if (got <= 0)
            exit(0);
        into += got, bytes -= got;
    }
}

static void print(const long long *took, long samples)
{
    printf("{\"elapsed_ns\":[");
    for (long i = 0; i < samples; i++)
        printf("%s%lld", i ? "," : "", took[i]);
    printf("]}\n");
}

/* Both ends of a connection over loopback. */
static void connect_internet(int ends[2], int protocol)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, protocol), on = 1;
    ends[0] = socket(AF_INET, SOCK_STREAM, protocol);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(ends[0], (struct sockaddr *)&address, length) || (ends[1] = accept(listener, NULL, NULL)) < 0)
        fail("connect");
    for (int i = 0; i < 2; i++)
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
}

/* Sends or receives a window that is divided over streams. Each stream in turn does as much as the kernel takes at once. */
static void divided(int sends, const int *streams, int count, char *buffer, size_t bytes, int window)
{
    struct { int message; size_t byte; } at[MOST_STREAMS];
    for (int s = 0; s < count; s++)
        at[s].message = s, at[s].byte = 0;
    for (;;) {
        int proceeds = 0, complete = 1;
        for (int s = 0; s < count; s++) {
            if (at[s].message >= window)
                continue;
            char *here = buffer + at[s].message * bytes + at[s].byte;
            ssize_t moved = sends ? send(streams[s], here, bytes - at[s].byte, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : recv(streams[s], here, bytes - at[s].byte, MSG_DONTWAIT);
            if (moved > 0) {
                proceeds = 1;
                if ((at[s].byte += moved) == bytes)
                    at[s].message += count, at[s].byte = 0;
            } else if (moved == 0 || (errno != EAGAIN && errno != EINTR))
                exit(0);
            complete &= at[s].message >= window;
        }
        if (complete)
            return;
        if (proceeds)
            continue;
        struct pollfd all[MOST_STREAMS];
        for (int s = 0; s < count; s++)
            all[s] = (struct pollfd){ streams[s], at[s].message >= window ? 0 : sends ? POLLOUT : POLLIN, 0 };
        poll(all, count, -1);
    }
}

/* Times connections, or accepts them: each is opened, carries a message in each direction, and is closed with a reset. */
static int measure_connections(size_t bytes, long long limit)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 128) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        fail("listen");
    char *buffer = malloc(COOKIE + bytes);
    memset(buffer, 1, COOKIE + bytes);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    pin(child == 0);
    for (; child == 0;) {
        int end = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        take(end, buffer, COOKIE + bytes);
        give(end, buffer, bytes);
        close(end);
    }
    struct linger reset = { 1, 0 };
    long long *took = malloc(MOST * sizeof *took), start = now();
    memset(took, 255, MOST * sizeof *took);
    long done = -FEWEST;
    for (long long before = now(); done < FEWEST || (done < MOST && before - start < limit); done++) {
        int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
        setsockopt(end, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (connect(end, (struct sockaddr *)&address, length))
            fail("connect");
        give(end, buffer, COOKIE + bytes);
        take(end, buffer, bytes);
        close(end);
        long long after = now();
        if (done >= 0)
            took[done] = after - before;
        else
            start = after;
        before = after;
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    print(took, done);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 7) {
        fprintf(stderr, "usage: %s stream|ping|connect tcp|mptcp|unix BYTES WINDOW MILLISECONDS [STREAMS]\n", argv[0]);
        return 2;
    }
    int pings = strcmp(argv[1], "ping") == 0, window = atoi(argv[4]), ends[2];
    int streams = argc == 7 ? atoi(argv[6]) : 1, all[2][MOST_STREAMS];
    size_t bytes = atol(argv[3]);
    long long limit = atoll(argv[5]) * 1000000;
    if (strcmp(argv[1], "connect") == 0)
        return measure_connections(bytes, limit);
    for (int s = 0; s < streams && s < MOST_STREAMS; s++) {
        if (strcmp(argv[2], "tcp") == 0)
            connect_internet(ends, IPPROTO_TCP);
        else if (strcmp(argv[2], "mptcp") == 0)
            connect_internet(ends, MPTCP);
        else if (strcmp(argv[2], "unix") != 0)
            return fprintf(stderr, "%s has no C loop: add it to verify/fidelity/src/reference/sockets.c\n", argv[2]), 2;
        else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            fail("socketpair");
        all[0][s] = ends[0], all[1][s] = ends[1];
    }
    /* As in ombx, each message of a window has its own buffer. */
    char *buffer = malloc(bytes * window), receipt = 1;
    memset(buffer, 1, bytes * window);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    int *own = all[child == 0], end = own[0];
    for (int s = 0; s < streams; s++)
        close(all[child != 0][s]);
    pin(child == 0);
    for (; child == 0;) {
        if (streams > 1)
            divided(0, own, streams, buffer, bytes, window);
        for (int w = 0; w < window && streams == 1; w++)
            take(end, buffer + w * bytes, bytes);
        pings ? give(end, buffer, bytes) : give(end, &receipt, 1);
    }
    long long *took = malloc(MOST * sizeof *took), start = now();
    memset(took, 255, MOST * sizeof *took);
    long done = -FEWEST;
    for (long long before = now(); done < FEWEST || (done < MOST && before - start < limit); done++) {
        if (streams > 1)
            divided(1, own, streams, buffer, bytes, window);
        for (int w = 0; w < window && streams == 1; w++)
            give(end, buffer + w * bytes, bytes);
        pings ? take(end, buffer, bytes) : take(end, &receipt, 1);
        long long after = now();
        if (done >= 0)
            took[done] = after - before;
        else
            start = after;
        before = after;
    }
    close(end);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    print(took, done);
    return 0;
}
