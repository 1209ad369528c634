/* Preloaded: rank 0 sends as many empty messages to rank 1 as EARLIER says, at the end of MPI_Init. */
#include <mpi.h>
#include <stdlib.h>

static void send_earlier(void) {
    const char *text = getenv("EARLIER");
    int messages = text ? atoi(text) : 0, rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < messages && ranks > 1; i++) {
        if (rank == 0) PMPI_Send(NULL, 0, MPI_BYTE, 1, 77, MPI_COMM_WORLD);
        if (rank == 1) PMPI_Recv(NULL, 0, MPI_BYTE, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int MPI_Init(int *argc, char ***argv) {
    int error = PMPI_Init(argc, argv);
    send_earlier();
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int error = PMPI_Init_thread(argc, argv, required, provided);
    send_earlier();
    return error;
}
