/* First part of the library, see interpose.c: where the payload of messages is in memory. A message of a derived datatype has gaps. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *allocated(long bytes) {
    void *made = malloc((size_t)bytes + 1);
    if (made == NULL) abort();
    return made;
}

/* Returns the bytes of payload. */
static long size_of(long count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint low, extent;
    PMPI_Type_get_extent(type, &low, &extent);
    return extent;
}

/* Memory of a message: its first byte, from the address of the buffer, and its bytes with gaps. */
struct span { MPI_Aint low, bytes; };

static struct span span_of(long count, MPI_Datatype type) {
    struct span span = {0, 0};
    if (count < 1) return span;
    PMPI_Type_get_true_extent(type, &span.low, &span.bytes);
    span.bytes += (count - 1) * extent_of(type);
    return span;
}

/* Returns whether a datatype is predefined and has no gaps. */
static int is_plain(MPI_Datatype type, long size) {
    int integers, addresses, datatypes, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &combiner);
    return combiner == MPI_COMBINER_NAMED && extent_of(type) == size;
}

/* Returns the place of a byte of the payload of one element. Unpacks a payload in which only this byte is not 0. */
static MPI_Aint place_in_element(MPI_Datatype type, long size, long byte) {
    if (is_plain(type, size)) return byte;
    struct span span = span_of(1, type);
    unsigned char *payload = allocated(size), *memory = allocated(span.bytes);
    int position = 0;
    MPI_Aint at = 0;
    memset(payload, 0, (size_t)size);
    memset(memory, 0, (size_t)span.bytes);
    payload[byte] = 1;
    if (PMPI_Unpack(payload, (int)size, &position, memory - span.low, 1, type, MPI_COMM_SELF) != MPI_SUCCESS) abort();
    while (at < span.bytes && memory[at] == 0) at++;
    if (at == span.bytes) abort();
    free(payload);
    free(memory);
    return span.low + at;
}

/* Returns the place of a byte, from the address of the buffer: a byte of the payload, or of the memory with gaps. */
static MPI_Aint place_of(MPI_Datatype type, long byte, long in_memory) {
    long size = size_of(1, type);
    if (in_memory || size == 0) return byte;
    return byte / size * extent_of(type) + place_in_element(type, size, byte % size);
}

/* Data that a call delivers: blocks of elements, one after the other or at listed places. */
struct data {
    void *start;
    long count;                /* elements of each block, if there are no `counts` */
    const int *counts;
    MPI_Datatype type;
    const MPI_Datatype *types; /* of each block */
    const int *at;             /* places of blocks, in extents of the datatype; in bytes if there are `types` */
    const MPI_Aint *at_bytes;
};

static struct data equal(void *start, long count, MPI_Datatype type) {
    struct data data = {start, count, NULL, type, NULL, NULL, NULL};
    return data;
}

static struct data one(void *start, long count, MPI_Datatype type) { return equal(start, count, type); }

static struct data listed(void *start, const int counts[], const int at[], MPI_Datatype type) {
    struct data data = {start, 0, counts, type, NULL, at, NULL};
    return data;
}

static struct data typed(void *start, const int counts[], const int at[], const MPI_Aint at_bytes[], const MPI_Datatype types[]) {
    struct data data = {start, 0, counts, MPI_DATATYPE_NULL, types, at, at_bytes};
    return data;
}

/* Returns whether data arrives. Other arguments of a call may be invalid on ranks where nothing does. */
static int arrives(struct data data) { return data.start != NULL && data.start != MPI_IN_PLACE; }

static MPI_Datatype type_of(struct data data, long block) { return data.types != NULL ? data.types[block] : data.type; }

/* Returns the address of a block. */
static void *start_of(struct data data, long block) {
    char *start = data.start;
    if (data.at_bytes != NULL) return start + data.at_bytes[block];
    if (data.at != NULL && data.types != NULL) return start + data.at[block];
    MPI_Aint extent = extent_of(data.type);
    return start + (data.at != NULL ? data.at[block] * extent : block * data.count * extent);
}
