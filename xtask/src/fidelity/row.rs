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

/// Every comparison. A new row is an entry here and, unless its loop is there, two functions in `reference.c`.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "p2p.latency",
        benchmark: &["p2p.latency"],
        reference: "ping",
        iterations: 200_000,
        legs: 2,
        goal: GOAL,
    },
    put("rma.put_latency pscw", &["rma.put_latency", "--sync", "pscw"], "put_pscw", 50_000, 2),
    put("rma.put_latency fence", &["rma.put_latency", "--sync", "fence"], "put_fence", 50_000, 2),
    put("rma.put_latency lock", &["rma.put_latency", "--sync", "lock"], "put_lock", 100_000, 1),
    put("rma.put_latency flush", &["rma.put_latency", "--sync", "flush"], "put_flush", 200_000, 1),
];

const fn put(
    name: &'static str,
    benchmark: &'static [&'static str],
    reference: &'static str,
    iterations: u64,
    legs: u64,
) -> Row {
    Row { name, benchmark, reference, iterations, legs, goal: GOAL }
}

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
        assert_eq!(matching("fence").len(), 1);
        assert!(matching("nothing").is_empty());
    }
}
