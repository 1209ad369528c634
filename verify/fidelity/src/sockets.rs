//! Benchmarks over sockets compared with other tools and plain C loops, alternately and pinned to the same two cores.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use ombx_results::file;
use serde_json::Value;

use ombx_toolchain::{
    command::{compile, output},
    failure::{Failure, Result, failed_if},
    mpi::{Places, installed},
    registry, release,
    table::table,
    workspace::Workspace,
};

use crate::{
    document::{self, Circumstances},
    options::Options,
    ratio::{self, Ratio, median},
};

const SOURCE: &str = include_str!("reference/sockets.c");

/// Time of one run of a program, in milliseconds; iperf3 and sockperf accept whole seconds only.
const MILLISECONDS: u64 = 1000;
/// Port of other tools, unlikely to be in use.
const PORT: &str = "39217";
/// Size of a large message, in bytes.
const MIB: u32 = 1 << 20;

/// Comparison of one benchmark with other programs.
struct Line {
    name: String,
    /// Whether it is a rate in MB/s; otherwise a latency in microseconds.
    rate: bool,
    ours: Run,
    others: Vec<(String, Run)>,
    /// Goal of the ratio of both figures: at least this for a rate, at most this for a latency.
    goal: f64,
}

/// Run of one program.
enum Run {
    /// `ombx run` with these arguments.
    Ombx(String),
    /// The C program with these arguments, and the bytes or legs of an iteration. The time of the run replaces `{}` or is the last.
    Plain(String, f64),
    /// iperf3 with a number of streams.
    Iperf3(u32),
    Sockperf,
}

/// Transport whose messages have a protocol of ombx. No plain loop does the same.
const WITHOUT_LOOP: &str = "udp";

/// Returns the bandwidth of every transport, a latency, and the pipeline.
fn comparisons(transports: &[String]) -> Vec<Line> {
    let with_loop = transports.iter().filter(|transport| *transport != WITHOUT_LOOP);
    let mut lines: Vec<Line> = with_loop.map(|transport| bandwidth(transport)).collect();
    lines.push(several_streams(8));
    lines.push(Line {
        name: "sockets.connect tcp, 1 B, us".into(),
        rate: false,
        ours: Run::Ombx("sockets.connect --sizes 1".into()),
        others: vec![("C over tcp".into(), Run::Plain("connect tcp 1 1".into(), 1.0))],
        goal: 1.02,
    });
    lines.push(Line {
        name: "sockets.latency tcp, 64 B, p50, us".into(),
        rate: false,
        ours: Run::Ombx("sockets.latency --transport tcp --sizes 64 --batch 1".into()),
        others: vec![
            ("sockperf ping-pong".into(), Run::Sockperf),
            ("C over tcp".into(), Run::Plain("ping tcp 64 1".into(), 2.0)),
        ],
        goal: 1.02,
    });
    lines.push(Line {
        name: "sockets.pipeline, 1 node x 2 phases, 1 MiB, MB/s".into(),
        rate: true,
        ours: Run::Ombx(
            "sockets.pipeline --nodes 1 --phases 2 --buffer-count 64 --block 1M --ends idle".into(),
        ),
        others: vec![(
            "sockets.bw unix, 16 x 1 MiB".into(),
            Run::Ombx("sockets.bw --transport unix --sizes 1M --window 16".into()),
        )],
        goal: 0.9,
    });
    lines
}

fn bandwidth(transport: &str) -> Line {
    let window = if transport == "unix" { 16 } else { 64 };
    let mut others = vec![(
        format!("C over {transport}"),
        Run::Plain(format!("stream {transport} {MIB} {window}"), f64::from(window * MIB)),
    )];
    if transport == "tcp" {
        others.insert(0, ("iperf3 -l 1M".into(), Run::Iperf3(1)));
    }
    Line {
        name: format!("sockets.bw {transport}, {window} x 1 MiB, MB/s"),
        rate: true,
        ours: Run::Ombx(format!("sockets.bw --transport {transport} --sizes 1M --window {window}")),
        others,
        goal: 0.95,
    }
}

/// Returns the bandwidth of several streams.
fn several_streams(streams: u32) -> Line {
    let window = 64;
    Line {
        name: format!("sockets.bw tcp, {streams} streams, {window} x 1 MiB, MB/s"),
        rate: true,
        ours: Run::Ombx(format!("sockets.bw --streams {streams} --sizes 1M --window {window}")),
        others: vec![
            (format!("iperf3 -l 1M -P {streams}"), Run::Iperf3(streams)),
            (
                "C over tcp".into(),
                Run::Plain(format!("stream tcp {MIB} {window} {{}} {streams}"), f64::from(window * MIB)),
            ),
        ],
        goal: 0.95,
    }
}

/// Programs that are compared.
struct Tools {
    ombx: PathBuf,
    plain: PathBuf,
    places: Places,
}

pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mpi = installed(None)?.remove(0);
    let ombx = match options.no_build {
        true => release::existing(mpi.target(&workspace.target).join("release").join("ombx"))?,
        false => release::built(&mpi, workspace, &workspace.target)?,
    };
    let directory = &mpi.target(&workspace.target).join("fidelity");
    let plain = compile(Path::new("cc"), &["-O2", "-Wall"], directory, "sockets.c", SOURCE)?;
    let tools = Tools { ombx, plain, places: Places::here() };

    let about = Circumstances::now(options.seed);
    let (mut seed, mut lines, mut missed) = (options.seed, Vec::new(), false);
    let benches = registry::read(&tools.ombx)?;
    let transports =
        benches.iter().find(|bench| bench.name == "sockets.bw").and_then(|bench| bench.axis("transport"));
    for line in comparisons(transports.map(|axis| axis.values.as_slice()).unwrap_or_default()) {
        println!("   {}", line.name);
        let present: Vec<_> = line.others.iter().filter(|(name, run)| tools.has(name, run)).collect();
        let mut figures = vec![Vec::new(); present.len() + 1];
        for _ in 0..options.launches {
            let mut order: Vec<usize> = (0..figures.len()).collect();
            ratio::shuffle(&mut order, &mut seed);
            for which in order {
                let run = if which == 0 { &line.ours } else { &present[which - 1].1 };
                figures[which].push(tools.run(run)?);
            }
        }
        for ((name, _), others) in present.iter().zip(&figures[1..]) {
            let (cells, miss) = line.compare(name, &figures[0], others);
            missed |= miss;
            lines.push(cells);
        }
    }
    let head =
        ["ombx", "figure", "the other", "its figure", "ratio (95 % interval)", "pairs", "goal", "verdict"];
    let table = table(&head, lines);
    println!("\n{table}");
    if options.write {
        let text = format!("{}\n\n{table}", about.heading(std::iter::empty()));
        document::renew(workspace, |page| document::with_sockets(page, &text))?;
    }
    Ok(failed_if(missed))
}

impl Line {
    /// Returns the cells of a comparison, and whether its goal is certainly missed.
    fn compare(&self, other: &str, ours: &[f64], others: &[f64]) -> (Vec<String>, bool) {
        let pairs: Vec<(f64, f64)> = ours.iter().copied().zip(others.iter().copied()).collect();
        let ratio = Ratio::of(&pairs.iter().map(|(ours, other)| ours / other).collect::<Vec<_>>());
        let good = |value: f64| if self.rate { value >= self.goal } else { value <= self.goal };
        let verdict = match ratio.and_then(|ratio| Some((ratio.median, ratio.interval?))) {
            Some((_, [low, high])) if good(low) && good(high) => "met",
            Some((_, [low, high])) if !good(low) && !good(high) => "MISSED",
            Some((median, _)) if good(median) => "met by the median",
            Some(_) => "below the goal, within the interval",
            None => "too few pairs",
        };
        let show = |values: &[f64]| median(values).map_or("n/a".into(), |value| format!("{value:.4}"));
        let sign = if self.rate { "at least" } else { "at most" };
        let cells = vec![
            self.name.clone(),
            show(ours),
            other.into(),
            show(others),
            ratio.map_or("n/a".into(), |ratio| ratio.to_string()),
            pairs.len().to_string(),
            format!("{sign} {:.2}", self.goal),
            verdict.into(),
        ];
        (cells, verdict == "MISSED")
    }
}

impl Tools {
    /// Returns whether a program is installed, and prints if it is not.
    fn has(&self, name: &str, run: &Run) -> bool {
        let program = match run {
            Run::Iperf3(_) => "iperf3",
            Run::Sockperf => "sockperf",
            Run::Ombx(_) | Run::Plain(..) => return true,
        };
        let found = self.places.program(program).is_some();
        if !found {
            println!("   {name}: skipped, {program} is not installed (Debian: apt-get install {program})");
        }
        found
    }

    /// Returns the figure of one run: MB/s, or microseconds one way.
    fn run(&self, run: &Run) -> Result<f64> {
        match run {
            Run::Ombx(words) => self.ombx(words),
            Run::Plain(words, work) => self.plain(words, *work),
            Run::Iperf3(streams) => iperf3(*streams),
            Run::Sockperf => sockperf(),
        }
    }

    fn ombx(&self, words: &str) -> Result<f64> {
        let mut command = Command::new(&self.ombx);
        let time = format!("{MILLISECONDS}ms");
        command.arg("run").args(words.split(' ')).args([
            "--max-time",
            &time,
            "--precision",
            "0.01%",
            "--quick",
        ]);
        command.args(["--format", "jsonl", "--quiet"]).stdin(Stdio::null());
        let text = output(&mut command)?;
        let file = file::read(text.as_bytes()).map_err(|why| unreadable("ombx", &why.to_string()))?;
        let row = file.runs.first().and_then(|run| run.rows.first());
        let row = row.ok_or_else(|| unreadable("ombx", &text))?;
        let rate = row.mb_per_s().map(|rate| rate.median);
        let time = row.summary.as_ref().map(|summary| summary.median / 1e3);
        let figure = if row.metric == ombx_core::benchmark::Metric::Bandwidth { rate } else { time };
        figure.ok_or_else(|| unreadable("ombx", &format!("{:?}", row.outcome)))
    }

    fn plain(&self, words: &str, work: f64) -> Result<f64> {
        let mut command = Command::new(&self.plain);
        let time = MILLISECONDS.to_string();
        let words = if words.contains("{}") { words.replace("{}", &time) } else { format!("{words} {time}") };
        command.args(words.split(' '));
        let text = output(&mut command)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|source| Failure::Output { program: "sockets", source })?;
        let times: Vec<f64> =
            value["elapsed_ns"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let middle = median(&times).ok_or_else(|| unreadable("the C loop", &text))?;
        Ok(if words.starts_with("stream") { work / middle * 1e3 } else { middle / work / 1e3 })
    }
}

/// Returns a command of a tool pinned to a core.
fn pinned(core: &str, program: &str, words: &[&str]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]).args(words).stdin(Stdio::null());
    command
}

/// Server of a tool, killed when it is dropped.
struct Server(Child);

impl Server {
    fn start(program: &str, words: &[&str]) -> Result<Server> {
        let mut command = pinned("1", program, words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|source| Failure::Run { program: program.into(), source })?;
        // It prints nothing that could be waited for.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Server(child))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn iperf3(streams: u32) -> Result<f64> {
    let _server = Server::start("iperf3", &["-s", "-1", "-p", PORT])?;
    let seconds = (MILLISECONDS / 1000).to_string();
    let text = output(&mut pinned(
        "0",
        "iperf3",
        &["-c", "127.0.0.1", "-p", PORT, "-l", "1M", "-t", &seconds, "-J", "-P", &streams.to_string()],
    ))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|source| Failure::Output { program: "iperf3", source })?;
    let bits = value["end"]["sum_received"]["bits_per_second"].as_f64();
    bits.map(|bits| bits / 8e6).ok_or_else(|| unreadable("iperf3", &text))
}

fn sockperf() -> Result<f64> {
    // It does not reuse a port at once: each run has its own.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|source| Failure::Run { program: "sockperf".into(), source })?.port().to_string();
    let _server = Server::start("sockperf", &["server", "--tcp", "-i", "127.0.0.1", "-p", &port])?;
    let seconds = (MILLISECONDS / 1000).to_string();
    let words = ["ping-pong", "--tcp", "-i", "127.0.0.1", "-p", &port, "-m", "64", "-t", &seconds];
    let text = output(&mut pinned("0", "sockperf", &words))?;
    percentile(&text).ok_or_else(|| unreadable("sockperf", &text))
}

/// Parses the median latency of sockperf, half a round trip.
fn percentile(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.0"))?;
    line.rsplit('=').next()?.split_whitespace().next()?.parse().ok()
}

fn unreadable(program: &str, text: &str) -> Failure {
    let last: String = text.lines().last().unwrap_or("nothing").chars().take(200).collect();
    Failure::Missing(format!("cannot read the output of {program}: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_should_be_high_and_a_latency_low() {
        let verdict = |line: &Line, by: f64| line.compare("other", &[100.0 * by; 7], &[100.0; 7]);
        let lines = comparisons(&["tcp", "unix", "udp"].map(str::to_owned));
        assert_eq!(lines.len(), 6);
        assert_eq!(verdict(&lines[0], 0.96).0.last().unwrap(), "met");
        assert!(verdict(&lines[0], 0.9).1 && !verdict(&lines[0], 1.2).1);
        assert!(verdict(&lines[3], 1.1).1 && !verdict(&lines[3], 0.9).1);
        assert_eq!(lines[0].compare("other", &[1.0], &[1.0]).0.last().unwrap(), "too few pairs");
    }

    #[test]
    fn the_median_of_sockperf_is_found() {
        let text = "sockperf: ---> percentile 75.000 =   11.9\nsockperf: ---> percentile 50.000 =   11.470\n";
        assert_eq!(percentile(text), Some(11.47));
        assert_eq!(percentile("nothing"), None);
    }
}
