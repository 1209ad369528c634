//! All-pairs measurements: which pairs of ranks are measured in which round ([`schedule`]), and measuring them ([`sweep`]).
//!
//! A schedule of all pairs has rounds in which no rank has two partners:
//!
//! ```
//! use ombx_record::unit::Rank;
//! use ombx_sweep::schedule::Mode;
//!
//! let schedule = Mode::Parallel.schedule(4, None);
//! let rounds: Vec<Vec<(u32, u32)>> = (0..schedule.rounds())
//!     .map(|round| (0..schedule.pairs()).map(|turn| schedule.pair(round, turn)).map(|(a, b)| (a.0, b.0)).collect())
//!     .collect();
//! assert_eq!(rounds, [[(0, 3), (1, 2)], [(2, 3), (0, 1)], [(1, 3), (0, 2)]]);
//! assert_eq!(schedule.partner(Rank(2), 0), Some(Rank(1)));
//! ```

pub mod schedule;
pub mod sweep;
