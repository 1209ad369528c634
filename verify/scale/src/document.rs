//! Tables, and their short form for docs/EVIDENCE.md.

use ombx_host::environment;
use ombx_toolchain::{Result, Workspace, evidence};

use crate::{
    job::{Line, Outcome, TASKS},
    model::{Constants, Modelled},
    simulated::Swept,
};

/// What each table shows, at the beginning of the full tables.
const METHOD: &str = include_str!("method.md");
/// Extrapolated numbers of ranks.
const RANKS: [f64; 3] = [10_000.0, 100_000.0, 1_800_000.0];

fn mib(bytes: u64) -> String {
    if bytes == 0 { "n/a".into() } else { format!("{:.1}", bytes as f64 / f64::from(1 << 20)) }
}

fn seconds(of: Option<f64>) -> String {
    of.map_or("n/a".into(), |s| format!("{s:.2}"))
}

/// Returns a line for each job.
pub(crate) fn table(lines: &[Line]) -> String {
    let head =
        "MPI | ranks | program | start s | total s | MiB per rank | largest MiB | rows | bytes per row";
    let mut shown = Vec::new();
    for line in lines {
        let named = TASKS.iter().map(|(name, _)| *name).zip(&line.tasks);
        for (name, outcome) in [("bare MPI", &line.bare)].into_iter().chain(named) {
            let Outcome { complete, start_s, total_s, rank_bytes, most_bytes, row_bytes, rows, .. } = outcome;
            let each = row_bytes.checked_div(*rows).map_or(String::new(), |bytes| bytes.to_string());
            shown.push(format!(
                "{} | {} | {name}{} | {} | {total_s:.1} | {} | {} | {} | {each}",
                line.flavour,
                line.ranks,
                if *complete { "" } else { ", not complete" },
                seconds(*start_s),
                mib(*rank_bytes),
                mib(*most_bytes),
                if *rows > 0 { rows.to_string() } else { String::new() },
            ));
        }
    }
    ombx_toolchain::table(head, shown)
}

fn amount(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b >= 1e12 => (b / 1e12, "TB"),
        b if b >= 1e9 => (b / 1e9, "GB"),
        b if b >= 1e6 => (b / 1e6, "MB"),
        b => (b / 1e3, "kB"),
    };
    format!("{value:.1} {unit}")
}

/// Returns the extrapolation.
pub(crate) fn model(constants: &Constants) -> String {
    let growth = match constants.own_growth {
        bytes if bytes > 0.0 => format!("{bytes:.0} bytes per rank of the job"),
        bytes => format!(
            "nothing that grows with the number of ranks ({bytes:.0} bytes per rank, by least squares)"
        ),
    };
    let all_pairs = RANKS.map(|ranks| ("all pairs", constants.all_pairs(ranks)));
    let bisection = RANKS.map(|ranks| ("bisection", constants.bisection(ranks)));
    let head =
        "sweep | ranks | rows | result | kept by rank 0 | received for a round | places on rank 0 | time, h";
    format!(
        "A row of links has {:.0} bytes in the largest simulated sweep, the first record {:.0} bytes per \
         rank. ombx adds {} to a bare rank, and {growth}.\n\n{}",
        constants.row_bytes,
        constants.place_bytes,
        amount(constants.own_bytes),
        ombx_toolchain::table(head, all_pairs.into_iter().chain(bisection).map(modelled_line))
    )
}

/// Returns the line of a sweep with this name.
fn modelled_line((name, m): (&str, Modelled)) -> String {
    let [result, root, gather, places] =
        [m.result_bytes, m.root_bytes, m.gather_bytes, m.places_bytes].map(amount);
    let Modelled { ranks, rows, hours, .. } = m;
    format!("{name} | {ranks} | {rows:.1e} | {result} | {root} | {gather} | {places} | {hours:.1}")
}

/// Returns the section about ranks over sockets: a line for each number of ranks.
pub(crate) fn sessions(sessions: &[(u32, Outcome)]) -> String {
    let head = "ranks | start s | total s | MiB per rank | largest MiB | rows | complete";
    let text = ombx_toolchain::table(head, sessions.iter().map(session_line));
    let (date, cpus) =
        (environment::timestamp(), std::thread::available_parallelism().map_or(1, usize::from));
    format!("{date}, {cpus} CPUs, release build.\n\n{text}")
}

/// Returns the line of a session with this number of ranks.
fn session_line((ranks, outcome): &(u32, Outcome)) -> String {
    let Outcome { complete, start_s, total_s, rank_bytes, most_bytes, rows, .. } = outcome;
    let (start, each, most) = (seconds(*start_s), mib(*rank_bytes), mib(*most_bytes));
    let complete = if *complete { "yes" } else { "no" };
    format!("{ranks} | {start} | {total_s:.1} | {each} | {most} | {rows} | {complete}")
}

/// Returns the section about simulated ranks: a line for each sweep.
pub(crate) fn simulated(swept: &[Swept]) -> String {
    let head = "ranks | hosts | rounds | rows | result | CPU s | us per row | peak MiB | slow parts named";
    let text = ombx_toolchain::table(head, swept.iter().map(sweep_line));
    format!("{}, release build.\n\n{text}", environment::timestamp())
}

/// Returns the line of a simulated sweep.
fn sweep_line(swept: &Swept) -> String {
    let Swept { shape, rows, result_bytes, cpu_seconds, peak_bytes, verdict_is_right } = swept;
    format!(
        "{} | {} | {} | {rows} | {} | {cpu_seconds:.1} | {:.1} | {} | {}",
        shape.ranks,
        shape.hosts,
        shape.rounds,
        amount(*result_bytes as f64),
        cpu_seconds * 1e6 / *rows as f64,
        mib(*peak_bytes),
        if *verdict_is_right { "both" } else { "no" },
    )
}

/// Writes a proof whose tables are short.
pub(crate) fn write(workspace: &Workspace, name: &str, section: &str) -> Result<()> {
    evidence::write(workspace, name, section, &format!("{METHOD}\n{section}"))
}

/// Writes what was measured over MPI: in short the largest job of each MPI, and the extrapolation.
pub(crate) fn write_over_mpi(
    workspace: &Workspace,
    (lines, swept): (&[Line], &[Swept]),
    libraries: &[String],
) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let heading =
        format!("{}, {}, {cpus} CPUs shared by all ranks.", environment::timestamp(), libraries.join("; "));
    let of_each_mpi = lines.chunk_by(|a, b| a.flavour == b.flavour);
    let largest: Vec<Line> = of_each_mpi.filter_map(|lines| lines.last().cloned()).collect();
    let model = model(&Constants::new(lines, swept));
    let section = format!("{heading}\n\n{}\n{model}", table(&largest));
    let tables = format!("{METHOD}\n{heading}\n\n{}\n{model}", table(lines));
    evidence::write(workspace, "scale", &section, &tables)
}
