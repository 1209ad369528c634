//! The rules of the registry.

use ombx_record::unit::parse_sizes;

use super::*;
use crate::{benchmark::Named, testkit::Probe};

static SYNC: Parameter = Parameter::listed("sync", "x", (&["pscw", "lock"], &[]), ("pscw", Named::Always));
static PUT_BW: Benchmark = Benchmark::new::<Probe<1>>("rma.put_bw", "x")
    .osu("osu_put_bw", "OSU MPI_Put Bandwidth Test")
    .with(&[&SYNC])
    .streaming();
static PUT_LATENCY: Benchmark = Benchmark::new::<Probe<2>>("rma.put_latency", "x")
    .osu("osu_put_latency", "OSU MPI_Put Latency Test")
    .with(&[&SYNC]);
static LATENCY: Benchmark = Benchmark::new::<Probe<3>>("p2p.latency", "x")
    .osu("osu_latency", "OSU MPI Latency Test")
    .sizes("0,1..4M");
static TWIN: Benchmark = Benchmark::new::<Probe<4>>("p2p.latency", "x");

fn registry() -> Registry {
    Registry::new([&PUT_LATENCY, &LATENCY, &PUT_BW].into_iter()).unwrap()
}

#[test]
fn entries_are_sorted_by_name() {
    let names: Vec<_> = registry().all().iter().map(|b| b.name).collect();
    assert_eq!(names, ["p2p.latency", "rma.put_bw", "rma.put_latency"]);
    let parameters: Vec<_> = registry().parameters().iter().map(|parameter| parameter.name).collect();
    assert_eq!(
        parameters,
        ["alignment", "init", "memory-limit", "rank_matrix", "sync", "threading", "window"]
    );
}

#[test]
fn an_error_about_a_duplicate_name_locates_both_entries() {
    let error = Registry::new([&TWIN, &PUT_BW, &LATENCY].into_iter()).unwrap_err().to_string();
    for entry in [&LATENCY, &TWIN] {
        assert!(error.contains(&format!("p2p.latency ({}:{})", file!(), entry.at.line())), "{error}");
    }
    assert_ne!(LATENCY.at.line(), TWIN.at.line());
}

#[test]
fn invalid_entries_are_refused_with_their_source_line() {
    static NO_SIZE: Benchmark = Benchmark::new::<Probe<5>>("a.b", "x").sizes("1..x");
    static NO_FAMILY: Benchmark = Benchmark::new::<Probe<6>>("ab", "x");
    static ODD_NAME: Benchmark = Benchmark::new::<Probe<7>>("a.b*", "x");
    static NO_ABOUT: Benchmark = Benchmark::new::<Probe<8>>("a.c", "");
    static WRONG_DEFAULT: Parameter =
        Parameter::listed("win", "x", (&["create"], &[]), ("allocate", Named::Always));
    static TWICE: Benchmark = Benchmark::new::<Probe<11>>("a.f", "x").with(&[&SYNC]).with(&[&SYNC]);
    static NO_DEFAULT: Benchmark = Benchmark::new::<Probe<9>>("a.d", "x").with(&[&WRONG_DEFAULT]);
    static NO_VALUE: Benchmark =
        Benchmark::new::<Probe<10>>("a.e", "x").with(&[&SYNC]).streaming_only(&SYNC, "fence");
    for (entry, why) in [
        (&NO_VALUE, "sync=fence"),
        (&TWICE, "sync twice"),
        (&NO_SIZE, "1..x"),
        (&NO_FAMILY, "family.name"),
        (&ODD_NAME, "family.name"),
        (&NO_ABOUT, "description"),
        (&NO_DEFAULT, "default of the parameter win: --win has no value allocate"),
    ] {
        let error = Registry::new([&LATENCY, entry].into_iter()).unwrap_err().to_string();
        assert!(error.contains(&format!("tests.rs:{}", entry.at.line())) && error.contains(why), "{error}");
    }
}

#[test]
fn linked_entries_are_valid() {
    let registry = Registry::load().unwrap();
    assert!(registry.all().iter().all(|b| parse_sizes(b.messages.sizes).is_ok()));
}
