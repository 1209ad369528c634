//! What could have spoiled a row, and what to do about it; silent when nothing did.

use std::collections::BTreeSet;

use crate::{
    benchmark::threads::Threads,
    measure::stop::Ending,
    result::{Notice, Samples},
    stats::Summary,
    system::{clock::Facts, environment::Counters},
    team::Place,
};

/// Words of notices that say that samples do not allow what an interval says.
pub const SPOILS_THE_INTERVAL: [&str; 4] = ["no_interval", "not_converged", "autocorrelated", "bimodal"];

/// Of the samples of a row, the part that may be touched by preemption before it is marked.
const PREEMPTED_PART: f64 = 0.01;
/// Of the CPU time of a row, the part that a hypervisor may take before it is marked.
const STOLEN_PART: f64 = 0.01;
/// Of the time of a row, the part for which ranks may wait for a CPU before it is marked.
const WAITED_PART: f64 = 0.02;
/// Of a sample, the part that a reading of the clock may be before the row is marked.
const CLOCK_PART: f64 = 0.01;
/// Of the samples of a row, the part that a rank may start late before it is marked.
const LATE_PART: f64 = 0.01;
/// The kernel's clock tick of `/proc/stat`.
const TICK_NS: f64 = 1e7;
/// A clock coarser or slower than this is worth a word.
const COARSE_NS: u64 = 100;

/// Notices that hold for every row of a run: where ranks sit, how it was built, what the clock can do.
pub fn standing(places: &[Place], clock: Facts, debug_build: bool) -> Vec<Notice> {
    let mut notices = Vec::new();
    if debug_build {
        notices.push(Notice::new(
            "debug_build",
            "debug build",
            "build with --release before believing a number",
        ));
    }
    if clock.resolution_ns > COARSE_NS || clock.overhead_ns > COARSE_NS {
        let Facts { source, resolution_ns, overhead_ns } = clock;
        notices.push(Notice::new(
            "clock",
            "clock",
            format!("the {source} clock steps by {resolution_ns} ns and costs {overhead_ns} ns: short times are coarse"),
        ));
    }
    if let Some((host, ranks, cores)) = crowded(places) {
        notices.push(oversubscribed(host, ranks, cores));
    } else if let Some((a, b)) = sharing(places) {
        notices.push(Notice::new(
            "shared_cpu",
            "shared CPU",
            format!(
                "ranks {a} and {b} are bound to the same CPU of {}: bind each to its own",
                places[a].host
            ),
        ));
    }
    if let Some(rank) = places.iter().position(|p| p.online > 1 && p.cpu_numbers().len() as u32 >= p.online) {
        notices.push(Notice::new(
            "unbound",
            "unbound",
            format!(
                "rank {rank} may run on every CPU of {}: bind ranks (mpiexec -bind-to core)",
                places[rank].host
            ),
        ));
    }
    if let Some(place) = places.iter().find(|p| p.governor.as_deref().is_some_and(|g| g != "performance")) {
        let governor = place.governor.as_deref().unwrap_or_default();
        notices.push(Notice::new(
            "governor",
            format!("governor {governor}"),
            format!("CPUs of {} change frequency: set the governor to performance", place.host),
        ));
    }
    notices
}

/// The notice that a reading of the clock is a good part of a sample, in which there is one.
pub fn costly_clock(overhead_ns: u64, sample_ns: f64) -> Option<Notice> {
    let part = overhead_ns as f64 / sample_ns.max(1.0);
    (part > CLOCK_PART).then(|| {
        Notice::new(
            "clock_cost",
            format!("clock {:.0}%", part * 100.0),
            format!("a sample holds one reading of the clock, {overhead_ns} ns, which is not subtracted: --batch 10 divides it by 10"),
        )
    })
}

/// The notice that a host has more ranks than CPUs.
pub fn oversubscribed(host: &str, ranks: usize, cpus: u32) -> Notice {
    Notice::new(
        "oversubscribed",
        "oversubscribed",
        format!("{ranks} ranks spin on {cpus} CPUs of {host}: use fewer ranks or more hosts"),
    )
}

/// The notice that a broadcast took less than an empty message takes one way, by more than its interval leaves open.
pub fn below_one_way(summary: &Summary, one_way_ns: f64) -> Option<Notice> {
    let most = summary.ci95.map_or(summary.median, |[_, high]| high);
    (most < one_way_ns).then(|| {
        Notice::new(
            "below_one_way",
            "below one way",
            format!(
                "an empty message takes {:.3} us one way in this run: broadcasts overlapped, or ranks started apart",
                one_way_ns / 1e3
            ),
        )
    })
}

/// The notice that ranks started samples after the agreed time.
pub fn late_starts(samples: &[Samples]) -> Option<Notice> {
    let late: BTreeSet<u64> = samples.iter().flat_map(|s| s.late.iter().copied()).collect();
    let all = samples.iter().map(|s| s.elapsed_ns.len()).max().unwrap_or(0);
    let part = late.len() as f64 / all.max(1) as f64;
    (part > LATE_PART).then(|| {
        Notice::new(
            "late_starts",
            format!("late {:.0}%", part * 100.0),
            "a rank started after the agreed time in so many samples, which do not count: give each rank its own CPU",
        )
    })
}

/// The notice that a broadcast of no bytes was replaced by one that is sent at all.
pub fn one_byte() -> Notice {
    Notice::new(
        "one_byte",
        "1 byte",
        "a broadcast of 0 bytes sends nothing, so that its acknowledgement waits for nothing: one byte was broadcast",
    )
}

/// The notice that some ranks take no part in a benchmark.
pub fn idle_ranks(used: u32, started: u32) -> Notice {
    Notice::new(
        "idle_ranks",
        format!("{} idle", started - used),
        format!("{used} of {started} ranks take part; the others sleep"),
    )
}

/// The notice that the library was started for several threads in a rank, which this benchmark does not need.
pub fn thread_multiple() -> Notice {
    Notice::new(
        "thread_multiple",
        "thread multiple",
        "another benchmark of this run needs MPI_THREAD_MULTIPLE, whose locks cost time: run this one alone",
    )
}

/// The notice that threads of a rank share CPUs: more of them spin than it may use.
pub fn crowded_threads(places: &[Place], threads: Threads) -> Option<Notice> {
    let of = [(0, threads.senders), (1, threads.receivers)];
    let crowded = |(rank, threads): &(usize, u32)| {
        places.get(*rank).is_some_and(|place| (place.cpu_numbers().len() as u32) < *threads)
    };
    of.into_iter().find(crowded).map(|(rank, threads)| {
        Notice::new(
            "crowded_threads",
            "crowded threads",
            format!(
                "{threads} threads of rank {rank} spin on CPUs {} of {}: give each its own",
                places[rank].cpus, places[rank].host
            ),
        )
    })
}

/// A host with more ranks than CPUs for them.
fn crowded(places: &[Place]) -> Option<(&str, usize, u32)> {
    places.iter().find_map(|p| {
        let here = places.iter().filter(|q| q.host == p.host).count();
        (here > p.online as usize).then_some((p.host.as_str(), here, p.online))
    })
}

/// Two ranks of one host that are bound to one and the same CPU.
fn sharing(places: &[Place]) -> Option<(usize, usize)> {
    let single = |p: &Place| <[u32; 1]>::try_from(p.cpu_numbers()).ok().map(|[cpu]| cpu);
    let mut seen = std::collections::HashMap::new();
    places.iter().enumerate().find_map(|(rank, p)| {
        let cpu = single(p)?;
        seen.insert((p.host.as_str(), cpu), rank).map(|first| (first, rank))
    })
}

/// What happened while one row was measured.
#[derive(Debug, Clone, Copy)]
pub struct RowFacts<'a> {
    /// What its samples say.
    pub summary: &'a Summary,
    /// Added over all its ranks.
    pub vitals: Counters,
    /// Wall time of its samples, over all its ranks, in nanoseconds.
    pub cpu_ns: f64,
    /// Why sampling ended; `None` for a fixed number of iterations.
    pub ending: Option<Ending>,
    /// The precision asked for, as a fraction.
    pub precision: f64,
    /// Whether payloads were checked.
    pub verified: bool,
}

/// Notices about one row.
pub fn of_row(row: RowFacts<'_>) -> Vec<Notice> {
    let RowFacts { summary, vitals, cpu_ns, ending, precision, verified } = row;
    let mut notices = Vec::new();
    if vitals.preemptions as f64 > PREEMPTED_PART * summary.n as f64 {
        let count = vitals.preemptions;
        notices.push(Notice::new(
            "preempted",
            format!("preempted {count}x"),
            "something else ran on the ranks' CPUs: free them, or bind ranks elsewhere",
        ));
    }
    let waited = vitals.waited_ns as f64 / cpu_ns.max(1.0);
    if waited > WAITED_PART {
        notices.push(Notice::new(
            "waited",
            format!("waited {:.0}%", (waited * 100.0).min(100.0)),
            "ranks waited for so much of their time while something else had their CPUs: free them, or bind ranks elsewhere",
        ));
    }
    let stolen = vitals.stolen_ticks as f64 * TICK_NS / cpu_ns.max(1.0);
    if stolen > STOLEN_PART {
        notices.push(Notice::new(
            "stolen",
            format!("stolen {:.0}%", (stolen * 100.0).min(100.0)),
            "the hypervisor took CPU time: this virtual machine shares its cores",
        ));
    }
    if summary.ci95.is_none() {
        let why = match summary.independent() {
            false => "samples depend on those before them however they are grouped",
            true => "fewer than 6 samples have no interval",
        };
        notices.push(Notice::new(
            "no_interval",
            "no interval",
            format!("{why}: raise --max-time or --iterations"),
        ));
    }
    if ending == Some(Ending::OutOfBudget) && summary.precision().is_none_or(|p| p > precision) {
        let reached = match summary.precision() {
            None => "no interval".into(),
            Some(p) if p > 1.0 => "over 100%".into(),
            Some(p) => format!("{:.1}%", p * 100.0),
        };
        notices.push(Notice::new(
            "not_converged",
            format!("not converged ({reached})"),
            format!("precision reached: {reached}, asked for {:.1}%: raise --max-time", precision * 100.0),
        ));
    }
    if !summary.independent() {
        notices.push(Notice::new(
            "autocorrelated",
            format!("autocorrelated {:.2}", summary.lag1),
            "samples drift or come in phases: look at the raw samples, raise --max-time",
        ));
    }
    if summary.bimodal {
        notices.push(Notice::new(
            "bimodal",
            "bimodal",
            "samples fall into two groups: the median is one of them; look at the raw samples and at other launches",
        ));
    }
    if !verified {
        notices.push(Notice::new("unverified", "unverified", "payloads were not checked"));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Facts = Facts { source: "tsc", resolution_ns: 1, overhead_ns: 9 };

    fn place(host: &str, cpus: &str) -> Place {
        Place { host: host.into(), cpus: cpus.into(), online: 2, governor: None }
    }

    fn codes(notices: &[Notice]) -> Vec<&str> {
        notices.iter().map(|n| n.code.as_str()).collect()
    }

    fn quiet(summary: &Summary) -> RowFacts<'_> {
        RowFacts {
            summary,
            vitals: Counters::default(),
            cpu_ns: 1e9,
            ending: Some(Ending::Converged),
            precision: 0.01,
            verified: true,
        }
    }

    #[test]
    fn a_clean_run_is_silent() {
        assert!(standing(&[place("a", "0"), place("a", "1")], GOOD, false).is_empty());
        let summary = Summary::of(&[10.0, 10.1, 10.0, 10.1, 10.0, 10.1, 10.05, 10.0, 10.1, 10.0]).unwrap();
        assert!(of_row(quiet(&summary)).is_empty(), "{:?}", of_row(quiet(&summary)));
    }

    #[test]
    fn each_standing_risk_is_named() {
        let cases: [(&[Place], Facts, bool, &str); 6] = [
            (&[place("a", "0")], GOOD, true, "debug_build"),
            (&[place("a", "0")], Facts { overhead_ns: 500, ..GOOD }, false, "clock"),
            (&[place("a", "0"), place("a", "1"), place("a", "0")], GOOD, false, "oversubscribed"),
            (&[place("a", "1"), place("a", "1")], GOOD, false, "shared_cpu"),
            (&[place("a", "0-1"), place("b", "0")], GOOD, false, "unbound"),
            (&[Place { governor: Some("powersave".into()), ..place("a", "0") }], GOOD, false, "governor"),
        ];
        for (places, clock, debug, code) in cases {
            assert_eq!(codes(&standing(places, clock, debug)), [code]);
        }
        assert!(standing(&[place("a", "0"), place("b", "0")], GOOD, false).is_empty());
    }

    #[test]
    fn threads_need_a_cpu_each() {
        let threads = |text: &str| text.parse::<Threads>().unwrap();
        let places = [place("a", "0"), place("a", "1-3")];
        assert_eq!(crowded_threads(&places, threads("1:3")), None);
        let advice = |text: &str| crowded_threads(&places, threads(text)).unwrap().advice;
        assert!(advice("2:3").starts_with("2 threads of rank 0 spin on CPUs 0"));
        assert!(advice("1:4").starts_with("4 threads of rank 1 spin on CPUs 1-3"));
    }

    #[test]
    fn each_accident_of_a_row_is_named() {
        let steady = Summary::of(&[10.0; 200]).unwrap();
        let preempted =
            RowFacts { vitals: Counters { preemptions: 12, ..Counters::default() }, ..quiet(&steady) };
        assert_eq!(of_row(preempted)[0].short, "preempted 12x");
        let stolen =
            RowFacts { vitals: Counters { stolen_ticks: 20, ..Counters::default() }, ..quiet(&steady) };
        assert_eq!(codes(&of_row(stolen)), ["stolen"]);
        let waited_ns = (quiet(&steady).cpu_ns * 0.3) as u64;
        let waited = RowFacts { vitals: Counters { waited_ns, ..Counters::default() }, ..quiet(&steady) };
        assert_eq!(of_row(waited)[0].short, "waited 30%");
        assert_eq!(codes(&of_row(RowFacts { verified: false, ..quiet(&steady) })), ["unverified"]);
        let wide = Summary::of(&[10.0, 30.0, 12.0, 28.0, 11.0, 29.0, 13.0]).unwrap();
        let late = RowFacts { ending: Some(Ending::OutOfBudget), ..quiet(&wide) };
        assert!(codes(&of_row(late)).contains(&"not_converged"));
        let few = Summary::of(&[10.0, 11.0]).unwrap();
        assert_eq!(codes(&of_row(RowFacts { ending: None, ..quiet(&few) })), ["no_interval"]);
        let drift = Summary::of(&(0..100).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert!(codes(&of_row(quiet(&drift))).contains(&"autocorrelated"));
    }

    #[test]
    fn one_preemption_in_thousands_of_samples_is_no_notice() {
        let steady = Summary::of(&[10.0; 1000]).unwrap();
        let once = RowFacts { vitals: Counters { preemptions: 1, ..Counters::default() }, ..quiet(&steady) };
        assert!(of_row(once).is_empty());
    }
}
