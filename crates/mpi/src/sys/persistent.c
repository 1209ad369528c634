/* Addresses of the calls that create persistent collective requests: MPI_*_init in MPI 4, MPIX_*_init in Open MPI 4.1,
   null in other libraries. */
#include <mpi.h>
#if defined(OMBX_HAVE_MPI_Bcast_init)
#define CALL(name) MPI_##name##_init
#elif defined(OMBX_HAVE_MPIX_Bcast_init)
#include <mpi-ext.h>
#define CALL(name) MPIX_##name##_init
#else
#define CALL(name) 0
#endif

typedef void (*ombx_routine)(void);
#define ROUTINE(name) const ombx_routine ombx_init_##name = (ombx_routine)CALL(name);

ROUTINE(Allgather)
ROUTINE(Allgatherv)
ROUTINE(Allreduce)
ROUTINE(Alltoall)
ROUTINE(Alltoallv)
ROUTINE(Alltoallw)
ROUTINE(Barrier)
ROUTINE(Bcast)
ROUTINE(Exscan)
ROUTINE(Gather)
ROUTINE(Gatherv)
ROUTINE(Neighbor_allgather)
ROUTINE(Neighbor_allgatherv)
ROUTINE(Neighbor_alltoall)
ROUTINE(Neighbor_alltoallv)
ROUTINE(Neighbor_alltoallw)
ROUTINE(Reduce)
ROUTINE(Reduce_scatter)
ROUTINE(Reduce_scatter_block)
ROUTINE(Scan)
ROUTINE(Scatter)
ROUTINE(Scatterv)
