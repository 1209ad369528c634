//! The neighbours of each rank: in a grid or in a directed graph.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::Result;

use crate::{Comm, grid::grid, sys::error::check};

ombx_core::axis! {
    /// Topology of neighbourhood collectives
    pub enum Topology: "topology", Always, default Cartesian {
        /// Two-dimensional grid, as square as possible, not periodic
        Cartesian = "cartesian",
        /// Directed graph: each rank sends to the next two
        Graph = "graph",
    }
}

/// The neighbours of a rank in the order of their blocks. `None` lies beyond the edge of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// The ranks from which the rank receives.
    pub sources: Vec<Option<u32>>,
    /// The ranks to which the rank sends.
    pub destinations: Vec<Option<u32>>,
}

impl Topology {
    /// Returns the neighbours of a rank among `ranks` ranks.
    pub fn neighbours(self, rank: u32, ranks: u32) -> Neighbours {
        match self {
            Topology::Cartesian => {
                let [rows, columns] = grid(ranks);
                let (row, column) = (rank / columns, rank % columns);
                let at = |row: Option<u32>, column: Option<u32>| {
                    let (row, column) = (row.filter(|r| *r < rows)?, column.filter(|c| *c < columns)?);
                    Some(row * columns + column)
                };
                // The order of MPI 4.1, 8.6: per dimension, first the negative, then the positive direction.
                let all = vec![
                    at(row.checked_sub(1), Some(column)),
                    at(Some(row + 1), Some(column)),
                    at(Some(row), column.checked_sub(1)),
                    at(Some(row), Some(column + 1)),
                ];
                Neighbours { sources: all.clone(), destinations: all }
            }
            Topology::Graph => {
                let steps = || 1..=2u32.min(ranks.saturating_sub(1));
                Neighbours {
                    sources: steps().map(|step| Some((rank + ranks - step) % ranks)).collect(),
                    destinations: steps().map(|step| Some((rank + step) % ranks)).collect(),
                }
            }
        }
    }

    /// Creates a communicator with this topology. Ranks keep their numbers. Collective.
    pub(super) fn communicator(self, comm: &Comm) -> Result<Comm> {
        // SAFETY: `comm` is valid, and every array has as many elements as MPI reads. The new communicator has no other owner.
        unsafe {
            let mut raw = ffi::RSMPI_COMM_NULL;
            match self {
                Topology::Cartesian => {
                    let (dimensions, periods) = (grid::<2>(comm.size()).map(|n| n as c_int), [0; 2]);
                    let made = ffi::MPI_Cart_create(
                        comm.raw(),
                        2,
                        dimensions.as_ptr(),
                        periods.as_ptr(),
                        0,
                        &raw mut raw,
                    );
                    check("MPI_Cart_create", made)?;
                }
                Topology::Graph => {
                    let Neighbours { sources, destinations } = self.neighbours(comm.rank().0, comm.size());
                    let ranks = |list: &[Option<u32>]| list.iter().flatten().map(|r| *r as c_int).collect();
                    let [sources, destinations]: [Vec<c_int>; 2] = [ranks(&sources), ranks(&destinations)];
                    let made = ffi::MPI_Dist_graph_create_adjacent(
                        comm.raw(),
                        sources.len() as c_int,
                        sources.as_ptr(),
                        ffi::RSMPI_UNWEIGHTED(),
                        destinations.len() as c_int,
                        destinations.as_ptr(),
                        ffi::RSMPI_UNWEIGHTED(),
                        ffi::RSMPI_INFO_NULL,
                        0,
                        &raw mut raw,
                    );
                    check("MPI_Dist_graph_create_adjacent", made)?;
                }
            }
            Comm::own(raw)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_destinations_match() {
        for topology in [Topology::Cartesian, Topology::Graph] {
            for ranks in 1..13 {
                let all: Vec<Neighbours> = (0..ranks).map(|rank| topology.neighbours(rank, ranks)).collect();
                for from in 0..ranks {
                    for to in 0..ranks {
                        let sends =
                            all[from as usize].destinations.iter().filter(|d| **d == Some(to)).count();
                        let receives = all[to as usize].sources.iter().filter(|s| **s == Some(from)).count();
                        assert!(sends == receives && sends <= 1, "{topology:?}: {from} to {to} of {ranks}");
                        assert!(sends == 0 || from != to);
                    }
                }
            }
        }
        assert_eq!(Topology::Cartesian.neighbours(0, 4).sources, [None, Some(2), None, Some(1)]);
        assert_eq!(Topology::Graph.neighbours(0, 4).sources, [Some(3), Some(2)]);
    }
}
