//! JSON Lines on a screen is the file itself.

use ombx_results::{render::JsonLines, wire};

use crate::{GOLDEN, golden, rendered};

#[test]
fn of_the_golden_run() {
    let wire::RunWithRows { run, rows, .. } = golden();
    let text = rendered(&mut JsonLines::default(), &run, &rows, wire::Outcome::Complete);
    assert_eq!(wire::read(text.as_bytes()).unwrap(), wire::read(GOLDEN.as_bytes()).unwrap());
    let rows: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    insta::assert_snapshot!(rows.join("\n"));
}
