//! `ombx list`: prints the benchmarks of this build.

use clap::{Args, Command};
use comfy_table::presets;
use ombx_core::{
    benchmark::{Benchmark, Registry},
    error::Result,
};
use serde_json::{Value, json};

use crate::{
    job::selection,
    output::stdout,
    suite::{self, Resolved},
};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Names, globs or OSU names, for example: 'rma.*'; or one suite: suite:smoke
    patterns: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Print all details: method, axes, sizes, source
    #[arg(long, conflicts_with = "json")]
    long: bool,
}

pub(crate) fn list(registry: &Registry, parser: &Command, args: &ListArgs) -> Result<u8> {
    let suite = suite::named(parser, &args.patterns)?
        .map(|suite| suite.resolve(registry, parser, None))
        .transpose()?;
    let benches = match (&suite, args.patterns.as_slice()) {
        (Some(suite), _) => suite.benchmarks(),
        (None, []) => registry.all().to_vec(),
        (None, patterns) => selection::benchmarks(registry, patterns)?.iter().map(|c| c.bench).collect(),
    };
    stdout::print(if args.json {
        let all: Vec<Value> = benches.iter().map(|b| describe(b)).collect();
        format!("{:#}\n", Value::from(all))
    } else if args.long {
        benches.iter().map(|b| long(b)).collect()
    } else if let Some(suite) = &suite {
        entries(suite)
    } else {
        short(&benches)
    })
}

/// Returns the options and benchmarks of each entry of a suite.
fn entries(suite: &Resolved) -> String {
    let mut text = format!("{}; ranks: {}\n", suite.about, suite.ranks);
    for (options, part) in &suite.parts {
        let benches: Vec<&Benchmark> = part.choices.iter().map(|choice| choice.bench).collect();
        text += &format!("\n{options}\n{}", short(&benches));
    }
    text
}

fn short(benches: &[&Benchmark]) -> String {
    let mut grid = comfy_table::Table::new();
    let header = ["name", "unit", "ranks", "axes", "OSU name", "what it measures"];
    grid.load_style(presets::NOTHING).set_header(header);
    for b in benches {
        let axes: Vec<&str> = b.axes.iter().map(|a| a.name).collect();
        let unavailable =
            (b.available)().err().map(|why| format!(" (unavailable: {why})")).unwrap_or_default();
        grid.add_row([
            b.name.to_owned(),
            b.metric.unit().to_owned(),
            b.layout.describe(),
            axes.join(","),
            osu_names(b).first().copied().unwrap_or_default().to_owned(),
            format!("{}{unavailable}", b.about),
        ]);
    }
    format!("{}\n", grid.trim_fmt())
}

fn long(b: &Benchmark) -> String {
    let mut text = format!("{}\n  {}\n", b.name, b.about);
    let mut line = |name: &str, value: &str| text += &format!("  {name:<10}{value}\n");
    line("metric", &format!("{} in {}", b.metric.name(), b.metric.unit()));
    line("ranks", &b.layout.describe());
    line("sizes", b.sizes);
    for axis in b.axes {
        line(axis.name, &format!("{} (default {})", axis.values.join(", "), b.default_of(axis)));
    }
    for setting in b.settings {
        let default = setting.default.map_or(String::new(), |default| format!(" (default {default})"));
        line(setting.name, &format!("{}{default}", setting.about));
    }
    if !osu_names(b).is_empty() {
        line("OSU names", &osu_names(b).join(", "));
    }
    line("timed", b.method.timed);
    line("untimed", b.method.untimed);
    line("like", b.method.like);
    line("source", &format!("{}:{}", b.at.file(), b.at.line()));
    if let Err(why) = (b.available)() {
        line("here", &format!("unavailable: {why}"));
    }
    text + "\n"
}

fn describe(b: &Benchmark) -> Value {
    let axes: Vec<Value> = b
        .axes
        .iter()
        .map(|a| json!({"name": a.name, "about": a.about, "values": a.values, "default": b.default_of(a)}))
        .collect();
    json!({
        "name": b.name,
        "about": b.about,
        "doc": format!(
            "- Timed: {}.\n- Not timed: {}.\n- Like: {}.",
            b.method.timed, b.method.untimed, b.method.like
        ),
        "metric": b.metric.name(),
        "unit": b.metric.unit(),
        "ranks": b.layout.describe(),
        "across": b.layout.aggregation().name(),
        "sizes": b.sizes,
        "streams": b.streams,
        "axes": axes,
        "osu": osu_names(b),
        "available": (b.available)().err().map_or(Value::Bool(true), Value::from),
        "source": format!("{}:{}", b.at.file(), b.at.line()),
    })
}

fn osu_names(b: &Benchmark) -> Vec<&'static str> {
    b.osu_names().map(|o| o.name).collect()
}
