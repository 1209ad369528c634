//! Which hosts of a cluster are fit.
//!
//! | module | contents |
//! |---|---|
//! | [`fitness`] | divides the hosts of a verdict on links into fit and unfit ones, and writes them as lists |

pub mod fitness;
