//! Tests of element types and operations of one-sided benchmarks that accumulate.

use ombx_record::result::{Check, Measurement, Outcome};
use ombx_tests::{
    Job,
    defects::{compares_unsigned, is_old_mpich},
    kept::Kept,
    mpi, print_note,
};

const COUNTS: &str = "--iterations 6 --warmup 1 -n 2";

/// Runs a job whose rows are verified, or are wrong because of the known defect of MPICH.
fn verified(words: &str) -> Vec<Measurement> {
    let kept = Kept::new();
    let job = kept.job(words).args(COUNTS.split_whitespace());
    let done = if mpi::is_open_mpi() { job.env("OMPI_MCA_osc", "^rdma") } else { job }.run();
    let rows = kept.run().rows;
    let mut defects = 0;
    for row in &rows {
        match &row.outcome {
            Outcome::Ok => assert_eq!(row.check, Check::Passed, "{}\n{done}", row.key),
            Outcome::Failed(why) if is_old_mpich() && compares_unsigned(row) => {
                assert!(why.contains("arrived wrong"), "{}: {why}", row.key);
                defects += 1;
            }
            outcome => panic!("{}: {outcome:?}\n{done}", row.key),
        }
    }
    if defects > 0 {
        print_note(&format!("{}: {defects} rows of unsigned min and max are wrong, as in C", mpi::name()));
    }
    rows
}

/// Sum and prod of 13 types, replace of these and of bytes, min and max of 11, three logical operations of 9 types of integers, and three
/// bitwise ones of these and of bytes.
const COMBINATIONS: usize = 2 * 13 + 14 + 2 * 11 + 3 * 9 + 3 * 10;

#[test]
fn every_type_and_operation_is_verified() {
    let (every, sync) = ("--type all --op all", "--sync lock,pscw");
    let rows = verified(&format!("rma.acc_latency {every} {sync} --sizes 4112"));
    assert_eq!(rows.len(), 2 * COMBINATIONS);
    // no_op needs an operation that fetches.
    let rows = verified(&format!("rma.get_acc_latency {every} {sync} --sizes 4112"));
    assert_eq!(rows.len(), 2 * (COMBINATIONS + 14));
    let rows = verified(&format!("rma.fop_latency {every} {sync}"));
    assert_eq!(rows.len(), 2 * (COMBINATIONS + 14));
    for row in &rows {
        let expected = match row.axes.get("type").map_or("widest", String::as_str) {
            "byte" | "char" | "uint8" => 1,
            "int16" | "uint16" => 2,
            "int32" | "uint32" | "float" => 4,
            "double-complex" => 16,
            _ => 8,
        };
        assert_eq!(row.bytes, Some(expected), "{}: one element", row.key);
    }
    let rows =
        verified("rma.acc_bw rma.get_acc_bw --type int16,double --op max,prod,replace --sizes 48 --window 4");
    assert_eq!(rows.len(), 2 * 2 * 3);
    let rows = verified(&format!("rma.cas_latency --type all {sync}"));
    assert_eq!(rows.len(), 2 * 10);
}

/// The operation of ombx, in place of replace, and the others.
#[test]
fn local_reductions_are_verified() {
    let rows = verified("collective.reduce_local --type all --op all --sizes 4112");
    assert_eq!(rows.len(), COMBINATIONS);
    assert!(rows.iter().all(|row| row.ranks == 2 && row.samples.iter().all(|s| !s.elapsed_ns.is_empty())));
    let kept = Kept::new();
    let done =
        kept.job("collective.reduce_local --sizes 1,8,64K --max-time 5ms -n 1 --allow-skips").run().expect(0);
    let rows = kept.run().rows;
    assert_eq!(rows.len(), 3, "{done}");
    assert!(
        matches!(&rows[0].outcome, Outcome::Skipped(why) if why.contains("whole number of float")),
        "{done}"
    );
    for row in &rows[1..] {
        assert_eq!((&row.outcome, &row.check, row.ranks), (&Outcome::Ok, &Check::Passed, 1), "{done}");
    }
}

/// Sizes that are no multiple of 4 have elements of 1 and 2 bytes, which Open MPI 4 adds with saturation if the CPU has AVX.
#[test]
fn sums_of_short_integers_are_verified() {
    let rows = verified("rma.acc_latency rma.get_acc_latency --sizes 12,30,1335");
    assert_eq!(rows.len(), 2 * 3);
    assert!(rows.iter().all(|row| row.outcome == Outcome::Ok));
}

#[test]
fn only_chosen_types_and_operations_have_names() {
    let keys = |words: &str| -> Vec<String> { verified(words).into_iter().map(|row| row.key).collect() };
    assert_eq!(keys("rma.acc_latency --sizes 8"), ["rma.acc_latency/sync=pscw,win=allocate,bytes=8"]);
    assert_eq!(keys("rma.fop_latency"), ["rma.fop_latency/sync=pscw,win=allocate,bytes=8"]);
    assert_eq!(
        keys("rma.get_acc_latency --type float --op max --sizes 8"),
        ["rma.get_acc_latency/sync=pscw,win=allocate,type=float,op=max,bytes=8"]
    );
}

#[test]
fn sizes_are_whole_elements() {
    for (words, expected) in [
        ("rma.acc_latency --type double --sizes 12", "is not a whole number of double elements of 8 bytes"),
        ("rma.fop_latency --type float --sizes 8", "use --sizes 4 with --type float"),
        ("rma.cas_latency --sizes 16", "works on one element of 1, 2, 4 or 8 bytes"),
    ] {
        let kept = Kept::new();
        let job = kept.job(words).args(COUNTS.split_whitespace());
        let done = if mpi::is_open_mpi() { job.env("OMPI_MCA_osc", "^rdma") } else { job }.run().expect(4);
        let rows = kept.run().rows;
        let Outcome::Skipped(why) = &rows[0].outcome else { panic!("{:?}\n{done}", rows[0].outcome) };
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn the_tables_of_imb_have_its_types() {
    let files = ombx_tests::Files::default();
    let names = "Accumulate Get_accumulate Fetch_and_op";
    for (given, element, bytes) in [("", "float", 4), ("-red_data_type double", "double", 8)] {
        let out = files.path("r.jsonl");
        let words = format!("imb IMB-RMA {names} {given} -iter 4 -msglog 4:4 -zero_size off --force -o");
        let done = Job::ombx(&words).arg(&out).run().expect(0);
        let rows = ombx_tests::results::run_of(&out).rows;
        assert_eq!(rows.len(), 5, "{done}");
        for row in rows {
            assert_eq!(row.axes.get("type").map(String::as_str), Some(element), "{}", row.key);
            let expected = if row.bench == "rma.fop_latency" { bytes } else { 16 };
            assert_eq!((row.bytes, row.check), (Some(expected), Check::Passed), "{}", row.key);
        }
    }
}
