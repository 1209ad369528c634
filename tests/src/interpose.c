/* Stands between ombx and MPI (LD_PRELOAD) and does what OMBX_INTERPOSE says:
 *   recv   flips a bit of what MPI_Recv delivers
 *   irecv  flips a bit of what MPI_Irecv and MPI_Waitall deliver
 *   put    puts a copy with a flipped bit
 *   get    flips a bit of what MPI_Get delivers, once it is synchronised
 *   init   ends a process that starts MPI
 *   none   changes nothing
 * Only messages of 64 bytes and more are touched, and none of the collective calls of the harness. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 64
#define FLIPPED 42 /* byte */
#define MOST 4096  /* operations in flight */

static int spoils(const char *what) {
    const char *wish = getenv("OMBX_INTERPOSE");
    return wish != NULL && strcmp(wish, what) == 0;
}

static void flip(void *bytes) {
    ((unsigned char *)bytes)[FLIPPED] ^= 0x10;
}

/* What will have arrived after the next synchronisation. */
static void *pending[MOST];
static int pendings;

static void remember(void *bytes) {
    if (pendings == MOST) abort();
    pending[pendings++] = bytes;
}

static int synchronised(int code) {
    while (pendings > 0) flip(pending[--pendings]);
    return code;
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
    if (count >= LEAST && spoils("recv")) flip(buf);
    return code;
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    if (count >= LEAST && spoils("irecv")) remember(buf);
    return PMPI_Irecv(buf, count, type, source, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    return synchronised(PMPI_Waitall(count, requests, statuses));
}

/* A copy for each origin address. A slot is put again only after its last put is complete here, so that the copy may be
 * written again; it is never freed. */
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
        flip(copies[i].copy);
        return copies[i].copy;
    }
    abort();
}

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
    const void *from = count >= LEAST && spoils("put") ? spoilt_copy(origin, count) : origin;
    return PMPI_Put(from, count, type, target, at, target_count, target_type, win);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
    if (count >= LEAST && spoils("get")) remember(origin);
    return PMPI_Get(origin, count, type, target, at, target_count, target_type, win);
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
