/* Loops of MPI-IO: each data access call, for writes with and without MPI_File_sync, and the opening of a file. */
#include "loops.h"

#define REWIND CHECK(MPI_File_seek(s.file, 0, MPI_SEEK_SET)); CHECK(MPI_Barrier(s.team))
#define SHARED BARRIER; CHECK(MPI_File_seek_shared(s.file, 0, MPI_SEEK_SET)); BARRIER
#define BARRIER CHECK(MPI_Barrier(s.team))
#define BLOCK(BUFFER) s.BUFFER + block * s.stride, s.bytes, MPI_BYTE, MPI_STATUS_IGNORE
#define PLACE s.remote + (MPI_Offset)block * (MPI_Offset)s.partner_stride
#define EACH(CALL) for (int block = 0; block < s.depth; block++) CALL

/* Pacing, name, call. */
#define WRITES(X)                                                                              \
    X(REWIND, write_individual_independent, CHECK(MPI_File_write(s.file, BLOCK(out))))                 \
    X(REWIND, write_individual_collective, CHECK(MPI_File_write_all(s.file, BLOCK(out))))              \
    X(BARRIER, write_explicit_independent, CHECK(MPI_File_write_at(s.file, PLACE, BLOCK(out))))        \
    X(BARRIER, write_explicit_collective, CHECK(MPI_File_write_at_all(s.file, PLACE, BLOCK(out))))     \
    X(SHARED, write_shared_independent, CHECK(MPI_File_write_shared(s.file, BLOCK(out))))              \
    X(SHARED, write_shared_collective, CHECK(MPI_File_write_ordered(s.file, BLOCK(out))))
#define READS(X)                                                                               \
    X(REWIND, read_individual_independent, CHECK(MPI_File_read(s.file, BLOCK(in))))                    \
    X(REWIND, read_individual_collective, CHECK(MPI_File_read_all(s.file, BLOCK(in))))                 \
    X(BARRIER, read_explicit_independent, CHECK(MPI_File_read_at(s.file, PLACE, BLOCK(in))))           \
    X(BARRIER, read_explicit_collective, CHECK(MPI_File_read_at_all(s.file, PLACE, BLOCK(in))))        \
    X(SHARED, read_shared_independent, CHECK(MPI_File_read_shared(s.file, BLOCK(in))))                 \
    X(SHARED, read_shared_collective, CHECK(MPI_File_read_ordered(s.file, BLOCK(in))))

/* Accesses with a request, and split collectives, of block 0. */
#define ONE(BUFFER) s.BUFFER, s.bytes, MPI_BYTE
#define WAITED(CALL, ...)                                       \
    {                                                           \
        MPI_Request request;                                    \
        CHECK(CALL(s.file, __VA_ARGS__, &request));             \
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE));           \
    }
#define ENDED(CALL, BUFFER, ...)                                \
    {                                                           \
        CHECK(CALL##_begin(s.file, __VA_ARGS__));               \
        CHECK(CALL##_end(s.file, s.BUFFER, MPI_STATUS_IGNORE)); \
    }
#define STARTED(X, KIND, BUFFER)                                                                                     \
    X(REWIND, i##KIND##_individual_independent, WAITED(MPI_File_i##KIND, ONE(BUFFER)))                               \
    X(REWIND, i##KIND##_individual_collective, WAITED(MPI_File_i##KIND##_all, ONE(BUFFER)))                          \
    X(REWIND, i##KIND##_individual_split, ENDED(MPI_File_##KIND##_all, BUFFER, ONE(BUFFER)))                         \
    X(BARRIER, i##KIND##_explicit_independent, WAITED(MPI_File_i##KIND##_at, s.remote, ONE(BUFFER)))                 \
    X(BARRIER, i##KIND##_explicit_collective, WAITED(MPI_File_i##KIND##_at_all, s.remote, ONE(BUFFER)))              \
    X(BARRIER, i##KIND##_explicit_split, ENDED(MPI_File_##KIND##_at_all, BUFFER, s.remote, ONE(BUFFER)))             \
    X(SHARED, i##KIND##_shared_independent, WAITED(MPI_File_i##KIND##_shared, ONE(BUFFER)))                          \
    X(SHARED, i##KIND##_shared_split, ENDED(MPI_File_##KIND##_ordered, BUFFER, ONE(BUFFER)))

#define WRITE(PACE, NAME, CALL)                                 \
    AFTER(PACE, NAME, , EACH(CALL))                             \
    AFTER(PACE, NAME##_synced, , EACH(CALL); CHECK(MPI_File_sync(s.file)))
#define READ(PACE, NAME, CALL) AFTER(PACE, NAME, , EACH(CALL))
#define START_WRITE(PACE, NAME, CALL)                           \
    AFTER(PACE, NAME, , CALL)                                   \
    AFTER(PACE, NAME##_synced, , CALL; CHECK(MPI_File_sync(s.file)))
#define START_READ(PACE, NAME, CALL) AFTER(PACE, NAME, , CALL)
WRITES(WRITE)
READS(READ)
STARTED(START_WRITE, write, out)
STARTED(START_READ, read, in)

#define OPENED                                                                                                       \
    MPI_File file;                                                                                                   \
    CHECK(MPI_File_open(s.comm, s.path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));                     \
    CHECK(MPI_File_write_at(file, s.remote, s.out, s.bytes, MPI_BYTE, MPI_STATUS_IGNORE));                           \
    CHECK(MPI_File_close(&file))
AFTER(BARRIER, open, , OPENED)

#define ROWS_OF_WRITE(PACE, NAME, CALL)                         \
    { #NAME, fidelity_##NAME, nothing },                        \
    { #NAME "_synced", fidelity_##NAME##_synced, nothing },
#define ROW_OF_READ(PACE, NAME, CALL) { #NAME, fidelity_##NAME, nothing },

const struct row fidelity_files[] = {
    WRITES(ROWS_OF_WRITE)
    READS(ROW_OF_READ)
    STARTED(ROWS_OF_WRITE, write, out)
    STARTED(ROW_OF_READ, read, in)
    { "open", fidelity_open, nothing },
    { NULL, NULL, NULL },
};
