//! Traffic of a rank with its neighbours in a periodic grid of two or three dimensions.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    sys::{datatype::MessageType, error::check},
};

/// Tag of messages to side 0; the next sides have the next tags. Two ranks may be neighbours on several sides.
const TAG: c_int = 8;

ombx_core::parameter! {
    /// Dimensions of the periodic grid of ranks, which is as cubic as possible
    pub enum Dimensions: "dims", Always, default Two {
        /// Up to 4 neighbours
        Two = "2",
        /// Up to 6 neighbours
        Three = "3",
    }
}

impl Dimensions {
    /// Returns the neighbours of a rank: in each dimension of several ranks the previous one, side 2 d, and the next one, side 2 d + 1.
    pub fn neighbours(self, rank: Rank, ranks: u32) -> Vec<Rank> {
        let lengths = match self {
            Dimensions::Two => grid::<2>(ranks).to_vec(),
            Dimensions::Three => grid::<3>(ranks).to_vec(),
        };
        let mut neighbours = Vec::new();
        // Ranks from one to the next in a dimension.
        let mut step = ranks;
        for length in lengths {
            step /= length;
            let own = rank.0 / step % length;
            let at = |coordinate: u32| Rank(rank.0 - own * step + coordinate * step);
            if length > 1 {
                neighbours.extend([at((own + length - 1) % length), at((own + 1) % length)]);
            }
        }
        neighbours
    }
}

/// Traffic with the neighbours of a rank in a grid. It owns the buffers that its requests use, so that none is freed during a transfer.
///
/// Each buffer holds one message per side. A message to a side arrives at the neighbour's opposite side.
#[derive(Debug)]
pub struct HaloChannel {
    comm: ffi::MPI_Comm,
    sides: Vec<SideMessages>,
    /// The neighbour of each side, for loops in C.
    partners: Vec<c_int>,
    message: MessageType,
    outgoing: Buffer,
    incoming: Buffer,
    /// Those of receives, then those of sends.
    requests: Vec<ffi::MPI_Request>,
    /// Number of requests.
    count: c_int,
}

/// The messages of a side.
#[derive(Debug, Clone, Copy)]
struct SideMessages {
    neighbour: c_int,
    /// Tags of the message to the neighbour and of that from it.
    leaving: c_int,
    arriving: c_int,
    /// Bytes from the start of each buffer to the message.
    offset: usize,
}

impl HaloChannel {
    /// Opens the channel of this rank. `slots` is one message. Collective, untimed.
    ///
    /// # Errors
    /// The message is too long for an `int`, or there is not enough memory.
    pub fn open(cx: &Context<'_>, neighbours: &[Rank], slots: Slots) -> Result<HaloChannel> {
        let team: &MpiTeam = cx.fabric()?;
        let sides = neighbours.len();
        let total = slots.total() * sides as u64;
        slots.blocks.map(|blocks| blocks.count(slots.bytes)).transpose()?;
        cx.afford(2 * slots.copies.total(total) + slots.extra_bytes())?;
        let (message, outgoing, incoming) = Buffer::two(cx, MessageType::new(slots), slots.copies, total)?;
        // SAFETY: this static of mpi-sys is never written.
        let requests = vec![unsafe { ffi::RSMPI_REQUEST_NULL }; 2 * sides];
        let partners: Vec<c_int> = neighbours.iter().map(|rank| rank.0 as c_int).collect();
        let stride = slots.total() as usize;
        let side = |(at, neighbour)| {
            let number = at as c_int;
            SideMessages {
                neighbour,
                leaving: TAG + number,
                arriving: TAG + (number ^ 1),
                offset: at * stride,
            }
        };
        let mut channel = HaloChannel {
            comm: team.comm().raw(),
            sides: partners.iter().copied().enumerate().map(side).collect(),
            partners,
            message,
            outgoing,
            incoming,
            requests,
            count: 2 * sides as c_int,
        };
        team.lend(|handles| {
            handles.describe_messages(cx, slots, &channel.outgoing, &channel.incoming);
            (handles.datatype, handles.elements) = (channel.message.raw, channel.message.count);
            handles.requests = channel.requests.as_mut_ptr();
            (handles.partners, handles.partner_count) = (channel.partners.as_ptr(), sides as c_int);
            handles.partner_stride = stride;
        });
        Ok(channel)
    }

    /// Starts receives from all neighbours and sends to all of them, and waits for all.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn exchange(&mut self) -> Result<()> {
        let mut request = self.requests.as_mut_ptr();
        let MessageType { raw, count, .. } = self.message;
        for side in &self.sides {
            let into = self.incoming.start().wrapping_add(side.offset).cast::<c_void>();
            // SAFETY: the message lies inside the buffer, which is neither freed nor accessed before the request is complete. There are
            // two requests per side.
            check("MPI_Irecv", unsafe {
                ffi::MPI_Irecv(into, count, raw, side.neighbour, side.arriving, self.comm, request)
            })?;
            request = request.wrapping_add(1);
        }
        for side in &self.sides {
            let from = self.outgoing.start().wrapping_add(side.offset).cast::<c_void>();
            // SAFETY: as above.
            check("MPI_Isend", unsafe {
                ffi::MPI_Isend(from, count, raw, side.neighbour, side.leaving, self.comm, request)
            })?;
            request = request.wrapping_add(1);
        }
        // SAFETY: each request was started on a buffer that `self` owns.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(self.count, self.requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE)
        })
    }

    buffers!(copies pub);
}

/// Returns the lengths of the dimensions of a grid that is as cubic as possible, whose sum is the smallest, the largest first.
pub(crate) fn grid<const D: usize>(ranks: u32) -> [u32; D] {
    let mut lengths = [1; D];
    for (length, best) in lengths.iter_mut().zip(cubic(u64::from(ranks.max(1)), D as u32)) {
        *length = best as u32;
    }
    lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
    lengths
}

/// Returns lengths whose product is `ranks` and whose sum is the smallest. Only divisors up to the root can be the smallest length.
fn cubic(ranks: u64, dimensions: u32) -> Vec<u64> {
    if dimensions <= 1 {
        return vec![ranks];
    }
    let at_most_a_root = (1..=ranks).take_while(|least: &u64| least.saturating_pow(dimensions) <= ranks);
    let divisors = at_most_a_root.filter(|least| ranks.is_multiple_of(*least));
    let grids = divisors.map(|least| [cubic(ranks / least, dimensions - 1), vec![least]].concat());
    grids.min_by_key(|lengths| lengths.iter().sum::<u64>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opposite_side_of_a_neighbour_is_this_rank() {
        for dimensions in [Dimensions::Two, Dimensions::Three] {
            for ranks in 1..30 {
                for rank in (0..ranks).map(Rank) {
                    for (side, neighbour) in dimensions.neighbours(rank, ranks).into_iter().enumerate() {
                        assert_eq!(dimensions.neighbours(neighbour, ranks)[side ^ 1], rank, "{ranks} {side}");
                        assert_ne!(neighbour, rank);
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_are_one_step_away_in_each_dimension() {
        let of = |dimensions: Dimensions, rank, ranks| dimensions.neighbours(Rank(rank), ranks);
        assert_eq!(of(Dimensions::Two, 4, 9), [1, 7, 3, 5].map(Rank));
        assert_eq!(of(Dimensions::Two, 0, 6), [4, 2, 1, 1].map(Rank));
        assert_eq!(of(Dimensions::Two, 0, 5), [4, 1].map(Rank));
        assert_eq!(of(Dimensions::Three, 13, 27), [4, 22, 10, 16, 12, 14].map(Rank));
        assert_eq!(of(Dimensions::Three, 0, 1), []);
    }
}

#[cfg(test)]
mod grid_tests {
    use super::*;

    #[test]
    fn a_grid_is_as_cubic_as_possible() {
        let grids = [1, 2, 3, 4, 6, 7, 8, 12].map(grid::<2>);
        assert_eq!(grids, [[1, 1], [2, 1], [3, 1], [2, 2], [3, 2], [7, 1], [4, 2], [4, 3]]);
        let grids = [1, 2, 4, 6, 10, 27, 30, 68, 72].map(grid::<3>);
        let expected = [
            [1, 1, 1],
            [2, 1, 1],
            [2, 2, 1],
            [3, 2, 1],
            [5, 2, 1],
            [3, 3, 3],
            [5, 3, 2],
            [17, 2, 2],
            [6, 4, 3],
        ];
        assert_eq!(grids, expected);
    }

    #[test]
    fn no_other_grid_has_a_smaller_sum() {
        for ranks in 1..=120_u32 {
            let [a, b, c] = grid::<3>(ranks);
            assert!(a >= b && b >= c && a * b * c == ranks, "{ranks}");
            let divisors = || (1..=ranks).filter(|n| ranks.is_multiple_of(*n));
            let pairs = divisors().flat_map(|x| divisors().map(move |y| (x, y)));
            let sums =
                pairs.filter(|(x, y)| ranks.is_multiple_of(x * y)).map(|(x, y)| x + y + ranks / (x * y));
            assert_eq!(sums.min(), Some(a + b + c), "{ranks}");
        }
    }
}
