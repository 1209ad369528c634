//! Finds the benchmarks that a name, a glob or an OSU name selects.

mod counterparts;

use ombx_core::{
    benchmark::{Benchmark, Choice, Registry},
    error::{Error, Result},
};

pub(crate) use self::counterparts::counterpart;
use crate::families;

/// Longest text for which a similar name is searched.
const LONGEST_NAME: usize = 64;

/// Returns the benchmarks that a pattern selects: a name, a glob (`rma.*`) or an OSU name.
///
/// # Errors
/// If nothing matches; the message names the most similar benchmark.
pub(crate) fn find(registry: &Registry, pattern: &str) -> Result<Vec<Choice>> {
    let glob = glob::Pattern::new(pattern)
        .map_err(|e| Error::usage(format!("pattern {pattern:?} is not a name or a glob: {}", e.msg)))?;
    let choices = |bench: &'static Benchmark| -> Vec<Choice> {
        if glob.matches(bench.name) {
            return vec![Choice { bench, preset: &[] }];
        }
        let named = bench.osu_names().filter(|osu| glob.matches(osu.name));
        named.map(|osu| Choice { bench, preset: osu.axes }).collect()
    };
    let found: Vec<Choice> = registry.all().iter().flat_map(|bench| choices(bench)).collect();
    if found.is_empty() {
        let better = better(registry, pattern).unwrap_or_default();
        return Err(Error::usage(format!(
            "no benchmark is called {pattern:?}{better} (ombx list shows all)"
        )));
    }
    Ok(found)
}

/// Returns what a wrong name may stand for: a family, a benchmark of another suite, or a mistyped name.
fn better(registry: &Registry, wrong: &str) -> Option<String> {
    if let Some(family) = families::nearest(registry, wrong) {
        return Some(format!("; did you mean '{family}.*'?"));
    }
    if wrong.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("IMB-")) {
        return Some(format!("; ombx imb {wrong} replaces a program of IMB"));
    }
    match counterpart(registry, wrong) {
        Some(counterpart) => Some(format!("; {}", counterpart.sentence)),
        None => nearest(registry, wrong).map(|name| format!("; did you mean {name}?")),
    }
}

/// Returns the shortest name that contains `wrong`, else the name with the fewest typing errors.
fn nearest(registry: &Registry, wrong: &str) -> Option<&'static str> {
    let names =
        || registry.all().iter().flat_map(|b| [b.name].into_iter().chain(b.osu_names().map(|o| o.name)));
    let length = wrong.chars().count();
    if length > LONGEST_NAME {
        return None;
    }
    let containing = names().filter(|name| length >= 3 && name.contains(wrong)).min_by_key(|name| name.len());
    let scored = names().map(|name| (strsim::damerau_levenshtein(name, wrong), name));
    containing
        .or_else(|| scored.min().filter(|(errors, _)| *errors <= (length / 2).max(2)).map(|(_, name)| name))
}

#[cfg(test)]
mod tests {
    use ombx_core::{error::Kind, testkit::Probe};
    use proptest::prelude::*;

    use super::*;

    static PUT_BW: Benchmark =
        Benchmark::of::<Probe<1>>("rma.put_bw", "x").osu("osu_put_bw", "OSU MPI_Put Bandwidth Test");
    static PUT_LATENCY: Benchmark =
        Benchmark::of::<Probe<2>>("rma.put_latency", "x").osu("osu_put_latency", "OSU MPI_Put Latency Test");
    static LATENCY: Benchmark =
        Benchmark::of::<Probe<3>>("p2p.latency", "x").osu("osu_latency", "OSU MPI Latency Test");

    fn registry() -> Registry {
        Registry::of([&PUT_LATENCY, &LATENCY, &PUT_BW].into_iter()).unwrap()
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
        assert!(refused("rma.[").contains("is not a name or a glob"));
    }

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn any_pattern_finds_or_is_refused(pattern in "[a-z0-9_.*?\\[\\]!-]{0,20}") {
            match find(&registry(), &pattern) {
                Ok(found) => prop_assert!(!found.is_empty()),
                Err(e) => prop_assert_eq!(e.kind(), Kind::Usage),
            }
        }
    }
}
