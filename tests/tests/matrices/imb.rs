//! Tests of IMB compatibility: the tables of each program of IMB, and how it starts MPI.

use std::collections::{BTreeMap, BTreeSet};

use ombx_record::result::{Figure, Measurement};
use ombx_tests::{
    Files, Job,
    imb::{read, read_with_rates, tables},
    interpose, mpi, results,
};

const QUICK: [&str; 4] = ["-iter", "10", "-msglog", "3:4"];

#[test]
fn the_reader_finds_the_rows_of_imb_itself() {
    let sendrecv = "\
# Benchmarking Sendrecv \n# #processes = 2 \n#-----\n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0           10         0.60         0.60         0.60         0.00
            8           10         0.56         0.57         0.56        28.34\n";
    let expected = vec![(0, 10, vec![0.60, 0.60, 0.60, 0.00]), (8, 10, vec![0.56, 0.57, 0.56, 28.34])];
    assert_eq!(tables(sendrecv), BTreeMap::from([(("Sendrecv".to_owned(), 2), expected)]));
}

/// The rows of PingPong and PingPongAnySource differ on an axis only.
#[test]
fn receives_from_any_source_have_their_own_table() {
    let names = "PingPongAnySource PingPong PingPingSpecificSource PingPingAnySource";
    let files = Files::default();
    let done = Job::ombx(&format!("imb IMB-MPI1 {names} -n 2 -o"))
        .arg(files.path("r.jsonl"))
        .args(QUICK)
        .run()
        .expect(0);
    let tables = read(&done);
    assert_eq!(tables.len(), 4, "{done}");
    assert!(tables.values().all(|rows| rows.len() == 3), "{done}");
    let written = std::fs::read_to_string(files.path("r.jsonl")).unwrap();
    for (key, rows) in [("p2p.latency/receive-from=any,bytes=8\"", 1), ("p2p.latency/bytes=8\"", 1)] {
        assert_eq!(written.matches(&format!("\"key\":\"{key}")).count(), rows, "{written}");
    }
}

#[test]
fn tables_of_one_mode_can_be_chosen() {
    for (mode, other) in [("aggregate", "NON-AGGREGATE"), ("non_aggregate", "AGGREGATE")] {
        let job = format!("imb IMB-RMA Unidir_put -aggregate_mode {mode}");
        let done = Job::ombx(&job).args(QUICK).run().expect(0);
        let modes: Vec<&str> = done
            .stdout
            .lines()
            .filter_map(|line| line.trim_start_matches(['#', ' ']).strip_prefix("MODE: "))
            .collect();
        assert_eq!(modes.len(), 1, "{done}");
        assert_ne!(modes[0].trim(), other, "{done}");
    }
}

/// A time that no row fits into leaves few iterations of large messages; a multiple of the processes is never fewer.
#[test]
fn time_and_policy_change_the_repetitions() {
    let repetitions = |options: &str| {
        let job = format!("imb IMB-MPI1 Bcast -iter 101,4000 -msgsize 8,1M {options}");
        let tables = read(&Job::ombx(&job).run().expect(0));
        let [(8, small, _), (_, large, _)] = tables[&("Bcast".to_owned(), 2)][..] else {
            panic!("{tables:?}")
        };
        (small, large)
    };
    assert_eq!(repetitions(""), (101, 101));
    assert_eq!(repetitions("-iter_policy multiple_np -time 0.00001"), (102, 102));
    let (_, large) = repetitions("-time 0.00001");
    assert_eq!(large, 1, "a broadcast of 1 MiB takes more than 10 us");
}

/// Collectives run with 2, 4 and all processes, other benchmarks as IMB runs them.
#[test]
fn the_number_of_processes_doubles() {
    let done =
        Job::ombx("imb IMB-MPI1 PingPong Exchange Barrier Uniband -msglog 3:3 -iter 4 -zero_size off -n 5")
            .run()
            .expect(0);
    let found: Vec<(String, u32)> = done
        .stdout
        .split("# Benchmarking ")
        .skip(1)
        .map(|table| {
            let processes = table.split("# #processes = ").nth(1).and_then(|text| text.split(' ').next());
            (table.split(' ').next().unwrap().to_owned(), processes.unwrap().parse().unwrap())
        })
        .collect();
    let expected = [
        ("PingPong", 2),
        ("Exchange", 2),
        ("Exchange", 4),
        ("Exchange", 5),
        ("Barrier", 2),
        ("Barrier", 4),
        ("Barrier", 5),
        ("Uniband", 2),
        ("Uniband", 4),
    ];
    let expected: Vec<(String, u32)> = expected.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(found, expected, "{done}");
    assert!(done.stdout.contains("# ( 3 additional processes waiting in MPI_Barrier)"), "{done}");
}

/// Two processes of five are a group beside two others; four and five processes are one group.
#[test]
fn groups_of_processes_run_at_the_same_time() {
    let words = "imb IMB-MPI1 Allreduce Barrier -msglog 3:3 -iter 4 -zero_size off -n 5 -multi";
    let together = Job::ombx(&format!("{words} 0")).run().expect(0);
    let rule = format!("#{}", "-".repeat(64));
    let heading = format!(
        "{rule}\n# Benchmarking Multi-Allreduce \n# ( 2 groups of 2 processes each running simultaneous ) \n\
         # Group  0:     0    1\n# \n# Group  1:     2    3\n# \n\
         # ( 1 additional process waiting in MPI_Barrier)\n{rule}\n       #bytes #repetitions  t_min[usec]"
    );
    assert!(together.stdout.contains(&heading) && together.stdout.contains("\n# Barrier\n"), "{together}");
    let tables = read(&together);
    let found: Vec<(&str, usize)> =
        tables.iter().map(|((name, _), rows)| (name.as_str(), rows.len())).collect();
    assert_eq!(found, [("Allreduce", 1), ("Allreduce", 1), ("Multi-Allreduce", 1)], "{together}");

    let separate = Job::ombx(&format!("{words} 1")).run().expect(0);
    let heads: Vec<&str> = separate.stdout.lines().filter(|line| line.contains("t_avg")).collect();
    assert!(
        heads.len() == 6 && heads.iter().all(|line| line.trim_start().starts_with("Group ")),
        "{separate}"
    );
    let table = separate.stdout.split("# Benchmarking Multi-Allreduce").nth(1).unwrap();
    let table = table.split("# Benchmarking").next().unwrap();
    let rows: Vec<Vec<f64>> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("Group"))
        .map(|line| line.split_whitespace().map(|field| field.parse().unwrap()).collect::<Vec<f64>>())
        .filter(|row| !row.is_empty())
        .collect();
    let [first, second] = &rows[..] else { panic!("{separate}") };
    assert_eq!((&first[..3], &second[..3]), (&[0.0, 8.0, 4.0][..], &[1.0, 8.0, 4.0][..]), "{separate}");
    // Least, largest and mean of the two processes of a group.
    for row in [first, second] {
        assert!(row.len() == 6 && ((row[3] + row[4]) / 2.0 - row[5]).abs() < 0.011, "{separate}");
    }
}

#[test]
fn buffers_off_the_cache_are_those_of_cold_rows() {
    let kept = Files::default();
    let out = kept.path("imb.jsonl");
    let done = Job::ombx(
        "imb IMB-MPI1 PingPong Sendrecv Bcast Barrier -off_cache 0.0625,64 -msglog 3:3 \
                          -iter 4 -zero_size off -n 2 -o",
    )
    .arg(&out)
    .run()
    .expect(0);
    assert_eq!(read(&done).len(), 3, "{done}");
    assert!(done.stdout.contains("# Benchmarking Barrier"), "{done}");
    let run = results::run_of(&out);
    let cold: Vec<bool> = run.rows.iter().map(|row| row.key.contains("cache=cold")).collect();
    assert_eq!(cold, [true, true, true, false], "{done}");
    // 64 KiB twice, and less than the cache of any system.
    let Some(Figure::Value(bytes)) = run.rows[0].figures.get("cold_bytes") else { panic!("{done}") };
    assert!((128e3..256e3).contains(bytes), "{bytes}");
}

/// The table of a nonblocking operation alone has the columns of a blocking one, and stands beside the table with overlap.
#[test]
fn pure_operations_have_the_columns_of_blocking_ones() {
    let job = Job::ombx("imb IMB-NBC Ibcast_pure Ireduce_scatter_pure Ibarrier_pure -include Ibcast -n 2");
    let done = job.args(QUICK).run().expect(0);
    let titles: Vec<&str> =
        done.stdout.lines().filter(|line| line.contains("[usec]")).map(str::trim_start).collect();
    let times = "t_min[usec]  t_max[usec]  t_avg[usec]";
    let blocking = format!("#bytes #repetitions  {times}");
    assert_eq!(titles.len(), 4, "{done}");
    assert_eq!(titles[..2], [&*blocking; 2], "{done}");
    assert_eq!(titles[2], format!("#repetitions  {times}"), "{done}");
    assert!(titles[3].contains("t_ovrl[usec]"), "{done}");
    let found = read(&done);
    for name in ["Ibcast_pure", "Ireduce_scatter_pure"] {
        for (_, repetitions, figures) in &found[&(name.to_owned(), 2)] {
            let [least, most, mean] = figures[..] else { panic!("{name}: {figures:?}\n{done}") };
            assert!(
                least <= mean && mean <= most && least > 0.0 && *repetitions == 10,
                "{name}: {figures:?}\n{done}"
            );
        }
    }
    // Without the option, IMB-NBC runs only the benchmarks with overlap.
    let list = Job::ombx("imb IMB-NBC -list").run().expect(0).stdout;
    assert!(list.contains("Ialltoallv_pure") && !list.contains("not available"), "{list}");
}

#[test]
fn overlap_and_one_sided_operations_have_their_columns() {
    let done = Job::ombx("imb IMB-NBC Iallreduce Ibarrier").args(QUICK).run().expect(0);
    let titles = " t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]";
    assert_eq!(done.stdout.matches(titles).count(), 2, "{done}");
    let done = Job::ombx("imb IMB-RMA unidir_put Accumulate").args(["-iter", "64", "-msglog", "3:3"]).run();
    let modes: Vec<&str> = done.stdout.lines().filter_map(|line| line.strip_prefix("#    MODE: ")).collect();
    assert_eq!(modes, ["NON-AGGREGATE ", "AGGREGATE "].repeat(2), "{done}");
    let rows = &read(&done)[&("Unidir_put".to_owned(), 2)];
    assert!(rows.iter().all(|(_, repetitions, row)| *repetitions == 64 && row.len() == 2), "{done}");
}

/// Figures of several targets: the bytes of one origin count together, those of all ranks have no bandwidth.
#[test]
fn one_sided_operations_reach_several_targets() {
    let names = "One_put_all All_get_all Exchange_put Put_all_local Put_local";
    let done =
        Job::ombx(&format!("imb IMB-RMA {names} -n 3 -iter 64 -msglog 16:16 -zero_size off")).run().expect(0);
    let tables = read(&done);
    let row = |name: &str, ranks: u32| &tables[&(name.to_owned(), ranks)][0].2;
    // Pairs are measured with two processes only.
    assert_eq!(tables.len(), 4 * 2 + 1, "{done}");
    assert!(tables.values().flatten().all(|(_, repetitions, _)| *repetitions == 64), "{done}");
    for name in ["All_get_all", "Exchange_put"] {
        assert!([2, 3].iter().all(|ranks| row(name, *ranks).len() == 3), "{name}: {done}");
    }
    let [time, rate] = row("One_put_all", 3)[..] else { panic!("{done}") };
    let expected = 2.0 * 65536.0 / time;
    assert!((rate - expected).abs() < 0.011 + expected * 0.01 / time, "{done}");
    for name in ["All_get_all", "Exchange_put"] {
        let [least, most, mean] = row(name, 3)[..] else { panic!("{done}") };
        assert!(least <= mean && mean <= most, "{name}: {done}");
    }
    let both = Job::ombx("imb IMB-RMA Bidir_put All_put_all -n 3 -iter 10 -msglog 3:3").run().expect(0);
    let tables = read(&both);
    let processes: Vec<u32> = tables.keys().map(|(_, ranks)| *ranks).collect();
    assert_eq!(processes, [2, 3, 2], "{both}");
    assert!(tables.values().flatten().all(|(_, repetitions, _)| *repetitions == 10), "{both}");
    assert_eq!(both.stdout.matches("MODE: ").count(), 2, "{both}");
}

/// The target computes while rank 0 puts. Both times are those of rank 0.
#[test]
fn a_passive_put_has_two_times() {
    let done =
        Job::ombx("imb IMB-RMA Truly_passive_put -n 2 -iter 30 -msglog 10:11 -zero_size off").run().expect(0);
    let tables = read(&done);
    let rows = &tables[&("Truly_passive_put".to_owned(), 2)];
    assert_eq!(
        rows.iter().map(|(bytes, n, row)| (*bytes, *n, row.len())).collect::<Vec<_>>(),
        [(1024, 30, 2), (2048, 30, 2)]
    );
    assert!(done.stdout.contains(" t_pure[usec] t_ovrl[usec]\n"), "{done}");
}

/// The tables of IMB-EXT: two modes of all but Window. All ranks take part in Accumulate and Window.
#[test]
fn fences_complete_the_operations_of_mpi_2() {
    let files = Files::default();
    let job = Job::ombx("imb IMB-EXT -n 3 -iter 10 -msglog 3:3 -zero_size off -o").arg(files.path("r.jsonl"));
    let done = job.run().expect(0);
    let tables = read(&done);
    let modes: Vec<&str> = done.stdout.lines().filter_map(|line| line.strip_prefix("#    MODE: ")).collect();
    // Accumulate runs with 2 and with 3 processes.
    let many = |mode: &str| modes.iter().filter(|found| **found == mode).count();
    assert_eq!([many("NON-AGGREGATE "), many("AGGREGATE ")], [6, 6], "{done}");
    for name in ["Unidir_Put", "Unidir_Get", "Bidir_Put", "Bidir_Get"] {
        let rows = &tables[&(name.to_owned(), 2)];
        assert!(
            rows.len() == 2 && rows.iter().all(|(_, n, row)| *n == 10 && row.len() == 2),
            "{name}: {done}"
        );
    }
    for (name, rows) in [("Window", 1), ("Accumulate", 2)] {
        for ranks in [2, 3] {
            let found = &tables[&(name.to_owned(), ranks)];
            assert!(found.len() == rows && found.iter().all(|(.., row)| row.len() == 3), "{name}: {done}");
        }
    }
    let run = results::run_of(&files.path("r.jsonl"));
    let fenced = |row: &&Measurement| row.axes.get("completion").is_some_and(|value| value == "fence");
    assert_eq!(run.rows.iter().filter(fenced).count(), 4 * 2 + 2 * 2, "{done}");
}

/// Every benchmark of IMB-P2P runs with all processes. Time, bandwidth and message rate of a row are those of the same messages.
#[test]
fn messages_of_all_ranks_have_one_rate() {
    let done = Job::ombx("imb IMB-P2P -n 4 -iter 10 -msglog 3:4").run().expect(0);
    let tables = read_with_rates(&done);
    let names = [
        "PingPong",
        "PingPing",
        "Unirandom",
        "Birandom",
        "Corandom",
        "Stencil2D",
        "Stencil3D",
        "SendRecv_Replace",
    ];
    assert_eq!(tables.keys().map(|(name, _)| name.as_str()).collect::<BTreeSet<_>>(), names.into(), "{done}");
    for ((name, processes), rows) in &tables {
        assert_eq!(*processes, 4, "{name}: {done}");
        let sizes: Vec<(u64, u64)> = rows.iter().map(|(bytes, n, _)| (*bytes, *n)).collect();
        assert_eq!(sizes, [(8, 10), (16, 10)], "{name}: {done}");
        for (bytes, _, row) in rows {
            let [time, mb_per_s, rate] = row[..] else { panic!("{name}: {row:?}\n{done}") };
            assert!(time > 0.0, "{name}: {done}");
            let expected = rate * *bytes as f64 / 1e6;
            assert!((mb_per_s - expected).abs() < 0.006 + 0.001 * expected, "{name}: {row:?}\n{done}");
        }
    }
    let three = Job::ombx("imb IMB-P2P PingPing Corandom -n 3 -iter 10 -msglog 2 -msgwr off").run().expect(0);
    let tables = read_with_rates(&three);
    // Pairs leave out an odd rank. A single exponent includes size 0.
    assert_eq!(tables.keys().map(|(_, ranks)| *ranks).collect::<Vec<_>>(), [3, 2], "{three}");
    assert!(tables.values().all(|rows| rows.len() == 4 && rows[0].0 == 0), "{three}");
}

/// MPI is asked for the level of -thread_level, also where no benchmark has threads.
#[test]
fn mpi_starts_with_the_level() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    for (option, level) in [
        ("", "MPI_Init"),
        ("-thread_level nompinit", "MPI_Init"),
        ("-thread_level funneled", "funneled"),
        ("-thread_level SERIALIZED", "serialized"),
        ("-thread_level multiple", "multiple"),
    ] {
        let words = format!("imb IMB-MPI1 PingPong {option} -iter 4 -msglog 2:3");
        let job = Job::on_ranks(2, mpi::ombx()).args(words.split_whitespace());
        let done = job.env("LD_PRELOAD", library).env("OMBX_INTERPOSE", "level").run().expect(0);
        let asked = done.stderr.lines().filter_map(|line| line.trim().strip_prefix("thread support: "));
        assert_eq!(asked.collect::<Vec<_>>(), [level; 2], "{done}");
    }
}

/// Files: the bytes of a row are those of all processes, and writes have a table for each mode.
#[test]
fn io_prints_its_tables() {
    let files = Files::default();
    let names = "S_Write_indv P_Write_indv P_Write_priv C_Write_expl S_Read_expl P_Read_priv C_Read_indv";
    let job = Job::ombx("imb IMB-IO").args(names.split(' ')).args(["-iter", "10", "-msglog", "0:4"]);
    let done = job.arg("-directory").arg(files.root()).run().expect(0);
    assert!(done.stdout.contains("# Maximum io portion in bytes:   16\n"), "{done}");
    let tables = read(&done);
    assert_eq!(tables.len(), 7, "{done}");
    for ((name, processes), rows) in &tables {
        let is_single = name.starts_with("S_");
        assert_eq!(*processes, if is_single { 1 } else { 2 }, "{name}\n{done}");
        // Two processes cannot share one byte.
        let sizes = if is_single { vec![0, 1, 2, 4, 8, 16] } else { vec![0, 2, 4, 8, 16] };
        let modes = if name.contains("Write") { 2 } else { 1 };
        let expected: Vec<(u64, u64)> = sizes.repeat(modes).into_iter().map(|bytes| (bytes, 10)).collect();
        let found: Vec<(u64, u64)> = rows.iter().map(|(bytes, n, _)| (*bytes, *n)).collect();
        assert_eq!(found, expected, "{name}\n{done}");
        assert!(rows.iter().all(|(.., row)| row.len() == if is_single { 2 } else { 4 }), "{name}\n{done}");
    }
    // The bandwidth is that of all bytes in the time of the slowest process.
    let (bytes, _, row) = tables[&("P_Write_Priv".to_owned(), 2)].last().unwrap();
    let [min, max, mean, rate] = row[..] else { panic!("{done}") };
    assert!(min <= mean && mean <= max, "{done}");
    assert!((rate - *bytes as f64 / max).abs() <= 0.011, "{done}");
    let modes = |mode: &str| done.stdout.matches(&format!("#    MODE: {mode} \n")).count();
    assert_eq!((modes("AGGREGATE"), modes("NON-AGGREGATE")), (7, 4), "{done}");
    assert_eq!(std::fs::read_dir(files.root()).unwrap().count(), 0, "{done}");
}

/// Every benchmark of IMB-IO runs without being asked for. Those that are started have their overlap in a column.
#[test]
fn io_has_every_benchmark() {
    let files = Files::default();
    let job = Job::ombx("imb IMB-IO -n 2 -iter 10 -msglog 10:10 -zero_size off -directory").arg(files.root());
    let done = job.run().expect(0);
    let tables: BTreeMap<String, Vec<Vec<f64>>> = done
        .stdout
        .split("# Benchmarking ")
        .skip(1)
        .map(|table| {
            let row = |line: &str| {
                line.split_whitespace().map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>()
            };
            let rows = table.lines().skip(1).filter_map(row).filter(|row| row.len() > 3).collect();
            (table.split_whitespace().next().unwrap_or_default().to_owned(), rows)
        })
        .collect();
    assert_eq!(tables.len(), 37, "{done}");
    for (name, rows) in &tables {
        // An overlap that is not resolved is no number.
        let is_started = name.contains("_IWrite") || name.contains("_IRead");
        assert!(is_started || !rows.is_empty(), "{name}: {done}");
        if name == "Open_Close" {
            assert_eq!((rows[0].len(), rows[0][0]), (4, 10.0), "{done}");
        } else {
            assert!(rows.iter().all(|row| row[..2] == [1024.0, 10.0]), "{name}: {done}");
        }
    }
    assert_eq!(done.stdout.matches("overlap[%]").count(), 18, "{done}");
    assert_eq!(std::fs::read_dir(files.root()).unwrap().count(), 0, "{done}");
}
