//! Whole pipelines, with threads in place of processes.

mod files;

use ombx_core::{
    benchmark::{Case, Choice, Chosen, Figure, ParameterValue},
    clock::{Clock, host_ns},
    error::Kind,
    event::Event,
    measure::{
        plan::{Effort, Verify},
        runner::{Part, run_all},
        session::Sink,
    },
    result::{Check, Measurement, Outcome},
    team::{Alone, Fabric},
};
use ombx_testkit::Directory;

use super::{
    ends::Ends,
    memory::PhaseMemory,
    run::{Data, RunId, Wrong},
    *,
};

fn planned(shape: PipelineShape, wait_mode: WaitMode, source: Storage, sink: Storage) -> Plan {
    Plan { wait_mode, source, sink, ..Plan::of_test(shape) }
}

fn started(plan: &Plan) -> Result<Pipeline> {
    Pipeline::start(plan, &Hosts::parse("")?, Execution::Thread)
}

#[test]
fn every_byte_arrives_in_every_shape() {
    let shapes =
        [(1, 2, 1, 1), (1, 2, 5, 1000), (2, 2, 3, 65), (3, 3, 4, 4096), (2, 5, 2, 100), (4, 2, 7, 7)];
    for (nodes, phases, buffers, block) in shapes {
        for wait_mode in [WaitMode::Sleep, WaitMode::Spin] {
            let shape = PipelineShape { nodes, phases, buffers, block };
            let plan = planned(shape, wait_mode, Storage::Memory, Storage::Memory);
            let mut pipeline = started(&plan).unwrap();
            for data in [Data::Repeated, Data::Fresh, Data::Repeated, Data::Fresh] {
                let before = host_ns();
                let silent = |node, _| panic!("node {node} reports without an interval");
                let run = pipeline.run(data, silent).unwrap().nodes;
                let after = host_ns();
                assert_eq!(pipeline.check(data).unwrap(), None, "{shape:?} {wait_mode:?} {data:?}");
                assert_eq!(run.len(), nodes as usize);
                for node in run {
                    assert_eq!(node.waits.len(), phases as usize);
                    assert!(before <= node.began && node.began < node.ended && node.ended <= after);
                    let run = node.began..=node.ended;
                    assert!(node.left.iter().chain(&node.arrived).all(|moment| run.contains(moment)));
                }
            }
        }
    }
}

#[test]
fn a_wrong_block_is_found() {
    let shape = PipelineShape { nodes: 2, phases: 3, buffers: 5, block: 100 };
    let plan = planned(shape, WaitMode::Sleep, Storage::Memory, Storage::Memory);
    let mut pipeline = started(&plan).unwrap();
    // The check expects the data of the next run. It finds the fourth buffer, its first block, its first byte.
    pipeline.fail_check_of(1);
    pipeline.run(Data::Repeated, |_, _| {}).unwrap();
    let (node, Wrong { slot, byte, expected, actual }) = pipeline.check(Data::Repeated).unwrap().unwrap();
    assert_eq!((node, slot, byte), (0, 6, 0));
    assert_ne!(expected, actual);
}

#[test]
fn the_last_phase_finds_a_wrong_byte_of_every_buffer() {
    let shape = PipelineShape { nodes: 1, phases: 2, buffers: 5, block: 100 };
    let fd = PhaseMemory::create(&shape).unwrap();
    let mut memory = PhaseMemory::map(&fd, &shape, WaitMode::Sleep).unwrap();
    let ends = Ends::open(shape, 0, &Storage::Memory, &Storage::Memory).unwrap();
    let run = RunId { number: 3, data: Data::Fresh };
    for buffer in 0..shape.buffers {
        ends.fill(run, buffer, &mut memory).unwrap();
        assert_eq!(ends.drain(run, buffer, &mut memory).unwrap(), None);
        memory.block(buffer % 2, 0)[42] ^= 1;
        let Wrong { slot, byte, expected, actual } = ends.drain(run, buffer, &mut memory).unwrap().unwrap();
        assert_eq!((slot, byte, expected ^ actual), (buffer.into(), 42, 1));
    }
}

fn threaded(session: &mut Session<'_>) -> Result<()> {
    for case in session.cases()? {
        let (plan, hosts) = plan(session.plan, &case)?;
        let plan = Plan { workers: Execution::Thread, ..plan };
        let start = |plan: &_, hosts: &_| Pipeline::start(plan, hosts, Execution::Thread);
        report::measure(session, &case, (&plan, &hosts), start)?;
    }
    Ok(())
}

static BENCH: Benchmark = Benchmark::custom("test.pipeline", "x", Metric::Bandwidth, METHOD, threaded)
    .by_itself()
    .sizes("256K")
    .sized_by(&BLOCK)
    .with(PARAMETERS)
    .with(&[EndWork::PARAMETER, Workers::PARAMETER, Spin::PARAMETER]);

fn choices(settings: &[(&'static str, &str)]) -> Choices {
    let mut chosen = Chosen::default();
    settings.iter().for_each(|(name, value)| chosen.set(name, [*value]));
    Choices { chosen, effort: Effort::Fixed { iterations: 8, warmup: 1 }, ..Choices::default() }
}

#[test]
fn a_row_has_all_figures() {
    let given = choices(&[("nodes", "2"), ("phases", "3"), ("buffer-count", "50"), ("block", "1K,4K")]);
    let rows = ombx_testkit::measure(1, &BENCH, &given).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.bytes).collect::<Vec<_>>(), [Some(1024), Some(4096)]);
    let row = &rows[0];
    assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed));
    assert_eq!(
        row.key,
        "test.pipeline/nodes=2,phases=3,buffers=50,source=memory,sink=memory,ends=work,bytes=1024"
    );
    assert_eq!(row.checked, 9, "the run of the warm-up and eight timed ones");
    let work = row.work.unwrap();
    assert_eq!((work.bytes, work.ops, row.samples[0].elapsed_ns.len()), (2 * 50 * 2 * 1024, 200, 8));
    let value = |name: &str| match &row.figures[name] {
        Figure::Value(x) => *x,
        Figure::Unresolved(why) => panic!("{name}: {why}"),
    };
    assert!(value("buffer_p50_us") > 0.0);
    // Times of buffers may depend on each other too much for a percentile.
    let tail = |name: &str| match &row.figures[name] {
        Figure::Value(x) => *x,
        Figure::Unresolved(why) => {
            assert!(why.contains("do not depend on each other"), "{name}: {why}");
            f64::INFINITY
        }
    };
    assert!(tail("buffer_p99_us") >= tail("buffer_p95_us").min(tail("buffer_p99_us")));
    assert!(value("node0_mb_per_s") > 0.0 && value("node1_phase2_waited_for_data_ms") >= 0.0);
    for name in ["filling_percent", "reading_percent"] {
        assert!((f64::MIN_POSITIVE..100.0).contains(&value(name)), "{name}: {}", value(name));
    }
}

#[test]
fn idle_ends_do_nothing_while_a_run_is_timed() {
    let mut given = choices(&[("nodes", "2"), ("phases", "3"), ("buffer-count", "50"), ("block", "1K")]);
    given.chosen.set("ends", ["idle"]);
    given.verify = Verify::Full;
    let row = &ombx_testkit::measure(1, &BENCH, &given).unwrap().rows[0];
    assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed));
    assert_eq!(row.checked, 8, "as many runs with fresh data as were timed");
    // No process fills or reads, and none waits for that.
    for name in [
        "filling_percent",
        "reading_percent",
        "node1_phase1_waited_for_data_ms",
        "node1_phase3_waited_for_room_ms",
    ] {
        assert_eq!(row.figures[name], Figure::Value(0.0), "{name}");
    }
}

/// Measures with idle ends. The check of the second run of the warm-up finds wrong data, those of other runs find none.
fn wrong_in_warm_up(session: &mut Session<'_>) -> Result<()> {
    for case in session.cases()? {
        let (plan, hosts) = plan(session.plan, &case)?;
        let plan = Plan { workers: Execution::Thread, ..plan };
        report::measure(session, &case, (&plan, &hosts), |plan, hosts| {
            let mut pipeline = Pipeline::start(plan, hosts, Execution::Thread)?;
            pipeline.fail_check_of(2);
            Ok(pipeline)
        })?;
    }
    Ok(())
}

static WRONG_IN_WARM_UP: Benchmark =
    Benchmark::custom("test.pipeline_warm_up", "x", Metric::Bandwidth, METHOD, wrong_in_warm_up)
        .by_itself()
        .sizes("256K")
        .sized_by(&BLOCK)
        .with(PARAMETERS)
        .with(&[EndWork::PARAMETER, Workers::PARAMETER, Spin::PARAMETER]);

#[test]
fn wrong_data_in_the_warm_up_fails_the_row_and_ends_the_runs() {
    let mut given = choices(&[("nodes", "2"), ("phases", "2"), ("buffer-count", "4"), ("block", "100")]);
    given.chosen.set("ends", ["idle"]);
    for warmup in [2, 5] {
        given.effort = Effort::Fixed { iterations: 3, warmup };
        let row = &ombx_testkit::measure(1, &WRONG_IN_WARM_UP, &given).unwrap().rows[0];
        assert!(matches!(row.check, Check::Failed(_)), "{:?}", row.check);
        assert!(matches!(&row.outcome, Outcome::Failed(why) if why.contains("arrived wrong")));
        assert!(row.samples[0].elapsed_ns.is_empty() && row.figures.is_empty(), "no run follows");
    }
}

#[test]
fn an_unverified_row_is_marked() {
    let mut given = choices(&[("nodes", "1"), ("phases", "2"), ("buffer-count", "2"), ("block", "64")]);
    given.verify = Verify::Off;
    assert_eq!(ombx_testkit::measure(1, &BENCH, &given).unwrap().rows[0].check, Check::Off);
    given.verify = Verify::Sampled;
    given.chosen.set("sink", ["file:/dev/null"]);
    assert_eq!(ombx_testkit::measure(1, &BENCH, &given).unwrap().rows[0].check, Check::Unsupported);
}

/// Keeps rows and what nodes report.
#[derive(Default)]
struct Reports(Vec<Measurement>, Vec<(u32, String)>);

impl Sink for Reports {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Row(row) => self.0.push(row.clone().into_owned()),
            Event::Status { process, line } => self.1.push((*process, line.to_string())),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn nodes_report_and_have_rows() {
    let mut given = choices(&[("nodes", "2"), ("phases", "2"), ("buffer-count", "400"), ("block", "256K")]);
    given.chosen.set("status", ["1ms"]);
    given.effort = Effort::Fixed { iterations: 2, warmup: 0 };
    let mut reports = Reports::default();
    let part = Part { choices: vec![Choice { bench: &BENCH, preset: &[] }], plan: given };
    let team = Alone(Fabric { name: "test", library: "test".into() });
    run_all(&team, &[part], &Clock::measured(), &mut reports, Vec::new()).unwrap();
    let Reports(rows, lines) = reports;
    for node in [0, 1] {
        let of_node: Vec<&str> = lines.iter().filter(|(n, _)| *n == node).map(|(_, line)| &**line).collect();
        let start = format!("node {node}: run ");
        assert!(
            of_node.iter().all(|line| line.starts_with(&start) && line.ends_with(" MB/s")),
            "{of_node:?}"
        );
        let sent =
            |line: &&str| line.split_once(", ").unwrap().1.split(' ').next().unwrap().parse::<u32>().unwrap();
        let first: Vec<u32> = of_node.iter().filter(|line| line.contains("run 1,")).map(sent).collect();
        assert!(first.is_sorted() && first.last() == Some(&400), "{of_node:?}");
    }
    let [all, nodes @ ..] = &rows[..] else { panic!() };
    assert_eq!((all.metric, nodes.len()), (Metric::Bandwidth, 2));
    for (row, node) in nodes.iter().zip(["0", "1"]) {
        assert_eq!((&*row.axes["node"], row.metric, &row.check), (node, Metric::Latency, &Check::Passed));
        // The time of each buffer of each run.
        assert_eq!(row.samples[0].elapsed_ns.len(), 2 * 400);
        assert!(row.samples[0].elapsed_ns.iter().all(|ns| *ns > 0));
        assert!(row.key.contains(&format!(",node={node},")), "{}", row.key);
        assert_eq!(row.figures["mb_per_s"], all.figures[&format!("node{node}_mb_per_s")]);
        assert!(row.figures.contains_key("filling_percent") && row.figures.contains_key("reading_percent"));
    }
}

fn rejected(settings: &[(&'static str, &str)]) -> Error {
    plan(&choices(settings), &Case { pairs: 1, ranks: 1, ..Case::of_pair(100) }).unwrap_err()
}

#[test]
fn an_option_that_this_host_lacks_skips_the_row() {
    let given = choices(&[("nodes", "2"), ("block", "64"), ("congestion", "no-such-thing")]);
    let row = &ombx_testkit::measure(1, &BENCH, &given).unwrap().rows[0];
    assert!(matches!(&row.outcome, Outcome::Skipped(why) if why.contains("no-such-thing")), "{row:?}");
}

#[test]
fn wrong_choices_are_rejected_with_one_sentence() {
    let directory = Directory::new("rejected");
    let whole = format!("file:{}", directory.write("whole", [0; 8 * 100]).display());
    let odd = format!("file:{}", directory.write("odd", [0; 801]).display());
    let empty = format!("file:{}", directory.write("empty", b"").display());
    let absent = directory.path().join("absent").display().to_string();
    let (absent, missing) = (format!("file:{absent}"), format!("source file {absent}: No such file"));
    let two = ("nodes", "2");
    for (settings, kind, says) in [
        (vec![two, ("source", &*absent)], Kind::Storage, &*missing),
        (vec![two, ("source", &*odd)], Kind::Usage, "no multiple of 2 nodes x 2 blocks of 100 = 400 bytes"),
        (vec![two, ("source", &*odd)], Kind::Usage, "pad it to 1200"),
        (vec![two, ("source", &*empty)], Kind::Usage, "has 0 bytes"),
        (vec![two, ("source", "file:/dev/zero")], Kind::Usage, "no regular file"),
        (vec![two, ("source", &*whole), ("buffer-count", "3")], Kind::Usage, "has 2 buffers"),
        (vec![two, ("source", &*whole), ("sink", &*whole)], Kind::Usage, "one file"),
        (vec![("source", "file:")], Kind::Usage, "neither memory nor file:PATH"),
        (vec![("worker-cpus", "999")], Kind::Usage, "CPU 999 is not available"),
        (vec![("socket-buffer", "1")], Kind::Usage, "at least 4K"),
        (
            vec![("remote-shell", "no-such-rsh -l me")],
            Kind::Usage,
            "no-such-rsh: this host has no such program",
        ),
        (vec![("status", "soon")], Kind::Usage, "not a positive time"),
        (vec![("nodes", "0")], Kind::Usage, "from 1 to 100"),
        (vec![("phases", "1")], Kind::Usage, "from 2 to 1000"),
        (vec![("nodes", "100"), ("phases", "1000")], Kind::Usage, "processes"),
    ] {
        let error = rejected(&settings);
        assert!(error.kind() == kind && error.to_string().contains(says), "{settings:?}: {error}");
    }
}
