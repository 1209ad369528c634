/* Profiling library that passes sends on. With EXTRA, each send has one branch more, on a value in memory. */
#include <mpi.h>

#ifdef EXTRA
static volatile int traced;
static volatile long sends;
#define BRANCH if (traced) { ++sends; }
#else
#define BRANCH
#endif

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    BRANCH
    return PMPI_Send(buf, count, type, dest, tag, comm);
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    BRANCH
    return PMPI_Isend(buf, count, type, dest, tag, comm, request);
}
