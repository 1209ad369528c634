/* Bare MPI program: rank 0 prints a line when all ranks have started. With an argument, all sleep then. */
#include <mpi.h>
#include <stdio.h>
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
    if (argc > 1)
        sleep(3);
    MPI_Finalize();
    return 0;
}
