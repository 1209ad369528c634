/* What the plain MPI programs share: their arguments, a clock, and what they print.
 *
 * Usage: PROGRAM OPERATION EARLIER BYTES:BATCH:SAMPLES... . Prints, for each size, the median and the mean time of an iteration in
 * nanoseconds. A batch is the number of iterations between two readings of the clock. EARLIER small broadcasts, each with a barrier,
 * precede each size: the time of some operations depends on how many messages a library has carried before. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

enum { WINDOW = 64 };

struct operation {
    const char *name;
    void (*run)(void);
};

static int rank, peer;
static int bytes;
static long batch, samples;
static char *out, *in;
static double *times;

/* Ticks of the time stamp counter after all earlier instructions, or nanoseconds where there is none. A reading of MPI_Wtime
 * costs as much as a tenth of a short collective. */
static double now(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
    return (double)__rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
#endif
}

/* Times WORK. The end of a sample begins the next. */
#define TIMED(WORK)                                 \
    do {                                            \
        double begin = now();                       \
        for (long s = 0; s < samples; s++) {        \
            for (long k = 0; k < batch; k++) {      \
                WORK;                               \
            }                                       \
            double end = now();                     \
            times[s] = end - begin;                 \
            begin = end;                            \
        }                                           \
    } while (0)

/* The same iterations on the rank that answers. */
#define ANSWERED(WORK)                              \
    for (long k = 0; k < batch * samples; k++) {    \
        WORK;                                       \
    }

/* Times WORK after a barrier on every rank. */
#define AFTER_BARRIER(WORK)                         \
    for (long s = 0; s < samples; s++) {            \
        MPI_Barrier(MPI_COMM_WORLD);                \
        double begin = now();                       \
        WORK;                                       \
        times[s] = now() - begin;                   \
    }

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Prints the slower rank's median and the ranks' mean if all ranks are timed, otherwise those of rank 0. The first tenth of the
 * samples is warm-up. */
static void print(double ns_of_tick, int all_ranks)
{
    long first = samples / 10, kept = samples - first;
    double *mine = times + first, *slowest = malloc(kept * sizeof *slowest), sum = 0, mean;
    for (long s = 0; s < kept; s++)
        sum += mine[s];
    mean = sum / kept;
    memcpy(slowest, mine, kept * sizeof *slowest);
    if (all_ranks) {
        double total;
        MPI_Reduce(mine, slowest, kept, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&mean, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        mean = total / 2;
    }
    if (rank == 0) {
        qsort(slowest, kept, sizeof *slowest, ascending);
        printf("%d %.3f %.3f\n", bytes, slowest[kept / 2] * ns_of_tick / batch, mean * ns_of_tick / batch);
        fflush(stdout);
    }
    free(slowest);
}

/* Runs one operation at each size. Sizes run one after the other, as in OMB, without messages between them but a barrier. The buffers
 * hold WINDOW messages. */
static int plain_main(int argc, char **argv, const struct operation *operations, int all_ranks)
{
    MPI_Init(&argc, &argv);
    double begin = now(), begin_ns = wall_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    while (operations->name && (argc < 4 || strcmp(operations->name, argv[1])))
        operations++;
    if (!operations->name) {
        fprintf(stderr, "usage: %s OPERATION EARLIER BYTES:BATCH:SAMPLES...\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int at = 3; at < argc; at++) {
        if (sscanf(argv[at], "%d:%ld:%ld", &bytes, &batch, &samples) != 3)
            MPI_Abort(MPI_COMM_WORLD, 2);
        size_t size = (size_t)WINDOW * (bytes > 64 ? bytes : 64);
        if (posix_memalign((void **)&out, 4096, size) || posix_memalign((void **)&in, 4096, size))
            MPI_Abort(MPI_COMM_WORLD, 1);
        memset(out, 'a', size);
        memset(in, 'b', size);
        times = calloc(samples, sizeof *times);
        memset(times, 1, samples * sizeof *times);
        for (long k = atol(argv[2]); k > 0; k--) {
            MPI_Bcast(out, 8, MPI_CHAR, 0, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        operations->run();
        /* Ticks are converted after the measurement, when enough of them have passed. */
        double ns_of_tick = (wall_ns() - begin_ns) / (now() - begin);
        print(ns_of_tick, all_ranks);
        free(times);
        free(out);
        free(in);
    }
    MPI_Finalize();
    return 0;
}
