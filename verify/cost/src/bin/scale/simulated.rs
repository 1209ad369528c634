//! Sweeps of `ombx links` over simulated ranks: time and memory of rank 0, which is real.
//!
//! Rank 0 runs the code of `ombx links`. The other ranks exist only as the rows that they send. The sink does what rank 0 and the
//! launching process do with a row: it writes the row to a file, judges the links, and collects them for the screen.

mod machine;
mod team;

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{BufWriter, Write},
    process::Command,
    rc::Rc,
};

use machine::Machine;
use ombx_core::{
    benchmark::{Benchmark, Choice, Method},
    clock::Clock,
    measure::{
        plan::Plan,
        session::{Session, Sink},
    },
};
use ombx_cost::link::BYTES;
use ombx_links::verdict::{Criteria, LinkSweep};
use ombx_record::{
    error::Error,
    event::{Event, Round, Rounds},
    file,
    result::Metric,
    unit::Bytes,
};
use ombx_show::{Links, Renderer};
use ombx_sweep::{
    schedule::Mode,
    sweep::{self, Task},
};
use ombx_toolchain::{Failure, Result, cannot_run, this_program};

use crate::job::peak_bytes;
pub(crate) use machine::Shape;
use team::{Pair, SimulatedTeam};

/// Shapes that are measured: the memory of each number of ranks must not depend on the number of rounds.
pub(crate) const SHAPES: [Shape; 6] = [
    Shape { ranks: 1000, hosts: 1000, rounds: 999 },
    Shape { ranks: 10_000, hosts: 10_000, rounds: 100 },
    Shape { ranks: 10_000, hosts: 10_000, rounds: 200 },
    Shape { ranks: 10_000, hosts: 10_000, rounds: 400 },
    Shape { ranks: 100_000, hosts: 10_000, rounds: 10 },
    Shape { ranks: 100_000, hosts: 10_000, rounds: 40 },
];

/// Number of slowest links that are measured again.
const RETEST: u32 = 4;

const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "no other program" };

static LINK: Benchmark =
    Benchmark::custom("simulated.link", "a link of a simulated machine", Metric::Latency, METHOD, run_link);

/// Measures a link: its time follows from the machine.
fn run_link(session: &mut Session<'_>) -> ombx_record::error::Result<()> {
    let team: &dyn std::any::Any = session.team;
    let pair: &Pair = team.downcast_ref().ok_or_else(|| Error::fabric("the team is not simulated"))?;
    if pair.is_timed { session.sink.event(&Event::row(&pair.row())) } else { Ok(()) }
}

/// What a sweep took.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Swept {
    pub(crate) shape: Shape,
    pub(crate) rows: u64,
    pub(crate) result_bytes: u64,
    /// CPU time of the process, which does not depend on other programs as much as wall time does.
    pub(crate) cpu_seconds: f64,
    /// Largest resident memory of the process in bytes.
    pub(crate) peak_bytes: u64,
    /// Whether exactly the slow host and the slow link of the machine were named.
    pub(crate) verdict_is_right: bool,
}

impl Swept {
    /// Writes the figures as words.
    fn words(&self) -> String {
        let Swept { shape, rows, result_bytes, cpu_seconds, peak_bytes, verdict_is_right } = self;
        format!("{shape} {rows} {result_bytes} {cpu_seconds} {peak_bytes} {verdict_is_right}")
    }

    fn parse(line: &str) -> Option<Swept> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [shape, rows, result_bytes, seconds, peak_bytes, right] = words.as_slice() else { return None };
        Some(Swept {
            shape: shape.parse().ok()?,
            rows: rows.parse().ok()?,
            result_bytes: result_bytes.parse().ok()?,
            cpu_seconds: seconds.parse().ok()?,
            peak_bytes: peak_bytes.parse().ok()?,
            verdict_is_right: right.parse().ok()?,
        })
    }
}

/// Sweeps in a process of its own, whose peak memory is that of the sweep.
pub(crate) fn in_a_process(shape: Shape) -> Result<Swept> {
    let mut command = Command::new(this_program()?);
    command.args(["--sweep", &shape.to_string()]);
    let output = command.output().map_err(|source| cannot_run(&command, source))?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    Swept::parse(&line).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        Failure::Missing(format!("the sweep of {shape} did not end: {line}{why}"))
    })
}

/// Sweeps in this process and prints what it took.
pub(crate) fn print(shape: Shape) -> Result<()> {
    println!("{}", sweep(shape)?.words());
    Ok(())
}

/// Sweeps over a machine with a slow host and a slow link.
fn sweep(shape: Shape) -> Result<Swept> {
    let failed = |e: Error| Failure::Missing(format!("the sweep failed: {e}"));
    let choice = Choice { bench: &LINK, preset: &[] };
    let task = Task {
        choice,
        mode: Mode::Parallel,
        rounds: Some(shape.rounds),
        seed: Some(1),
        retest: RETEST,
        warm_up: None,
        criteria: Criteria::default(),
    };
    let plan = Plan { sizes: Some(vec![Bytes(BYTES)]), ..Plan::default() };
    let machine = Rc::new(Machine::new(shape, &task));
    let team = SimulatedTeam::new(Rc::clone(&machine), &task);
    let null = File::create("/dev/null").map_err(|e| failed(Error::storage(e.to_string())))?;
    let mut sink = RankZero {
        file: Counting { inner: BufWriter::new(null), bytes: 0 },
        rounds: Rounds::default(),
        judge: LinkSweep::default(),
        screen: Links::default(),
    };
    let tally = sweep::run(&team, &task, &plan, &Clock::measured(), &mut sink, Vec::new()).map_err(failed)?;
    let verdict = sink.judge.verdict();
    let mut named: Vec<_> = verdict.components();
    named.sort();
    Ok(Swept {
        shape,
        rows: tally.cases,
        result_bytes: sink.file.bytes,
        cpu_seconds: cpu_seconds(),
        peak_bytes: peak_bytes("self"),
        verdict_is_right: named == machine.slow(),
    })
}

/// Returns the CPU time of this process, which has one thread.
fn cpu_seconds() -> f64 {
    let times = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = times.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// What rank 0 and the launching process do with rows.
struct RankZero {
    file: Counting,
    rounds: Rounds,
    judge: LinkSweep,
    screen: Links,
}

/// Writer that counts bytes.
struct Counting {
    inner: BufWriter<File>,
    bytes: u64,
}

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

fn unwritable(why: std::io::Error) -> Error {
    Error::storage(format!("cannot write a row: {why}"))
}

impl RankZero {
    fn write(&mut self, ended: Vec<Round>) -> ombx_record::error::Result<()> {
        let mut records = ended.into_iter().map(|round| Event::Round(Cow::Owned(round)));
        records.try_for_each(|record| file::write(&mut self.file, &record).map_err(unwritable))
    }
}

impl Sink for RankZero {
    fn event(&mut self, event: &Event<'_>) -> ombx_record::error::Result<()> {
        if !event.is_kept() {
            return Ok(());
        }
        let (ended, is_taken) = match event {
            Event::Row(row) => self.rounds.add(row),
            _ => (self.rounds.end(), false),
        };
        self.write(ended)?;
        if !is_taken {
            file::write(&mut self.file, event).map_err(unwritable)?;
        }
        match event {
            Event::Run(run) => self.judge.begin(run),
            Event::Row(row) => self.judge.add(row),
            _ => {}
        }
        self.screen.event(&mut std::io::sink(), event).map_err(unwritable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parsed_as_printed() {
        let shape = Shape { ranks: 100, hosts: 10, rounds: 7 };
        let swept = Swept {
            shape,
            rows: 3,
            result_bytes: 9,
            cpu_seconds: 0.5,
            peak_bytes: 1 << 20,
            verdict_is_right: true,
        };
        assert_eq!(Swept::parse(&swept.words()), Some(swept));
        assert_eq!(Swept::parse("100@10x7 3"), None);
    }

    #[test]
    fn the_slow_parts_are_named() {
        for shape in ["60@60x59", "200@40x30"] {
            let swept = sweep(shape.parse().unwrap()).unwrap();
            assert!(swept.verdict_is_right, "{swept:?}");
            assert!(swept.rows >= u64::from(swept.shape.ranks * swept.shape.rounds));
            assert!(swept.result_bytes > 10 * swept.rows && swept.peak_bytes > 1 << 20);
        }
    }
}
