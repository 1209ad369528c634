//! Tests of benchmarks whose ranks have several threads, each with a partner thread, and of IMB-MT.

use std::{collections::BTreeSet, thread::available_parallelism};

use ombx_record::result::{Figure, Measurement};
use ombx_tests::{
    Job,
    kept::{Kept, assert_measured},
};

/// Ranks with several threads share the CPUs of a small machine, so jobs are short.
const QUICK: &str = "--iterations 8 --warmup 1 --batch 2 --sizes 4,1K --window 4 --launches 1";
const TWO_SIDED: &str =
    "p2p.pingpong_mt p2p.bw_mt p2p.bibw_mt p2p.pingping_mt p2p.sendrecv_mt p2p.exchange_mt";

fn rows_of(options: &str) -> Vec<Measurement> {
    let kept = Kept::new();
    let done = kept.job(options).run().expect(0);
    let run = kept.run();
    run.rows.iter().for_each(|row| assert_measured(row, &done));
    run.rows
}

#[test]
fn work_is_that_of_all_threads() {
    for threads in [1, 2] {
        let rows = rows_of(&format!("{TWO_SIDED} --threads {threads} {QUICK}"));
        assert_eq!(rows.len(), 12);
        for row in &rows {
            let messages = match row.bench.as_str() {
                "p2p.bw_mt" => 4,
                "p2p.bibw_mt" => 8,
                "p2p.exchange_mt" => 4,
                _ => 2,
            };
            let (work, ops) = (row.work.unwrap(), messages * threads);
            assert_eq!((work.ops, work.bytes), (ops, ops * row.bytes.unwrap()), "{}", row.key);
            assert_eq!(row.axes["threads"], threads.to_string(), "{}", row.key);
            let timed = if matches!(&*row.bench, "p2p.sendrecv_mt" | "p2p.exchange_mt") { 2 } else { 1 };
            assert_eq!(row.samples.len(), timed, "{}", row.key);
            let figure = |name: &str| match row.figures[name] {
                Figure::Value(us) => us,
                Figure::Unresolved(_) => panic!("{}: {name}", row.key),
            };
            let [least, mean, largest] = ["thread_min_us", "thread_mean_us", "thread_max_us"].map(figure);
            assert!(0.0 < least && least <= mean && mean <= largest, "{}", row.key);
        }
    }
}

#[test]
fn collectives_of_several_threads_are_verified() {
    let rows = rows_of("collective.*_mt --threads 2 --iterations 4 --warmup 1 --sizes 8,1K --launches 1");
    assert_eq!(rows.iter().map(|row| &row.bench).collect::<BTreeSet<_>>().len(), 6);
    assert!(rows.iter().all(|row| row.samples.len() == 2 && row.samples[0].batch == 1));
    // Ranks with threads are not bound.
    let is_crowded = available_parallelism().unwrap().get() < 4;
    let is_marked = |row: &Measurement| row.trust.iter().any(|mark| mark.code.name() == "crowded_threads");
    assert!(rows.iter().all(|row| is_marked(row) == is_crowded));
    let options = "--sizes 1K --iterations 4 --warmup 1 --launches 1";
    let work = |bench: &str| rows_of(&format!("{bench} {options}"))[0].work;
    assert_eq!(work("collective.bcast_mt --threads 1"), work("collective.bcast"));
}

/// Both neighbours of four ranks are the same rank if they are half of the ranks away, and pairs are adjacent if asked for.
#[test]
fn partners_are_near_or_far() {
    let options = "-n 4 --threads 1 --iterations 4 --warmup 1 --batch 2 --sizes 8 --launches 1";
    let rows = rows_of(&format!("p2p.exchange_mt --distance all {options}"));
    let distances: BTreeSet<_> =
        rows.iter().map(|row| row.axes.get("distance").map(String::as_str)).collect();
    assert_eq!(distances, BTreeSet::from([None, Some("half")]));
    let rows = rows_of(&format!("p2p.pingpong_mt --pairing adjacent {options}"));
    assert_eq!(rows[0].samples.iter().map(|samples| samples.rank).collect::<Vec<_>>(), [0, 2]);
}

/// The lines of IMB-MT, as its source prints them: titles and cells of 13 characters, and bytes of all threads.
#[test]
fn imb_mt_prints_its_tables() {
    let words = "imb IMB-MT PingPongMT UniBandMT BarrierMT ReduceMT -thread_level multiple -count 1,256 \
                 -repeat 20 -warmup 1";
    let done = Job::ombx(words).env("OMP_NUM_THREADS", "2,4").run().expect(0);
    let tables: Vec<Vec<&str>> =
        done.stdout.split("# Benchmarking ").skip(1).map(|table| table.lines().collect()).collect();
    let titles = [
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec",
        "       #bytes #repetitions  t_avg[usec]   Mbytes/sec      Msg/sec",
        " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
    ];
    assert_eq!(tables.len(), titles.len(), "{done}");
    for (table, title) in tables.iter().zip(titles) {
        assert_eq!(table[1], "# #processes = 2 (threads: 2)", "{done}");
        let heading =
            table.iter().position(|line| *line == title).unwrap_or_else(|| panic!("{title}\n{done}"));
        assert_eq!(table[2] == "# window_size = 64", table[0] == "UniBandMT", "{done}");
        let rows: Vec<Vec<&str>> = table[heading + 1..]
            .iter()
            .take_while(|line| !line.is_empty())
            .map(|line| line.split_whitespace().collect())
            .collect();
        if table[0] == "BarrierMT" {
            assert_eq!((rows.len(), rows[0][0], rows[0].len()), (1, "20", 4), "{done}");
        } else {
            // Four bytes of an int on each of two threads.
            let found: Vec<[&str; 2]> = rows.iter().map(|row| [row[0], row[1]]).collect();
            assert_eq!(found, [["8", "20"], ["2048", "20"]], "{done}");
        }
    }
    assert!(done.stdout.contains("MT part    \n#---"), "{done}");
    let alone = Job::ombx("imb IMB-MT BarrierMT -repeat 5 -noheader -barrier off -check on")
        .env("OMP_NUM_THREADS", "2")
        .run()
        .expect(0);
    assert!(alone.stdout.starts_with("\n#---") && alone.stdout.contains("(threads: 1)"), "{alone}");
    for note in ["-barrier has no effect", "-check has no effect", "add -thread_level multiple"] {
        assert!(alone.stderr.contains(note), "{alone}");
    }
}

#[test]
fn a_wrong_number_of_threads_is_a_mistake() {
    let words = "imb IMB-MT BarrierMT -thread_level multiple";
    let done = Job::ombx(words).env("OMP_NUM_THREADS", "many").run().expect(2);
    assert!(done.stderr.contains("OMP_NUM_THREADS is \"many\": set it to a number of threads"), "{done}");
}
