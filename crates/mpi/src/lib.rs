//! ombx-mpi
