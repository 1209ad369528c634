/* Common part of the plain C loops: buffers of a row, the timed loops, and the driver that runs the rows in order.
 *
 * usage: mpiexec -n 2 PROGRAM [--threads] NAME:BYTES:DEPTH:BATCH:SAMPLES:WARMUP ...
 *        PROGRAM --list prints the names.
 *
 * Rank 0 prints one line of JSON for each row: the nanoseconds of each sample, of the slowest rank if all ranks are timed. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

enum { PAGE = 4096, LINE = 64, TAG = 1 };

/* Copied into locals by each loop, so that the compiler may keep them in registers. */
struct setup {
    char *out, *in, *compare;
    int bytes, depth, stride, rank, peer, ranks;
    MPI_Comm comm;
    MPI_Win win;
    MPI_Group partner;
    MPI_Datatype kind;
    int *counts, *starts;
    MPI_Aint *offsets;
    MPI_Datatype *kinds;
    MPI_Request *requests;
};

typedef void loop(const struct setup *setup, long batch, long samples, long long *stamps);

/* Way of taking samples. */
enum {
    PACED = 1,   /* each sample starts after a barrier and has two time stamps */
    TURNS = 2,   /* each sample has two time stamps, and two more that are not reported */
    EVERYONE = 4,/* every rank is timed; the slowest counts */
    HELD = 8,    /* the origin holds a lock around all iterations */
    FORKED = 16, /* ranks fork a child */
    THREADED = 32
};

struct row {
    const char *name;
    loop *origin, *target;
    int flags;
    void (*open)(struct setup *setup);
    void (*close)(struct setup *setup);
};

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Raw time in ticks: the TSC if there is one. */
static inline long long tick(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return (long long)__rdtsc();
#else
    return now();
#endif
}

#define LOOP(NAME) static __attribute__((noinline)) void NAME(const struct setup *setup, long batch, long samples, long long *stamps)

/* Chained time stamps: the end of a sample is the start of the next. */
#define CHAINED(NAME, BEFORE, ACTIVE)                  \
    LOOP(fidelity_##NAME)                              \
    {                                                  \
        const struct setup s = *setup;                 \
        BEFORE;                                        \
        *stamps = tick();                              \
        for (long i = 1; i <= samples; i++) {          \
            for (long k = 0; k < batch; k++) {         \
                ACTIVE;                                \
            }                                          \
            stamps[i] = tick();                        \
        }                                              \
    }

/* The same iterations without time stamps. */
#define ANSWERED(NAME, BEFORE, PASSIVE)                \
    LOOP(answer_##NAME)                                \
    {                                                  \
        const struct setup s = *setup;                 \
        (void)stamps;                                  \
        BEFORE;                                        \
        for (long i = 0; i < batch * samples; i++) {   \
            PASSIVE;                                   \
        }                                              \
    }

/* A barrier before each sample, and a time stamp at both ends. */
#define AFTER(PACE, NAME, BEFORE, ACTIVE)              \
    LOOP(fidelity_##NAME)                              \
    {                                                  \
        const struct setup s = *setup;                 \
        BEFORE;                                        \
        for (long i = 0; i < samples; i++) {           \
            PACE;                                      \
            stamps[2 * i] = tick();                    \
            for (long k = 0; k < batch; k++) {         \
                ACTIVE;                                \
            }                                          \
            stamps[2 * i + 1] = tick();                \
        }                                              \
    }

/* Passive target: continues to the next barrier. */
__attribute__((unused)) LOOP(nothing)
{
    (void)setup, (void)batch, (void)samples, (void)stamps;
}

static void *allocated(size_t bytes)
{
    void *start = NULL;
    if (posix_memalign(&start, PAGE, bytes ? bytes : 1) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memset(start, 0, bytes ? bytes : 1);
}

/* Loop and arguments of a thread. */
struct job {
    loop *run;
    const struct setup *setup;
    long batch, samples;
    long long *stamps;
};

/* Function that callgrind profiles. */
static __attribute__((noinline)) void fidelity_timed(const struct job *job)
{
    job->run(job->setup, job->batch, job->samples, job->stamps);
    /* Prevents a tail call, which would be a jump. */
    __asm__ volatile("" ::: "memory");
}

static void *work(void *argument)
{
    fidelity_timed(argument);
    return NULL;
}

static void run(const struct row *row, const struct setup *s, long batch, long samples, long long *stamps)
{
    struct job job = { s->rank == 0 || row->flags & EVERYONE ? row->origin : row->target, s, batch, samples, stamps };
    MPI_Barrier(s->comm);
    if (row->flags & THREADED) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &job);
        pthread_join(thread, NULL);
    } else {
        work(&job);
    }
    MPI_Barrier(s->comm);
}

/* Runs one row and returns the ticks of its samples on rank 0. */
static long long *measure(const struct row *row, struct setup s, long batch, long samples, long warmup)
{
    s.stride = (s.bytes + LINE - 1) / LINE * LINE;
    s.stride = s.stride ? s.stride : LINE;
    /* Size of the largest use: a block per rank and neighbour, or a window of messages. */
    size_t size = (size_t)s.stride * (s.depth > 4 ? s.depth : 4);
    s.out = allocated(size), s.in = allocated(size), s.compare = allocated(size);
    if (row->open)
        row->open(&s);
    pid_t child = row->flags & FORKED ? fork() : 1;
    if (child == 0)
        for (;;)
            pause();
    int each = row->flags & TURNS ? 4 : row->flags & PACED ? 2 : 1;
    size_t readings = each * (samples > warmup ? samples : warmup) + 1;
    long long *stamps = malloc(readings * sizeof *stamps);
    memset(stamps, 255, readings * sizeof *stamps);
    if (row->flags & HELD && s.rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, s.peer, 0, s.win);
    if (row->flags & PACED)
        run(row, &s, 1, warmup, stamps);
    else
        run(row, &s, warmup, 1, stamps);
    run(row, &s, batch, samples, stamps);
    if (row->flags & HELD && s.rank == 0)
        MPI_Win_unlock(s.peer, s.win);
    long long *took = malloc(samples * sizeof *took);
    for (long i = 0; i < samples; i++)
        took[i] = stamps[each * i + 1] - stamps[each * i];
    if (row->flags & EVERYONE)
        MPI_Reduce(s.rank ? took : MPI_IN_PLACE, took, samples, MPI_LONG_LONG, MPI_MAX, 0, s.comm);
    if (child > 1 && kill(child, SIGKILL) == 0)
        waitpid(child, NULL, 0);
    if (row->close)
        row->close(&s);
    free(stamps), free(s.out), free(s.in), free(s.compare);
    return took;
}

static int serve(int argc, char **argv, const struct row *rows, size_t count)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(rows[i].name);
        return 0;
    }
    int provided, threads = argc > 1 && strcmp(argv[1], "--threads") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
    long long began = now(), first = tick();
    struct setup s = { .kind = MPI_UINT64_T };
    MPI_Comm_dup(MPI_COMM_WORLD, &s.comm);
    MPI_Comm_rank(s.comm, &s.rank);
    MPI_Comm_size(s.comm, &s.ranks);
    s.peer = 1 - s.rank;
    struct result {
        long long *took;
        long samples;
        char name[64];
    } *results = calloc(argc, sizeof *results);
    int done = 0;
    for (int at = 1 + threads; at < argc; at++, done++) {
        long batch, samples, warmup;
        struct result *result = &results[done];
        int read = sscanf(argv[at], "%63[^:]:%d:%d:%ld:%ld:%ld", result->name, &s.bytes, &s.depth, &batch, &samples, &warmup);
        size_t which = 0;
        while (which < count && strcmp(rows[which].name, result->name) != 0)
            which++;
        if (read != 6 || which == count || s.ranks != 2) {
            fprintf(stderr, "%s: no row %s here\n", argv[0], argv[at]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        result->took = measure(&rows[which], s, batch, samples, warmup);
        result->samples = samples;
    }
    double unit = (double)(now() - began) / (tick() - first);
    for (int i = 0; i < done && s.rank == 0; i++) {
        printf("{\"row\":\"%s\",\"elapsed_ns\":[", results[i].name);
        for (long j = 0; j < results[i].samples; j++)
            printf("%s%.1f", j ? "," : "", results[i].took[j] * unit);
        printf("]}\n");
    }
    return MPI_Finalize();
}
