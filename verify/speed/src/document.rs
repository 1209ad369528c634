//! Tables, and their short form for docs/EVIDENCE.md.

use ombx_host::environment;
use ombx_toolchain::table;

use crate::{
    start::{Start, middle_and_least},
    sweep::{Swept, Taken},
};

/// Returns MPI, command, and the program of OMB that runs beside it.
fn named(swept: &Swept) -> String {
    let program = swept.sweep.omb.map_or_else(String::new, |beside| format!("`{}`", beside.command()));
    format!("{} | `{}` | {program}", swept.flavour, swept.sweep.command())
}

/// Returns the time of each sweep beside that of OMB.
pub(crate) fn sweeps(swept: &[Swept]) -> String {
    let head = "MPI | command | OMB | turns | OMB 6 times, s | ombx, s | ombx / OMB | 95 % interval | goal \
                | launches | cases | at 2 % | ";
    table(head, swept.iter().map(sweep_line))
}

/// Returns the line of a sweep beside OMB.
fn sweep_line(swept: &Swept) -> String {
    let number = |figure: fn(&Taken) -> f64| format!("{:.2}", swept.median(figure));
    let interval = || swept.interval().map_or("none".into(), |[low, high]| format!("{low:.2} .. {high:.2}"));
    let verdict = if swept.missed() { "MISSED" } else { "met" };
    let [omb, ratio, interval, goal, verdict] = match swept.sweep.omb {
        None => [(); 5].map(|()| String::new()),
        Some(beside) => [
            number(|taken| taken.omb_s),
            number(Taken::ratio),
            interval(),
            beside.goal.to_string(),
            verdict.to_owned(),
        ],
    };
    format!(
        "{} | {} | {omb} | {} | {ratio} | {interval} | {goal} | {} | {} | {} | {verdict}",
        named(swept),
        swept.runs.len(),
        number(|taken| taken.whole_s),
        swept.median(|taken| taken.launches as f64),
        swept.median(|taken| taken.cases as f64),
        swept.median(|taken| taken.precise as f64),
    )
}

/// Returns where the time of each command goes, in percent.
pub(crate) fn commands(swept: &[Swept]) -> String {
    let names: Vec<&str> = swept
        .first()
        .and_then(|swept| swept.runs.first())
        .map_or_else(Vec::new, |taken| taken.command.iter().map(|(name, _)| name.as_str()).collect());
    let head = format!("MPI | command, % of its time | beside | {}", names.join(" | "));
    let line = |swept: &Swept| {
        let part = |at: usize| swept.median(|taken| 100.0 * taken.command[at].1 / taken.whole_s);
        let parts = (0..names.len()).map(|at| format!(" | {:.1}", part(at)));
        named(swept) + &parts.collect::<String>()
    };
    table(&head, swept.iter().map(line))
}

/// Returns where the time of a launch of each sweep goes, in milliseconds.
pub(crate) fn phases(swept: &[Swept]) -> String {
    let names = ombx_record::result::Phases::default().named().map(|(name, _)| name);
    let head = format!(
        "MPI | command, ms of a launch | beside | {} | between rows | start and end | bare MPI",
        names.join(" | ")
    );
    table(&head, swept.iter().map(|swept| phases_line(swept, names.len())))
}

/// Returns the line of a sweep with the times of this many phases.
fn phases_line(swept: &Swept, count: usize) -> String {
    let part =
        |at: usize| swept.median(|taken| taken.phases.named()[at].1 as f64 / 1e6 / taken.launches as f64);
    let between = swept.median(|taken| taken.between_rows_s() * 1e3 / taken.launches as f64);
    let around = swept.median(|taken| {
        let phases = taken.command.iter();
        let seconds = phases.filter(|(name, _)| ["start", "initialization", "end"].contains(&name.as_str()));
        seconds.map(|(_, seconds)| seconds * 1e3).sum::<f64>() / taken.launches as f64
    });
    let bare = swept.median(|taken| taken.bare_s * 1e3);
    let times = (0..count).map(part).chain([between, around, bare]);
    named(swept) + &times.map(|ms| format!(" | {ms:.1}")).collect::<String>()
}

/// Returns the time before anything is measured.
pub(crate) fn starts(starts: &[Start]) -> String {
    let head = "MPI | version | bare MPI program on 2 ranks, ms | fastest | `ombx list`, ms | fastest | \
                binary, MB | stripped, MB | cold build, s";
    table(head, starts.iter().map(start_line))
}

/// Returns the line of the start of one MPI.
fn start_line(start: &Start) -> String {
    let both = |seconds: &[f64]| {
        let (middle, least) = middle_and_least(seconds);
        format!("{:.1} | {:.1}", middle * 1e3, least * 1e3)
    };
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    format!(
        "{} | {} | {} | {} | {} | {} | {}",
        start.flavour,
        start.version,
        both(&start.bare_s),
        both(&start.list_s),
        mb(start.bytes),
        start.stripped.map_or("n/a".into(), mb),
        start.cold.map_or("not measured".into(), |took| format!("{:.0}", took.as_secs_f64())),
    )
}

/// Returns the section of docs/EVIDENCE.md, and the file with all tables.
pub(crate) fn pages(swept: &[Swept], started: &[Start], machine: &str) -> [String; 2] {
    let heading = format!("{} on {machine}.", environment::timestamp());
    let short = format!("{heading}\n\n{}\n{}", sweeps(swept), starts(started));
    let full = format!("{}\n{short}\n{}\n{}", include_str!("method.md"), commands(swept), phases(swept));
    [short, full]
}

#[cfg(test)]
mod tests {
    use ombx_record::result::Phases;
    use ombx_toolchain::Flavour;

    use super::*;
    use crate::sweep::SWEEPS;

    #[test]
    fn a_page_has_every_phase_and_the_time_around_rows() {
        let phases = Phases { open_ns: 70_000_000, sample_ns: 2_000_000_000, ..Phases::default() };
        let command =
            [("start", 1.0), ("rows", 3.0), ("end", 0.5), ("pauses", 0.5)].map(|(name, s)| (name.into(), s));
        let taken = Taken {
            bare_s: 0.25,
            omb_s: 10.0,
            whole_s: 5.0,
            launches: 10,
            phases,
            command: command.into(),
            cases: 23,
            precise: 22,
        };
        let swept = Swept { runs: vec![taken], ..Swept::new(Flavour::OpenMpi, &SWEEPS[0]) };
        let [_, page] = pages(&[swept], &[], &ombx_toolchain::machine::now());
        for words in [
            "| 23 ",
            "| 22 ",
            "| 0.50 ",
            "| 7.0 ",
            "| 200.0 ",
            "| 93.0 ",
            "| 150.0 ",
            "| 20.0 ",
            "| 250.0 ",
            "| met ",
            "warm_up",
            "load average",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
