//! ombx and iperf3 at line rate, in turns, on loopback and between two network namespaces: rate, CPU time per gigabyte and loss.
//!
//! Both programs run with a core for each end, the default of ombx, and without affinity, the default of iperf3. CPU time is that of all
//! processes of a program at both ends, read in `/proc` from outside while data flows.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use ombx_host::since::Since;
use ombx_record::{
    result::{Figure, Measurement, Phases},
    stats::median,
};
use ombx_toolchain::{
    Failure, Places, Result, Workspace, evidence, failed_if, installed, named, output, release, succeeds,
    table,
};

use super::tools::{Running, SERVER_STARTS, bytes_per_us, first_row, json, mean, port, unreadable};
use crate::{
    document,
    options::Options,
    ratio::{self, Ratio},
};

/// Time for which data flows, in seconds.
const SECONDS: u64 = 2;
/// Part of that time in which CPU time is counted, in milliseconds after the start of the program that prints figures.
const COUNTED_MS: [u64; 2] = [1000, 1950];
/// Clock ticks per second in /proc (`USER_HZ`), the same on all architectures of Linux that ombx supports.
const TICKS: f64 = 100.0;
/// Addresses of the two namespaces, from the range for benchmarks (RFC 2544).
const ADDRESSES: [&str; 2] = ["198.18.231.1", "198.18.231.2"];
/// Limits of the ratios of rates and of CPU times.
const LEAST_RATE: f64 = 1.0;
const MOST_CPU: f64 = 1.0;

/// What both programs do. The rate of UDP is one that no host reaches. TCP has one window without a sample and one with, of which each
/// lasts about as long as the transfer of iperf3: after each window the sender waits for an answer, and streams for each other.
struct Test {
    name: &'static str,
    ombx: &'static str,
    iperf3: &'static str,
}

const TESTS: [Test; 9] = [
    Test {
        name: "TCP, 128 KiB",
        ombx: "sockets.bw --sizes 128K --window 65536 --buffers single --iterations 1 --warmup 0",
        iperf3: "-l 128K -N",
    },
    // iperf3 has no low-water mark. Here the receiver of ombx has none either.
    Test {
        name: "TCP, 128 KiB, --rcvlowat 1",
        ombx: "sockets.bw --sizes 128K --window 65536 --buffers single --rcvlowat 1 --iterations 1 --warmup 0",
        iperf3: "-l 128K -N",
    },
    Test {
        name: "TCP, 8 streams",
        ombx: "sockets.bw --streams 8 --sizes 128K --window 131072 --buffers single --iterations 1 --warmup 0",
        iperf3: "-l 128K -N -P 8",
    },
    Test {
        name: "TCP, reverse",
        ombx: "sockets.bw --direction reverse --sizes 128K --window 65536 --buffers single --iterations 1 --warmup 0",
        iperf3: "-l 128K -N -R",
    },
    // A system may have BBR as its default, which paces segments.
    Test {
        name: "TCP, 128 KiB, cubic",
        ombx: "sockets.bw --sizes 128K --window 131072 --buffers single --congestion cubic --iterations 1 --warmup 0",
        iperf3: "-l 128K -N -C cubic",
    },
    Test {
        name: "TCP, reverse, cubic",
        ombx: "sockets.bw --direction reverse --sizes 128K --window 131072 --buffers single --congestion \
               cubic --iterations 1 --warmup 0",
        iperf3: "-l 128K -N -R -C cubic",
    },
    Test {
        name: "TCP, both directions, 2 streams",
        ombx: "sockets.bibw --streams 2 --sizes 128K --window 65536 --buffers single --iterations 1 --warmup 0",
        iperf3: "-l 128K -N --bidir -P 2",
    },
    Test {
        name: "UDP, 1400 B, unlimited, GSO and GRO in ombx only",
        ombx: "sockets.datagrams --sizes 1400 --rate 10000000 --iterations 16000000 --warmup 1000",
        iperf3: "-l 1400 -u -b 0",
    },
    Test {
        name: "UDP, 1400 B, unlimited, GSO and GRO in both",
        ombx: "sockets.datagrams --sizes 1400 --rate 10000000 --iterations 16000000 --warmup 1000",
        iperf3: "-l 1400 -u -b 0 --gsro",
    },
];

/// Result of one run.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// MB/s that arrive.
    rate: f64,
    /// CPU seconds per gigabyte that arrives.
    cpu: f64,
    /// Percentage of the datagrams that are lost, or segments of TCP that are sent again.
    lost: f64,
}

/// Where the ends of a connection run.
enum Place {
    Loopback,
    Namespaces([String; 2]),
}

impl Place {
    const NAMES: [&'static str; 2] = ["loopback", "namespaces"];

    /// Makes two network namespaces with a link between them.
    fn namespaces() -> Result<Place> {
        let names = ["a", "b"].map(|end| format!("ombx-{}-{end}", std::process::id()));
        let place = Place::Namespaces(names.clone());
        let [a, b] = &names;
        let mut lines = vec![
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add ombx0 type veth peer name ombx0 netns {b}"),
        ];
        for (name, address) in names.iter().zip(ADDRESSES) {
            lines.push(format!("-n {name} address add {address}/24 dev ombx0"));
            lines.push(format!("-n {name} link set lo up"));
            lines.push(format!("-n {name} link set ombx0 up"));
        }
        for line in lines {
            output(Command::new("ip").args(line.split(' ')))?;
        }
        Ok(place)
    }

    /// Returns a command at one end: 0 for the server, 1 for the client.
    fn command(&self, end: usize, program: &Path) -> Command {
        match self {
            Place::Loopback => Command::new(program),
            Place::Namespaces(names) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &names[end]]).arg(program);
                command
            }
        }
    }

    fn server(&self) -> &'static str {
        match self {
            Place::Loopback => "127.0.0.1",
            Place::Namespaces(_) => ADDRESSES[0],
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Place::Namespaces(names) = self {
            for name in names {
                succeeds(Command::new("ip").args(["netns", "delete", name]));
            }
        }
    }
}

impl Running {
    /// Returns what the program prints, and its CPU time per second with that of `others` while data flows.
    fn finish(mut self, others: &[u32]) -> Result<(String, f64)> {
        let out = self.0.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            out.map(|mut out| std::io::Read::read_to_string(&mut out, &mut text));
            text
        });
        let start = Since::now();
        let roots: Vec<u32> = others.iter().copied().chain([self.0.id()]).collect();
        let mut read = COUNTED_MS.map(|ms| {
            std::thread::sleep(Duration::from_millis(ms).saturating_sub(start.elapsed()));
            (start.elapsed(), cpu_ticks(&roots))
        });
        let [(from, before), (to, after)] = &mut read;
        let ticks: u64 =
            after.iter().map(|(pid, ticks)| ticks.saturating_sub(*before.get(pid).unwrap_or(&0))).sum();
        let cpu = ticks as f64 / TICKS / (*to - *from).as_secs_f64();
        let ended = self.0.wait();
        let text = reader.join().unwrap_or_default();
        match ended {
            Ok(status) if status.success() => Ok((text, cpu)),
            other => Err(Failure::Missing(format!("a program ended with {other:?}: {text}"))),
        }
    }
}

/// Returns the CPU time of the processes below some roots, in ticks.
fn cpu_ticks(roots: &[u32]) -> BTreeMap<u32, u64> {
    let mut all: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        all.extend(parent_and_ticks(&stat).map(|found| (pid, found)));
    }
    let is_below = |pid: u32| {
        let parents = std::iter::successors(Some(pid), |pid| all.get(pid).map(|(parent, _)| *parent));
        parents.take(32).any(|pid| roots.contains(&pid))
    };
    all.iter().filter(|(pid, _)| is_below(**pid)).map(|(pid, (_, ticks))| (*pid, *ticks)).collect()
}

/// Parses a line of /proc/PID/stat (proc(5)): the parent, and the ticks in user and system mode.
fn parent_and_ticks(stat: &str) -> Option<(u32, u64)> {
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| words.get(at)?.parse::<u64>().ok();
    Some((words.get(1)?.parse().ok()?, ticks(11)? + ticks(12)?))
}

/// Programs that are compared.
struct Programs {
    ombx: PathBuf,
    iperf3: PathBuf,
    /// File with the token of a server of ombx.
    token: PathBuf,
}

impl Programs {
    /// Runs iperf3, with an option for its affinity.
    fn iperf3(&self, place: &Place, test: &Test, affinity: &[String]) -> Result<Figures> {
        let port = port("iperf3")?;
        let mut server = place.command(0, &self.iperf3);
        let server = Running::start(server.args(["-s", "-1", "-p", &port]).stdout(Stdio::null()))?;
        std::thread::sleep(SERVER_STARTS);
        let mut client = place.command(1, &self.iperf3);
        client.args(["-c", place.server(), "-p", &port, "-t", &SECONDS.to_string(), "-J"]);
        client.args(test.iperf3.split(' ')).args(affinity).stdout(Stdio::piped());
        let (text, cpu) = Running::start(&mut client)?.finish(&[server.0.id()])?;
        let end = &json("iperf3", &text)?["end"];
        let rate = bytes_per_us(end).ok_or_else(|| unreadable("iperf3", &text))?;
        let again = |sum: &str| end[sum]["retransmits"].as_f64().unwrap_or(0.0);
        let lost = end["sum"]["lost_percent"].as_f64();
        let lost = lost.unwrap_or_else(|| again("sum_sent") + again("sum_sent_bidir_reverse"));
        Ok(Figures { rate, cpu: cpu / rate * 1e3, lost })
    }

    /// Runs ombx, with options for its affinity.
    fn ombx(&self, place: &Place, test: &Test, affinity: &[&str]) -> Result<Figures> {
        let mut client = place.command(1, &self.ombx);
        client.arg("run").args(test.ombx.split(' ')).args(["--quick", "--quiet", "--format", "jsonl"]);
        client.args(affinity);
        client.stdout(Stdio::piped());
        // A schedule is one round, whose length follows from a short warm-up if it is not given.
        if !test.ombx.contains("--iterations") {
            client.args(["--duration", &format!("{SECONDS}s")]);
        }
        let server = match place {
            Place::Loopback => None,
            Place::Namespaces(_) => {
                let (port, token) = (port("ombx")?, self.token.display().to_string());
                let mut server = place.command(0, &self.ombx);
                server.args(["sockets", "serve", "--once", "--bind", place.server(), "--port", &port]);
                let server = Running::start(server.args(["--token-file", &token]).stdout(Stdio::null()))?;
                std::thread::sleep(SERVER_STARTS);
                let address = format!("{}:{port}", place.server());
                client.args(["--connect", &address, "--token-file", &token]);
                Some(server)
            }
        };
        let others: Vec<u32> = server.iter().map(|server| server.0.id()).collect();
        let (text, cpu) = Running::start(&mut client)?.finish(&others)?;
        let row = &first_row(&text)?;
        let rate = rate(row).ok_or_else(|| unreadable("ombx", &format!("{:?}", row.outcome)))?;
        let figure = |name: &str| match row.figures.get(name) {
            Some(Figure::Value(value)) => Some(*value),
            _ => None,
        };
        let lost = figure("lost_percent").or_else(|| figure("retransmits")).unwrap_or(0.0);
        // CPU time is that of all times, the rate that of samples.
        Ok(Figures { rate, cpu: cpu / (rate * sampled_share(row)) * 1e3, lost })
    }
}

/// Returns the part of the time of rounds and between them in which samples are taken.
fn sampled_share(row: &Measurement) -> f64 {
    let share = |phases: Phases| phases.sample_ns as f64 / (phases.sample_ns + phases.decide_ns) as f64;
    row.phases.map(share).filter(|share| *share > 0.0).unwrap_or(1.0)
}

/// Returns the rate of all samples together; of datagrams the median of the parts of a round, whose samples are intervals between arrivals.
fn rate(row: &Measurement) -> Option<f64> {
    if row.figures.contains_key("lost_percent") { row.mb_per_s().map(|rate| rate.median) } else { mean(row) }
}

/// Returns the option of iperf3 for a CPU of each end, in the order of ombx, whose client is rank 0. Without a second CPU there is none.
fn affinity() -> Vec<String> {
    match ombx_host::environment::place_of_thread().cpu_numbers()[..] {
        [client, server, ..] => vec!["-A".into(), format!("{client},{server}")],
        _ => Vec::new(),
    }
}

/// Figures of both programs in one place.
struct Compared {
    place: &'static str,
    test: &'static str,
    /// How both ran.
    affinity: &'static str,
    /// Of ombx and of iperf3, in pairs.
    pairs: Vec<[Figures; 2]>,
}

impl Compared {
    fn ratio(&self, of: impl Fn(&Figures) -> f64) -> Option<Ratio> {
        Ratio::from_ratios(&self.pairs.iter().map(|[ours, other]| of(ours) / of(other)).collect::<Vec<_>>())
    }

    /// Returns whether the whole interval of the ratio of rates misses its goal, and whether that of CPU times does.
    fn misses(&self) -> [bool; 2] {
        let interval = |ratio: Option<Ratio>| ratio.and_then(|ratio| ratio.interval);
        [
            interval(self.ratio(|one| one.rate)).is_some_and(|[_, high]| high < LEAST_RATE),
            interval(self.ratio(|one| one.cpu)).is_some_and(|[low, _]| low > MOST_CPU),
        ]
    }

    fn line(&self) -> String {
        let middle = |at: usize, of: &dyn Fn(&Figures) -> f64| {
            median(&self.pairs.iter().map(|pair| of(&pair[at])).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let both = |of: &dyn Fn(&Figures) -> f64| [middle(0, of), middle(1, of)];
        let [rate, other_rate] = both(&|one| one.rate * 8.0 / 1e3);
        let [cpu, other_cpu] = both(&|one| one.cpu);
        let [lost, other_lost] = both(&|one| one.lost);
        let [slower, costlier] = self.misses();
        let ratio = |ratio: Option<Ratio>, is_missed: bool| match ratio {
            Some(ratio) if is_missed => format!("**{ratio}**"),
            Some(ratio) => ratio.to_string(),
            None => "n/a".into(),
        };
        format!(
            "{} | {} | {} | {rate:.2}, {other_rate:.2} | {} | {cpu:.3}, {other_cpu:.3} | {} | {}, {}",
            self.place,
            self.test,
            self.affinity,
            ratio(self.ratio(|one| one.rate), slower),
            ratio(self.ratio(|one| one.cpu), costlier),
            self.shown_loss(lost),
            self.shown_loss(other_lost),
        )
    }

    /// Returns what was lost or sent again, with its unit.
    fn shown_loss(&self, value: f64) -> String {
        if self.test.starts_with("UDP") { format!("{value:.2} %") } else { format!("{value:.0} segments") }
    }
}

/// Ways in which both programs are bound: a name, and what is compared of ombx with cores and without, iperf3 with cores and without.
const FORMS: [(&str, [usize; 2]); 3] = [("a core each", [0, 2]), ("none", [1, 3]), ("defaults", [0, 3])];
/// Headings of the table.
const HEAD: &str = "between | test | affinity | Gbit/s of ombx, iperf3 | ratio of rates (95 % interval) | \
                    CPU s/GB of ombx, iperf3 | ratio of CPU times | lost or sent again, of ombx, iperf3";

pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let ombx = match &options.ombx {
        Some(ombx) => release::existing(ombx.clone())?,
        None => release::built(&installed(None)?.remove(0), workspace, &workspace.target)?,
    };
    let Some(iperf3) = Places::here().program("iperf3") else {
        println!("skipped: iperf3 is not installed (Debian: apt-get install iperf3)");
        return Ok(ExitCode::SUCCESS);
    };
    let help = output(Command::new(&iperf3).arg("--help"))?;
    let token = workspace.target.join(format!("line-rate-{}.token", std::process::id()));
    let programs = Programs { ombx, iperf3, token };
    let about = document::circumstances(options.seed);
    let is_known = |test: &&Test| help.contains("--gsro") || !test.iperf3.contains("--gsro");
    let tests = named(TESTS.iter().filter(is_known), &options.row, "test", |test| test.name.to_owned())?;
    let mut seed = options.seed;
    let affinity = affinity();
    let mut all = Vec::new();
    let mut notes = Vec::new();
    for name in Place::NAMES {
        let place = if name == "loopback" { Ok(Place::Loopback) } else { Place::namespaces() };
        let place = match place {
            Ok(place) => place,
            Err(why) => {
                notes.push(format!("{name}: skipped, {why} (it needs root and iproute2)\n"));
                continue;
            }
        };
        for test in &tests {
            print!("   {name}, {}:", test.name);
            let mut turns: Vec<[Figures; 4]> = Vec::new();
            for _ in 0..options.launches {
                let mut order = [0, 1, 2, 3];
                let mut figures = [None; 4];
                ratio::shuffle(&mut order, &mut seed);
                for which in order {
                    figures[which] = Some(match which {
                        0 => programs.ombx(&place, test, &[])?,
                        1 => programs.ombx(&place, test, &["--bind", "none"])?,
                        2 => programs.iperf3(&place, test, &affinity)?,
                        _ => programs.iperf3(&place, test, &[])?,
                    });
                }
                if let [Some(bound), Some(free), Some(other_bound), Some(other_free)] = figures {
                    let rates = [bound, free, other_bound, other_free].map(|one| format!("{:.0}", one.rate));
                    print!(" {}", rates.join("/"));
                    let _ = std::io::stdout().flush();
                    turns.push([bound, free, other_bound, other_free]);
                }
            }
            println!();
            for (affinity, compared) in FORMS {
                let pairs = turns.iter().map(|turn| compared.map(|which| turn[which])).collect();
                all.push(Compared { place: name, test: test.name, affinity, pairs });
            }
        }
    }
    let _ = fs::remove_file(&programs.token);
    let version = output(Command::new(&programs.iperf3).arg("--version"))?;
    let version = version.lines().next().unwrap_or_default().to_owned();
    let table = table(HEAD, all.iter().map(Compared::line)) + &notes.concat();
    println!("\n{table}");
    if options.write {
        let heading = document::heading(&about, &[version]);
        let section = format!("{heading}\n\n{table}");
        evidence::write(workspace, "line-rate", &section, &document::full(&heading, &table))?;
    }
    Ok(failed_if(all.iter().any(|one| one.misses().contains(&true))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_descendants_counts() {
        let stat = "4242 (a (b) c) S 17 1 1 0 -1 4194560 1 0 0 0 250 50 7 9 20 0 1 0 0 0 0";
        assert_eq!(parent_and_ticks(stat), Some((17, 300)));
        assert_eq!(parent_and_ticks("nothing"), None);
        let mine = cpu_ticks(&[std::process::id()]);
        assert!(mine.contains_key(&std::process::id()));
        assert!(cpu_ticks(&[]).is_empty());
    }

    #[test]
    fn a_lower_rate_and_more_cpu_time_miss() {
        let of = |rate: f64, cpu: f64| {
            let ours = Figures { rate, cpu, lost: 0.0 };
            let other = Figures { rate: 100.0, cpu: 1.0, lost: 0.0 };
            Compared { place: "loopback", test: "TCP", affinity: "none", pairs: vec![[ours, other]; 6] }
        };
        let misses = [(101.0, 0.9), (99.0, 0.9), (101.0, 1.1)].map(|(rate, cpu)| of(rate, cpu).misses());
        assert_eq!(misses, [[false, false], [true, false], [false, true]]);
        assert!(of(99.0, 0.9).line().contains(" | **0.990"));
    }
}
