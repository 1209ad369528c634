//! Tests of IMB compatibility: tables of IMB-IO.

use std::collections::BTreeMap;

use ombx_tests::{Files, Job, imb::read};

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
