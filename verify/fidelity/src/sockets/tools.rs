//! Programs that are compared over sockets: each runs for the same time, pinned to the same two cores, and gives one figure.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ombx_record::{file, result::Measurement, stats::median};
use ombx_toolchain::{Failure, Places, Result, cannot_run, output};
use serde_json::Value;

/// Time of one run of a program, in milliseconds; the tools accept whole seconds only.
const MILLISECONDS: u64 = 1000;
/// Time in which the server of a tool listens. It prints nothing that could be waited for.
pub(super) const SERVER_STARTS: Duration = Duration::from_millis(300);

/// Run of one program.
#[derive(Debug, Clone)]
pub(super) enum Run {
    /// `ombx run` with these arguments: the median of the row.
    Ombx(String),
    /// The same: the mean, for tools that give bytes or requests per time.
    OmbxMean(String),
    /// The same: half the median, for tools that halve the time of a request and its reply.
    OmbxHalf(String),
    /// The C program with these arguments, and the bytes or legs of an iteration. The time of the run
    /// replaces `{}`, or is the last argument.
    Plain(String, f64),
    /// iperf3 with these arguments, which reports the bytes that arrive per time.
    Iperf3(&'static str),
    /// netperf's requests and replies of so many bytes, per time.
    Netperf(u32),
    /// sockperf with these arguments, over UDP or `--tcp`: the median.
    Sockperf(&'static str),
}

impl Run {
    /// Returns the program that must be installed, and why it may not be.
    pub(super) fn needs(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Run::Ombx(_) | Run::OmbxMean(_) | Run::OmbxHalf(_) | Run::Plain(..) => None,
            Run::Iperf3(_) => Some(("iperf3", "not installed (Debian: apt-get install iperf3)")),
            Run::Netperf(_) => {
                Some(("netperf", "not installed (Debian has it in the section non-free only)"))
            }
            Run::Sockperf(_) => Some(("sockperf", "not installed (Debian: apt-get install sockperf)")),
        }
    }
}

/// Programs that are compared.
pub(super) struct Tools {
    pub(super) ombx: PathBuf,
    pub(super) plain: PathBuf,
    pub(super) places: Places,
}

impl Tools {
    /// Returns why a program cannot run here.
    pub(super) fn missing(&self, run: &Run) -> Option<&'static str> {
        let (program, why) = run.needs()?;
        self.places.program(program).is_none().then_some(why)
    }

    /// Returns the figure of one run: MB/s, or microseconds one way.
    pub(super) fn run(&self, run: &Run) -> Result<f64> {
        match run {
            Run::Ombx(words) => self.ombx(words, median_of),
            Run::OmbxMean(words) => self.ombx(words, mean),
            Run::OmbxHalf(words) => self.ombx(words, |row| Some(median_of(row)? / 2.0)),
            Run::Plain(words, work) => self.plain(words, *work),
            Run::Iperf3(words) => iperf3(words),
            Run::Netperf(bytes) => netperf(*bytes),
            Run::Sockperf(words) => sockperf(words),
        }
    }

    fn ombx(&self, words: &str, figure: impl Fn(&Measurement) -> Option<f64>) -> Result<f64> {
        let mut command = Command::new(&self.ombx);
        let time = format!("{MILLISECONDS}ms");
        let effort = ["--max-time", &time, "--precision", "0.01%", "--quick"];
        command.arg("run").args(words.split(' ')).args(effort);
        command.args(["--format", "jsonl", "--quiet"]).stdin(Stdio::null());
        let row = first_row(&output(&mut command)?)?;
        figure(&row).ok_or_else(|| unreadable("ombx", &format!("{:?}", row.outcome)))
    }

    fn plain(&self, words: &str, work: f64) -> Result<f64> {
        let mut command = Command::new(&self.plain);
        let time = MILLISECONDS.to_string();
        let words = if words.contains("{}") { words.replace("{}", &time) } else { format!("{words} {time}") };
        command.args(words.split(' '));
        let value = json("sockets", &output(&mut command)?)?;
        let times: Vec<f64> =
            value["elapsed_ns"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let middle = median(&times).ok_or_else(|| unreadable("the C loop", &value.to_string()))?;
        Ok(if !words.starts_with("stream") { middle / work / 1e3 } else { work / middle * 1e3 })
    }
}

/// Returns the median rate or time of a row.
fn median_of(row: &Measurement) -> Option<f64> {
    let time = row.summary.as_ref().map(|summary| summary.median / 1e3);
    row.mb_per_s().map(|rate| rate.median).or(time)
}

/// Returns the rate or the time of a leg over all samples of a row together.
pub(super) fn mean(row: &Measurement) -> Option<f64> {
    let samples = row.samples.first()?;
    let iterations = samples.batch as f64 * samples.elapsed_ns.len() as f64;
    let ns = samples.elapsed_ns.iter().sum::<u64>() as f64 / iterations;
    let work = row.work.filter(|_| ns > 0.0)?;
    Some(match row.metric {
        ombx_record::result::Metric::Bandwidth => work.bytes as f64 / ns * 1e3,
        ombx_record::result::Metric::Latency => ns / work.legs as f64 / 1e3,
    })
}

/// Returns a command of a tool pinned to a core.
fn pinned(core: &str, program: &str, words: &[&str]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]).args(words).stdin(Stdio::null());
    command
}

/// A process that is killed when it is dropped.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Running> {
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Running).map_err(|source| cannot_run(command, source))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the server of a tool.
fn server(program: &str, words: &[&str]) -> Result<Running> {
    let server = Running::start(pinned("1", program, words).stdout(Stdio::null()))?;
    std::thread::sleep(SERVER_STARTS);
    Ok(server)
}

/// Returns the first row of a result of ombx.
pub(super) fn first_row(text: &str) -> Result<Measurement> {
    let read = file::read(text.as_bytes()).map_err(|why| unreadable("ombx", &why.to_string()))?;
    let row = read.runs.into_iter().next().and_then(|run| run.rows.into_iter().next());
    row.ok_or_else(|| unreadable("ombx", text))
}

/// Returns a port that is free now. Tools do not reuse a port at once: each run has its own.
pub(super) fn port(program: &'static str) -> Result<String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.map_err(|source| Failure::Run { program: program.into(), source })?;
    Ok(free.port().to_string())
}

fn seconds() -> String {
    (MILLISECONDS / 1000).to_string()
}

/// The sizes of socket buffers are the kernel's in both.
fn iperf3(arguments: &str) -> Result<f64> {
    let (port, seconds) = (port("iperf3")?, seconds());
    let _server = server("iperf3", &["-s", "-1", "-p", &port])?;
    let words = ["-c", "127.0.0.1", "-p", &port, "-t", &seconds, "-J"];
    let words: Vec<&str> = words.into_iter().chain(arguments.split(' ')).collect();
    let value = json("iperf3", &output(&mut pinned("0", "iperf3", &words))?)?;
    bytes_per_us(&value["end"]).ok_or_else(|| unreadable("iperf3", &value.to_string()))
}

/// Returns the MB/s that arrive, in both directions together. Of datagrams, `sum` has the rate of sending and the percentage that is lost.
pub(super) fn bytes_per_us(end: &Value) -> Option<f64> {
    let bits = |sum: &str| end[sum]["bits_per_second"].as_f64();
    let reverse = bits("sum_received_bidir_reverse").unwrap_or(0.0);
    let datagrams = || Some(bits("sum")? * (1.0 - end["sum"]["lost_percent"].as_f64()? / 100.0));
    let arriving = bits("sum_received").filter(|bits| *bits > 0.0).or_else(datagrams)?;
    Some((arriving + reverse) / 8e6)
}

/// `-D` is TCP_NODELAY at both ends.
fn netperf(bytes: u32) -> Result<f64> {
    let (port, seconds, sizes) = (port("netperf")?, seconds(), format!("{bytes},{bytes}"));
    let _server = server("netserver", &["-D", "-4", "-p", &port])?;
    let words = ["-H", "127.0.0.1", "-p", &port, "-t", "TCP_RR", "-P", "0", "-l", &seconds, "--"];
    let of_test = ["-r", &sizes, "-D", "-o", "TRANSACTION_RATE"];
    let text = output(&mut pinned("0", "netperf", &[&words[..], &of_test].concat()))?;
    let rate = text.lines().rev().find_map(|line| line.trim().parse::<f64>().ok());
    rate.filter(|rate| *rate > 0.0).map(|rate| 1e6 / rate / 2.0).ok_or_else(|| unreadable("netperf", &text))
}

fn sockperf(arguments: &str) -> Result<f64> {
    let (port, seconds) = (port("sockperf")?, seconds());
    let tcp = arguments.split(' ').filter(|word| *word == "--tcp");
    let place = ["-i", "127.0.0.1", "-p", &port];
    let serve: Vec<&str> = ["server"].into_iter().chain(tcp).chain(place).collect();
    let _server = server("sockperf", &serve)?;
    let words: Vec<&str> = arguments.split(' ').chain(place).chain(["-t", &seconds]).collect();
    let text = output(&mut pinned("0", "sockperf", &words))?;
    percentile(&text).ok_or_else(|| unreadable("sockperf", &text))
}

/// Parses the median latency of sockperf, half a round trip.
fn percentile(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.0"))?;
    line.rsplit('=').next()?.split_whitespace().next()?.parse().ok()
}

pub(super) fn json(program: &'static str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|source| Failure::Output { program, source })
}

pub(super) fn unreadable(program: &str, text: &str) -> Failure {
    let last: String = text.lines().last().unwrap_or("nothing").chars().take(200).collect();
    Failure::Missing(format!("cannot read the output of {program}: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_counts() {
        let of = |text: &str| bytes_per_us(&json("iperf3", text).unwrap());
        assert_eq!(of(r#"{"sum_received": {"bits_per_second": 8e9}}"#), Some(1000.0));
        let both = r#"{"sum_received": {"bits_per_second": 8e9}, "sum_received_bidir_reverse": {"bits_per_second": 4e9}}"#;
        assert_eq!(of(both), Some(1500.0));
        assert_eq!(of(r#"{"sum": {"bits_per_second": 8e8, "lost_percent": 25.0}}"#), Some(75.0));
        assert_eq!(of("{}"), None);
    }

    #[test]
    fn the_median_of_sockperf_is_found() {
        let text = "sockperf: ---> percentile 75.000 =   11.9\nsockperf: ---> percentile 50.000 =   11.470\n";
        assert_eq!(percentile(text), Some(11.47));
        assert_eq!(percentile("nothing"), None);
    }
}
