/* Library between ombx and MPI (LD_PRELOAD). OMBX_INTERPOSE selects its action:
 *   recv            flips a bit of messages of at least 64 bytes in MPI_Recv
 *   allreduce       flips a bit of results of at least 64 bytes of MPI_Allreduce on the last rank
 *   doubles         spoils messages of at least 64 MPI_DOUBLE in MPI_Recv, MPI_Sendrecv, MPI_Bcast, MPI_Alltoall and MPI_Put
 *   file_write      flips a bit of writes of at least 64 bytes in MPI_File_write on the last rank
 *   file_read       the same of reads in MPI_File_read
 *   file_write_shared, file_read_shared   the same in calls at a shared pointer
 *   delay           makes each MPI_Send 200 us longer
 *   count           writes to standard error how often each rank has called the functions of `COUNTED` when it ends
 *   alloc           writes the hint of each MPI_Alloc_mem to standard error
 *   scan            makes the last rank crash in MPI_Scan
 *   scan_some       the same in a call with 64 to 512 bytes
 *   iscan           makes the last rank exit in MPI_Iscan
 *   finalize        makes the last rank crash in MPI_Finalize
 *   version         gives the last rank another version of the library
 *   nonsense        says that the process is rank -7
 *   threads         grants a level of thread support that does not exist
 *   init            ends a process that starts MPI
 *   level           writes the thread support that a process asks for to standard error
 *   none            changes nothing
 * verify/faults/src/interpose.c flips bits in all other calls. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAST 64
#define FLIPPED 42 /* byte */
#define DELAY_NS 200000

static int spoils(const char *what) {
    const char *wish = getenv("OMBX_INTERPOSE");
    return wish != NULL && strcmp(wish, what) == 0;
}

/* Calls that are counted: sends of at least 64 bytes, and one-sided calls. A lock of a rank on its own memory is not. */
enum call {
    SEND, PUT, GET, POST, START, COMPLETE, WAIT, FENCE, LOCK_SHARED, LOCK_EXCLUSIVE, UNLOCK, LOCK_ALL, UNLOCK_ALL, FLUSH, FLUSH_LOCAL, CALLS
};
static const char *const call_names[CALLS] = {
    "send", "put", "get", "post", "start", "complete", "wait", "fence", "lock_shared", "lock_exclusive", "unlock", "lock_all",
    "unlock_all", "flush", "flush_local"
};
static long calls[CALLS];

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
    int flips = spoils("recv") || (type == MPI_DOUBLE && spoils("doubles"));
    if (count >= LEAST && flips) ((unsigned char *)buf)[FLIPPED] ^= 0x10;
    return code;
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int code = PMPI_Bcast(buf, count, type, root, comm), rank;
    PMPI_Comm_rank(comm, &rank);
    int flips = count >= LEAST && rank != root && type == MPI_DOUBLE && spoils("doubles");
    if (flips) ((unsigned char *)buf)[FLIPPED] ^= 0x10;
    return code;
}

int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int target, int tag, void *to, int to_count, MPI_Datatype to_type,
                 int source, int to_tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Sendrecv(from, count, type, target, tag, to, to_count, to_type, source, to_tag, comm, status);
    int is_double = type == MPI_DOUBLE && to_type == MPI_DOUBLE;
    if (is_double && to_count >= LEAST && spoils("doubles")) ((unsigned char *)to)[FLIPPED] ^= 0x10;
    return code;
}

int MPI_Alltoall(const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type, MPI_Comm comm) {
    int code = PMPI_Alltoall(from, count, type, to, to_count, to_type, comm);
    int is_double = type == MPI_DOUBLE && to_type == MPI_DOUBLE;
    if (is_double && to_count >= LEAST && spoils("doubles")) ((unsigned char *)to)[FLIPPED] ^= 0x10;
    return code;
}

int MPI_Put(const void *buf, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
    static unsigned char changed[1 << 16];
    size_t bytes = (size_t)count * sizeof(double);
    calls[PUT]++;
    int is_double = type == MPI_DOUBLE && target_type == MPI_DOUBLE;
    if (is_double && count >= LEAST && bytes <= sizeof changed && spoils("doubles")) {
        memcpy(changed, buf, bytes);
        changed[FLIPPED] ^= 0x10;
        buf = changed;
    }
    return PMPI_Put(buf, count, type, target, place, target_count, target_type, win);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int code = PMPI_Allreduce(from, to, count, type, op, comm), bytes, rank, ranks;
    PMPI_Type_size(type, &bytes);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count * bytes >= LEAST && rank == ranks - 1 && spoils("allreduce")) ((unsigned char *)to)[FLIPPED] ^= 0x10;
    return code;
}

static int is_last(void) {
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return rank == ranks - 1;
}

#define FILES(name) \
    int MPI_File_write##name(MPI_File file, const void *from, int count, MPI_Datatype type, MPI_Status *status) { \
        static unsigned char changed[1 << 20]; \
        if (count < LEAST || count > (int)sizeof changed || !is_last() || !spoils("file_write" #name)) { \
            return PMPI_File_write##name(file, from, count, type, status); \
        } \
        memcpy(changed, from, (size_t)count); \
        changed[FLIPPED] ^= 0x10; \
        return PMPI_File_write##name(file, changed, count, type, status); \
    } \
    int MPI_File_read##name(MPI_File file, void *to, int count, MPI_Datatype type, MPI_Status *status) { \
        int code = PMPI_File_read##name(file, to, count, type, status); \
        if (count >= LEAST && is_last() && spoils("file_read" #name)) ((unsigned char *)to)[FLIPPED] ^= 0x10; \
        return code; \
    }
FILES()
FILES(_shared)

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

#define COUNTED(call, name, parameters, arguments) \
    int MPI_##name parameters { \
        calls[call]++; \
        return PMPI_##name arguments; \
    }
COUNTED(POST, Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
COUNTED(START, Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
COUNTED(COMPLETE, Win_complete, (MPI_Win win), (win))
COUNTED(WAIT, Win_wait, (MPI_Win win), (win))
COUNTED(FENCE, Win_fence, (int assert, MPI_Win win), (assert, win))
COUNTED(LOCK_ALL, Win_lock_all, (int assert, MPI_Win win), (assert, win))
COUNTED(UNLOCK_ALL, Win_unlock_all, (MPI_Win win), (win))
COUNTED(FLUSH, Win_flush, (int target, MPI_Win win), (target, win))
COUNTED(FLUSH_LOCAL, Win_flush_local, (int target, MPI_Win win), (target, win))
COUNTED(GET, Get, (void *buf, int count, MPI_Datatype type, int target, MPI_Aint place, int target_count, MPI_Datatype target_type,
                   MPI_Win win), (buf, count, type, target, place, target_count, target_type, win))

static int is_own(int target, MPI_Win win) {
    MPI_Group group;
    int rank;
    PMPI_Win_get_group(win, &group);
    PMPI_Group_rank(group, &rank);
    PMPI_Group_free(&group);
    return target == rank;
}

int MPI_Win_lock(int kind, int target, int assert, MPI_Win win) {
    calls[kind == MPI_LOCK_SHARED ? LOCK_SHARED : LOCK_EXCLUSIVE] += !is_own(target, win);
    return PMPI_Win_lock(kind, target, assert, win);
}

int MPI_Win_unlock(int target, MPI_Win win) {
    calls[UNLOCK] += !is_own(target, win);
    return PMPI_Win_unlock(target, win);
}

int MPI_Scan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (is_last() && spoils("scan")) raise(SIGSEGV);
    int size = 0;
    PMPI_Type_size(type, &size);
    if (is_last() && spoils("scan_some") && count * size >= 64 && count * size <= 512) raise(SIGSEGV);
    return PMPI_Scan(from, to, count, type, op, comm);
}

int MPI_Iscan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request) {
    if (is_last() && spoils("iscan")) exit(3);
    return PMPI_Iscan(from, to, count, type, op, comm, request);
}

int MPI_Get_library_version(char *text, int *length) {
    int code = PMPI_Get_library_version(text, length);
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    if (rank != NULL && atoi(rank) > 0 && spoils("version")) {
        snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "Another \xff MPI");
        *length = (int)strlen(text);
    }
    return code;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    int code = PMPI_Comm_rank(comm, rank);
    if (spoils("nonsense")) *rank = -7;
    return code;
}

int MPI_Query_thread(int *level) {
    int code = PMPI_Query_thread(level);
    if (spoils("threads")) *level = 4711;
    return code;
}

int MPI_Finalize(void) {
    if (is_last() && spoils("finalize")) raise(SIGSEGV);
    if (spoils("count")) {
        char line[1024];
        int rank, length;
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        length = snprintf(line, sizeof line, "calls of rank %d:", rank);
        for (int at = 0; at < CALLS; at++) {
            if (calls[at] > 0) length += snprintf(line + length, sizeof line - length, " %s %ld", call_names[at], calls[at]);
        }
        fprintf(stderr, "%s\n", line);
    }
    return PMPI_Finalize();
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
    int bytes;
    PMPI_Type_size(type, &bytes);
    calls[SEND] += count * bytes >= LEAST;
    if (spoils("delay")) for (long end = now_ns() + DELAY_NS; now_ns() < end;) {}
    return PMPI_Send(buf, count, type, target, tag, comm);
}

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base) {
    char value[16] = "none";
    int found = 0;
    if (spoils("alloc")) {
        if (info != MPI_INFO_NULL) MPI_Info_get(info, "alloc_shm", sizeof value - 1, value, &found);
        fprintf(stderr, "MPI_Alloc_mem: alloc_shm is %s\n", value);
    }
    return PMPI_Alloc_mem(size, info, base);
}

static void refuse_init(void) {
    if (spoils("init")) {
        fputs("MPI was started\n", stderr);
        abort();
    }
}

int MPI_Init(int *argc, char ***argv) {
    refuse_init();
    if (spoils("level")) fprintf(stderr, "thread support: MPI_Init\n");
    return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    refuse_init();
    const char *level = required == MPI_THREAD_MULTIPLE ? "multiple" : required == MPI_THREAD_SERIALIZED ? "serialized"
                      : required == MPI_THREAD_FUNNELED ? "funneled" : "single";
    if (spoils("level")) fprintf(stderr, "thread support: %s\n", level);
    return PMPI_Init_thread(argc, argv, required, provided);
}
