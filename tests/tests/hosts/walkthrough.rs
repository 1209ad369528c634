//! The commands of the administrator in docs/GUIDE.md.

use ombx_tests::{mpi, walkthrough};

use crate::testbed::{Bed, eventually};

#[test]
fn an_administrator_finds_the_slow_host() {
    let Some(bed) = Bed::up("--hosts 4 --host h3:rate=100Mbit") else { return };
    let steps = walkthrough::steps("An administrator: is this cluster healthy, and which node is slow?");
    assert_eq!(steps.len(), 3);
    for step in steps {
        // The hosts of the bed share the CPUs of this machine, and their network is not the first interface.
        let here = if step.command.contains("--hosts") { " --bind none --interface eth0" } else { "" };
        let words: Vec<String> = format!("{}{here}", step.command)
            .split_whitespace()
            .map(|word| match word {
                "ombx" => mpi::ombx().to_string_lossy().into_owned(),
                file if file.starts_with("today.") => bed.files.path(file).to_string_lossy().into_owned(),
                word => word.to_owned(),
            })
            .collect();
        eventually(3, || {
            if step.command.contains("-o today.jsonl") {
                // Of an attempt before.
                let _ = std::fs::remove_file(bed.files.path("today.jsonl"));
            }
            let done = bed.job(&words).run();
            if done.code.is_some_and(|code| step.codes.contains(&code)) {
                step.check_shown(&done.stdout);
                Ok(())
            } else {
                Err(format!("{step:?}\n{done}"))
            }
        });
    }
    assert!(bed.files.path("today.html").metadata().unwrap().len() > 10_000);
}
