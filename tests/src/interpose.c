/* Stands between ombx and MPI (LD_PRELOAD) and does what OMBX_INTERPOSE says:
 *   recv            flips a bit of what MPI_Recv delivers
 *   irecv           flips a bit of what MPI_Irecv and MPI_Waitall deliver
 *   put, rput       puts a copy with a flipped bit
 *   get, rget       flips a bit of what a get delivers, once it is synchronised
 *   acc, get_acc, fop, cas
 *                   sends a copy with a flipped bit to be added or swapped in
 *   get_acc_result, fop_result, cas_result
 *                   flips a bit of what the operation returns, once it is synchronised
 *   init            ends a process that starts MPI
 *   none            changes nothing
 * Only messages of 64 bytes and more are touched, of operations on one element those on 8 bytes, and none of the
 * collective calls of the harness. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 64
#define ELEMENT 8
#define FLIPPED 42 /* byte; the third of an element */
#define MOST 4096  /* operations in flight */

static int spoils(const char *what) {
    const char *wish = getenv("OMBX_INTERPOSE");
    return wish != NULL && strcmp(wish, what) == 0;
}

static int size_of(int count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static void flip(void *bytes, int size) {
    ((unsigned char *)bytes)[FLIPPED % size] ^= 0x10;
}

/* What will have arrived after the next synchronisation. */
static struct { void *bytes; int size; } pending[MOST];
static int pendings;

static void remember(void *bytes, int size) {
    if (pendings == MOST) abort();
    pending[pendings].bytes = bytes;
    pending[pendings++].size = size;
}

static int synchronised(int code) {
    for (; pendings > 0; pendings--) flip(pending[pendings - 1].bytes, pending[pendings - 1].size);
    return code;
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
    if (count >= LEAST && spoils("recv")) flip(buf, count);
    return code;
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    if (count >= LEAST && spoils("irecv")) remember(buf, count);
    return PMPI_Irecv(buf, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    return synchronised(PMPI_Waitall(count, requests, statuses));
}

/* A copy for each origin address. A slot is sent again only after its last operation is complete here, so that the copy
 * may be written again; it is never freed. */
static struct { const void *origin; void *copy; int bytes; } copies[MOST];

static const void *spoilt_copy(const void *origin, int bytes) {
    for (int i = 0; i < MOST; i++) {
        if (copies[i].origin != NULL && (copies[i].origin != origin || copies[i].bytes != bytes)) continue;
        if (copies[i].origin == NULL) {
            copies[i].origin = origin;
            copies[i].bytes = bytes;
            copies[i].copy = malloc((size_t)bytes);
            if (copies[i].copy == NULL) abort();
        }
        memcpy(copies[i].copy, origin, (size_t)bytes);
        flip(copies[i].copy, bytes);
        return copies[i].copy;
    }
    abort();
}

/* What is sent, and what will come back. */
static const void *sent(const char *what, const void *origin, int bytes, int least) {
    return bytes >= least && spoils(what) ? spoilt_copy(origin, bytes) : origin;
}

static void returned(const char *what, void *result, int bytes, int least) {
    if (bytes >= least && spoils(what)) remember(result, bytes);
}

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
    origin = sent("put", origin, size_of(count, type), LEAST);
    return PMPI_Put(origin, count, type, target, at, target_count, target_type, win);
}

int MPI_Rput(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
             MPI_Datatype target_type, MPI_Win win, MPI_Request *request) {
    origin = sent("rput", origin, size_of(count, type), LEAST);
    return PMPI_Rput(origin, count, type, target, at, target_count, target_type, win, request);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
    returned("get", origin, size_of(count, type), LEAST);
    return PMPI_Get(origin, count, type, target, at, target_count, target_type, win);
}

int MPI_Rget(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
             MPI_Datatype target_type, MPI_Win win, MPI_Request *request) {
    returned("rget", origin, size_of(count, type), LEAST);
    return PMPI_Rget(origin, count, type, target, at, target_count, target_type, win, request);
}

int MPI_Accumulate(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
                   MPI_Datatype target_type, MPI_Op op, MPI_Win win) {
    origin = sent("acc", origin, size_of(count, type), LEAST);
    return PMPI_Accumulate(origin, count, type, target, at, target_count, target_type, op, win);
}

int MPI_Get_accumulate(const void *origin, int count, MPI_Datatype type, void *result, int result_count,
                       MPI_Datatype result_type, int target, MPI_Aint at, int target_count, MPI_Datatype target_type,
                       MPI_Op op, MPI_Win win) {
    origin = sent("get_acc", origin, size_of(count, type), LEAST);
    returned("get_acc_result", result, size_of(result_count, result_type), LEAST);
    return PMPI_Get_accumulate(origin, count, type, result, result_count, result_type, target, at, target_count,
                               target_type, op, win);
}

int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op,
                     MPI_Win win) {
    origin = sent("fop", origin, size_of(1, type), ELEMENT);
    returned("fop_result", result, size_of(1, type), ELEMENT);
    return PMPI_Fetch_and_op(origin, result, type, target, at, op, win);
}

int MPI_Compare_and_swap(const void *origin, const void *compare, void *result, MPI_Datatype type, int target,
                         MPI_Aint at, MPI_Win win) {
    origin = sent("cas", origin, size_of(1, type), ELEMENT);
    returned("cas_result", result, size_of(1, type), ELEMENT);
    return PMPI_Compare_and_swap(origin, compare, result, type, target, at, win);
}

int MPI_Win_fence(int assert, MPI_Win win) { return synchronised(PMPI_Win_fence(assert, win)); }
int MPI_Win_complete(MPI_Win win) { return synchronised(PMPI_Win_complete(win)); }
int MPI_Win_unlock(int rank, MPI_Win win) { return synchronised(PMPI_Win_unlock(rank, win)); }
int MPI_Win_unlock_all(MPI_Win win) { return synchronised(PMPI_Win_unlock_all(win)); }
int MPI_Win_flush(int rank, MPI_Win win) { return synchronised(PMPI_Win_flush(rank, win)); }
int MPI_Win_flush_local(int rank, MPI_Win win) { return synchronised(PMPI_Win_flush_local(rank, win)); }

static void refuse_init(void) {
    if (spoils("init")) {
        fputs("MPI was started\n", stderr);
        abort();
    }
}

int MPI_Init(int *argc, char ***argv) {
    refuse_init();
    return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    refuse_init();
    return PMPI_Init_thread(argc, argv, required, provided);
}
