//! One side: the command that starts its launches, and its result file.

use std::{
    ffi::OsString,
    fmt, fs,
    io::BufReader,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use ombx_compare::Turn;
use ombx_host::{search_path, signals::end_with_this_thread};
use ombx_launch::{
    launch::finite_run,
    output::{
        destination::Existing,
        target::{self, ResultTarget},
    },
    this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    event::Event,
    file::{self, Records},
    regular_file::standard_input_again,
    result::RunOutcome,
};
use rustix::process::{Pid, Signal, kill_process_group};

use super::SignalForwarder;
use crate::arguments::output::FileArgs;

/// Time in which a command may end its ranks.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum number of records of a launch.
const MOST_RECORDS: usize = 100_000;

/// Command that starts ombx, with its environment.
#[derive(Debug)]
pub(super) struct SideCommand {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) variables: Vec<Variable>,
    /// The command as the user wrote it.
    shown: String,
}

/// Environment variable of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    name: String,
    value: String,
}

/// How a launch ended.
pub(super) enum LaunchEnd {
    /// With all its rows. The exit code tells whether rows were skipped, failed or wrong.
    Complete(u8, Vec<Event<'static>>),
    /// By a signal of the user.
    Interrupted(u8),
}

impl SideCommand {
    /// Finds the program of a command line; without one, it is this program.
    pub(super) fn find(command: Option<&str>, variables: Vec<Variable>) -> Result<SideCommand> {
        let Some(command) = command else {
            let shown = "this ombx".to_owned();
            return Ok(SideCommand {
                program: this_process::executable()?,
                arguments: Vec::new(),
                variables,
                shown,
            });
        };
        let wrong = |why: String| Error::usage(format!("{command} is not a command that runs ombx: {why}"));
        // The path of a file may contain blanks.
        let (program, arguments) = if Path::new(command).is_file() && command.contains('/') {
            (command.to_owned(), Vec::new())
        } else {
            let mut words = shell_words::split(command).map_err(|e| wrong(e.to_string()))?.into_iter();
            (words.next().ok_or_else(|| wrong("it is empty".into()))?, words.collect())
        };
        let program = if program.contains('/') {
            PathBuf::from(&program)
        } else {
            search_path::find(&program).ok_or_else(|| {
                wrong(format!("PATH has no {program}; write ./{program} for a file of this directory"))
            })?
        };
        let file = fs::metadata(&program).map_err(|e| wrong(e.to_string()))?;
        if !file.is_file() || file.permissions().mode() & 0o111 == 0 {
            return Err(wrong(format!("{} is not an executable file", program.display())));
        }
        Ok(SideCommand { program, arguments, variables, shown: command.to_owned() })
    }

    /// Runs one launch with these words. Fails if the launch has not measured everything.
    pub(super) fn launch(
        &self,
        words: &[OsString],
        turn: &Turn,
        file: Option<&mut ResultTarget>,
        signals: &SignalForwarder,
    ) -> Result<LaunchEnd> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(words);
        command.envs(self.variables.iter().map(|variable| (&variable.name, &variable.value)));
        command.stdin(standard_input_again().map_err(|e| finite_run::cannot_start(self, &e))?);
        command.stdout(Stdio::piped()).process_group(0);
        end_with_this_thread(&mut command);
        let mut child = command.spawn().map_err(|e| finite_run::cannot_start(self, &e))?;
        signals.pass_on_to(&child)?;
        let records = match self.read(&mut child, turn, file) {
            Ok(records) => records,
            Err(error) => {
                finite_run::ask_to_end(&mut child, GRACE);
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                // A signal may have cut a line in two.
                return signals.interruption.exit_code().map(LaunchEnd::Interrupted).ok_or(error);
            }
        };
        let status = child.wait().map_err(|e| Error::fabric(format!("{self}: {e}")))?;
        let code = Exit::code_of_process(status);
        match Exit::from_code(code.into()) {
            None if code >= Exit::SIGNAL => Ok(LaunchEnd::Interrupted(code)),
            // The comparison reports rows that were skipped, failed or wrong.
            Some(Exit::Success | Exit::Incomplete | Exit::WrongData | Exit::Fabric)
                if is_complete(&records) =>
            {
                Ok(LaunchEnd::Complete(code, records))
            }
            Some(Exit::Usage) if records.is_empty() => Err(Error::usage(format!(
                "{self} refuses the options of a launch, as it says above: it is another version of ombx that lacks one of them; give \
                 builds that have the same options"
            ))),
            _ => Err(Error::fabric(format!("a launch of {self} ended early, with exit code {code}"))),
        }
    }

    /// Reads the records that a launch prints, without raw samples, and adds its turn to them. A file gets them with all samples.
    fn read(
        &self,
        child: &mut Child,
        turn: &Turn,
        mut file: Option<&mut ResultTarget>,
    ) -> Result<Vec<Event<'static>>> {
        let mut records = Vec::new();
        for record in child.stdout.take().into_iter().flat_map(|out| Records::new(BufReader::new(out))) {
            let mut record = record
                .map_err(|e| Error::fabric(format!("{self} prints something other than results: {e}")))?;
            if records.len() == MOST_RECORDS {
                return Err(Error::fabric(format!("{self} prints without end")));
            }
            if let Event::Run(run) = &mut record {
                turn.add_to(run.to_mut());
            }
            if let Some(file) = &mut file {
                file.write(|out| file::write(out, &record))?;
            }
            if let Event::Row(row) = &mut record {
                row.to_mut().samples.iter_mut().for_each(|samples| samples.elapsed_ns = Vec::new());
            }
            records.push(record);
        }
        Ok(records)
    }
}

impl fmt::Display for SideCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for variable in &self.variables {
            write!(f, "{variable} ")?;
        }
        f.write_str(&self.shown)
    }
}

impl Variable {
    /// Reads `NAME=VALUE`.
    pub(super) fn parse(text: &str) -> std::result::Result<Variable, String> {
        match text.split_once('=') {
            Some((name, value)) if is_name(name) && !value.contains('\0') => {
                Ok(Variable { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("not NAME=VALUE, such as UCX_TLS=tcp".into()),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, shell_words::quote(&self.value))
    }
}

/// Returns the paths of the result files of both sides, if the user wants them: `ab-a.jsonl` and `ab-b.jsonl` for `-o ab.jsonl`.
pub(super) fn result_paths(args: &FileArgs) -> Option<[PathBuf; 2]> {
    let out = args.out.as_ref()?;
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let ending = out.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    Some(['a', 'b'].map(|side| out.with_file_name(format!("{stem}-{side}{ending}"))))
}

/// Opens the result files of both sides. Neither is touched if one of them exists.
pub(super) fn result_files(
    paths: Option<[PathBuf; 2]>,
    existing: Existing,
) -> Result<[Option<ResultTarget>; 2]> {
    let Some(paths) = paths else { return Ok([None, None]) };
    paths.iter().try_for_each(|path| target::check_existing(path, existing))?;
    let open = |path: PathBuf| ResultTarget::open(&path, existing, Duration::MAX).map(Some);
    let [a, b] = paths.map(open);
    Ok([a?, b?])
}

/// Returns whether shells and launchers pass a variable of this name on.
fn is_name(name: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(of_name) && name.starts_with(|first: char| of_name(first) && !first.is_ascii_digit())
}

/// Returns whether the last end among the records is that of a complete run.
fn is_complete(records: &[Event<'static>]) -> bool {
    let ends = records.iter().rev().filter_map(|record| match record {
        Event::End { outcome, .. } => Some(*outcome),
        _ => None,
    });
    ends.take(1).eq([RunOutcome::Complete])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_paths_programs_and_command_lines() {
        let of = |command: &str| {
            SideCommand::find(Some(command), Vec::new()).map(|side| (side.program, side.arguments))
        };
        let sh = search_path::find("sh").unwrap();
        assert_eq!(of("sh").unwrap(), (sh.clone(), Vec::<String>::new()));
        assert_eq!(of("sh -c 'exec x' y").unwrap(), (sh, ["-c", "exec x", "y"].map(str::to_owned).to_vec()));
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("a b");
        fs::write(&program, "").unwrap();
        let name = program.display().to_string();
        assert!(of(&name).unwrap_err().to_string().contains("not an executable file"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(of(&name).unwrap(), (program, Vec::new()));
        let absent = directory.path().join("absent").display().to_string();
        for (wrong, part) in [
            ("", "it is empty"),
            ("sh 'x", "quote"),
            ("no-such-program-1", "PATH has no"),
            (&absent, "No such"),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn variables_are_named_and_shown() {
        for wrong in ["", "X", "=1", "1X=1", "~{..=.."] {
            assert!(Variable::parse(wrong).is_err(), "{wrong}");
        }
        let variables = ["X=1", "Y=a b=c"].map(|text| Variable::parse(text).unwrap()).to_vec();
        assert_eq!(SideCommand::find(None, variables).unwrap().to_string(), "X=1 Y='a b=c' this ombx");
    }
}
