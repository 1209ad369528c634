//! Benchmarks over sockets compared with other tools and plain C loops, alternately and pinned to the same two cores.

pub(crate) mod line_rate;
mod tools;

use std::{path::Path, process::ExitCode};

use ombx_record::stats::median;
use ombx_toolchain::{
    Places, Result, Workspace, compile, evidence, failed_if, installed, registry, release, table,
};

use self::tools::{Run, Tools};
use crate::{
    document,
    options::Options,
    ratio::{self, Ratio},
};

const SOURCE: &str = include_str!("reference/sockets.c");

/// Least number of pairs: launches of one program differ by more than the goals.
const LEAST_PAIRS: u64 = 10;
/// Size of a large message, in bytes.
const MIB: u32 = 1 << 20;
/// Transport whose messages have a protocol of ombx. No plain loop does the same.
const WITHOUT_LOOP: &str = "udp";

/// Comparison of one benchmark with other programs.
struct Line {
    name: String,
    ours: Run,
    others: Vec<(&'static str, Run)>,
    goal: Goal,
}

/// Goal of the ratio of two figures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    /// Of rates: ombx may be faster.
    AtLeast(f64),
    /// Of times.
    AtMost(f64),
    /// Within this part to either side: the figures should be the same.
    Within(f64),
}

impl Goal {
    fn is_met_by(self, ratio: f64) -> bool {
        match self {
            Goal::AtLeast(goal) => ratio >= goal,
            Goal::AtMost(goal) => ratio <= goal,
            Goal::Within(part) => (1.0 - part..=1.0 + part).contains(&ratio),
        }
    }

    /// Returns whether every ratio of an interval misses the goal.
    fn is_missed_by(self, [low, high]: [f64; 2]) -> bool {
        match self {
            Goal::Within(part) => high < 1.0 - part || low > 1.0 + part,
            _ => !self.is_met_by(low) && !self.is_met_by(high),
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Goal::AtLeast(goal) => write!(f, "at least {goal:.2}"),
            Goal::AtMost(goal) => write!(f, "at most {goal:.2}"),
            Goal::Within(part) => write!(f, "{:.2} to {:.2}", 1.0 - part, 1.0 + part),
        }
    }
}

/// Any byte wakes the receiver, as in the other programs.
const ANY_BYTE: &str = "--rcvlowat 1";

/// Returns the bandwidth of every transport, latencies, and the pipeline.
fn comparisons(transports: &[String]) -> Vec<Line> {
    let with_loop = transports.iter().filter(|transport| *transport != WITHOUT_LOOP);
    let mut lines: Vec<Line> = with_loop.map(|transport| bandwidth(transport)).collect();
    let latency = |transport: &str| format!("sockets.latency --transport {transport} --sizes 64 --batch 1");
    lines.push(Line {
        name: "sockets.bw tcp, 64 x 1 MiB, one buffer, mean, MB/s".into(),
        ours: Run::OmbxMean(format!(
            "sockets.bw --transport tcp --sizes 1M --window 64 --buffers single {ANY_BYTE}"
        )),
        others: vec![("iperf3 -l 1M -N", Run::Iperf3("-l 1M -N"))],
        goal: Goal::Within(0.05),
    });
    lines.push(Line {
        name: "sockets.bw tcp, reverse, 64 x 1 MiB, one buffer, mean, MB/s".into(),
        ours: Run::OmbxMean(format!(
            "sockets.bw --direction reverse --sizes 1M --window 64 --buffers single {ANY_BYTE}"
        )),
        others: vec![("iperf3 -R -l 1M -N", Run::Iperf3("-R -l 1M -N"))],
        goal: Goal::Within(0.05),
    });
    lines.push(Line {
        name: "sockets.datagrams, 1400 B at 100 Mbit/s, MB/s".into(),
        ours: Run::Ombx("sockets.datagrams --sizes 1400 --rate 100Mbit/s".into()),
        others: vec![("iperf3 -u -b 100M -l 1400", Run::Iperf3("-u -b 100M -l 1400"))],
        goal: Goal::Within(0.05),
    });
    lines.push(Line {
        name: "sockets.request, 64 B at 10000/s, half of p50, us".into(),
        ours: Run::OmbxHalf("sockets.request --sizes 64 --rate 10000".into()),
        others: vec![(
            // Both clients have one thread that polls for replies. That of `under-load` has a second one, which the kernel wakes.
            "sockperf ping-pong --tcp --nonblocked --mps 10000 -m 64",
            Run::Sockperf("ping-pong --tcp --nonblocked --mps 10000 -m 64"),
        )],
        goal: Goal::Within(0.05),
    });
    lines.push(Line {
        name: "sockets.latency tcp, 64 B, p50, us".into(),
        ours: Run::Ombx(latency("tcp")),
        others: vec![("C over tcp", Run::Plain("ping tcp 64 1".into(), 2.0))],
        goal: Goal::AtMost(1.02),
    });
    for (transport, other, words) in [
        ("tcp", "sockperf ping-pong --tcp -m 64", "ping-pong --tcp -m 64"),
        ("udp", "sockperf ping-pong -m 64", "ping-pong -m 64"),
    ] {
        lines.push(Line {
            name: format!("sockets.latency {transport}, 64 B, p50, us"),
            ours: Run::Ombx(latency(transport)),
            others: vec![(other, Run::Sockperf(words))],
            goal: Goal::Within(0.05),
        });
    }
    lines.push(Line {
        name: "sockets.latency tcp, 64 B, mean, us".into(),
        ours: Run::OmbxMean(latency("tcp")),
        others: vec![("netperf TCP_RR -r 64,64 -D", Run::Netperf(64))],
        goal: Goal::Within(0.05),
    });
    lines.push(Line {
        name: "sockets.bw tcp, 8 streams, 64 x 1 MiB, MB/s".into(),
        ours: Run::Ombx(format!("sockets.bw --transport tcp --streams 8 --sizes 1M --window 64 {ANY_BYTE}")),
        others: vec![
            ("the C loop", Run::Plain(format!("stream tcp {MIB} 64 {{}} 8"), f64::from(64 * MIB))),
            ("iperf3 -P 8 -l 1M -N", Run::Iperf3("-P 8 -l 1M -N")),
        ],
        goal: Goal::AtLeast(0.95),
    });
    lines.push(Line {
        name: "sockets.connect tcp, 1 B, us".into(),
        ours: Run::Ombx("sockets.connect --sizes 1".into()),
        others: vec![("the C loop", Run::Plain("connect tcp 1 1".into(), 1.0))],
        goal: Goal::AtMost(1.02),
    });
    lines.push(Line {
        name: "sockets.pipeline, 1 node x 2 phases, 1 MiB, MB/s".into(),
        ours: Run::Ombx(
            "sockets.pipeline --nodes 1 --phases 2 --buffer-count 64 --block 1M --ends idle".into(),
        ),
        others: vec![(
            "sockets.bw unix, 16 x 1 MiB",
            Run::Ombx("sockets.bw --transport unix --sizes 1M --window 16".into()),
        )],
        goal: Goal::AtLeast(0.9),
    });
    lines
}

fn bandwidth(transport: &str) -> Line {
    let window = if transport == "unix" { 16 } else { 64 };
    let plain = format!("stream {transport} {MIB} {window}");
    let wakes = if transport == "tcp" { ANY_BYTE } else { "" };
    Line {
        name: format!("sockets.bw {transport}, {window} x 1 MiB, MB/s"),
        ours: Run::Ombx(
            format!("sockets.bw --transport {transport} --sizes 1M --window {window} {wakes}")
                .trim_end()
                .into(),
        ),
        others: vec![("the C loop", Run::Plain(plain, f64::from(window * MIB)))],
        goal: Goal::AtLeast(0.95),
    }
}

pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mpi = installed(None)?.remove(0);
    let ombx = release::ombx(&mpi, workspace, !options.no_build)?;
    let directory = &mpi.target(&workspace.target).join("fidelity");
    let plain = compile(Path::new("cc"), &["-O2", "-Wall"], directory, "sockets.c", SOURCE)?;
    let tools = Tools { ombx, plain, places: Places::here() };

    let about = document::circumstances(options.seed);
    let (mut seed, mut lines, mut missed) = (options.seed, Vec::new(), false);
    let benches = registry::read(&tools.ombx)?;
    let transports =
        benches.iter().find(|bench| bench.name == "sockets.bw").and_then(|bench| bench.axis("transport"));
    for line in comparisons(transports.map(|axis| axis.values.as_slice()).unwrap_or_default()) {
        println!("   {}", line.name);
        let mut present = Vec::new();
        for (name, run) in &line.others {
            match tools.missing(run) {
                None => present.push((name, run)),
                Some(why) => {
                    println!("   {name}: {why}");
                    lines.push(line.unavailable(name, why));
                }
            }
        }
        if present.is_empty() {
            continue;
        }
        let mut figures = vec![Vec::new(); present.len() + 1];
        for _ in 0..options.launches.max(LEAST_PAIRS) {
            let mut order: Vec<usize> = (0..figures.len()).collect();
            ratio::shuffle(&mut order, &mut seed);
            for which in order {
                let run = if which == 0 { &line.ours } else { present[which - 1].1 };
                figures[which].push(tools.run(run)?);
            }
        }
        for ((name, _), others) in present.iter().zip(&figures[1..]) {
            let (line, miss) = line.compare(name, &figures[0], others);
            missed |= miss;
            lines.push(line);
        }
    }
    let head = "ombx | figure | the other | its figure | ratio (95 % interval) | pairs | goal | verdict";
    let table = table(head, lines);
    println!("\n{table}");
    if options.write {
        let heading = document::heading(&about, &[]);
        let section = format!("{heading}\n\n{table}");
        evidence::write(workspace, "fidelity-sockets", &section, &document::full(&heading, &table))?;
    }
    Ok(failed_if(missed))
}

impl Line {
    /// Returns the line of a comparison, and whether its goal is certainly missed.
    fn compare(&self, other: &str, ours: &[f64], others: &[f64]) -> (String, bool) {
        let pairs: Vec<(f64, f64)> = ours.iter().copied().zip(others.iter().copied()).collect();
        let ratio = Ratio::from_ratios(&pairs.iter().map(|(ours, other)| ours / other).collect::<Vec<_>>());
        let goal = self.goal;
        let verdict = match ratio.and_then(|ratio| Some((ratio.median, ratio.interval?))) {
            Some((_, [low, high])) if goal.is_met_by(low) && goal.is_met_by(high) => "met",
            Some((_, interval)) if goal.is_missed_by(interval) => "MISSED",
            Some((median, _)) if goal.is_met_by(median) => "met by the median",
            Some(_) => "missed by the median, within the interval",
            None => "too few pairs",
        };
        let show = |values: &[f64]| median(values).map_or("n/a".into(), |value| format!("{value:.2}"));
        let (name, ours, others, pairs) = (&self.name, show(ours), show(others), pairs.len());
        let ratio = ratio.map_or("n/a".into(), |ratio| ratio.to_string());
        let line = format!("{name} | {ours} | {other} | {others} | {ratio} | {pairs} | {goal} | {verdict}");
        (line, verdict == "MISSED")
    }

    /// Returns the line of a comparison with a program that is not there.
    fn unavailable(&self, other: &str, why: &str) -> String {
        format!("{} | n/a | {other} | n/a | n/a | 0 | {} | unavailable: {why}", self.name, self.goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_should_be_high_and_a_latency_low() {
        let verdict = |line: &Line, by: f64| line.compare("other", &[100.0 * by; 7], &[100.0; 7]);
        let lines = comparisons(&["tcp", "unix", "udp"].map(str::to_owned));
        assert_eq!(lines.len(), 13);
        let [tcp, _, iperf3, _, _, _, c, ..] = lines.as_slice() else { panic!() };
        assert!(verdict(tcp, 0.96).0.ends_with(" | met"));
        assert!(verdict(tcp, 0.9).1 && !verdict(tcp, 1.2).1);
        assert!(verdict(c, 1.1).1 && !verdict(c, 0.9).1);
        assert!(verdict(iperf3, 1.1).1 && verdict(iperf3, 0.9).1 && !verdict(iperf3, 1.04).1);
        assert!(tcp.compare("other", &[1.0], &[1.0]).0.ends_with(" | too few pairs"));
        let wide = [0.8, 0.85, 0.9, 0.99, 1.1, 1.2, 1.3];
        assert!(iperf3.compare("other", &wide, &[1.0; 7]).0.ends_with(" | met by the median"));
        assert!(iperf3.unavailable("netperf", "no").ends_with(" | unavailable: no"));
    }
}
