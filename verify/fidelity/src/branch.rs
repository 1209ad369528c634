//! One more branch per message: `ombx ab` compares two libraries that differ by it, and callgrind counts their instructions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use serde_json::Value;

use ombx_toolchain::{
    Failure, Mpi, Result, Workspace, compile, emptied, evidence, failed_if, installed, output_and_failure,
    release, shown, table,
};

use crate::{callgrind, document, options::Options, paired::launcher, profile::Profile};

const SOURCE: &str = include_str!("branch.c");
/// Names of the libraries: without the branch, and with it.
const NAMES: [&str; 2] = ["plain", "branch"];
/// Benchmark of both comparisons, whose ranks send by `MPI_Send`.
const BENCHMARK: [&str; 3] = ["p2p.latency", "--sizes", "8"];
/// Iterations under callgrind, which is slow.
const COUNTED: &str = "500";

/// Compares both libraries on each MPI. Fails if callgrind does not find the branch, or if `ombx ab` finds fewer instructions with it.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let about = document::circumstances(options.seed);
    let (mut failed, mut versions, mut section) = (false, Vec::new(), String::new());
    for mpi in installed(options.mpi)? {
        let ombx = release::ombx(&mpi, workspace, !options.no_build)?;
        let directory = mpi.target(&workspace.target).join("branch");
        let both = Libraries::build(mpi, ombx, directory)?;
        println!("-- {}", both.mpi);
        let (sentence, is_wrong) = both.compared(options)?;
        println!("{sentence}");
        failed |= is_wrong;
        versions.push(both.mpi.name());
        section += &format!("\n{}: {sentence}.\n", both.mpi.name());
        if let Some(why) = callgrind::unavailable() {
            println!("callgrind: skipped, {why}");
            section += &format!("\ncallgrind: skipped, {why}\n");
            continue;
        }
        let [plain, branch] = [both.counted(0)?, both.counted(1)?];
        let line = |name: &str, sends: &Sends| {
            format!("{name} | {} | {:.1} | {:.1}", sends.count, sends.own, sends.own + sends.library)
        };
        let head = "library | sends | instructions of MPI_Send | with those of PMPI_Send";
        let counted = table(head, [line(NAMES[0], &plain), line(NAMES[1], &branch)]);
        println!("{counted}");
        println!("The branch costs {:.1} instructions per message.", branch.own - plain.own);
        section += &format!(
            "\n{counted}\nThe branch costs {:.1} instructions per message.\n",
            branch.own - plain.own
        );
        failed |= branch.own <= plain.own;
    }
    if options.write {
        let heading = document::heading(&about, &versions);
        let text = section.trim();
        let section = format!("{heading}\n\n{text}\n");
        evidence::write(workspace, "fidelity-branch", &section, &document::full(&heading, text))?;
    }
    Ok(failed_if(failed))
}

/// Two profiling libraries for one MPI, and the ombx that is started with them.
struct Libraries {
    mpi: Mpi,
    ombx: PathBuf,
    directory: PathBuf,
    paths: [PathBuf; 2],
}

/// Instructions per send of one rank.
struct Sends {
    count: u64,
    /// Of the profiling library.
    own: f64,
    /// Of what it calls.
    library: f64,
}

impl Libraries {
    fn build(mpi: Mpi, ombx: PathBuf, directory: PathBuf) -> Result<Self> {
        let build = |name: &str, options: &[&str]| {
            let options = [&["-O2", "-shared", "-fPIC"], options].concat();
            compile(&mpi.mpicc, &options, &directory, &format!("{name}.c"), SOURCE)
        };
        let paths = [build(NAMES[0], &[])?, build(NAMES[1], &["-DEXTRA"])?];
        Ok(Self { mpi, ombx, directory, paths })
    }

    /// Compares the libraries by `ombx ab`. Returns a sentence on times and one on instructions, and whether the branch saves some.
    fn compared(&self, options: &Options) -> Result<(String, bool)> {
        let out = self.directory.join("ab.jsonl");
        let [a, b] = self.paths.each_ref().map(|path| format!("LD_PRELOAD={}", path.display()));
        let mut command = Command::new(&self.ombx);
        command.arg("ab").args(BENCHMARK).args(["--env-a", &a, "--env-b", &b, "--counters"]);
        command.args(["--names", &NAMES.join(","), "--launches", &options.launches.to_string(), "--force"]);
        command.args(["--seed", &options.seed.to_string(), "--format", "json", "-q", "-o"]).arg(&out);
        self.mpi.launch_with(&mut command);
        println!("{}", shown(&command));
        // An undecided comparison is no success.
        let (text, failure) = output_and_failure(&mut command)?;
        let result: Value = serde_json::from_str(&text).map_err(|e| {
            failure.unwrap_or_else(|| Failure::Command { command: shown(&command), detail: e.to_string() })
        })?;
        let case = &result["cases"][0];
        let instructions = &case["instructions"];
        let by_instructions = match instructions["verdict"].as_str() {
            Some(verdict) => format!("{verdict}{}", change(&instructions["change"])),
            None => unavailable(&out.with_file_name("ab-a.jsonl"))?,
        };
        let times = case["verdict"].as_str().unwrap_or("none");
        let sentence = format!(
            "ombx ab of {} turns: by times {times}{}; by instructions {by_instructions}",
            options.launches,
            change(&case["time_change"])
        );
        Ok((sentence, instructions["verdict"] == "better"))
    }

    /// Counts the instructions per send with a library, of the ranks of a run.
    fn counted(&self, at: usize) -> Result<Sends> {
        let place = self.directory.join(NAMES[at]);
        // Removes profiles of an earlier run.
        emptied(&place)?;
        let mut command = launcher(&self.mpi);
        command.args(["-n", "2", "valgrind", "--tool=callgrind", "--separate-threads=no"]);
        command.arg(format!("--callgrind-out-file={}", place.join("rank.%p").display()));
        command.arg(&self.ombx).arg("run").args(BENCHMARK).args(["--iterations", COUNTED, "--warmup", "10"]);
        command.args(["--launcher", "auto"]).env("LD_PRELOAD", &self.paths[at]);
        let (_, failure) = output_and_failure(&mut command)?;
        let library = self.paths[at].display().to_string();
        let files = fs::read_dir(&place).map_err(Failure::file(&place))?.flatten();
        let profile = |path: &Path| {
            Ok(Profile::parse(&fs::read_to_string(path).map_err(Failure::file(path))?, &library))
        };
        let profiles = files.map(|entry| profile(&entry.path())).collect::<Result<Vec<_>>>()?;
        // Both ranks send equally often.
        let sends = profiles.iter().filter_map(Sends::from_profile).max_by_key(|sends| sends.count);
        sends.ok_or_else(|| {
            let detail = "no rank called MPI_Send of the preloaded library".into();
            failure.unwrap_or(Failure::Command { command: shown(&command), detail })
        })
    }
}

impl Sends {
    /// Returns `None` if the library passed no send on.
    fn from_profile(profile: &Profile) -> Option<Self> {
        let is_send = |function: &str| function.ends_with("MPI_Send");
        let sends = || profile.calls.iter().filter(|(function, _)| is_send(function));
        let count: u64 = sends().map(|(_, calls)| calls.number).sum();
        let inside: u64 = sends().map(|(_, calls)| calls.instructions).sum();
        let own: u64 = profile.own.iter().filter(|(name, _)| is_send(name)).map(|(_, cost)| cost).sum();
        let each = |cost: u64| cost as f64 / count as f64;
        (count > 0).then(|| Self { count, own: each(own), library: each(inside) })
    }
}

/// Returns the estimate of a change and its interval as text.
fn change(change: &Value) -> String {
    let percent = |change: &Value| change.as_f64().map(|change| format!("{:+.2} %", 100.0 * change));
    match (percent(&change["estimate"]), percent(&change["ci90"][0]), percent(&change["ci90"][1])) {
        (Some(estimate), Some(low), Some(high)) => format!(" ({estimate}, 90 % within {low} to {high})"),
        (Some(estimate), ..) => format!(" ({estimate})"),
        _ => String::new(),
    }
}

/// Returns why a result file has no instructions.
fn unavailable(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).map_err(Failure::file(path))?;
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let why = |record: Value| Some(record["figures"]["instructions_per_op"].as_str()?.to_owned());
    Ok(records.into_iter().find_map(why).unwrap_or_else(|| "undecided".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Profile of a rank that sent ten messages: 3 instructions of the library, 200 of MPI each.
    const FILE: &str = "ob=(1) /x/branch.so\nfn=(1) MPI_Send\n0 30\ncob=(2) /lib/libmpi.so\n\
                        cfn=(2) PMPI_Send\ncalls=10 0\n0 2000\n";

    #[test]
    fn instructions_are_those_of_one_send() {
        let sends = Sends::from_profile(&Profile::parse(FILE, "/x/branch.so")).unwrap();
        assert_eq!((sends.count, sends.own, sends.library), (10, 3.0, 200.0));
        assert!(Sends::from_profile(&Profile::parse(FILE, "/x/other.so")).is_none());
    }

    #[test]
    fn a_change_is_shown_in_percent() {
        let shown = change(&serde_json::json!({"estimate": 0.012, "ci90": [-0.01, 0.03]}));
        assert_eq!(shown, " (+1.20 %, 90 % within -1.00 % to +3.00 %)");
        assert_eq!(change(&Value::Null), "");
    }
}
