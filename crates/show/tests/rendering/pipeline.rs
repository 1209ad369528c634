//! The drawing of a pipeline, beside a table that leaves out what is drawn.

use std::collections::BTreeMap;

use ombx_record::result::{Figure, Measurement};
use ombx_show::Table;

use crate::{around, bandwidth, complete};

fn row(nodes: usize, phases: usize) -> Measurement {
    let number = |n: usize| n.to_string();
    let axes = [
        ("nodes", number(nodes)),
        ("phases", number(phases)),
        ("buffers", "64".into()),
        ("source", "memory".into()),
        ("sink", "file".into()),
    ];
    let mut figures = BTreeMap::from([
        ("started_processes".to_owned(), nodes * (1 + phases + 2 * nodes * (phases - 1))),
        ("buffer_p50_us".to_owned(), 1234),
    ]);
    for node in 0..nodes {
        figures.insert(format!("node{node}_mb_per_s"), 500 + node);
        for (phase, what) in (1..=phases).flat_map(|phase| ["data", "room"].map(|what| (phase, what))) {
            figures.insert(format!("node{node}_phase{phase}_waited_for_{what}_ms"), 10 * phase + node);
        }
    }
    Measurement {
        bench: "sockets.pipeline".into(),
        depth: None,
        axes: axes.map(|(name, value)| (name.to_owned(), value)).into(),
        figures: figures.into_iter().map(|(name, value)| (name, Figure::Value(value as f64))).collect(),
        ..bandwidth(4096, &around(100_000, 400))
    }
}

#[test]
fn stages_are_drawn_and_have_no_columns() {
    insta::assert_snapshot!(complete(&mut Table::default(), &[row(3, 3)]));
}

#[test]
fn a_large_pipeline_is_not_drawn() {
    let text = complete(&mut Table::default(), &[row(2, 9)]);
    assert!(text.contains("too large for a drawing") && !text.contains("[##]"), "{text}");
}

#[test]
fn a_row_without_stages_has_no_drawing() {
    let text = complete(&mut Table::default(), &[bandwidth(4096, &around(100_000, 400))]);
    assert!(!text.contains("->"), "{text}");
}
