//! Test of a program of IMB: its tables. `matrices` has the others.

use ombx_tests::{Files, Job, imb::read, mpi};

#[test]
fn links_print_the_tables_of_imb() {
    let files = Files::default();
    Job::ombx("imb --install-links").arg(files.path("bin")).run().expect(0);
    let program = files.path("bin/IMB-MPI1");
    let names = "pingpong PingPing Sendrecv Allreduce Bcast";
    let alone = Job::new(&program).env("OMBX_MPIEXEC", mpi::mpiexec());
    for job in [alone, Job::on_ranks(2, &program)] {
        let done = job.args(names.split(' ')).args(["-iter", "4", "-msglog", "3:3"]).run().expect(0);
        let tables = read(&done);
        assert_eq!(tables.len(), 5, "{done}");
        for ((name, processes), rows) in &tables {
            let figures = match name.as_str() {
                "PingPong" | "PingPing" => 2,
                "Sendrecv" => 4,
                _ => 3,
            };
            assert_eq!(*processes, 2, "{done}");
            let sizes: Vec<(u64, u64)> = rows.iter().map(|(bytes, n, _)| (*bytes, *n)).collect();
            assert_eq!(sizes, [(0, 4), (8, 4)], "{name}\n{done}");
            assert!(rows.iter().all(|(.., row)| row.len() == figures), "{name}\n{done}");
        }
        // Bandwidth is two messages of a rank in the time of the slowest.
        let (bytes, _, row) = &tables[&("Sendrecv".to_owned(), 2)][1];
        let expected = 2.0 * *bytes as f64 / row[1];
        // Both numbers have two decimals.
        assert!((row[3] - expected).abs() < 0.011 + expected * 0.01 / row[1], "{done}");
    }
}

#[test]
fn values_are_read_as_imb_reads_them() {
    for (line, note) in [
        ("IMB-MPI1 Bcast -npmin 1000000000 -msgsize 8", ""),
        (
            "IMB-MPI1 Bcast -npmin 2x -msglog 3:3 -zero_size OFF",
            "\"2x\" is read as \"2\": IMB ignores what follows a number",
        ),
        ("IMB-MPI1 Bcast -time 1.5s -msglog 3:3 -zero_size No", "\"1.5s\" is read as \"1.5\""),
        ("IMB-MPI1 Bcast -mem 0.5GB -msglog 3b:3 -zero_size OFF", "\"3b:3\" is read as \"3:3\""),
        ("IMB-MPI1 PingPong -iter_policy OFF -msgsize 8", ""),
    ] {
        let done = Job::ombx(&format!("imb {line} -iter 5")).run().expect(0);
        assert!(done.stdout.lines().any(|row| row.split_whitespace().next() == Some("8")), "{line}\n{done}");
        assert!(done.stderr.contains(note), "{line}\n{done}");
    }
}
