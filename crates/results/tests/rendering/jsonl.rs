//! JSON Lines output equals the result file.

use ombx_results::{file, render::JsonLines};

use crate::{GOLDEN, golden, rendered};

#[test]
fn of_the_golden_run() {
    let file::RunWithRows { run, rows, .. } = golden();
    let text = rendered(&mut JsonLines::default(), &run, &rows, file::RunOutcome::Complete);
    assert_eq!(file::read(text.as_bytes()).unwrap(), file::read(GOLDEN.as_bytes()).unwrap());
    let rows: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    insta::assert_snapshot!(rows.join("\n"));
}
