//! Sets of host names: the `nodeset` of ClusterShell expands and folds them in the same way.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use ombx_host::node_set::{expand, fold};
use ombx_tests::{Job, print_note, skipped};

/// Sets that ClusterShell has folded once; the unit tests compare with its answers without ClusterShell.
const CASES: &str = include_str!("../../../crates/host/src/node_set/cases.tsv");
/// Number of sets that are drawn for a comparison.
const DRAWN: u64 = 400;
/// Reads a set per line and prints its notation and its names, as `nodeset -f` and `nodeset -e`. One process answers for all.
const ORACLE: &str = "import sys
from ClusterShell.NodeSet import NodeSet
for line in sys.stdin:
    nodes = NodeSet(line.strip())
    print(nodes, ' '.join(sorted(str(node) for node in nodes)), sep='\\t')
";

/// Random numbers with a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Draws names of hosts of one cluster.
    fn names(&mut self) -> String {
        let (kind, count) = (self.below(4), 1 + self.below(30));
        let mut name = || match kind {
            0 => format!("n{}", self.below(130)),
            1 => format!("n{:0width$}", self.below(130), width = 1 + self.below(4) as usize),
            2 => format!("r{}n{:02}", self.below(4), self.below(12)),
            _ => {
                format!("x{:04}c{}s{}b{}", 1000 + self.below(2), self.below(2), self.below(3), self.below(2))
            }
        };
        (0..count).map(|_| name()).collect::<Vec<_>>().join(",")
    }
}

/// Returns what ClusterShell prints for these sets; `None` if it is not installed.
fn ask(sets: &[String]) -> Option<Vec<String>> {
    let mut python = Command::new("python3");
    let command =
        python.args(["-c", ORACLE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    let text = sets.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok();
    let lines = String::from_utf8(output.stdout).ok()?.lines().map(str::to_owned).collect();
    output.status.success().then_some(lines)
}

#[test]
fn nodeset_of_clustershell_agrees() {
    let mut dice = Dice(21);
    let known = CASES.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned);
    let sets: Vec<String> = known.chain((0..DRAWN).map(|_| dice.names())).collect();
    let Some(answers) = ask(&sets) else {
        return skipped(
            "python3 has no ClusterShell (apt install clustershell, or pip install ClusterShell)",
        );
    };
    assert_eq!(answers.len(), sets.len());
    for (set, answer) in sets.iter().zip(&answers) {
        let names: BTreeSet<String> = expand(set).expect("a set").into_iter().collect();
        let folded = fold(names.iter().map(String::as_str));
        let ours = format!("{folded}\t{}", Vec::from_iter(names).join(" "));
        assert_eq!(ours, *answer, "{set}");
    }
    print_note(&format!("{} sets agree", sets.len()));
}

#[test]
fn ranges_name_the_ranks_of_a_job() {
    let done = Job::ombx("run sockets.latency --sizes 8 --quick --hosts 127.0.0.[1-2] --format jsonl")
        .run()
        .expect(0);
    let run = done.stdout.lines().next().unwrap_or_default().to_owned();
    assert_eq!(run.matches("\"host\":").count(), 2, "{run}");
    let done = Job::ombx("links --fabric tcp --hosts n[01-03,5-4]").run().expect(2);
    assert!(done.sentence().contains("a range runs backwards"), "{done}");
}
