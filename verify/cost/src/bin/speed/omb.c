/* The loops of four OSU Micro-Benchmarks 7.4 with OMB's own counts, window and buffers: the time that a run of OMB takes.
 *
 * usage: mpiexec -n RANKS PROGRAM latency|bw|put_bw|mbw_mr [-b multiple] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4 << 20, LARGE = 8192, WINDOW = 64, PAGE = 4096 };

struct row {
    int rank, pairs, peer, bytes, iterations, warm_up;
    /* Bytes from the buffer of a message of a window to that of the next one. */
    size_t stride;
    char *out, *in;
};

static double latency(const struct row *r)
{
    double start = 0;
    for (int i = 0; i < r->warm_up + r->iterations; i++) {
        if (i == r->warm_up)
            start = MPI_Wtime();
        if (r->rank == 0) {
            MPI_Send(r->out, r->bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(r->in, r->bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(r->in, r->bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(r->out, r->bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) * 1e6 / (2.0 * r->iterations);
}

/* MB/s of all pairs: the first half of the ranks sends to the second. */
static double bw(const struct row *r)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    double start = 0, all = 0, own;
    for (int i = 0; i < r->warm_up + r->iterations; i++) {
        if (i == r->warm_up) {
            if (r->pairs > 1)
                MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        for (int w = 0; w < WINDOW; w++)
            if (r->rank < r->pairs)
                MPI_Isend(r->out + w * r->stride, r->bytes, MPI_CHAR, r->peer, 100, MPI_COMM_WORLD, &requests[w]);
            else
                MPI_Irecv(r->in + w * r->stride, r->bytes, MPI_CHAR, r->peer, 100, MPI_COMM_WORLD, &requests[w]);
        MPI_Waitall(WINDOW, requests, statuses);
        if (r->rank < r->pairs)
            MPI_Recv(r->in, 4, MPI_CHAR, r->peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(r->out, 4, MPI_CHAR, r->peer, 101, MPI_COMM_WORLD);
    }
    own = r->rank < r->pairs ? MPI_Wtime() - start : 0;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return (double)r->bytes * WINDOW * r->iterations * r->pairs * r->pairs / 1e6 / all;
}

static double put_bw(const struct row *r)
{
    MPI_Win win;
    void *base;
    double start = 0, took = 0;
    MPI_Win_allocate((MPI_Aint)r->bytes * WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (r->rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        for (int i = 0; i < r->warm_up + r->iterations; i++) {
            if (i == r->warm_up)
                start = MPI_Wtime();
            for (int w = 0; w < WINDOW; w++) {
                MPI_Aint at = (MPI_Aint)w * r->bytes;
                MPI_Put(r->out + at, r->bytes, MPI_CHAR, 1, at, r->bytes, MPI_CHAR, win);
            }
            MPI_Win_flush(1, win);
        }
        took = MPI_Wtime() - start;
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return (double)r->bytes * WINDOW * r->iterations / 1e6 / took;
}

int main(int argc, char **argv)
{
    struct row r;
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    r.pairs = ranks / 2;
    r.peer = (r.rank + r.pairs) % ranks;
    const char *name = argc > 1 ? argv[1] : "";
    int round_trips = !strcmp(name, "latency"), puts = !strcmp(name, "put_bw");
    int multiple = argc > 3 && !strcmp(argv[3], "multiple");
    if (!round_trips && !puts && strcmp(name, "bw") && strcmp(name, "mbw_mr")) {
        fprintf(stderr, "usage: mpiexec -n RANKS PROGRAM latency|bw|put_bw|mbw_mr [-b multiple]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (r.bytes = 1; r.bytes <= LARGEST; r.bytes *= 2) {
        int large = r.bytes > LARGE;
        /* Buffers of OMB begin at a page. */
        r.stride = multiple ? ((size_t)r.bytes + PAGE - 1) / PAGE * PAGE : 0;
        size_t room = multiple ? r.stride * WINDOW : (size_t)r.bytes * (puts ? WINDOW : 1);
        r.iterations = round_trips ? (large ? 1000 : 10000) : (large ? 20 : 100);
        r.warm_up = round_trips ? (large ? 10 : 100) : (large ? 2 : 10);
        /* An acknowledgement has 4 bytes. */
        r.out = malloc(room < 4 ? 4 : room);
        r.in = malloc(room < 4 ? 4 : room);
        memset(r.out, 'a', room);
        memset(r.in, 'b', room);
        MPI_Barrier(MPI_COMM_WORLD);
        double figure = round_trips ? latency(&r) : puts ? put_bw(&r) : bw(&r);
        if (r.rank == 0)
            printf("%-10d %18.2f\n", r.bytes, figure);
        MPI_Barrier(MPI_COMM_WORLD);
        free(r.out);
        free(r.in);
    }
    MPI_Finalize();
    return 0;
}
