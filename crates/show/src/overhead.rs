//! Overhead of MPI over sockets: rows of the same work side by side.

use std::{
    collections::BTreeSet,
    io::{Result, Write},
};

use ombx_estimate::{
    launches::LEAST_LONG_LAUNCHES,
    number::{Decimals, TimeUnit},
    text::named_values,
};
use ombx_record::{
    result::{Measurement, Outcome},
    stats::Summary,
    unit::Bytes,
};

use crate::table::cells::{NO_VALUE, grid, interval};

/// Compares rows `p2p.X` and `sockets.X` of the same size and depth.
#[derive(Debug, Default)]
pub struct Overhead {
    /// Unit of the times.
    unit: TimeUnit,
    mpi: Vec<Timed>,
    sockets: Vec<Timed>,
}

/// Time and identity of a row.
#[derive(Debug)]
struct Timed {
    name: String,
    axes: String,
    bytes: u64,
    depth: Option<u32>,
    /// Estimate over launches.
    summary: Summary,
    launches: usize,
}

/// Time over MPI divided by time over sockets, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    value: f64,
    ci95: [f64; 2],
}

const MPI: &str = "p2p.";
const SOCKETS: &str = "sockets.";
/// Reason for a missing ratio.
const FEW_LAUNCHES: &str =
    "the ratio needs several launches on both sides: at least 6, for example --launches 6";

impl Overhead {
    /// Shows times in this unit.
    pub fn in_unit(unit: TimeUnit) -> Overhead {
        Overhead { unit, ..Overhead::default() }
    }

    /// Adds an estimate over launches, or a row of one launch.
    pub fn add(&mut self, row: &Measurement) {
        let (Some(bytes), Some(summary), Outcome::Ok) = (row.bytes, &row.summary, &row.outcome) else {
            return;
        };
        let (list, name) = match (row.bench.strip_prefix(MPI), row.bench.strip_prefix(SOCKETS)) {
            (Some(name), _) => (&mut self.mpi, name),
            (_, Some(name)) => (&mut self.sockets, name),
            _ => return,
        };
        list.push(Timed {
            name: name.into(),
            axes: named_values(&row.axes, " "),
            bytes,
            depth: row.depth,
            summary: summary.clone(),
            launches: row.launch_count(),
        });
    }

    /// Writes the table, or nothing without matching rows.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let mut grid = grid(
            ["bytes".into(), format!("MPI {}", self.unit.name()), format!("sockets {}", self.unit.name())]
                .into_iter()
                .chain(["ratio", "95% interval", "of"].map(str::to_owned))
                .collect::<Vec<String>>(),
            0..5,
        );
        let mut absent = BTreeSet::new();
        for ours in &self.sockets {
            let alike = |theirs: &&Timed| {
                (&theirs.name, theirs.bytes, theirs.depth) == (&ours.name, ours.bytes, ours.depth)
            };
            for theirs in self.mpi.iter().filter(alike) {
                let [value, ends] = match ratio(theirs, ours) {
                    Ok(Ratio { value, ci95 }) => {
                        let decimals = Decimals::new(value, Some(ci95));
                        let text = |x: f64| decimals.format(x);
                        [format!("{} x", text(value)), interval(Some(ci95), text)]
                    }
                    Err(why) => {
                        absent.insert(why);
                        [NO_VALUE.into(), NO_VALUE.into()]
                    }
                };
                let of =
                    format!("{MPI}{} {} / {SOCKETS}{} {}", theirs.name, theirs.axes, ours.name, ours.axes);
                grid.add_row([
                    Bytes(ours.bytes).to_string(),
                    self.unit.coarse(theirs.summary.median),
                    self.unit.coarse(ours.summary.median),
                    value,
                    ends,
                    of.split_whitespace().collect::<Vec<_>>().join(" "),
                ]);
            }
        }
        if grid.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nMPI compared with sockets\n{}", grid.trim_fmt())?;
        absent.iter().try_for_each(|why| writeln!(out, "  n/a: {why}"))
    }
}

/// Returns the ratio of two times. Its interval combines the relative half widths of both as of independent errors, to each side.
///
/// # Errors
/// The reason why there is no ratio.
fn ratio(mpi: &Timed, sockets: &Timed) -> std::result::Result<Ratio, &'static str> {
    if mpi.launches.min(sockets.launches) < LEAST_LONG_LAUNCHES as usize {
        return Err(FEW_LAUNCHES);
    }
    // Logarithms of the ends relative to the median.
    let half_widths = |Timed { summary, .. }: &Timed| {
        let [low, high] = summary.ci95.filter(|[low, _]| *low > 0.0)?;
        Some([(summary.median / low).ln(), (high / summary.median).ln()])
    };
    let (Some([below, above]), Some([least, most])) = (half_widths(mpi), half_widths(sockets)) else {
        return Err("a time has no interval over launches");
    };
    let value = mpi.summary.median / sockets.summary.median;
    // The upper end of the divisor belongs to the lower end of the ratio.
    Ok(Ratio { value, ci95: [value * (-below.hypot(most)).exp(), value * above.hypot(least).exp()] })
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Metric, OverLaunches};
    use ombx_testkit::noise::Noise;

    use crate::overhead::*;

    fn time(median_ns: f64, ci95_ns: [f64; 2], launches: usize) -> Timed {
        let summary = Summary { ci95: Some(ci95_ns), ..Summary::new(&[median_ns; 9]).unwrap() };
        Timed { name: String::new(), axes: String::new(), bytes: 8, depth: None, summary, launches }
    }

    #[test]
    fn relative_half_widths_add_as_squares() {
        let e = |x: f64| x.exp();
        let mpi = time(500.0, [500.0 * e(-0.03), 500.0 * e(0.06)], 9);
        let sockets = time(1000.0, [1000.0 * e(-0.08), 1000.0 * e(0.04)], 6);
        let Ratio { value, ci95: [low, high] } = ratio(&mpi, &sockets).unwrap();
        assert_eq!(value, 0.5);
        assert!((low / (0.5 * e(-0.05)) - 1.0).abs() < 1e-12, "{low}");
        assert!((high / (0.5 * e(0.1)) - 1.0).abs() < 1e-12, "{high}");
    }

    #[test]
    fn few_launches_on_either_side_have_no_ratio() {
        let of = |launches| time(500.0, [490.0, 510.0], launches);
        assert_eq!(ratio(&of(5), &of(9)), Err(FEW_LAUNCHES));
        assert_eq!(ratio(&of(9), &of(5)), Err(FEW_LAUNCHES));
        assert!(ratio(&of(6), &of(6)).is_ok());
        let mut without = of(9);
        without.summary.ci95 = None;
        assert!(ratio(&without, &of(9)).is_err());
    }

    /// Launches of known medians, with the interval of order statistics of 9 launches.
    #[test]
    fn the_interval_covers_the_ratio_of_known_times() {
        let mut noise = Noise::Independent { sigma: 0.15 }.stream(7);
        let mut estimate = |median: f64| {
            let mut launches = [0.0; 9].map(|_| median * noise.next_time());
            launches.sort_unstable_by(f64::total_cmp);
            time(launches[4], [launches[1], launches[7]], 9)
        };
        let covered = (0..2000).filter(|_| {
            let [low, high] = ratio(&estimate(700.0), &estimate(2000.0)).unwrap().ci95;
            (low..high).contains(&0.35)
        });
        let covered = covered.count();
        assert!(covered >= 1860, "{covered} of 2000");
    }

    #[test]
    fn the_table_prints_the_ratio_or_the_reason() {
        let row = |bench: &str, median: f64, launches: usize| {
            let mut row = Measurement::new(bench, bench, Metric::Latency, 2);
            let ci95 = Some([0.9 * median, 1.1 * median]);
            row.bytes = Some(8);
            row.launches = (launches > 1)
                .then(|| OverLaunches::of_one_state(vec![median; launches], median, None, 0.96));
            row.summary = Some(Summary { ci95, ..Summary::new(&[median; 9]).unwrap() });
            row
        };
        let table = |launches| {
            let (mut overhead, mut text) = (Overhead::default(), Vec::new());
            overhead.add(&row("p2p.latency", 4000.0, launches));
            overhead.add(&row("sockets.latency", 16_000.0, launches));
            overhead.write(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let text = table(9);
        assert!(
            text.contains("4.00") && text.contains("0.250 x") && text.contains("0.217 .. 0.288"),
            "{text}"
        );
        let text = table(1);
        assert!(text.contains("n/a") && text.contains("needs several launches on both sides"), "{text}");
        assert!(!text.contains(" x "), "{text}");
    }
}
