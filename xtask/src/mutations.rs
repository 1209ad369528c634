//! `cargo xtask mutations`: defects on purpose, each of which must turn checks red. A check that sees no defect is no check.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use ombx_toolchain::{
    Failure, Outcome, Result, Step, Workspace, cannot_run, cargo, failed_if, output, succeeds,
};

use crate::checks::CHECKS;

/// Put a defect into the last commit, one after the other, and see the checks turn red
///
/// Each defect is one edit of a file of the last commit, in a work tree of its own. The check must fail and print the name of
/// what has failed. Exits with 1 if a check stays green. Everything is below target/mutations, with the output of each check.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask mutations format tidy clippy\n  cargo xtask mutations --list"
)]
pub(crate) struct Options {
    /// Names of checks [default: all]; `cargo xtask test --list` prints them
    checks: Vec<String>,
    /// Print the mutations and run none
    #[arg(long)]
    list: bool,
}

/// Defect that an edit of one file makes, and the checks that must see it.
struct Mutation {
    defect: &'static str,
    file: &'static str,
    /// Text that occurs once in the file.
    before: &'static str,
    after: &'static str,
    seen: &'static [Seen],
}

/// Check that must turn red.
struct Seen {
    check: &'static str,
    /// Words behind `cargo xtask test CHECK`, so that the run is short.
    words: &'static str,
    /// Part of the output that names what has failed.
    says: &'static str,
}

const fn seen(check: &'static str, words: &'static str, says: &'static str) -> Seen {
    Seen { check, words, says }
}

/// All mutations, in the order in which they run: a crate is compiled for as few of them as possible.
const MUTATIONS: &[Mutation] = &[
    Mutation {
        defect: "modules are not in order",
        file: "crates/sweep/src/lib.rs",
        before: "pub mod schedule;\npub mod sweep;\n",
        after: "pub mod sweep;\npub mod schedule;\n",
        seen: &[seen("format", "", "crates/sweep/src/lib.rs:")],
    },
    Mutation {
        defect: "a heading has changed, but not the links to it",
        file: "docs/GUIDE.md",
        before: "\n## A cluster on one machine\n",
        after: "\n## Several hosts on one machine\n",
        seen: &[seen("tidy", "", "#a-cluster-on-one-machine")],
    },
    Mutation {
        defect: "what ranks run has a parser of words",
        file: "crates/launch/Cargo.toml",
        before: "[dependencies]\n",
        after: "[dependencies]\nclap.workspace = true\n",
        seen: &[seen("count", "", "parsers of words in a started rank")],
    },
    Mutation {
        defect: "a dependency has no version",
        file: "crates/report/Cargo.toml",
        before: "ombx-draw.workspace = true",
        after: "ombx-draw = { path = \"../draw\" }",
        seen: &[seen("packages", "", "dependency `ombx-draw` does not specify a version")],
    },
    Mutation {
        defect: "a crate has a license that was not decided on",
        file: "crates/draw/Cargo.toml",
        before: "license.workspace = true",
        after: "license = \"GPL-3.0-only\"",
        seen: &[seen("dependencies", "", "license = \"GPL-3.0-only\"")],
    },
    Mutation {
        defect: "a fault that no case has is no error",
        file: "verify/faults/src/main.rs",
        before: "if lines.is_empty() && listed == 0 {",
        after: "if lines.is_empty() && listed == 1 {",
        seen: &[seen("selection", "", "ombx-faults --no-build --only no-such-name: failed")],
    },
    Mutation {
        defect: "the RPM package has no completions of fish",
        file: "crates/cli/Cargo.toml",
        before: "    { source = \"target/package/usr/share/fish/**/*\", dest = \"/usr/share/fish/\", mode = \"644\" },\n",
        after: "",
        seen: &[seen("published", "--share 1/3", "./usr/share/fish")],
    },
    Mutation {
        defect: "a column of texts is read as numbers",
        file: "packaging/python/ombx/__init__.py",
        before: "    \"other_states\",\n",
        after: "",
        seen: &[seen("wheel", "", "FAILED (")],
    },
    Mutation {
        defect: "the recipe of EasyBuild lacks a file that is checked",
        file: "packaging/easybuild/ombx-0.1.0.eb",
        before: "'bin/ombx', 'share/man/man1/ombx.1'",
        after: "'bin/ombx', 'share/man/man8/ombx.8'",
        seen: &[seen("easybuild", "", "Sanity check failed")],
    },
    Mutation {
        defect: "a known defect of a dependency is not judged",
        file: "deny.toml",
        before: "id = \"RUSTSEC-2025-0058\"",
        after: "id = \"RUSTSEC-2020-0001\"",
        seen: &[seen("advisories", "", "RUSTSEC-2025-0058")],
    },
    Mutation {
        defect: "the documentation names a module that does not exist",
        file: "crates/sweep/src/lib.rs",
        before: "measuring them ([`sweep`])",
        after: "measuring them ([`sweeps`])",
        seen: &[seen("documentation", "", "unresolved link to `sweeps`")],
    },
    Mutation {
        defect: "the program in the documentation calls a function as it was",
        file: "crates/sweep/src/lib.rs",
        before: "Mode::Parallel.schedule(4, None)",
        after: "Mode::Parallel.schedule(4)",
        seen: &[seen("examples", "-- sweep", "---- crates/sweep/src/lib.rs")],
    },
    Mutation {
        defect: "a statement is longer than it must be",
        file: "crates/sweep/src/schedule.rs",
        before: "        other.map(|other| self.rank(other))\n",
        after: "        return other.map(|other| self.rank(other));\n",
        seen: &[seen("clippy", "", "unneeded `return` statement")],
    },
    Mutation {
        defect: "code for MPI is compiled without MPI",
        file: "crates/cli/src/commands/links.rs",
        before: "#[cfg(feature = \"mpi\")]\nuse ombx_launch::job::accelerator;",
        after: "use ombx_launch::job::accelerator;",
        seen: &[seen("without-mpi", "", "ombx_launch::job::accelerator")],
    },
    Mutation {
        defect: "a function is newer than the oldest supported Rust",
        file: "crates/cli/src/commands/links.rs",
        before: "const SCONTROL: Duration = Duration::from_secs(60);",
        after: "const SCONTROL: Duration = Duration::from_mins(1);",
        seen: &[seen("oldest-rust", "", "duration_constructors")],
    },
    Mutation {
        defect: "rows of ranks that waited for a CPU accuse links",
        file: "crates/links/src/verdict/times.rs",
        before: "        MarkCode::Waited => true,\n",
        after: "        MarkCode::Waited => mark.level >= Level::Invalid,\n",
        seen: &[seen(
            "unit",
            "-- undecided::tests",
            "---- verdict::undecided::tests::a_link_whose_ranks_always_waited_is_neither_slow_nor_clear stdout",
        )],
    },
    Mutation {
        defect: "a burst on all links is the fault of one",
        file: "crates/links/src/verdict/unsteady.rs",
        before: "        is_near && hosts_of",
        after: "        false && is_near && hosts_of",
        seen: &[seen(
            "unit",
            "-- unsteady::tests",
            "---- verdict::unsteady::tests::healthy_links_are_seldom_unsteady stdout",
        )],
    },
    Mutation {
        defect: "all rounds of a row start at one alignment",
        file: "crates/core/src/measure/alignment.rs",
        before: "const STEP: u64 = 37;",
        after: "const STEP: u64 = 32;",
        seen: &[seen(
            "unit",
            "-- alignment::tests",
            "---- measure::alignment::tests::the_steps_spread_rounds_over_every_ring stdout",
        )],
    },
    Mutation {
        defect: "a warm-up ends while the times of the library still fall",
        file: "crates/core/src/measure/stop.rs",
        before: "reached && !so_far.is_falling()",
        after: "reached",
        seen: &[seen(
            "unit",
            "-- stop::tests",
            "---- measure::stop::tests::a_warm_up_ends_when_times_have_stopped_falling stdout",
        )],
    },
    Mutation {
        defect: "a missed limit ends with the code of a regression",
        file: "crates/check/src/check/judgement.rs",
        before: "(State::Missed, Exit::Slow, ",
        after: "(State::Missed, Exit::Regression, ",
        seen: &[
            seen(
                "unit",
                "-- judgement::tests",
                "---- check::judgement::tests::exit_codes_and_status_follow_the_importance stdout",
            ),
            seen(
                "cli",
                "-- check::a_limit_that_cannot_hold",
                "---- check::a_limit_that_cannot_hold_is_measured_twice stdout",
            ),
        ],
    },
    Mutation {
        defect: "an interrupted job ends with the code of a lost rank",
        file: "crates/launch/src/launch/job_state.rs",
        before: "Exit::SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0))",
        after: "Exit::Fabric.code()",
        seen: &[
            seen(
                "ranks",
                "--mpi mpich -- a_signal_interrupts_the_run",
                "---- failures::a_signal_interrupts_the_run stdout",
            ),
            seen("sockets", "-- a_job_is_interrupted", "---- failures::a_job_is_interrupted stdout"),
            seen("faults", "--mpi mpich", "WRONG: exit code 6"),
            seen("soak", "--mpi mpich --seed 1", "exit code 6"),
        ],
    },
    Mutation {
        defect: "wrong data ends with the code of a skipped row",
        file: "crates/launch/src/output.rs",
        before: "LinkJudge::exit_code),\n            code => code,",
        after: "LinkJudge::exit_code),\n            _ => ombx_core::error::Exit::Incomplete.code(),",
        seen: &[seen("fault-table", "--mpi mpich --share 1/60", "WRONG: exit code 4")],
    },
    Mutation {
        defect: "messages of an OSU program get fewer iterations from a smaller size on",
        file: "crates/drop-in/src/osu/programs.rs",
        before: "const LARGE: Bytes = Bytes(8192);",
        after: "const LARGE: Bytes = Bytes(4096);",
        seen: &[seen("matrices", "--mpi mpich -- iterations_by_size", "iterations_by_size stdout")],
    },
    Mutation {
        defect: "the name of an interface may be anything",
        file: "crates/cluster/src/inventory.rs",
        before: "|name| !is_plain(name, \"-._:\") || name.len() > 15",
        after: "|name| name.len() > 15",
        seen: &[
            seen(
                "hosts",
                "--mpi mpich -- names_are_never_run_as_commands",
                "---- smoke::names_are_never_run_as_commands stdout",
            ),
            seen("fuzz", "", "found/inventory-crash"),
        ],
    },
    Mutation {
        defect: "the names of two sides are exchanged",
        file: "crates/cli/src/commands/report.rs",
        before: "(base.labelled(base_label), new.labelled(new_label))",
        after: "(base.labelled(new_label), new.labelled(base_label))",
        seen: &[seen(
            "report",
            "-- both_sides_lie_over_each_other",
            "---- files::both_sides_lie_over_each_other_under_the_names_of_the_user stdout",
        )],
    },
    Mutation {
        defect: "a key moves upwards in a map instead of downwards",
        file: "crates/report/src/asset/page.js",
        before: "ArrowDown: [1, 0]",
        after: "ArrowDown: [-1, 0]",
        seen: &[seen("browser", "", "---- a_page_is_drawn_and_follows_theme_and_keyboard stdout")],
    },
    Mutation {
        defect: "an alert of missed limits waits for the second one",
        file: "packaging/prometheus/ombx.rules.yml",
        before: "expr: ombx_missed_demands > 0",
        after: "expr: ombx_missed_demands > 1",
        seen: &[seen(
            "monitoring",
            "-- alerts_follow",
            "---- prometheus::alerts_follow_the_file_of_the_last_sweep stdout",
        )],
    },
    Mutation {
        defect: "a row of a result file becomes a tree before it becomes a row",
        file: "crates/record/src/file/lines.rs",
        before: "let row = decoded(text)?;",
        after: "let row = decoded(text).and_then(|tree| serde_json::from_value(tree).map_err(|e| e.to_string()))?;",
        seen: &[seen("work", "", "something needs more than 1.2 times its recorded instructions")],
    },
    Mutation {
        defect: "a window of messages has no padding between them",
        file: "crates/mpi/src/two_sided/channel.rs",
        before: "(self.outgoing.start(), self.slots.stride as usize)",
        after: "(self.outgoing.start(), self.slots.bytes as usize)",
        seen: &[seen(
            "rank_harness",
            "--mpi mpich -- windows_of_messages",
            "---- channel::windows_of_messages_on_3",
        )],
    },
    Mutation {
        defect: "a timed loop calls a function that was part of it",
        file: "crates/mpi/src/two_sided/channel.rs",
        before: "#[inline(always)]\n    fn send(&mut self)",
        after: "#[inline(never)]\n    fn send(&mut self)",
        seen: &[seen("instructions", "--mpi mpich", "Link>::send is not inlined")],
    },
    Mutation {
        defect: "a text for a C function has no end",
        file: "crates/mpi/src/sys/error.rs",
        before: "task.bytes().filter(|b| *b != 0).chain([0]).collect()",
        after: "task.bytes().filter(|b| *b != 0).collect()",
        seen: &[seen("sanitize", "--mpi mpich", "ombx_name_task")],
    },
    Mutation {
        defect: "the launcher of another MPI is taken for that of MPICH",
        file: "packaging/ombx.sh",
        before: "orterun | prterun | *.openmpi) echo openmpi ;;",
        after: "orterun | prterun | *.openmpi) echo mpich ;;",
        seen: &[seen("libraries", "--share 5/7", "FAILED: ")],
    },
];

/// Runs the mutations of the named checks.
pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    if let Some(wrong) = options.checks.iter().find(|name| CHECKS.iter().all(|check| check.name != **name)) {
        return Err(Failure::Usage(format!("there is no check {wrong}; cargo xtask test --list prints all")));
    }
    let is_chosen =
        |seen: &&Seen| options.checks.is_empty() || options.checks.iter().any(|n| n == seen.check);
    if options.list {
        for mutation in MUTATIONS {
            for seen in mutation.seen.iter().filter(is_chosen) {
                println!("{:14} {} ({})", seen.check, mutation.defect, mutation.file);
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let trial = Trial::new(&Workspace::read()?)?;
    let mut lines = Vec::new();
    for mutation in MUTATIONS.iter().filter(|mutation| mutation.seen.iter().any(|seen| is_chosen(&seen))) {
        let original = mutation.put_into(&trial.tree)?;
        for seen in mutation.seen.iter().filter(is_chosen) {
            lines.push(trial.line(mutation, seen));
        }
        let path = trial.tree.join(mutation.file);
        fs::write(&path, original).map_err(Failure::file(path))?;
    }
    println!();
    lines.iter().for_each(|(line, _)| println!("{line}"));
    Ok(failed_if(lines.iter().any(|(_, is_red)| !is_red)))
}

impl Mutation {
    /// Edits the file below a directory. Returns its text before.
    fn put_into(&self, root: &Path) -> Result<String> {
        let path = root.join(self.file);
        let original = fs::read_to_string(&path).map_err(Failure::file(&path))?;
        if original.matches(self.before).count() != 1 {
            return Err(Failure::Missing(format!(
                "{} does not have this text once: {}",
                self.file, self.before
            )));
        }
        fs::write(&path, original.replacen(self.before, self.after, 1)).map_err(Failure::file(path))?;
        Ok(original)
    }
}

/// Directories in which checks see defects.
struct Trial {
    /// Work tree of the last commit.
    tree: PathBuf,
    /// Target directory of its builds.
    target: PathBuf,
    /// Directory of what the checks print.
    logs: PathBuf,
}

impl Trial {
    /// Checks out the last commit. A tree that is there already keeps the files that are as in this commit, so that cargo builds only
    /// what has changed since.
    fn new(workspace: &Workspace) -> Result<Self> {
        let directory = workspace.target.join("mutations");
        let trial = Self {
            tree: directory.join("tree"),
            target: directory.join("target"),
            logs: directory.join("logs"),
        };
        fs::create_dir_all(&trial.logs).map_err(Failure::file(&trial.logs))?;
        let git = |directory: &Path, words: &[&str]| {
            let mut command = Command::new("git");
            command.args(words).current_dir(directory);
            command
        };
        let commit = output(&mut git(&workspace.root, &["rev-parse", "HEAD"]))?;
        let (commit, tree) = (commit.trim(), trial.tree.display().to_string());
        if trial.tree.join(".git").exists()
            && succeeds(&mut git(&trial.tree, &["checkout", "--quiet", "--force", "--detach", commit]))
        {
            output(&mut git(&trial.tree, &["clean", "--quiet", "--force", "-d"]))?;
        } else {
            output(&mut git(&workspace.root, &["worktree", "add", "--force", "--detach", &tree, commit]))?;
        }
        Ok(trial)
    }

    /// Runs a check on a defect. Returns a line about it, and whether it is red or skipped.
    fn line(&self, mutation: &Mutation, seen: &Seen) -> (String, bool) {
        let log = self.logs.join(format!("{}.txt", seen.check));
        let step = Step::timed(format!("{}: {}", seen.check, mutation.defect), || self.run(seen, &log));
        let (verdict, is_good) = match &step.outcome {
            Outcome::Passed => ("red".to_owned(), true),
            Outcome::Failed(why) => (format!("NOT RED: {why}"), false),
            Outcome::Skipped(why) => (format!("skipped: {why}"), true),
        };
        let line = format!(
            "{:14} {:6.1} s  {} ({}): {verdict}",
            seen.check,
            step.took.as_secs_f64(),
            mutation.defect,
            mutation.file
        );
        println!("{line}");
        (line, is_good)
    }

    /// Runs a check, which passes here if it fails because of the defect.
    fn run(&self, seen: &Seen, log: &Path) -> Result<Outcome> {
        let file = File::create(log).map_err(Failure::file(log))?;
        let errors = file.try_clone().map_err(Failure::file(log))?;
        let mut command = cargo();
        command.args(["run", "--quiet", "--package", "xtask", "--", "test", seen.check, "--yes"]);
        command.args(seen.words.split_whitespace()).current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_TERM_COLOR", "never");
        // Each mutation compiles one crate again, and nobody debugs it.
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let status = command.status().map_err(|source| cannot_run(&command, source))?;
        let text = String::from_utf8_lossy(&fs::read(log).map_err(Failure::file(log))?).into_owned();
        Ok(if !status.success() && text.contains(seen.says) {
            Outcome::Passed
        } else if !status.success() {
            Outcome::Failed(format!("it does not say {:?}, see {}", seen.says, log.display()))
        } else {
            match skipped(&text) {
                Some(why) => Outcome::Skipped(why),
                None => Outcome::Failed(format!("it passed, see {}", log.display())),
            }
        })
    }
}

/// Returns why a check was skipped, from the summary in its output; `None` if a part of it has run.
fn skipped(text: &str) -> Option<String> {
    let is_of_check = |line: &&str| line.contains("  passed  ") && !line.starts_with("build with ");
    if text.lines().any(|line| is_of_check(&line)) {
        return None;
    }
    let of_summary = text.lines().find_map(|line| line.split_once("  skipped             "))?.1;
    // A test says more than the summary.
    let of_test = text.lines().find_map(|line| line.split_once(": skipped: "));
    Some(of_test.map_or(of_summary, |(_, why)| why).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_mutation() {
        let all = || MUTATIONS.iter().flat_map(|mutation| mutation.seen);
        for check in CHECKS {
            assert!(all().any(|seen| seen.check == check.name), "{} sees no mutation", check.name);
        }
        assert!(all().all(|seen| CHECKS.iter().any(|check| check.name == seen.check)));
    }

    #[test]
    fn each_text_occurs_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for Mutation { file, before, after, .. } in MUTATIONS {
            let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(text.matches(before).count(), 1, "{file}: {before}");
            assert_ne!(before, after);
        }
    }

    #[test]
    fn a_file_is_edited_once_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mutation = Mutation { defect: "d", file: "file", before: "a", after: "b", seen: &[] };
        fs::write(&path, "a c").unwrap();
        assert_eq!(mutation.put_into(directory.path()).unwrap(), "a c");
        assert_eq!(fs::read_to_string(&path).unwrap(), "b c");
        for other in ["a a", ""] {
            fs::write(&path, other).unwrap();
            assert!(mutation.put_into(directory.path()).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
    }

    #[test]
    fn a_check_that_was_skipped_says_why() {
        let build = "build with MPICH 4   passed      42.0 s\n";
        let alone = format!("{build}work                 skipped             valgrind is missing\n");
        assert_eq!(skipped(&alone).as_deref(), Some("valgrind is missing"));
        let said = format!(
            "a::b: skipped: no root\n{build}hosts with MPICH 4  skipped             every test was skipped\n"
        );
        assert_eq!(skipped(&said).as_deref(), Some("no root"));
        let half = format!("{alone}hosts with MPICH 4   passed      2.0 s\n");
        assert_eq!(skipped(&half), None);
        assert_eq!(skipped(build), None);
    }
}
