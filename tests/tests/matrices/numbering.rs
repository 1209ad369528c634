//! Tests of `ombx imb -map`: processes that are numbered along the rows of a matrix.

use ombx_host::environment::place_of_thread;
use ombx_tests::{Files, Job, imb::read, mpi, results, skipped};

const OPTIONS: [&str; 6] = ["PingPong", "Bcast", "-iter", "10", "-msglog", "3:4"];

/// The first two processes have one CPU and the others another one, which stand for two nodes.
#[test]
fn neighbours_are_on_different_nodes() {
    let cpus: Vec<u32> = place_of_thread().cpu_numbers().into_iter().take(2).collect();
    let &[first, second] = &cpus[..] else { return skipped("two nodes need two CPUs") };
    let (files, bound) =
        (Files::default(), |cpu: u32| ["taskset".to_owned(), "-c".to_owned(), cpu.to_string()]);
    let options = mpi::launch_options(4);
    let mut words = options.clone();
    words[1] = "2".into();
    for (map, expected) in [("2x2", [first, second, first, second]), ("4x1", [first, first, second, second])]
    {
        let out = files.path(&format!("{map}.jsonl"));
        let mut job = mpi::launch_environment()
            .fold(Job::new(mpi::mpiexec()), |job, (name, value)| job.env(name, value));
        for (part, cpu) in [first, second].into_iter().enumerate() {
            job = if part == 0 { job.args(&words) } else { job.args([":", "-n", "2"]) };
            job = job.args(bound(cpu)).arg(mpi::ombx()).args(["imb", "IMB-MPI1", "-map", map]).args(OPTIONS);
            job = job.arg("-o").arg(&out);
        }
        let done = job.run().expect(0);
        let found: Vec<u32> = read(&done).keys().map(|(_, processes)| *processes).collect();
        assert_eq!(found, [2, 4, 2], "{done}");
        let run = results::run_of(&out);
        let places: Vec<String> = run.run.places.iter().map(|place| place.cpus.clone()).collect();
        assert_eq!(places, expected.map(|cpu| cpu.to_string()), "{map}\n{done}");
        assert!(run.run.plan.values().any(|value| value == map), "{:?}", run.run.plan);
    }
}

#[test]
fn the_matrix_has_all_processes() {
    let done = Job::mpiexec(2, "imb IMB-MPI1 -map 2x2 PingPong -iter 10").run().expect(2);
    assert!(done.stderr.contains("has 4 ranks, but there are 2"), "{done}");
    let done = Job::ombx("imb IMB-MPI1 -map 1x2 PingPong -n 2 -iter 10 -msglog 3:4").run().expect(0);
    assert_eq!(read(&done).len(), 1, "{done}");
}
