/* Counts the starts of a persistent MPI_Allgather that deliver wrong data. Each start has new data. The argument is the size of a block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STARTS 20

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0, most, bytes = argc > 1 ? atoi(argv[1]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *from = malloc(bytes), *to = malloc((size_t)bytes * ranks);
    MPI_Request request;
    MPI_Allgather_init(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int start = 0; start < STARTS; start++) {
        memset(from, 1 + rank + start, bytes);
        memset(to, 0x7f, (size_t)bytes * ranks);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int differs = 0;
        for (int source = 0; source < ranks; source++)
            for (int at = 0; at < bytes; at++) differs |= to[(size_t)source * bytes + at] != 1 + source + start;
        wrong += differs;
    }
    MPI_Allreduce(&wrong, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d starts delivered wrong data\n", most, STARTS);
    MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
