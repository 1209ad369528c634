//! What is compared: each benchmark of ombx with the C loop that makes the same MPI calls.

/// One comparison.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What follows `ombx run`; the size is 8 bytes.
    pub(crate) benchmark: &'static [&'static str],
    /// The loop of `reference.c`; its timed function has this name and `_origin`.
    pub(crate) reference: &'static str,
    /// Iterations of a launch with fixed counts, a multiple of [`CHUNK`]; a tenth as many warm up.
    pub(crate) iterations: u64,
    /// Equal legs of one iteration: the figure is a leg's time.
    pub(crate) legs: u64,
    /// The median ratio of ombx's time to the C loop's may be this large.
    pub(crate) goal: f64,
}

/// Iterations between two stamps where counts are fixed.
pub(crate) const CHUNK: u64 = 1000;

/// What a row may cost over the plain loop: 2 %.
const GOAL: f64 = 1.02;

/// The same, of one-sided operations other than put: 3 %.
const ONE_SIDED_GOAL: f64 = 1.03;

/// The latency of an operation under a synchronisation: its iterations, legs and goal.
macro_rules! one_sided {
    ($op:literal, $sync:literal, $iterations:literal, $legs:literal, $goal:expr) => {
        Row {
            name: concat!("rma.", $op, "_latency ", $sync),
            benchmark: &[concat!("rma.", $op, "_latency"), "--sync", $sync],
            reference: concat!($op, "_", $sync),
            iterations: $iterations,
            legs: $legs,
            goal: $goal,
        }
    };
}

/// Every comparison. A new row is an entry here and, unless its loop is there, one in `reference.c`.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "p2p.latency",
        benchmark: &["p2p.latency"],
        reference: "ping",
        iterations: 200_000,
        legs: 2,
        goal: GOAL,
    },
    one_sided!("put", "pscw", 50_000, 2, GOAL),
    one_sided!("put", "fence", 50_000, 2, GOAL),
    one_sided!("put", "lock", 100_000, 1, GOAL),
    one_sided!("put", "flush", 200_000, 1, GOAL),
    one_sided!("get", "pscw", 50_000, 2, ONE_SIDED_GOAL),
    one_sided!("get", "fence", 50_000, 2, ONE_SIDED_GOAL),
    one_sided!("get", "lock", 100_000, 1, ONE_SIDED_GOAL),
    one_sided!("get", "flush", 200_000, 1, ONE_SIDED_GOAL),
    one_sided!("fop", "pscw", 50_000, 2, ONE_SIDED_GOAL),
    one_sided!("fop", "fence", 50_000, 2, ONE_SIDED_GOAL),
    one_sided!("fop", "lock", 100_000, 1, ONE_SIDED_GOAL),
    one_sided!("fop", "flush", 200_000, 1, ONE_SIDED_GOAL),
];

/// The rows whose name contains `pattern`.
pub(crate) fn matching(pattern: &str) -> Vec<&'static Row> {
    ROWS.iter().filter(|row| row.name.contains(pattern)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_loop_and_whole_chunks() {
        let source = include_str!("reference.c");
        for row in ROWS {
            assert!(source.contains(&format!("\"{}\", {0}_origin, ", row.reference)), "{}", row.name);
            assert!(row.iterations.is_multiple_of(CHUNK) && row.iterations >= 30 * CHUNK, "{}", row.name);
            assert!(row.goal > 1.0 && row.legs > 0);
        }
    }

    #[test]
    fn rows_are_chosen_by_a_part_of_their_name() {
        assert_eq!(matching("").len(), ROWS.len());
        assert_eq!(matching("fence").len(), 3);
        assert!(matching("nothing").is_empty());
    }
}
