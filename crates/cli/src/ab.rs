//! `ombx ab`: two builds of ombx measure in turns, and are compared.

mod words;

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use clap::{ArgMatches, Args};
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
    measure::plan::Launch,
};
use ombx_results::{
    compare::{self, SideResults},
    file::{self, Record, RunOutcome},
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::{Handle, Signals},
};

use crate::{
    args::{Format, RunArgs},
    axes::Chosen,
    compare::{GateArgs, conclude},
    job, select, start,
};

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ombx ab --a ./ombx-mpich --b ./ombx-openmpi p2p.latency --sizes 8,64K --launches 7 -o ab.jsonl\nkeeps each side's launches in ab-a.jsonl and ab-b.jsonl."
)]
pub(crate) struct AbArgs {
    /// The build that is the base
    #[arg(long, value_name = "PROGRAM", help_heading = "Builds")]
    pub(crate) a: PathBuf,
    /// The build that is compared with it
    #[arg(long, value_name = "PROGRAM", help_heading = "Builds")]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

/// One of the two builds.
struct Build<'a> {
    program: &'a Path,
    file: Option<(PathBuf, std::fs::File)>,
    launches: SideResults,
}

pub(crate) fn ab(
    registry: &Registry,
    args: &AbArgs,
    chosen: Chosen,
    command: &clap::Command,
    matches: &ArgMatches,
) -> Result<u8> {
    if args.run.output.format != Format::Table {
        return Err(Error::usage(
            "ab prints a comparison, as a table or with --json; --format means nothing to it",
        ));
    }
    let choices = select::benchmarks(registry, &args.run.patterns)?;
    let plan = select::plan(&args.run, chosen, &choices)?;
    let cases = usize::try_from(select::rows(&plan, &choices)?).unwrap_or(usize::MAX);
    let needed = u32::try_from(compare::launches_needed(cases)).unwrap_or(u32::MAX);
    let job::Launches { count, seed } = job::Launches {
        count: args.run.launches.launches.unwrap_or(needed),
        ..job::Launches::of(&args.run.launches)
    };
    let words = words::of_run(command, matches, &args.run.patterns);
    if args.run.start.rendezvous.is_some() {
        return Err(Error::usage(
            "--rendezvous is for ranks that a launcher has started, and ab starts its own",
        ));
    }
    start::check(&args.run.start, select::ranks(&args.run, &choices))?;
    [&args.a, &args.b].into_iter().try_for_each(|program| is_program(program))?;
    let mut builds = [Build::of(&args.a, args, 'a')?, Build::of(&args.b, args, 'b')?];
    if !args.run.output.quiet {
        tell!("ombx: {count} launches of each build in random order, seed {seed}");
    }
    let interruption = Interruption::watch()?;
    let mut worst = 0;
    for number in 1..=count {
        let launch = Launch { number, of: count, order: seed.wrapping_add(u64::from(number)) };
        // Both builds in each turn, so that what drifts on the machine meets both alike.
        for side in launch.arrange(vec![0usize, 1]) {
            let build = &mut builds[side];
            if args.run.output.verbose {
                tell!("ombx: launch {number} of {count} of {}", build.program.display());
            }
            let code = build.launch(launch, &words, &interruption)?;
            if code >= job::INTERRUPTED {
                return Ok(code);
            }
            worst = worst.max(code);
        }
    }
    let [a, b] = &builds;
    let verdict = conclude(&a.launches, &b.launches, &args.gate, args.run.output.color)?;
    Ok(if verdict > 0 { verdict } else { worst })
}

impl<'a> Build<'a> {
    fn of(program: &'a Path, args: &AbArgs, side: char) -> Result<Build<'a>> {
        let file = args.run.output.out.as_ref().map(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let ending = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
            let path = path.with_file_name(format!("{stem}-{side}{ending}"));
            let file = std::fs::File::create(&path).map_err(|e| unwritable(&path, &e))?;
            Ok::<_, Error>((path, file))
        });
        let launches = SideResults::named(program.display().to_string());
        Ok(Build { program, file: file.transpose()?, launches })
    }

    /// One launch; its exit code unless it measured nothing that counts.
    fn launch(
        &mut self,
        launch: Launch,
        words: &[std::ffi::OsString],
        interruption: &Interruption,
    ) -> Result<u8> {
        let name = self.program.display();
        // A name without a directory is a file here, not a program of the search path.
        let program = if self.program.components().count() > 1 {
            self.program.into()
        } else {
            Path::new(".").join(self.program)
        };
        let mut command = Command::new(program);
        command.args(["run", "--format=jsonl"]).arg(format!("--launch={launch}")).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut child =
            command.spawn().map_err(|e| Error::fabric(format!("{name} could not be started: {e}")))?;
        interruption.meets(&child)?;
        let complete = self.read(&mut child);
        let status = child.wait().map_err(|e| Error::fabric(format!("{name}: {e}")))?;
        let code = code_of(status);
        match (complete, code) {
            (_, job::INTERRUPTED..) => Ok(code),
            // Skipped, failed or wrong rows are told by the comparison.
            (Ok(true), 0 | 4 | 5) => Ok(code),
            (Err(error), _) => Err(error),
            (Ok(_), _) => Err(Error::fabric(format!(
                "launch {} of {} of {name} ended early, with exit code {code}",
                launch.number, launch.of
            ))),
        }
    }

    /// Takes what a launch prints; whether it came to its end.
    fn read(&mut self, child: &mut Child) -> Result<bool> {
        let mut complete = false;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let told = |e: &dyn std::fmt::Display| {
                Error::fabric(format!("{} prints what is no result: {e}", self.program.display()))
            };
            let line = line.map_err(|e| told(&e))?;
            let Some(record) = file::parse(&line, 1).map_err(|e| told(&e))? else { continue };
            if let Some((path, file)) = &mut self.file {
                file::write(file, &record).and_then(|()| file.flush()).map_err(|e| unwritable(path, &e))?;
            }
            complete = matches!(record, Record::End(RunOutcome::Complete, _));
            self.launches.record(record);
        }
        Ok(complete)
    }
}

/// A build is a file here that can be run.
fn is_program(path: &Path) -> Result<()> {
    let told = |why: &str| Error::usage(format!("{} is no build of ombx: {why}", path.display()));
    let file = std::fs::metadata(path).map_err(|e| told(&e.to_string()))?;
    match file.is_file() && file.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(told("it cannot be run")),
    }
}

fn unwritable(path: &Path, why: &io::Error) -> Error {
    Error::storage(format!("results cannot be written to {}: {why}", path.display()))
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Signals of the user, passed on to whichever build is measuring: it ends its ranks and says what it kept.
struct Interruption {
    child: Arc<AtomicI32>,
    handle: Handle,
}

impl Interruption {
    fn watch() -> Result<Interruption> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| Error::fabric(format!("signals: {e}")))?;
        let child = Arc::new(AtomicI32::new(0));
        let (handle, target) = (signals.handle(), Arc::clone(&child));
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let pid = Pid::from_raw(target.load(Ordering::SeqCst));
                let which = if signal == SIGINT { Signal::INT } else { Signal::TERM };
                pid.map(|pid| kill_process(pid, which));
            }
        });
        Ok(Interruption { child, handle })
    }

    fn meets(&self, child: &Child) -> Result<()> {
        let pid = i32::try_from(child.id()).map_err(|e| Error::fabric(e.to_string()))?;
        self.child.store(pid, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.handle.close();
    }
}
