/* Collective operations, each after a barrier. */
#include "plain.h"

static void bcast(void)
{
    AFTER_BARRIER(MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
}

static void allreduce(void)
{
    memset(out, 0, bytes);
    AFTER_BARRIER(MPI_Allreduce(out, in, bytes / sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static void alltoall(void)
{
    AFTER_BARRIER(MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD));
}

static void barrier(void)
{
    AFTER_BARRIER(MPI_Barrier(MPI_COMM_WORLD));
}

static void iallreduce(void)
{
    MPI_Request request;
    memset(out, 0, bytes);
    AFTER_BARRIER(MPI_Iallreduce(out, in, bytes / sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
                  MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    const struct operation operations[] = {
        { "bcast", bcast }, { "allreduce", allreduce }, { "alltoall", alltoall }, { "barrier", barrier },
        { "iallreduce", iallreduce }, { NULL, NULL },
    };
    return plain_main(argc, argv, operations, 1);
}
