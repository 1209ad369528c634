//! What arrives of a round of datagrams.

use ombx_record::{
    result::{Figure, Figures, SHARES},
    stats::Summary,
};
use serde::{Deserialize, Serialize};

/// A datagram that arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the datagram in its round, from 0.
    pub number: u64,
    /// When it was sent, in nanoseconds after the start of the round on the sender's clock.
    pub sent_ns: u64,
    /// When it arrived on the receiver's clock: raw ticks in the timed loop, later nanoseconds.
    pub at_ns: u64,
}

/// Parts of a round, whose rates and jitters give intervals.
const PARTS: usize = 20;

/// What arrived of a round: the report of the receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Time from sending the first to sending the last, in nanoseconds; known on the sender.
    pub sent_ns: u64,
    /// Datagrams that arrived, each counted once.
    pub arrived: u64,
    /// Datagrams that arrived after one with a higher number (RFC 4737, 3.3), each counted once.
    pub reordered: u64,
    /// Arrivals of datagrams that had arrived before.
    pub duplicates: u64,
    /// Mean time between arrivals in each part of the round, in nanoseconds.
    pub parts_ns: Vec<f64>,
    /// Jitter (RFC 3550, 6.4.1) at the end of each part, in nanoseconds; empty of short rounds.
    pub jitters_ns: Vec<f64>,
}

impl Received {
    /// Returns what arrived of `sent` datagrams, from the arrivals in their order.
    pub fn new(sent: u64, arrivals: &[Arrival]) -> Received {
        let (mut seen, mut first) = (vec![false; sent as usize], Vec::with_capacity(arrivals.len()));
        let mut found = Received { sent, ..Received::default() };
        let mut next = 0;
        for arrival in arrivals {
            let Some(seen) = seen.get_mut(arrival.number as usize) else { continue };
            if std::mem::replace(seen, true) {
                found.duplicates += 1;
                continue;
            }
            found.reordered += u64::from(arrival.number < next);
            next = next.max(arrival.number + 1);
            first.push(*arrival);
        }
        found.arrived = first.len() as u64;
        // A part ends with the last datagram of a call: those of a call have arrived at the same time.
        let is_last = |at: &usize| first.get(at + 1).is_none_or(|next| next.at_ns != first[*at].at_ns);
        let ends: Vec<usize> = (0..first.len()).filter(is_last).collect();
        let parts = PARTS.min(ends.len().saturating_sub(1));
        let end = |part: usize| ends[part * (ends.len() - 1) / parts];
        let time = |part: usize| {
            let (from, to) = (end(part), end(part + 1));
            first[to].at_ns.saturating_sub(first[from].at_ns) as f64 / (to - from) as f64
        };
        found.parts_ns = (0..parts).map(time).collect();
        let jitters = jitters(&first);
        if jitters.len() >= 2 * PARTS {
            found.jitters_ns = (1..=PARTS).map(|part| jitters[part * jitters.len() / PARTS - 1]).collect();
        }
        found
    }

    /// Returns the figures.
    pub fn figures(&self) -> Figures {
        let value = |name: &str, value: f64| (name.to_owned(), Figure::Value(value));
        let lost = self.sent.saturating_sub(self.arrived);
        let counts = [
            ("sent_datagrams", self.sent),
            ("arrived_datagrams", self.arrived),
            ("lost_datagrams", lost),
            ("reordered_datagrams", self.reordered),
            ("duplicate_datagrams", self.duplicates),
        ];
        let count = |name: &str| counts.iter().find(|count| count.0 == name).map_or(0, |count| count.1);
        let mut figures: Figures = counts.iter().map(|(name, count)| value(name, *count as f64)).collect();
        figures.extend(SHARES.iter().flat_map(|share| share.figures(count(share.part), count(share.all))));
        if self.sent > 1 && self.sent_ns > 0 {
            figures.extend([value("sent_per_s", (self.sent - 1) as f64 * 1e9 / self.sent_ns as f64)]);
        }
        let jitter = Summary::of_batches(&self.jitters_ns);
        figures.insert(
            "jitter_us".into(),
            match &jitter {
                Some(jitter) => Figure::Value(jitter.median / 1e3),
                None => {
                    Figure::Unresolved(format!("the jitter needs {} datagrams that arrive", 2 * PARTS + 1))
                }
            },
        );
        if let Some([low, high]) = jitter.and_then(|jitter| jitter.ci95) {
            figures.extend([value("jitter_low_us", low / 1e3), value("jitter_high_us", high / 1e3)]);
        }
        figures
    }
}

/// Returns the jitter after each arrival but the first: J += (|D| - J) / 16, where D is by how much two arrivals are further apart than
/// their sending (RFC 3550, 6.4.1).
fn jitters(arrivals: &[Arrival]) -> Vec<f64> {
    let apart = |from: u64, to: u64| to as f64 - from as f64;
    let mut jitter = 0.0;
    let mut all = Vec::new();
    for pair in arrivals.windows(2) {
        let difference = apart(pair[0].at_ns, pair[1].at_ns) - apart(pair[0].sent_ns, pair[1].sent_ns);
        jitter += (difference.abs() - jitter) / 16.0;
        all.push(jitter);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns arrivals of these numbers, sent 1000 ns apart, that take 500 ns.
    fn arrivals(numbers: impl IntoIterator<Item = u64>) -> Vec<Arrival> {
        let mut last = 0;
        let arrival = |number: u64| {
            last = (1000 * number + 500).max(last + 1);
            Arrival { number, sent_ns: 1000 * number, at_ns: last }
        };
        numbers.into_iter().map(arrival).collect()
    }

    fn value(figures: &Figures, name: &str) -> f64 {
        match &figures[name] {
            Figure::Value(value) => *value,
            Figure::Unresolved(why) => panic!("{name}: {why}"),
        }
    }

    #[test]
    fn all_arrive_evenly() {
        let found = Received::new(1000, &arrivals(0..1000));
        assert_eq!((found.arrived, found.reordered, found.duplicates), (1000, 0, 0));
        assert_eq!((found.parts_ns.len(), found.jitters_ns.len()), (20, 20));
        assert!(found.parts_ns.iter().all(|time| *time == 1000.0), "{:?}", found.parts_ns);
        let figures = found.figures();
        assert_eq!([value(&figures, "lost_percent"), value(&figures, "jitter_us")], [0.0, 0.0]);
        // The rule of three: with none of 1000 lost, up to about 0.38 % may be.
        assert!((value(&figures, "lost_high_percent") - 0.3827).abs() < 1e-3);
    }

    /// RFC 4737, 3.3: of 1 2 3 7 4 5 6 8, the packets 4, 5 and 6 are reordered.
    #[test]
    fn losses_duplicates_and_order_are_counted() {
        let found = Received::new(12, &arrivals([1, 2, 3, 7, 4, 5, 6, 8, 8, 4, 11]));
        assert_eq!((found.arrived, found.reordered, found.duplicates), (9, 3, 2));
        let figures = found.figures();
        assert_eq!((value(&figures, "lost_datagrams"), value(&figures, "lost_percent")), (3.0, 25.0));
        assert!((value(&figures, "reordered_percent") - 100.0 / 3.0).abs() < 1e-9);
        assert!(value(&figures, "lost_low_percent") < 25.0 && value(&figures, "lost_high_percent") > 25.0);
        assert!(matches!(&figures["jitter_us"], Figure::Unresolved(why) if why.contains("41 datagrams")));
    }

    /// Fifty trains of 30 datagrams, each a microsecond after the one before it, of which the first has no rate.
    #[test]
    fn trains_do_not_change_the_rate() {
        let mut all = arrivals(0..1500);
        all.iter_mut().for_each(|arrival| arrival.at_ns = 1000 * (arrival.number / 30) + 7);
        let found = Received::new(1500, &all);
        assert_eq!(found.parts_ns.len(), 20);
        assert!(found.parts_ns.iter().all(|time| (time - 1000.0 / 30.0).abs() < 1e-9), "{found:?}");
        assert!(Received::new(30, &all[..30]).parts_ns.is_empty(), "one train has no rate");
    }

    #[test]
    fn a_third_that_is_lost_lowers_the_rate_by_a_third() {
        let found = Received::new(3000, &arrivals((0..3000).filter(|number| number % 3 > 0)));
        let median = Summary::of_batches(&found.parts_ns).unwrap().median;
        assert!((median - 1500.0).abs() < 1.0, "{median}");
        assert_eq!(found.arrived, 2000);
    }

    /// Every second datagram is late by 320 ns: |D| is always 320.
    #[test]
    fn the_jitter_tends_to_the_mean_difference() {
        let mut all = arrivals(0..2000);
        all.iter_mut().step_by(2).for_each(|arrival| arrival.at_ns += 320);
        let jitter = value(&Received::new(2000, &all).figures(), "jitter_us");
        assert!((jitter - 0.32).abs() < 1e-6, "{jitter}");
        // The first step of the filter.
        assert_eq!(jitters(&all)[0], 20.0);
    }

    #[test]
    fn nothing_that_arrives_has_no_times() {
        let none = Received::new(100, &[]);
        let figures = none.figures();
        assert_eq!(value(&figures, "lost_percent"), 100.0);
        assert!(matches!(&figures["reordered_percent"], Figure::Unresolved(_)) && none.parts_ns.is_empty());
        assert_eq!(Received::new(100, &arrivals([7])).parts_ns, Vec::<f64>::new());
    }
}
