//! Lines about a row that is still measured: the figure of each interval of `--interval`.

use ombx_core::{measure::intervals::Interval, unit::Bytes};
use ombx_results::{number::figure, units::Units};

/// Returns the line of an interval: `sockets.bw 1M   0.00 ..  1.00 s  5321 MB/s`.
pub(crate) fn line(interval: &Interval, units: Units) -> String {
    let Interval { bench, bytes, time, metric, median, connections } = interval;
    let size = bytes.map_or(String::new(), |bytes| format!(" {}", Bytes(bytes)));
    let [from, to] = time.map(|time| time.as_secs_f64());
    let value = match median {
        Some(value) => format!("{} {}", figure(units.of(*metric, *value)), units.name(*metric)),
        None => "n/a".into(),
    };
    let counted: String = connections
        .iter()
        .flat_map(|counted| counted.named())
        .map(|(name, number)| format!("  {name} {number}"))
        .collect();
    format!("{bench}{size}  {from:6.2} .. {to:6.2} s  {value}{counted}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ombx_core::benchmark::{ConnectionCounters, Metric};
    use ombx_results::units::RateUnit;

    use super::*;

    #[test]
    fn a_line_has_the_time_and_the_figure_in_the_chosen_unit() {
        let interval = Interval {
            bench: "sockets.bw".into(),
            bytes: Some(1 << 20),
            time: [Duration::from_secs(1), Duration::from_millis(2010)],
            metric: Metric::Bandwidth,
            median: Some(250.0),
            connections: None,
        };
        let units = Units { rate: Some(RateUnit::GigaBits), ..Units::default() };
        assert!(
            line(&interval, units).ends_with("1.00 ..   2.01 s  2.000 Gbit/s"),
            "{}",
            line(&interval, units)
        );
        let connections = Some(ConnectionCounters { retransmits: 12, cwnd_bytes: 65483 });
        let counted = line(&Interval { connections, ..interval.clone() }, units);
        assert!(counted.ends_with(" s  2.000 Gbit/s  retransmits 12  cwnd_bytes 65483"), "{counted}");
        let none = Interval { median: None, bytes: None, ..interval };
        assert_eq!(line(&none, Units::default()), "sockets.bw    1.00 ..   2.01 s  n/a");
    }
}
