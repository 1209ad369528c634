/* Bare MPI program: rank 0 prints a line when all ranks have started. With `stay`, all sleep then; with a number, they make so many
 * barriers more. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("{\"kind\":\"run\"}");
        fflush(stdout);
    }
    if (argc > 1 && strcmp(argv[1], "stay") == 0)
        sleep(3);
    else if (argc > 1)
        for (int i = atoi(argv[1]); i > 0; i--)
            MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
