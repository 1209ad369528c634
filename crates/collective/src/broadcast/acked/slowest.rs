//! The slowest of several ackers, without the bias of a maximum.

use ombx_core::{result::Measurement, system::clock::Facts, trust};

use super::figures::add_ack_figures;

/// Marks that follow from the samples alone.
const OF_SAMPLES: [&str; 3] = ["no_interval", "autocorrelated", "bimodal"];

/// The slowest acker so far. The first half of its samples chose it, the second half is reported: the maximum of many noisy
/// medians is higher than the median of any of them.
pub(super) struct Slowest {
    /// Time of the first half of the samples; infinite without a time.
    chosen_by_ns: f64,
    pub(super) second_half: Measurement,
}

impl Slowest {
    /// Divides a row that has no figures of the method yet.
    pub(super) fn of(row: Measurement, least: u64, clock: Facts) -> Slowest {
        let middle = row.samples.first().map_or(0, |samples| samples.elapsed_ns.len() / 2);
        let first = part(&row, |samples| &samples[..middle], least, clock);
        let chosen_by_ns = first.summary.map_or(f64::INFINITY, |summary| summary.median);
        Slowest { chosen_by_ns, second_half: part(&row, |samples| &samples[middle..], least, clock) }
    }

    /// Takes the row of another acker, which replaces the slowest one if its first half is slower.
    pub(super) fn compare(&mut self, row: Measurement, least: u64, clock: Facts) {
        let other = Slowest::of(row, least, clock);
        if other.chosen_by_ns > self.chosen_by_ns {
            *self = other;
        }
    }
}

/// Returns a row with a part of the samples and what follows from them.
fn part(row: &Measurement, of: impl Fn(&[u64]) -> &[u64], least: u64, clock: Facts) -> Measurement {
    let mut part = row.clone();
    for samples in &mut part.samples {
        samples.elapsed_ns = of(&samples.elapsed_ns).to_vec();
        if let Some(trips) = &mut samples.round_trips {
            trips.elapsed_ns = of(&trips.elapsed_ns).to_vec();
        }
    }
    let legs = part.work.map_or(1, |work| work.legs);
    part.summary = Measurement::summarise(&part.samples, legs, clock);
    if let Some(summary) = &mut part.summary {
        Measurement::take_percentiles(summary, [&part.samples, &part.tail], legs, clock);
    }
    part.trust.retain(|mark| !OF_SAMPLES.contains(&mark.code.as_str()));
    part.trust.extend(part.summary.iter().flat_map(trust::of_samples));
    add_ack_figures(&mut part, least);
    part
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Figure, Metric, Work},
        result::{RoundTrips, Samples},
        stats::Summary,
        testkit::noise::Noise,
    };

    use super::*;

    const CLOCK: Facts = Facts { source: "manual", resolution_ns: 1, overhead_ns: 9 };

    /// Returns the row of an acker with 60 samples around 100 us, and without acknowledgement to subtract.
    fn noisy(acker: u64, seed: u64, slower: f64) -> Measurement {
        let mut noise = Noise::Independent { sigma: 0.2 }.stream(64 * seed + acker);
        let elapsed_ns = (0..60).map(|_| (100_000.0 * noise.next_time() * slower) as u64).collect();
        let round_trips = RoundTrips { halves: 0, batch: 1, elapsed_ns: vec![2000; 60] };
        let mut row = Measurement::new("x", format!("x/acker={acker},"), Metric::Latency, 17);
        row.axes.insert("acker".into(), acker.to_string());
        row.work = Some(Work { bytes: 0, ops: 1, legs: 1 });
        row.samples =
            vec![Samples { batch: 1, elapsed_ns, round_trips: Some(round_trips), ..Samples::default() }];
        row
    }

    fn slowest_of(rows: impl IntoIterator<Item = Measurement>) -> Measurement {
        let mut rows = rows.into_iter();
        let mut slowest = Slowest::of(rows.next().unwrap(), 1, CLOCK);
        rows.for_each(|row| slowest.compare(row, 1, CLOCK));
        slowest.second_half
    }

    #[test]
    fn the_slowest_of_equal_ackers_is_not_slower_than_they_are() {
        let medians = |of: &dyn Fn(u64) -> f64| (0..200).map(of).sum::<f64>() / 200.0;
        let median = |row: &Measurement| {
            Summary::of_batches(&Measurement::combine(&row.samples, 1)).unwrap().median / 100_000.0
        };
        let maximum =
            medians(&|seed| (0..16).map(|acker| median(&noisy(acker, seed, 1.0))).fold(0.0, f64::max));
        assert!(maximum > 1.04, "the maximum of medians is {maximum} times too high");
        let slowest = medians(&|seed| median(&slowest_of((0..16).map(|acker| noisy(acker, seed, 1.0)))));
        assert!((slowest - 1.0).abs() < 0.01, "the other half is {slowest} times the truth");
    }

    #[test]
    fn a_slower_acker_is_found_and_its_second_half_reported() {
        let rows = (0..16).map(|acker| noisy(acker, 7, if acker == 11 { 1.5 } else { 1.0 }));
        let row = slowest_of(rows);
        let all = noisy(11, 7, 1.5);
        assert_eq!(row.axes["acker"], "11");
        assert_eq!(row.samples[0].elapsed_ns, all.samples[0].elapsed_ns[30..]);
        assert_eq!(row.samples[0].round_trips.as_ref().unwrap().elapsed_ns.len(), 30);
        let mut expected = Measurement::summarise(&row.samples, 1, CLOCK).unwrap();
        Measurement::take_percentiles(&mut expected, [&row.samples, &[]], 1, CLOCK);
        assert_eq!(row.summary, Some(expected));
        assert_eq!(row.figures["round_trip_us"], Figure::Value(2.0));
        let few = part(&all, |samples| &samples[..5], 1, CLOCK);
        assert!(few.trust.iter().any(|mark| mark.code == "no_interval"), "{:?}", few.trust);
    }
}
