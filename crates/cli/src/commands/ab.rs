//! `ombx ab`: two builds of ombx measure alternately, and are compared.

mod interruption;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use clap::{ArgMatches, Args};
use ombx_core::{
    benchmark::Registry,
    error::{Error, Result},
    measure::plan::Launch,
};
use ombx_results::{
    compare::{self, SideResults},
    file::{self, Record, RunOutcome},
};

use super::{
    compare::{GateArgs, conclude},
    run::{arguments::RunArgs, plan},
};
use crate::{
    arguments::{axes::Chosen, given, output::Format},
    job::selection,
    launch::{FIRST_SIGNAL_CODE, preflight},
    output::unwritable,
};
use interruption::Interruption;

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ombx ab --a ./ombx-mpich --b ./ombx-openmpi p2p.latency --sizes 8,64K --launches 7 -o ab.jsonl\nwrites the launches of each build to ab-a.jsonl and ab-b.jsonl."
)]
pub(crate) struct AbArgs {
    /// Build of the base side
    #[arg(long, value_name = "PROGRAM", help_heading = "Builds")]
    a: PathBuf,
    /// Build of the new side
    #[arg(long, value_name = "PROGRAM", help_heading = "Builds")]
    b: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Options of `ab` itself. Each launch gets all others.
const OF_AB: [&str; 11] =
    ["a", "b", "json", "fail_on", "junit", "out", "launches", "seed", "format", "color", "launch"];

/// One of the two builds, and what it has measured.
struct Build {
    program: PathBuf,
    file: Option<(PathBuf, File)>,
    launches: SideResults,
}

pub(crate) fn ab(
    registry: &Registry,
    parser: &clap::Command,
    matches: &ArgMatches,
    args: AbArgs,
    chosen: Chosen,
) -> Result<u8> {
    let AbArgs { a, b, run, gate } = args;
    if run.output.format != Format::Table {
        return Err(Error::usage(
            "ombx ab has no option --format: it prints a comparison, as a table or with --json",
        ));
    }
    let choices = selection::benchmarks(registry, &run.patterns)?;
    let plan = plan::plan(&run, chosen, &choices)?;
    let cases = usize::try_from(selection::rows(&plan, &choices)?).unwrap_or(usize::MAX);
    let needed = u32::try_from(compare::launches_needed(cases)).unwrap_or(u32::MAX);
    let (count, seed) = (run.launches.launches.unwrap_or(needed), run.launches.seed());
    let ab = parser.find_subcommand("ab").into_iter();
    let given = ab.flat_map(|ab| given::options(ab, matches));
    let mut words: Vec<OsString> = given
        .filter(|(arg, _)| !OF_AB.contains(&arg.get_id().as_str()))
        .flat_map(|(_, words)| words)
        .collect();
    words.push("--".into());
    words.extend(run.patterns.iter().map(OsString::from));
    if run.start.rendezvous.is_some() {
        return Err(Error::usage("ombx ab has no option --rendezvous: it starts its own ranks"));
    }
    preflight::check(&run.start, plan::ranks(&run, &choices))?;
    [&a, &b].into_iter().try_for_each(|program| check_program(program))?;
    let out = run.output.out.as_deref();
    let mut builds = [Build::open(a, out, 'a')?, Build::open(b, out, 'b')?];
    if !run.output.quiet {
        stderr_line!("ombx: {count} launches of each build in random order, seed {seed}");
    }
    let interruption = Interruption::watch()?;
    let mut worst = 0;
    for number in 1..=count {
        let launch = Launch { number, of: count, order: seed.wrapping_add(u64::from(number)) };
        // Each turn has both builds: a drift of the machine affects both alike.
        for side in launch.arrange(vec![0usize, 1]) {
            let build = &mut builds[side];
            if run.output.verbose {
                stderr_line!("ombx: launch {} of {count} of {}", launch.number, build.program.display());
            }
            let code = build.launch(launch, &words, &interruption)?;
            if code >= FIRST_SIGNAL_CODE {
                return Ok(code);
            }
            worst = worst.max(code);
        }
    }
    let [a, b] = &builds;
    let verdict = conclude(&a.launches, &b.launches, &gate, run.output.color)?;
    Ok(if verdict > 0 { verdict } else { worst })
}

impl Build {
    /// Opens the result file of this side, if the user wants one.
    fn open(program: PathBuf, out: Option<&Path>, side: char) -> Result<Build> {
        let file = out.map(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let ending = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
            let path = path.with_file_name(format!("{stem}-{side}{ending}"));
            let file = File::create(&path).map_err(|e| unwritable(&path, &e))?;
            Ok::<_, Error>((path, file))
        });
        let launches = SideResults::named(program.display().to_string());
        Ok(Build { file: file.transpose()?, launches, program })
    }

    /// Runs one launch and returns its exit code. Fails if the launch has not measured everything.
    fn launch(&mut self, launch: Launch, words: &[OsString], interruption: &Interruption) -> Result<u8> {
        let name = self.program.display().to_string();
        // A name without a directory is a file here, not a program of the search path.
        let mut command = Command::new(Path::new(".").join(&self.program));
        command.args(["run", "--format=jsonl"]).arg(format!("--launch={launch}")).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|e| Error::fabric(format!("cannot start {name}: {e}")))?;
        interruption.pass_on_to(&child)?;
        let complete = self.read(&mut child);
        let status = child.wait().map_err(|e| Error::fabric(format!("{name}: {e}")))?;
        let code = exit_code(status);
        match (complete, code) {
            (_, FIRST_SIGNAL_CODE..) => Ok(code),
            // The comparison reports rows that were skipped, failed or wrong.
            (Ok(true), 0 | 4 | 5) => Ok(code),
            (Err(error), _) => Err(error),
            (Ok(_), _) => Err(Error::fabric(format!(
                "launch {} of {} of {name} ended early, with exit code {code}",
                launch.number, launch.of
            ))),
        }
    }

    /// Reads the records that a launch prints. Returns whether the run is complete.
    fn read(&mut self, child: &mut Child) -> Result<bool> {
        let mut complete = false;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let wrong = |e: &dyn std::fmt::Display| {
                Error::fabric(format!("{} prints something other than results: {e}", self.program.display()))
            };
            let line = line.map_err(|e| wrong(&e))?;
            let Some(record) = file::parse(&line, 1).map_err(|e| wrong(&e))? else { continue };
            if let Some((path, file)) = &mut self.file {
                file::write(file, &record).and_then(|()| file.flush()).map_err(|e| unwritable(path, &e))?;
            }
            complete = matches!(record, Record::End(RunOutcome::Complete, _));
            self.launches.record(record);
        }
        Ok(complete)
    }
}

/// Rejects a path that is not an executable file.
fn check_program(path: &Path) -> Result<()> {
    let wrong = |why: &str| Error::usage(format!("{} is not a build of ombx: {why}", path.display()));
    let file = fs::metadata(path).map_err(|e| wrong(&e.to_string()))?;
    match file.is_file() && file.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(wrong("it is not an executable file")),
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
