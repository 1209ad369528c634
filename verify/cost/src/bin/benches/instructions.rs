//! Instructions of the work of ombx on results, beside those that were recorded: a check that nothing became slower.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use ombx_cost::work::WORK;
use ombx_toolchain::{
    Failure, Result, Workspace, cannot_run,
    counts::{self, FILE},
    failed_if, machine, table, this_program,
};
use serde::{Deserialize, Serialize};

/// Largest ratio to a recorded count.
const MOST: f64 = 1.2;
/// Numbers of repetitions that are counted. Their difference leaves out the start of the program and the preparation.
const REPEATS: [u32; 2] = [1, 3];

/// Recorded counts, which are those of one compiler.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    compiler: String,
    instructions: BTreeMap<String, u64>,
}

/// Counts the instructions of all work, and compares them with those that were recorded, or records them.
///
/// # Errors
/// Nothing was recorded with this compiler, or valgrind cannot count.
pub(crate) fn check(workspace: &Workspace, record: bool) -> Result<ExitCode> {
    let path = workspace.root.join(FILE);
    let known = if record { BTreeMap::new() } else { recorded(workspace, &path)? };
    let mut instructions = BTreeMap::new();
    for (number, (name, _)) in WORK.iter().enumerate() {
        let [few, more] = REPEATS.map(|repeats| counted(number, repeats));
        let each = (more?.saturating_sub(few?)) / u64::from(REPEATS[1] - REPEATS[0]);
        instructions.insert((*name).to_owned(), each);
    }
    if record {
        let text = serde_json::to_string_pretty(&Recorded { compiler: machine::compiler(), instructions })
            .map_err(|source| Failure::Output { program: "serde_json", source })?;
        fs::write(&path, text + "\n").map_err(Failure::file(&*path))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut slower = false;
    let mut lines = Vec::new();
    for (name, count) in &instructions {
        let before = known.get(name).copied().unwrap_or(0);
        let ratio = *count as f64 / before as f64;
        slower |= ratio.is_nan() || ratio > MOST;
        lines.push(format!("{name} | {count} | {before} | {ratio:.3}"));
    }
    print!("{}", table("work | instructions | recorded | ratio", lines));
    if slower {
        println!(
            "something needs more than {MOST} times its recorded instructions: mend it, or record again"
        );
    }
    Ok(failed_if(slower))
}

/// Returns the recorded counts. Those of another compiler say nothing about this one.
fn recorded(workspace: &Workspace, path: &Path) -> Result<BTreeMap<String, u64>> {
    if let Some(why) = counts::incomparable(workspace) {
        return Err(Failure::Missing(why));
    }
    let text = fs::read_to_string(path).map_err(Failure::file(path))?;
    let known: Recorded =
        serde_json::from_str(&text).map_err(|source| Failure::Output { program: FILE, source })?;
    Ok(known.instructions)
}

/// Does work in this process, a number of times.
pub(crate) fn repeat([number, repeats]: [usize; 2]) {
    if let Some((_, prepare)) = WORK.get(number) {
        let work = prepare();
        (0..repeats).for_each(|_| _ = std::hint::black_box(work()));
    }
}

/// Returns the instructions of this program while it does work a number of times.
fn counted(number: usize, repeats: u32) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(this_program()?).args(["--work", &format!("{number},{repeats}")]).stdin(Stdio::null());
    let ended = command.output().map_err(|source| cannot_run(&command, source))?;
    let text = String::from_utf8_lossy(&ended.stderr);
    instructions(&text).ok_or_else(|| Failure::Missing(format!("valgrind counts no instructions: {text}")))
}

/// Returns the number in the line of valgrind `I refs: 1,234`.
fn instructions(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("I ") && line.contains("refs:"))?;
    line.rsplit(':').next()?.replace(',', "").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_valgrind_is_read() {
        assert_eq!(instructions("==7== \n==7== I   refs:      1,234,567\n"), Some(1_234_567));
        assert_eq!(instructions("valgrind: no such program"), None);
    }
}
