//! One value or more of each option, in few starts: rows are verified and name the value, or are skipped with the reason.

use std::{collections::BTreeSet, sync::OnceLock};

use ombx_record::result::{Check, Figure, Measurement, Outcome};
use ombx_tests::{Files, Job, kept::Kept, results};

/// Entry of a suite: benchmarks, options, and the axis with the values that the rows of each benchmark have.
type Entry = (&'static [&'static str], &'static str, &'static str, &'static [&'static str]);

/// A cache of four messages makes iterations return to each copy of a buffer.
const COLD: &str = "cache = 'cold'\ncache-size = '2K'\niterations = 20";
const SYNCS: &[&str] = &["pscw", "fence", "lock", "lock_exclusive", "lock_all", "flush", "flush_local"];
const WINDOWS: &[&str] = &["allocate", "create", "alloc_mem", "dynamic", "shared"];

const ENTRIES: [Entry; 27] = [
    (
        &["p2p.latency"],
        "send = ['synchronous', 'buffered', 'ready']",
        "send",
        &["synchronous", "buffered", "ready"],
    ),
    (&["p2p.bw"], "send = 'buffered'\nwindow = 4", "send", &["buffered"]),
    (&["p2p.latency", "p2p.mbw_mr"], "receive-from = 'any'\nwindow = 4", "receive-from", &["any"]),
    (
        &["p2p.latency", "p2p.bw_persistent", "rma.put_latency", "collective.alltoallw", "collective.bcast"],
        "datatype = ['vector', 'indexed', 'struct']\nwindow = 4",
        "datatype",
        &["vector", "indexed", "struct"],
    ),
    (&["rma.acc_latency"], "datatype = ['vector', 'indexed']", "datatype", &["vector", "indexed"]),
    (
        &["p2p.latency"],
        "datatype = 'indexed'\nblocks = '20:6,4:8,14:2'\nstride = 32",
        "datatype",
        &["indexed"],
    ),
    (
        &[
            "p2p.latency",
            "p2p.bw_persistent",
            "p2p.unirandom",
            "rma.put_bw",
            "rma.acc_latency",
            "collective.alltoall",
        ],
        COLD,
        "cache",
        &["cold"],
    ),
    (
        &["p2p.latency", "rma.get_bw", "collective.alltoall"],
        "type = 'double-complex'\nwindow = 4",
        "type",
        &["double-complex"],
    ),
    (
        &["collective.allreduce", "rma.acc_latency"],
        "type = 'double'\nop = ['max', 'prod']",
        "op",
        &["max", "prod"],
    ),
    (&["collective.scan", "collective.reduce_scatter"], "type = 'int64'\nop = 'user'", "op", &["user"]),
    (&["rma.fop_latency"], "type = 'float'\nop = 'replace'\nsizes = 4", "op", &["replace"]),
    (
        &["collective.allgather", "collective.alltoallv", "collective.reduce"],
        "in-place = 'on'",
        "in-place",
        &["on"],
    ),
    (
        &["collective.bcast", "collective.gather", "collective.scatterv"],
        "root = 'rotate'",
        "root",
        &["rotate"],
    ),
    (
        &["collective.neighbor_alltoall", "collective.ineighbor_allgatherv"],
        "topology = ['graph', 'torus', 'edges']\nneighbours = '0:1,1:0'",
        "topology",
        &["graph", "torus", "edges"],
    ),
    (&["collective.gatherv", "collective.alltoallv"], "imbalance = '50%'", "imbalance", &["50%"]),
    (
        &["collective.bcast", "collective.bcast_round"],
        "by = ['linear', 'binomial']",
        "by",
        &["linear", "binomial"],
    ),
    (&["collective.allreduce"], "pace = ['dissemination', 'window']", "pace", &["dissemination", "window"]),
    (&["collective.iallreduce"], "overlap = 'none'", "overlap", &["none"]),
    (&["rma.put_latency"], "sync = 'all'", "sync", SYNCS),
    (&["rma.get_bw"], "win = 'all'\nwindow = 4", "win", WINDOWS),
    (&["rma.put_many_latency"], "completion = ['local', 'fence']", "completion", &["local", "fence"]),
    (
        &["p2p.link"],
        "pattern = ['bidirectional', 'unidirectional']\nwindow = 4",
        "pattern",
        &["bidirectional", "unidirectional"],
    ),
    (&["io.write"], "pointer = ['explicit', 'shared']", "pointer", &["explicit", "shared"]),
    (&["io.write"], "access = 'collective'", "access", &["collective"]),
    (&["io.iread"], "access = 'split'", "access", &["split"]),
    (&["io.read"], "files = 'own'", "files", &["own"]),
    (&["p2p.halo"], "dims = 3", "dims", &["3"]),
];

/// Rows of these entries, and of one more with the options of [`MORE`].
struct Sweep {
    rows: Vec<Measurement>,
    shown: String,
}

/// Options that are no axes of a row.
const MORE: &str = "
[[entry]]
run = 'p2p.bw'
window = [1, 3]

[[entry]]
run = 'p2p.latency'
iterations = 30
batch = 10

[[entry]]
run = 'p2p.latency'
no-verify = true
";

fn sweep() -> &'static Sweep {
    static SWEEP: OnceLock<Sweep> = OnceLock::new();
    SWEEP.get_or_init(|| {
        let (kept, measured) = (Kept::new(), Files::default());
        let mut text =
            "about = 'options'\n\n[defaults]\nsizes = 512\niterations = 4\nwarmup = 1\n".to_owned();
        for (benches, options, ..) in ENTRIES {
            text += &format!("\n[[entry]]\nrun = {benches:?}\n{options}\n");
            if benches[0].starts_with("io.") {
                text += &format!("directory = '{}'\n", measured.root().display());
            }
        }
        let suite = kept.files.write("options.toml", text + MORE);
        let done = kept.job("-n 2").arg(suite).run().expect(0);
        Sweep { rows: results::run_of(&kept.out()).rows, shown: done.stdout }
    })
}

/// Returns the rows of [`ENTRIES`], and those of [`MORE`].
fn parts() -> (&'static [Measurement], &'static [Measurement]) {
    let sweep = sweep();
    let count = ENTRIES.iter().map(|(benches, _, _, values)| benches.len() * values.len()).sum();
    assert!(sweep.rows.len() > count, "{}", sweep.shown);
    sweep.rows.split_at(count)
}

/// Rows are in the order of the entries.
#[test]
fn each_value_has_a_verified_row_that_names_it() {
    let (mut rows, _) = parts();
    for (benches, options, axis, values) in ENTRIES {
        let (of_entry, rest) = rows.split_at(benches.len() * values.len());
        rows = rest;
        for row in of_entry {
            assert!(benches.contains(&&*row.bench), "{options}: {}", row.key);
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{options}: {}", row.key);
            let work = row.work.unwrap();
            assert!(work.bytes >= row.bytes.unwrap(), "{options}: {}: {work:?}", row.key);
        }
        for bench in benches {
            let found = of_entry.iter().filter(|row| row.bench == *bench);
            let found: BTreeSet<&str> =
                found.map(|row| row.axes.get(axis).map_or("", String::as_str)).collect();
            assert_eq!(found, values.iter().copied().collect(), "{options}: {bench}");
        }
    }
}

#[test]
fn cold_rows_name_the_size_of_their_copies() {
    let (rows, _) = parts();
    let cold = rows.iter().filter(|row| row.axes.get("cache").is_some_and(|cache| cache == "cold"));
    for row in cold {
        let Some(Figure::Value(bytes)) = row.figures.get("cold_bytes") else { panic!("{}", row.key) };
        assert!(*bytes >= f64::from(4 << 10), "{}: {bytes}", row.key);
    }
}

#[test]
fn windows_counts_and_verification_are_those_of_the_entry() {
    let (_, rows) = parts();
    let [one, three, counted, unverified] = rows else { panic!("{}", sweep().shown) };
    assert_eq!([one, three].map(|row| (row.depth, row.work.unwrap().ops)), [(Some(1), 1), (Some(3), 3)]);
    let samples = &counted.samples[0];
    assert_eq!((samples.batch, samples.elapsed_ns.len()), (10, 3), "{}", counted.key);
    assert_eq!(unverified.check, Check::Off);
    assert!(unverified.trust.iter().any(|mark| mark.code.name() == "unverified"), "{:?}", unverified.trust);
}

/// Entries whose only row is skipped, and a part of the reason.
const SKIPPED: [(&str, &str, &str); 11] = [
    (
        "p2p.latency",
        "datatype = 'vector'\nsizes = 100",
        "100 bytes is not a whole number of blocks of 64 bytes: choose a multiple of 64",
    ),
    (
        "p2p.latency",
        "send = 'ready'\ncache = 'cold'\ncache-size = '64K'\nsizes = 8",
        "choose --send standard, synchronous or buffered",
    ),
    ("p2p.bw", "send = 'buffered'\nsizes = '16M'\nwindow = 64", "choose a smaller --window or --sizes"),
    (
        "p2p.latency",
        "cache = 'cold'\ncache-size = '64K'\nmemory-limit = '200K'\nsizes = 8",
        "the memory limit is 204800",
    ),
    ("p2p.latency", "sizes = '1T'", "4194304 MiB of buffers"),
    (
        "p2p.latency",
        "type = 'double'\nsizes = 2",
        "2 bytes is not a whole number of double elements of 8 bytes",
    ),
    ("collective.allreduce", "sizes = 6", "6 bytes is not a whole number of float elements of 4 bytes"),
    (
        "collective.neighbor_alltoall",
        "topology = 'edges'\nneighbours = '0:1,1:7'\nsizes = 8",
        "--neighbours 1:7: there are ranks 0 to 1 only",
    ),
    ("rma.put_bibw", "sync = 'lock'\nsizes = 8", "accesses in both directions need pscw or fence"),
    ("collective.iallreduce", "alignment = 3\nsizes = 8", "--alignment is for"),
    (
        "rma.rput_latency",
        "sync = 'pscw'\nsizes = 8",
        "operations with requests need passive-target synchronisation",
    ),
];

#[test]
fn rows_that_cannot_be_measured_are_skipped_with_the_reason() {
    let kept = Kept::new();
    let mut text = "about = 'skipped'\n\n[defaults]\niterations = 2\nwarmup = 1\n".to_owned();
    for (bench, options, _) in SKIPPED {
        text += &format!("\n[[entry]]\nrun = '{bench}'\n{options}\n");
    }
    text += "\n[[entry]]\nrun = 'p2p.latency'\nsizes = 8\n";
    let suite = kept.files.write("skipped.toml", text);
    let done = kept.job("-n 2").arg(&suite).run().expect(4);
    let run = kept.run();
    for (row, (bench, options, expected)) in run.rows.iter().zip(SKIPPED) {
        let Outcome::Skipped(why) = &row.outcome else { panic!("{bench} {options}: {:?}", row.outcome) };
        assert!(why.contains(expected), "{bench} {options}: {why}");
    }
    let tally = run.end.unwrap().1;
    assert_eq!((tally.cases, tally.skipped), (SKIPPED.len() as u64 + 1, SKIPPED.len() as u64), "{done}");
}

/// One pass measures all positions of a case, and each row is verified by itself.
#[test]
fn each_alignment_has_a_row() {
    let kept = Kept::new();
    let words = "p2p.bw p2p.latency_persistent collective.allreduce rma.put_bw rma.acc_latency \
                 --sizes 8,4K --alignment 5,0..2 --window 4 -n 2";
    let done = kept.job(words).run().expect(0);
    let run = kept.run();
    let mut found = BTreeSet::new();
    for row in &run.rows {
        let at = row.axes["alignment"].clone();
        assert!(row.key.ends_with(&format!("alignment={at}")) && row.check == Check::Passed, "{row:?}");
        let [samples] = &row.samples[..] else {
            assert_eq!(row.bench, "collective.allreduce");
            continue;
        };
        assert!(samples.rounds.is_none() && samples.elapsed_ns.len() >= 6, "{row:?}");
        found.insert((row.bench.clone(), row.bytes, at));
    }
    for bench in ["p2p.bw", "p2p.latency_persistent", "rma.put_bw"] {
        for at in ["0", "1", "2", "5"] {
            assert!(found.contains(&(bench.into(), Some(4096), at.into())), "{bench} {at}: {done}");
        }
    }
    assert_eq!(run.rows.iter().filter(|row| row.bench == "p2p.bw").count(), 8, "{done}");
}

/// Software events exist on every Linux; whether the CPU counts depends on the machine.
#[test]
fn counters_are_figures_or_reasons() {
    let files = Files::default();
    let out = files.path("counted.jsonl");
    Job::ombx("run p2p.latency p2p.bw --counters --sizes 8 --iterations 200 --launches 2 -o")
        .arg(&out)
        .run()
        .expect(0);
    for row in ombx_record::file::open(&out).expect("a result file").runs.iter().flat_map(|run| &run.rows) {
        let counted = row.figures.iter().filter(|(name, _)| name.ends_with("_per_op"));
        let counted: Vec<_> = counted.collect();
        assert_eq!(counted.len(), 8, "{row:?}");
        for (name, figure) in counted {
            match figure {
                Figure::Value(value) => assert!((0.0..1e9).contains(value), "{name}: {value}"),
                Figure::Unresolved(why) => assert!(why.starts_with("unavailable: "), "{name}: {why}"),
            }
        }
        assert!(matches!(row.figures["context_switches_per_op"], Figure::Value(_)), "{row:?}");
    }
}
