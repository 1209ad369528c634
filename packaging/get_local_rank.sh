#!/bin/sh
# Starts a program with LOCAL_RANK, its number among the ranks of its host, as the script get_local_rank of OMB does.
for variable in OMPI_COMM_WORLD_LOCAL_RANK MV2_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID PALS_LOCAL_RANKID FLUX_TASK_LOCAL_ID SLURM_LOCALID; do
    eval "LOCAL_RANK=\${$variable-}"
    [ -z "$LOCAL_RANK" ] || break
done
export LOCAL_RANK
exec "$@"
