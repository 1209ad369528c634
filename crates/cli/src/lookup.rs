//! Finds the benchmarks that a name, a glob or an OSU name selects.

use std::path::Path;

use ombx_core::{
    benchmark::{Benchmark, Choice, Medium, Registry, Threading},
    measure::plan::{Under, check_loads},
};
use ombx_drop_in::imb::programs;
use ombx_record::{
    error::{Error, Result},
    file::is_named_as_result,
    order::each_once_by,
};

use crate::families;

/// Fewest and most characters of a text for which a similar name is searched.
const FEWEST_LETTERS: usize = 3;
const LONGEST_NAME: usize = 64;

/// Returns the name that a mistyped one stands for: the shortest that contains it, else the one with the fewest typing errors, at most one in
/// four letters. Letter case does not count. Fewer than three letters are in too many names, numbers have no typing errors, and a long
/// text is no name.
pub(crate) fn similar<'n>(wrong: &str, mut names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let letters = wrong.chars().count();
    let is_number = wrong.bytes().all(|byte| byte.is_ascii_digit());
    if is_number || !(FEWEST_LETTERS..=LONGEST_NAME).contains(&letters) {
        return names.find(|name| *name == wrong);
    }
    let wrong = wrong.to_lowercase();
    let errors = |name: &str| {
        let name = name.to_lowercase();
        if name.contains(&wrong) { 0 } else { strsim::damerau_levenshtein(&name, &wrong) }
    };
    let scored = names.map(|name| (errors(name), name.len(), name));
    scored.min().filter(|(errors, ..)| *errors <= (letters / 4).max(1)).map(|(.., name)| name)
}

/// Returns the benchmarks that a pattern selects: a name, a glob (`rma.*`) or an OSU name.
///
/// # Errors
/// If nothing matches; the message names the most similar benchmark.
pub(crate) fn find(registry: &Registry, pattern: &str) -> Result<Vec<Choice>> {
    let glob = glob::Pattern::new(pattern)
        .map_err(|e| Error::usage(format!("pattern {pattern:?} is not a name or a glob: {}", e.msg)))?;
    let found: Vec<Choice> = registry.all().iter().flat_map(|bench| choices(bench, &glob)).collect();
    if found.is_empty() {
        if let Some(why) = families::not_built(registry, pattern) {
            return Err(Error::usage(format!("{pattern} is not in this build: {why}")));
        }
        let better = better(registry, pattern).unwrap_or_default();
        return Err(Error::usage(format!(
            "no benchmark is called {pattern:?}{better} (ombx list shows all)"
        )));
    }
    Ok(found)
}

/// Returns a benchmark under each of its names that a pattern selects: its own, or those of OSU.
fn choices(bench: &'static Benchmark, pattern: &glob::Pattern) -> Vec<Choice> {
    if pattern.matches(bench.name) {
        return vec![Choice { bench, preset: &[] }];
    }
    let named = bench.osu_names().filter(|osu| pattern.matches(osu.name));
    named.map(|osu| Choice { bench, preset: osu.axes }).collect()
}

/// Returns what a wrong name may stand for: a family, a benchmark of another suite, or a mistyped name.
fn better(registry: &Registry, wrong: &str) -> Option<String> {
    let is_short = !wrong.contains('.');
    if let Some(family) = similar(wrong, families::names(registry)).filter(|_| is_short) {
        return Some(format!("; did you mean '{family}.*'?"));
    }
    if is_named_as_result(Path::new(wrong)) {
        return Some(format!(
            ": ombx show {wrong} prints a result file, ombx run --like {wrong} repeats its run"
        ));
    }
    if wrong.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("IMB-")) {
        return Some(match programs::find(wrong) {
            Ok(_) => format!("; ombx imb {wrong} replaces a program of IMB"),
            Err(why) => format!("; {why}"),
        });
    }
    match counterpart(registry, wrong) {
        Some(counterpart) => Some(format!("; {}", counterpart.sentence)),
        None => {
            let of_osu = registry.all().iter().flat_map(|bench| bench.osu_names().map(|osu| osu.name));
            let near = similar(wrong, registry.all().iter().map(|bench| bench.name));
            near.or_else(|| similar(wrong, of_osu)).map(|name| format!("; did you mean {name}?"))
        }
    }
}

/// Names of suites, and their counterparts: a benchmark, and options if it needs any. Those of IMB that have one are in its own table.
const OTHERS: [(&str, &[(&str, &str)]); 11] = [
    ("OMB", &[("osu_partitioned_latency", "p2p.latency_partitioned")]),
    (
        NCCL_TESTS,
        &[
            ("nccl-tests", "collective.allreduce"),
            ("rccl-tests", "collective.allreduce"),
            ("nccl", "collective.allreduce"),
            ("rccl", "collective.allreduce"),
            ("all_reduce_perf", "collective.allreduce"),
            ("all_gather_perf", "collective.allgather"),
            ("alltoall_perf", "collective.alltoall"),
            ("alltoallv_perf", "collective.alltoallv"),
            ("broadcast_perf", "collective.bcast"),
            ("gather_perf", "collective.gather"),
            ("reduce_perf", "collective.reduce"),
            ("reduce_scatter_perf", "collective.reduce_scatter_block"),
            ("scatter_perf", "collective.scatter"),
            ("sendrecv_perf", "p2p.bibw"),
        ],
    ),
    (
        "IMB",
        &[
            ("Exscan", "collective.exscan"),
            ("Scan", "collective.scan"),
            ("Open_Close", "io.open"),
            ("Window", "rma.window"),
            ("Unidir_put", "rma.put_bw"),
            ("Unidir_get", "rma.get_bw"),
            ("Bidir_put", "rma.put_bibw"),
            ("Bidir_get", "rma.get_bibw"),
            ("Accumulate", "rma.acc_latency"),
            ("Get_accumulate", "rma.get_acc_latency"),
            ("Fetch_and_op", "rma.fop_latency"),
            ("Compare_and_swap", "rma.cas_latency"),
            ("Truly_passive_put", "rma.put_passive"),
        ],
    ),
    ("iperf3", &[("iperf3", "sockets.bw"), ("iperf", "sockets.bw"), ("bidir", "sockets.bibw")]),
    ("sockperf", &[("sockperf", "sockets.latency"), ("ping-pong", "sockets.latency")]),
    (
        "netperf",
        &[
            ("netperf", "sockets.bw"),
            ("TCP_RR", "sockets.latency"),
            ("UDP_RR", "sockets.latency --transport udp"),
            ("TCP_STREAM", "sockets.bw"),
            ("UDP_STREAM", "sockets.bw --transport udp"),
        ],
    ),
    (
        "perftest",
        &[
            ("ib_send_lat", "p2p.latency"),
            ("ib_send_bw", "p2p.bw"),
            ("ib_write_lat", "rma.put_latency"),
            ("ib_write_bw", "rma.put_bw"),
            ("ib_read_lat", "rma.get_latency"),
            ("ib_read_bw", "rma.get_bw"),
        ],
    ),
    ("LinkTest", &[("LinkTest", "p2p.link")]),
    ("qperf", &[("tcp_lat", "sockets.latency"), ("tcp_bw", "sockets.bw")]),
    ("NetPIPE", &[("NetPIPE", "p2p.latency"), ("NPmpi", "p2p.latency"), ("NPtcp", "sockets.latency")]),
    ("mpptest", &[("mpptest", "p2p.latency")]),
];

/// Suite of the operations of NCCL, which ombx does not measure.
const NCCL_TESTS: &str = "nccl-tests";

/// Returns each name of another suite, after the suite, with its counterpart.
fn counterparts() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let others = OTHERS.into_iter().flat_map(|(suite, all)| all.iter().map(move |pair| (suite, pair)));
    let others = others.map(|(suite, (theirs, ours))| (suite, *theirs, (*ours).to_owned()));
    programs::counterparts().map(|(theirs, ours)| ("IMB", theirs, ours)).chain(others)
}

/// What leads from a name of another suite to a benchmark here.
pub(crate) struct Counterpart {
    /// The benchmark.
    pub(crate) name: &'static str,
    /// A sentence about it: `PingPong of IMB is p2p.latency`.
    pub(crate) sentence: String,
}

/// Returns the counterpart of a name, if this program has it. Letter case does not count.
pub(crate) fn counterpart(registry: &Registry, name: &str) -> Option<Counterpart> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', ' '], "_");
    // No name is longer, and a long word would be compared for long.
    let wanted = plain(name.get(..LONGEST_NAME.min(name.len())).filter(|start| *start == name)?);
    counterparts().filter(|(_, theirs, _)| plain(theirs) == wanted).find_map(|(suite, theirs, ours)| {
        let name = registry.get(ours.split(' ').next().unwrap_or_default()).ok()?.bench.name;
        let sentence = if suite == NCCL_TESTS {
            format!("NCCL and RCCL are not measured: over MPI, {theirs} is {ours} --memory cuda (or rocm)")
        } else if theirs.eq_ignore_ascii_case(suite) {
            format!("what {suite} measures is {ours}")
        } else {
            format!("{theirs} of {suite} is {ours}")
        };
        Some(Counterpart { name, sentence })
    })
}

/// Returns the benchmarks that the patterns name, in the order of the patterns, each once.
pub(crate) fn benchmarks(registry: &Registry, patterns: &[String]) -> Result<Vec<Choice>> {
    if patterns.is_empty() {
        return Err(Error::usage(
            "give a benchmark: a name such as p2p.latency, a glob such as 'rma.*', an OSU name such as osu_put_bw, or a suite \
             such as suite:smoke (see ombx list)",
        ));
    }
    let patterns = patterns.iter().flat_map(|words| words.split(','));
    let found = patterns.map(|pattern| find(registry, pattern)).collect::<Result<Vec<_>>>()?;
    Ok(each_once_by(found.concat(), |one, other| {
        (one.bench.name, one.preset) == (other.bench.name, other.preset)
    }))
}

/// Checks the loads of a run. All mistakes in them are found here.
pub(crate) fn check_load(loads: &[Under], choices: &[Choice]) -> Result<()> {
    if loads.is_empty() {
        return Ok(());
    }
    check_loads(loads)?;
    if let Some(choice) = choices.iter().find(|choice| choice.bench.ranks.medium == Medium::Own) {
        let name = choice.bench.name;
        return Err(Error::usage(format!(
            "{name} starts its own processes, which cannot be measured under load"
        )));
    }
    if let Some(choice) = choices.iter().find(|choice| !choice.bench.ranks.repeats) {
        let name = choice.bench.name;
        return Err(Error::usage(format!(
            "{name} cannot be measured under load: it is over before a load begins"
        )));
    }
    let registry = Registry::load()?;
    for congestor in loads.iter().flat_map(Under::congestors) {
        let name = &congestor.bench;
        let found = find(&registry, name)?;
        let Some(choice) = found.iter().find(|choice| choice.bench.name == name) else {
            let known = found.iter().map(|choice| choice.bench.name).collect::<Vec<_>>().join(", ");
            return Err(Error::usage(format!(
                "--under takes the name of a benchmark; {name} selects {known}"
            )));
        };
        let ranks = &choice.bench.ranks;
        let other = choices.iter().find(|choice| choice.bench.ranks.medium != ranks.medium);
        let reason = match (ranks.medium, ranks.threading) {
            (Medium::Own, _) => "it starts its own processes".to_owned(),
            (_, Threading::Multiple) => {
                "it has several threads per rank, which the ranks that are measured have not".to_owned()
            }
            _ if !ranks.repeats => "it happens once in a launch".to_owned(),
            _ => match other {
                Some(other) => {
                    format!("its ranks are connected in another way than those of {}", other.bench.name)
                }
                None => continue,
            },
        };
        return Err(Error::usage(format!("{name} cannot be a load: {reason}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ombx_record::error::Kind;
    use ombx_testkit::Probe;
    use proptest::prelude::*;

    use crate::lookup::*;

    static PUT_BW: Benchmark =
        Benchmark::new::<Probe<1>>("rma.put_bw", "x").osu("osu_put_bw", "OSU MPI_Put Bandwidth Test");
    static PUT_LATENCY: Benchmark =
        Benchmark::new::<Probe<2>>("rma.put_latency", "x").osu("osu_put_latency", "OSU MPI_Put Latency Test");
    static LATENCY: Benchmark =
        Benchmark::new::<Probe<3>>("p2p.latency", "x").osu("osu_latency", "OSU MPI Latency Test");

    fn registry() -> Registry {
        Registry::new([&PUT_LATENCY, &LATENCY, &PUT_BW].into_iter()).unwrap()
    }

    fn found(pattern: &str) -> Vec<&'static str> {
        find(&registry(), pattern).unwrap().iter().map(|c| c.bench.name).collect()
    }

    fn refused(pattern: &str) -> String {
        let error = find(&registry(), pattern).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        error.to_string()
    }

    #[test]
    fn a_name_a_glob_and_an_osu_name_find() {
        assert_eq!(found("rma.put_bw"), ["rma.put_bw"]);
        assert_eq!(found("rma.*"), ["rma.put_bw", "rma.put_latency"]);
        assert_eq!(found("*latency"), ["p2p.latency", "rma.put_latency"]);
        assert_eq!(found("osu_put_bw"), ["rma.put_bw"]);
        assert_eq!(found("osu_put_*"), ["rma.put_bw", "rma.put_latency"]);
        assert_eq!(found("*").len(), 3);
    }

    #[test]
    fn a_wrong_name_gets_the_most_similar_suggestion() {
        for (wrong, near) in [
            ("rma.putbw", "rma.put_bw"),
            ("put_latency", "rma.put_latency"),
            ("latency", "p2p.latency"),
            ("osu_putbw", "osu_put_bw"),
            ("p2p.latnecy", "p2p.latency"),
            ("p2p", "'p2p.*'"),
            ("rma", "'rma.*'"),
            ("p2ps", "'p2p.*'"),
        ] {
            assert!(refused(wrong).contains(&format!("did you mean {near}?")), "{wrong}: {}", refused(wrong));
        }
        assert!(!refused("completely.unrelated.words").contains("did you mean"));
        assert!(refused("PingPong").contains("PingPong of IMB is p2p.latency"));
        assert!(refused("IMB-MPI1").contains("ombx imb IMB-MPI1"));
        assert!(refused("IMB-MPI4").contains("IMB-MPI4 is none of the programs that ombx replaces"));
        assert!(refused("a.jsonl").contains("ombx show a.jsonl"));
        assert!(refused("rma.[").contains("is not a name or a glob"));
    }

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn any_pattern_finds_or_is_refused(pattern in "[a-z0-9_.*?\\[\\]!-]{0,20}") {
            match find(&registry(), &pattern) {
                Ok(found) => prop_assert!(!found.is_empty()),
                Err(e) => prop_assert_eq!(e.kind(), Kind::Usage),
            }
        }
    }

    fn sentence(registry: &Registry, name: &str) -> Option<String> {
        counterpart(registry, name).map(|counterpart| counterpart.sentence)
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn names_of_other_suites_are_known_in_any_case() {
        let registry = Registry::load().unwrap();
        for (name, expected) in [
            ("PingPong", "PingPong of IMB is p2p.latency"),
            ("pingpong", "PingPong of IMB is p2p.latency"),
            ("iperf3", "what iperf3 measures is sockets.bw"),
            ("tcp_rr", "TCP_RR of netperf is sockets.latency"),
            ("netpipe", "what NetPIPE measures is p2p.latency"),
            ("osu_partitioned_latency", "osu_partitioned_latency of OMB is p2p.latency_partitioned"),
            (
                "all_reduce_perf",
                "NCCL and RCCL are not measured: over MPI, all_reduce_perf is collective.allreduce --memory cuda \
                 (or rocm)",
            ),
        ] {
            assert_eq!(sentence(&registry, name).as_deref(), Some(expected));
        }
        assert_eq!(sentence(&registry, "p2p.latency"), None);
        assert_eq!(sentence(&registry, &"PingPong".repeat(10_000)), None);
        assert_eq!(sentence(&Registry::new([].into_iter()).unwrap(), "PingPong"), None);
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn every_counterpart_is_accepted_by_run() {
        let registry = Registry::load().unwrap();
        for (_, _, ours) in counterparts() {
            // Benchmarks of files need a directory, which a name does not give.
            let directory = if ours.starts_with("io.") { " --directory /tmp" } else { "" };
            let line = format!("ombx run {ours}{directory}");
            crate::commands::tests::prepare(&registry, &line).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }
}
