/* Starts MPI and ends it: what every launch of ranks costs, whatever they do. */
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
