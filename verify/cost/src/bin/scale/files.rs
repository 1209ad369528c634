//! Large result files: time and peak memory of the commands that read them, in a release build.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ombx_cost::link::{self, normal, normal_of};
use ombx_host::environment;
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    event::Event,
    fact::{Fact, Facts, HostFacts},
    file,
    link::BENCH,
    result::{Check, Measurement, Metric, Run, RunOutcome, Samples, Tally, Work},
    stats::Summary,
    unit::Rank,
};
use ombx_sweep::{schedule::Mode, sweep::rounds_of};
use ombx_toolchain::{Failure, Result, cannot_run, named};

use crate::job::peak_bytes;

/// Interval of reading the memory of a process, whose peak the kernel keeps.
const INTERVAL: Duration = Duration::from_millis(2);

/// Sizes of the files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Rows of both sides of a comparison together.
    pub(crate) compared_rows: u32,
    /// Files of a history.
    pub(crate) dated_files: u32,
    /// Bytes of a file with raw samples.
    pub(crate) sampled_bytes: u64,
    /// Hosts of a sweep over all pairs.
    pub(crate) hosts: u32,
}

impl Extent {
    /// Sizes that the goals name.
    pub(crate) const GOALS: Extent =
        Extent { compared_rows: 200_000, dated_files: 10_000, sampled_bytes: 1_000_000_000, hosts: 10_000 };
}

/// Number of facts about the software and about the hosts of a dated result.
const FACTS: [u32; 2] = [8, 42];

/// A command, what it reads, and what it may take.
struct Task {
    what: String,
    words: Vec<String>,
    most: Most,
}

/// Largest time and memory of a command; `None` without a goal.
#[derive(Clone, Copy, Default)]
struct Most {
    seconds: Option<f64>,
    bytes: Option<u64>,
}

/// What a command took.
#[derive(Debug)]
pub(crate) struct Took {
    what: String,
    seconds: f64,
    peak_bytes: u64,
    read_bytes: u64,
    pub(crate) is_met: bool,
    /// The goal in words.
    goal: String,
}

/// Writes the files below a directory, unless they are there, and measures the commands that read them.
pub(crate) fn measure(
    ombx: &Path,
    directory: &Path,
    extent: Extent,
    only: Option<&str>,
) -> Result<Vec<Took>> {
    fs::create_dir_all(directory).map_err(Failure::file(directory))?;
    let at = |name: &str| directory.join(name);
    let sides = ["base.jsonl", "new.jsonl"].map(at);
    for (path, seed) in sides.iter().zip(1..) {
        once(path, |out| sides_of(out, extent.compared_rows / 2, seed))?;
    }
    let (dated, sampled, links) = (at("history"), at("sampled.jsonl"), at("links.jsonl"));
    write_dated(&dated, extent.dated_files)?;
    once(&sampled, |out| samples_of(out, extent.sampled_bytes))?;
    once(&links, |out| links_of(out, extent.hosts))?;
    let text = |path: &Path| path.display().to_string();
    let [page, map] = ["page.html", "map.svg"].map(|name| text(&at(name)));
    let seconds = |seconds: f64| Most { seconds: Some(seconds), bytes: None };
    let gigabyte = Most { seconds: None, bytes: Some(1_000_000_000) };
    let of_links = Most { seconds: Some(60.0), bytes: Some(500_000_000) };
    let task = |what: &str, words: &[&str], most: Most| Task {
        what: what.to_owned(),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        most,
    };
    let (base, new, dated, sampled, links) =
        (text(&sides[0]), text(&sides[1]), text(&dated), text(&sampled), text(&links));
    let tasks = [
        task("compare", &["compare", &base, &new], seconds(10.0)),
        task("history", &["history", &dated], seconds(10.0)),
        task("show of samples", &["show", &sampled], gigabyte),
        task("report of samples", &["report", &sampled, "-o", &page, "--force"], gigabyte),
        task("show of links", &["show", &links], of_links),
        task("report of links", &["report", &links, "-o", &page, "--force"], of_links),
        task("show --matrix of links", &["show", &links, "--matrix", &text(&at("matrix.npy"))], of_links),
        task("plot of links", &["plot", &links, "-o", &map, "--force"], of_links),
        task("compare of links", &["compare", &links, &links], of_links),
    ];
    let mut all = Vec::new();
    for task in named(&tasks, only.unwrap_or(""), "command", |task| task.what.clone())? {
        let took = run(ombx, task)?;
        println!("   {}: {:.2} s, {} MB", took.what, took.seconds, took.peak_bytes / 1_000_000);
        all.push(took);
    }
    Ok(all)
}

/// Runs a command. Codes of verdicts are no failures.
#[expect(clippy::disallowed_methods, reason = "seconds of a whole command are no measurement of ombx")]
fn run(ombx: &Path, task: &Task) -> Result<Took> {
    let mut command = Command::new(ombx);
    command.args(&task.words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|source| cannot_run(&command, source))?;
    let (pid, mut peak) = (child.id().to_string(), 0);
    let ended = loop {
        peak = peak.max(peak_bytes(&pid));
        if let Some(ended) = child.try_wait().map_err(|source| cannot_run(&command, source))? {
            break ended;
        }
        thread::sleep(INTERVAL);
    };
    let seconds = start.elapsed().as_secs_f64();
    if ended.code().is_none_or(|code| (1..8).contains(&code)) {
        let mut why = String::new();
        let _ = child.stderr.take().map(|mut err| io::Read::read_to_string(&mut err, &mut why));
        return Err(Failure::Missing(format!("ombx {} failed: {ended}: {why}", task.words.join(" "))));
    }
    let Most { seconds: most_s, bytes: most_bytes } = task.most;
    let is_met = most_s.is_none_or(|most| seconds <= most) && most_bytes.is_none_or(|most| peak <= most);
    let goals =
        [most_s.map(|s| format!("{s} s")), most_bytes.map(|bytes| format!("{} MB", bytes / 1_000_000))];
    let goal = goals.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let read = task.words.iter().filter_map(|word| fs::metadata(word).ok()).filter(fs::Metadata::is_file);
    let read_bytes = read.map(|data| data.len()).sum();
    Ok(Took { what: task.what.clone(), seconds, peak_bytes: peak, read_bytes, is_met, goal })
}

/// Writes a file unless it exists.
fn once(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let part = PathBuf::from(format!("{}.part", path.display()));
    let written = File::create(&part).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.and_then(|()| fs::rename(&part, path)).map_err(Failure::file(path))
}

/// Returns the record of a run on a day.
fn run_record(id: &str, day: u32, hosts: u32) -> Run {
    link::run(id, date(u64::from(day) * 86_400), (0..hosts).map(|host| format!("n{host:05}")))
}

/// Returns a date of RFC 3339, some days after the first of January 1990 in a calendar of months of 28 days.
fn date(second: u64) -> String {
    let day = second / 86_400;
    let (year, month, day) = (1990 + day / 336, 1 + day / 28 % 12, 1 + day % 28);
    format!("{year:04}-{month:02}-{day:02}T00:00:{:02}Z", second % 60)
}

/// Returns a row of a benchmark with samples around a time.
fn row(case: u32, launch: u32, samples: usize, seed: u64) -> Measurement {
    let base = 2000.0 + f64::from(case % 997);
    let ns = |at: usize| {
        let noise = normal(u64::from(case) << 32 | u64::from(launch) << 20 | at as u64, seed);
        (base * (0.02 * noise).exp() * 20.0) as u64
    };
    let elapsed_ns: Vec<u64> = (0..samples).map(ns).collect();
    let samples = vec![Samples { rank: 0, batch: 10, elapsed_ns, ..Samples::default() }];
    let times = Measurement::combine(&samples, 2);
    let axes = [("buffers".to_owned(), format!("b{}", case / 30))].into();
    let bytes = 1 << (case % 30);
    Measurement {
        bytes: Some(bytes),
        axes,
        work: Some(Work { bytes: 2 * bytes, ops: 2, legs: 2 }),
        check: Check::Passed,
        checked: 100,
        summary: Summary::of_batches(&times),
        samples,
        ..Measurement::new(
            "p2p.latency",
            format!("p2p.latency/buffers=b{},bytes={bytes}", case / 30),
            Metric::Latency,
            2,
        )
    }
}

fn end(out: &mut dyn Write, cases: u64) -> io::Result<()> {
    file::write(
        out,
        &Event::End { outcome: RunOutcome::Complete, tally: Tally { cases, ..Tally::default() } },
    )
}

/// Writes one side of a comparison: ten launches.
fn sides_of(out: &mut dyn Write, rows: u32, seed: u64) -> io::Result<()> {
    let cases = rows / 10;
    for launch in 0..10 {
        let run = run_record(&format!("side-{seed}-{launch}"), launch, 2);
        file::write(out, &Event::Run(Cow::Owned(run)))?;
        (0..cases).try_for_each(|case| file::write(out, &Event::row(&row(case, launch, 50, seed))))?;
        end(out, cases.into())?;
    }
    Ok(())
}

/// Writes a directory of dated results.
fn write_dated(directory: &Path, files: u32) -> Result<()> {
    for day in 0..files {
        let path = directory.join(format!("{:02}/r{day:05}.jsonl", day % 16));
        fs::create_dir_all(path.parent().unwrap_or(directory)).map_err(Failure::file(directory))?;
        once(&path, |out| result_of_day(out, day))?;
    }
    Ok(())
}

/// Writes the result of a day: ten rows, with the provenance of a job of Slurm.
fn result_of_day(out: &mut dyn Write, day: u32) -> io::Result<()> {
    let run = run_record(&format!("day-{day}"), day, 2);
    let [of_software, of_hosts] = FACTS;
    let software = facts("software", of_software);
    let names = run.places.iter().map(|place| place.host.clone()).collect();
    let hosts = vec![HostFacts { hosts: names, facts: facts("host", of_hosts) }];
    // Every job has another number.
    let env = [("SLURM_JOB_ID".to_owned(), day.to_string())].into();
    file::write(out, &Event::Run(Cow::Owned(Run { software, hosts, env, ..run })))?;
    (0..10).try_for_each(|case| {
        file::write(out, &Event::Case(Cow::Owned(row(case, day % 4096, 50, u64::from(day)))))
    })?;
    end(out, 10)
}

/// Returns facts of a usual length about something.
fn facts(about: &str, count: u32) -> Facts {
    let value = |at: u32| format!("value {at}: a version, a setting, or a list of devices");
    (0..count).map(|at| (format!("{about} {at}"), Fact::Known(value(at)))).collect()
}

/// Writes launches with raw samples.
fn samples_of(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    // A sample takes six bytes.
    let (launches, samples) = (10, 4000);
    let cases = (bytes / (6 * samples as u64) / u64::from(launches)).max(1) as u32;
    for launch in 0..launches {
        file::write(out, &Event::Run(Cow::Owned(run_record(&format!("samples-{launch}"), launch, 2))))?;
        (0..cases).try_for_each(|case| file::write(out, &Event::row(&row(case, launch, samples, 1))))?;
        end(out, cases.into())?;
    }
    Ok(())
}

/// Writes a sweep over all pairs of hosts, of which one is slow, with its verdict.
fn links_of(out: &mut dyn Write, hosts: u32) -> io::Result<()> {
    let mut run = run_record("links", 0, hosts);
    run.plan.insert("benchmarks".into(), BENCH.into());
    run.plan.insert("links".into(), Mode::Parallel.name().into());
    let mut sweep = LinkSweep::of_run(&run);
    file::write(out, &Event::Run(Cow::Owned(run)))?;
    let schedule = Mode::Parallel.schedule(hosts, Some(1));
    let mut cases = 0;
    for number in rounds_of(&schedule, None) {
        let pairs = (0..schedule.pairs()).map(|turn| schedule.pair(number, turn));
        let both = pairs.flat_map(|(Rank(a), Rank(b))| [[a, b], [b, a]]);
        let links: Vec<[u32; 2]> = both.collect();
        let round = link::round(number, &links, |ends| link_ns(hosts, ends));
        cases += round.len() as u64;
        sweep.add_round(&round);
        file::write(out, &Event::Round(Cow::Owned(round)))?;
    }
    end(out, cases)?;
    file::write(out, &Event::Verdict(Cow::Owned(sweep.verdict())))
}

/// Returns the time of a link. One host is slow.
fn link_ns(hosts: u32, [from, to]: [u32; 2]) -> f32 {
    let slow = if [from, to].contains(&(hosts / 3)) { 1.5 } else { 1.0 };
    let ns = 5000.0 * slow * (0.03 * normal_of(from, to, 1)).exp();
    ((ns * 10.0).round() / 10.0) as f32
}

/// Returns a table of what commands took.
pub(crate) fn table(all: &[Took]) -> String {
    let text = ombx_toolchain::table("command | file | wall s | peak MB | goal | met", all.iter().map(line));
    format!("{}.\n\n{text}", environment::timestamp())
}

/// Returns the line of a command.
fn line(Took { what, seconds, peak_bytes, read_bytes, is_met, goal }: &Took) -> String {
    let size = if *read_bytes > 0 { format!("{} MB", read_bytes / 1_000_000) } else { "directory".into() };
    let met = if *is_met { "yes" } else { "no" };
    format!("`{what}` | {size} | {seconds:.2} | {} | {goal} | {met}", peak_bytes / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_results() {
        let read = |write: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
            let mut out = Vec::new();
            write(&mut out).unwrap();
            file::read(out.as_slice()).unwrap()
        };
        let side = read(&|out| sides_of(out, 100, 1));
        assert_eq!((side.runs.len(), side.runs[0].rows.len()), (10, 10));
        let samples = read(&|out| samples_of(out, 500_000));
        assert_eq!(samples.runs[9].rows.len(), 2);
        let dated = read(&|out| result_of_day(out, 3));
        assert_eq!((dated.runs[0].rows.len(), dated.runs[0].run.hosts[0].facts.len()), (10, 42));
        let links = read(&|out| links_of(out, 40));
        assert_eq!(links.runs[0].row_count(), 40 * 39);
        assert_eq!(links.runs[0].verdict.as_ref().unwrap().slow.len(), 1);
    }
}
