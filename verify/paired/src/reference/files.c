/* Loops of MPI-IO: each data access call, for writes with and without MPI_File_sync. */
#include "loops.h"

#define REWIND CHECK(MPI_File_seek(s.file, 0, MPI_SEEK_SET)); CHECK(MPI_Barrier(s.team))
#define BARRIER CHECK(MPI_Barrier(s.team))
#define BLOCK(BUFFER) s.BUFFER + block * s.stride, s.bytes, MPI_BYTE, MPI_STATUS_IGNORE
#define PLACE s.remote + (MPI_Offset)block * (MPI_Offset)s.partner_stride
#define EACH(CALL) for (int block = 0; block < s.depth; block++) CALL

/* Pacing, name, call. */
#define WRITES(X)                                                                              \
    X(REWIND, write_individual_independent, CHECK(MPI_File_write(s.file, BLOCK(out))))                 \
    X(REWIND, write_individual_collective, CHECK(MPI_File_write_all(s.file, BLOCK(out))))              \
    X(BARRIER, write_explicit_independent, CHECK(MPI_File_write_at(s.file, PLACE, BLOCK(out))))        \
    X(BARRIER, write_explicit_collective, CHECK(MPI_File_write_at_all(s.file, PLACE, BLOCK(out))))
#define READS(X)                                                                               \
    X(REWIND, read_individual_independent, CHECK(MPI_File_read(s.file, BLOCK(in))))                    \
    X(REWIND, read_individual_collective, CHECK(MPI_File_read_all(s.file, BLOCK(in))))                 \
    X(BARRIER, read_explicit_independent, CHECK(MPI_File_read_at(s.file, PLACE, BLOCK(in))))           \
    X(BARRIER, read_explicit_collective, CHECK(MPI_File_read_at_all(s.file, PLACE, BLOCK(in))))

#define WRITE(PACE, NAME, CALL)                                 \
    AFTER(PACE, NAME, , EACH(CALL))                             \
    AFTER(PACE, NAME##_synced, , EACH(CALL); CHECK(MPI_File_sync(s.file)))
#define READ(PACE, NAME, CALL) AFTER(PACE, NAME, , EACH(CALL))
WRITES(WRITE)
READS(READ)

#define ROWS_OF_WRITE(PACE, NAME, CALL)                         \
    { #NAME, fidelity_##NAME, nothing },                        \
    { #NAME "_synced", fidelity_##NAME##_synced, nothing },
#define ROW_OF_READ(PACE, NAME, CALL) { #NAME, fidelity_##NAME, nothing },

const struct row fidelity_files[] = {
    WRITES(ROWS_OF_WRITE)
    READS(ROW_OF_READ)
    { NULL, NULL, NULL },
};
