/* Plain loops over sockets: two processes, each pinned to its own core.
 *
 * usage: sockets stream|ping tcp|unix BYTES WINDOW MILLISECONDS
 *
 * Prints one line of JSON: the nanoseconds of each iteration. An iteration is a window of messages and a receipt of one byte,
 * or one message in each direction. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 20, FEWEST = 30 };

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
        ssize_t got = recv(end, into, bytes, MSG_WAITALL);
        if (got <= 0)
            exit(0);
        into += got, bytes -= got;
    }
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

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s stream|ping tcp|unix BYTES WINDOW MILLISECONDS\n", argv[0]);
        return 2;
    }
    int pings = strcmp(argv[1], "ping") == 0, window = atoi(argv[4]), ends[2];
    size_t bytes = atol(argv[3]);
    long long limit = atoll(argv[5]) * 1000000;
    if (strcmp(argv[2], "tcp") == 0)
        connect_internet(ends, IPPROTO_TCP);
    else if (strcmp(argv[2], "unix") != 0)
        return fprintf(stderr, "%s has no C loop: add it to verify/fidelity/src/reference/sockets.c\n", argv[2]), 2;
    else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        fail("socketpair");
    /* As in ombx, each message of a window has its own buffer. */
    char *buffer = malloc(bytes * window), receipt = 1;
    memset(buffer, 1, bytes * window);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    int end = ends[child == 0];
    close(ends[child != 0]);
    pin(child == 0);
    for (; child == 0;) {
        for (int w = 0; w < window; w++)
            take(end, buffer + w * bytes, bytes);
        pings ? give(end, buffer, bytes) : give(end, &receipt, 1);
    }
    long long *took = malloc(MOST * sizeof *took), start = now();
    memset(took, 255, MOST * sizeof *took);
    long done = -FEWEST;
    for (long long before = now(); done < FEWEST || (done < MOST && before - start < limit); done++) {
        for (int w = 0; w < window; w++)
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
    printf("{\"elapsed_ns\":[");
    for (long i = 0; i < done; i++)
        printf("%s%lld", i ? "," : "", took[i]);
    printf("]}\n");
    return 0;
}
