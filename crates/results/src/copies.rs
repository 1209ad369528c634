//! Copies of launches, known by their samples: a copy is no further launch, whatever its name.

use std::collections::{BTreeSet, HashMap};

use ombx_core::{checksum::checksum, result::Measurement};

/// Fewest samples, and fewest different times among them, that tell two launches apart.
const FEWEST: [usize; 2] = [20, 8];

/// Returns a number that is the same for rows with equal samples; `None` if the samples are too few or too equal to tell launches
/// apart.
pub fn fingerprint(row: &Measurement) -> Option<u64> {
    let times = || row.samples.iter().chain(&row.tail).flat_map(|samples| samples.elapsed_ns.iter().copied());
    let [samples, different] = FEWEST;
    let few = times().take(10 * samples).collect::<BTreeSet<u64>>().len() < different;
    let bytes: Vec<u8> = times().flat_map(u64::to_le_bytes).collect();
    (!few && bytes.len() >= 8 * samples).then(|| checksum(&bytes))
}

/// Returns whether every one of some launches is known, by the sums of the fingerprints of their rows. Launches without fingerprints are
/// never known.
pub(crate) fn are_known(launches: &[u64], known: &BTreeSet<u64>) -> bool {
    !launches.is_empty() && launches.iter().all(|launch| *launch != 0 && known.contains(launch))
}

/// The rows of runs that were read, by their samples.
#[derive(Debug, Default)]
pub struct KnownRows(HashMap<u64, String>);

impl KnownRows {
    /// Adds a row of a run. Returns the name of another run that has the same samples.
    pub fn add(&mut self, run: &str, row: &Measurement) -> Option<&str> {
        let first = self.0.entry(fingerprint(row)?).or_insert_with(|| run.to_owned());
        (first != run).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_the_samples_of_another_run_is_a_copy() {
        let mut row = crate::golden().rows.remove(0);
        row.samples[0].elapsed_ns = (0..40).map(|sample| 700 + sample * 7 % 13).collect();
        let mut known = KnownRows::default();
        assert_eq!(known.add("a", &row), None);
        assert_eq!(known.add("a", &row), None, "a run may have a row twice");
        assert_eq!(known.add("b", &Measurement { key: "renamed".into(), ..row.clone() }), Some("a"));
        let mut other = row.clone();
        other.samples[0].elapsed_ns[0] += 1;
        assert_eq!(known.add("b", &other), None);
        other.samples[0].elapsed_ns = vec![7; 1000];
        assert_eq!(fingerprint(&other), None, "a coarse clock shows equal times");
        other.samples[0].elapsed_ns = (0..10).collect();
        assert_eq!(fingerprint(&other), None, "few samples may be equal by chance");
    }
}
