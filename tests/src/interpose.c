/* Library between ombx and MPI (LD_PRELOAD). OMBX_INTERPOSE selects its action:
 *   recv            flips a bit of messages of at least 64 bytes in MPI_Recv
 *   init            ends a process that starts MPI
 *   none            changes nothing
 * verify/faults/src/interpose.c flips bits in all other calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 64
#define FLIPPED 42 /* byte */

static int spoils(const char *what) {
    const char *wish = getenv("OMBX_INTERPOSE");
    return wish != NULL && strcmp(wish, what) == 0;
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    int code = PMPI_Recv(buf, count, type, source, tag, comm, status);
    if (count >= LEAST && spoils("recv")) ((unsigned char *)buf)[FLIPPED] ^= 0x10;
    return code;
}

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
