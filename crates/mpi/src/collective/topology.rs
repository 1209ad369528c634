//! The neighbours of each rank: in a grid or in a directed graph.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::{
    benchmark::{Neighbourhood, Topology},
    error::{Error, Result},
};

use crate::{Comm, grid::grid, sys::error::check};

/// The neighbours of a rank in the order of their blocks. `None` lies beyond the edge of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// The ranks from which the rank receives.
    pub sources: Vec<Option<u32>>,
    /// The ranks to which the rank sends.
    pub destinations: Vec<Option<u32>>,
}

/// Returns the neighbours of a rank among `ranks` ranks.
pub fn neighbours(topology: Topology, described: Neighbourhood, rank: u32, ranks: u32) -> Neighbours {
    match topology {
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
        Topology::Torus => {
            let all: Vec<_> = around(described.torus, rank, ranks).into_iter().map(Some).collect();
            Neighbours { sources: all.clone(), destinations: all }
        }
        Topology::Edges => {
            let edges = || described.edges.into_iter().flatten();
            Neighbours {
                sources: edges().filter(|(_, to)| *to == rank).map(|(from, _)| Some(*from)).collect(),
                destinations: edges().filter(|(from, _)| *from == rank).map(|(_, to)| Some(*to)).collect(),
            }
        }
    }
}

/// Returns the ranks that are at most `radius` away in each dimension of a periodic grid, each once. In a short dimension several ways
/// lead to the same rank.
fn around((dimensions, radius): (u32, u32), rank: u32, ranks: u32) -> Vec<u32> {
    let lengths = match dimensions {
        1 => grid::<1>(ranks).to_vec(),
        2 => grid::<2>(ranks).to_vec(),
        3 => grid::<3>(ranks).to_vec(),
        _ => grid::<4>(ranks).to_vec(),
    };
    let mut found = vec![0];
    let mut step = ranks;
    for length in lengths {
        step /= length;
        let own = rank / step % length;
        let reach = radius.min(length);
        let coordinates = (length - reach..=length + reach).map(|moved| (own + moved) % length * step);
        found = found.iter().flat_map(|start| coordinates.clone().map(move |at| start + at)).collect();
    }
    let mut all = Vec::new();
    for other in found {
        if other != rank && !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Checks that all ranks of a list of edges exist.
///
/// # Errors
/// [`Error::unsupported`] with the first edge of which a rank does not.
pub(super) fn check_edges(topology: Topology, described: Neighbourhood, ranks: u32) -> Result<()> {
    let edges = described.edges.filter(|_| topology == Topology::Edges).into_iter().flatten();
    match edges.into_iter().find(|(from, to)| (*from).max(*to) >= ranks) {
        Some((from, to)) => Err(Error::unsupported(format!(
            "--neighbours {from}:{to}: there are ranks 0 to {} only: start more with -n, or change the list",
            ranks - 1
        ))),
        None => Ok(()),
    }
}

/// Creates a communicator with a topology. Ranks keep their numbers. Collective.
pub(super) fn communicator(topology: Topology, described: Neighbourhood, comm: &Comm) -> Result<Comm> {
    // SAFETY: `comm` is valid, and every array has as many elements as MPI reads. The new communicator has no other owner.
    unsafe {
        let mut raw = ffi::RSMPI_COMM_NULL;
        match topology {
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
            Topology::Graph | Topology::Torus | Topology::Edges => {
                let Neighbours { sources, destinations } =
                    neighbours(topology, described, comm.rank().0, comm.size());
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

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: &[(u32, u32)] = &[(0, 1), (0, 2), (2, 0), (3, 1)];

    #[test]
    fn sources_and_destinations_match() {
        let tori = (1..=4).flat_map(|dimensions| (1..=3).map(move |radius| (dimensions, radius)));
        let tori = tori.map(|torus| (Topology::Torus, Neighbourhood { torus, ..Neighbourhood::DEFAULT }));
        let edges = Neighbourhood { edges: Some(EDGES), ..Neighbourhood::DEFAULT };
        let fixed = [Topology::Cartesian, Topology::Graph].map(|topology| (topology, Neighbourhood::DEFAULT));
        for (topology, described) in fixed.into_iter().chain(tori).chain([(Topology::Edges, edges)]) {
            for ranks in if topology == Topology::Edges { 4..13 } else { 1..13 } {
                let of = |rank| neighbours(topology, described, rank, ranks);
                let all: Vec<Neighbours> = (0..ranks).map(of).collect();
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
    }

    #[test]
    fn neighbours_are_in_order() {
        let of = |topology, rank, ranks, torus| {
            let described = Neighbourhood { torus, edges: Some(EDGES) };
            neighbours(topology, described, rank, ranks)
        };
        assert_eq!(of(Topology::Cartesian, 0, 4, (1, 1)).sources, [None, Some(2), None, Some(1)]);
        assert_eq!(of(Topology::Graph, 0, 4, (1, 1)).sources, [Some(3), Some(2)]);
        assert_eq!(of(Topology::Torus, 0, 5, (1, 1)).sources, [Some(4), Some(1)]);
        assert_eq!(of(Topology::Torus, 0, 2, (1, 1)).sources, [Some(1)]);
        assert_eq!(of(Topology::Torus, 4, 9, (2, 1)).sources, [0, 1, 2, 3, 5, 6, 7, 8].map(Some));
        assert_eq!(of(Topology::Torus, 1, 1000, (1, 3)).sources.len(), 6);
        assert_eq!(of(Topology::Edges, 0, 4, (1, 1)).destinations, [Some(1), Some(2)]);
        assert_eq!(of(Topology::Edges, 1, 4, (1, 1)).sources, [Some(0), Some(3)]);
    }
}
