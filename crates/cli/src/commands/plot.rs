//! `ombx plot`: draws result files as a figure.

use std::path::{Path, PathBuf};

use clap::Args;
use ombx_compare::model;
use ombx_draw::{Drawing, FileFormat, Input, Kind, Options, PlotError, Quantity, Scale, Width};
use ombx_estimate::{
    number::{RateUnit, Units},
    samples::{CaseSamples, SampleStore},
};
use ombx_launch::{
    note_line,
    output::{target, terminal::reason},
    result_file::{KnownRuns, Sorter, only_sweep, records},
};
use ombx_links::verdict::{SweepCollector, SweptRun};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    result::ALIGNMENT_AXIS,
};

use crate::arguments::output::{RowArgs, some_of};

#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// Result files; each is a series of its own
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// New file; - for standard output
    #[arg(short, long = "output", value_name = "FILE", required = true)]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Format of the figure [default: that of the ending of the file: .svg, .pdf or .png]
    #[arg(long, value_name = "svg|pdf|png", value_parser = format_named)]
    format: Option<FileFormat>,
    /// What the figure shows [default: heatmap for results of `ombx links`, alignment for rows of --alignment, else curve]
    #[arg(long, value_parser = some_of(&KINDS))]
    kind: Option<Figure>,
    #[command(flatten)]
    rows: RowArgs,
    /// Text in the legend, once per file or once per series; files with the same text are launches of one result
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Figure of curves, if it is not the time or the bandwidth of the rows
    #[arg(long, value_parser = some_of(&QUANTITIES))]
    quantity: Option<Quantity>,
    /// Text above the figure
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Width on paper
    #[arg(long, default_value = "one-column", value_parser = some_of(&WIDTHS))]
    width: Width,
    /// Scale of the horizontal axis
    #[arg(long, default_value = "auto", value_parser = some_of(&SCALES))]
    x_axis: Scale,
    /// Scale of the vertical axis
    #[arg(long, default_value = "auto", value_parser = some_of(&SCALES))]
    y_axis: Scale,
}

/// What a figure shows of the rows of benchmarks; `None`: links.
type Figure = Option<Kind>;

const KINDS: [(&str, &str, Figure); 10] = [
    ("curve", "Medians by message size, with 95 % intervals", Some(Kind::Curve)),
    (
        "rate",
        "Medians and 99th percentiles of requests by the rate at which they were offered (--rate)",
        Some(Kind::Rate),
    ),
    ("alignment", "Medians by the number of earlier messages (--alignment)", Some(Kind::Alignment)),
    ("cdf", "Cumulative distribution of the samples", Some(Kind::Cdf)),
    ("histogram", "Histogram of the samples", Some(Kind::Histogram)),
    ("violin", "Density of the samples by message size, with median and quartiles", Some(Kind::Violin)),
    ("samples", "Samples in the order of measurement", Some(Kind::Samples)),
    ("heatmap", "Times of all links", None),
    ("launches", "Median of each launch, with the interval over launches", Some(Kind::Launches)),
    (
        "model",
        "Medians of ping-pongs by message size, with the lines of `ombx model` and the sizes at which they change",
        Some(Kind::Model),
    ),
];

const QUANTITIES: [(&str, &str, Quantity); 3] = [
    ("gbit", "Bandwidths in Gbit/s", Quantity::Bandwidth(RateUnit::GigaBits)),
    ("message-rate", "Messages per second of bandwidth benchmarks", Quantity::MessageRate),
    ("bus-bandwidth", "Bus bandwidth of collective operations", Quantity::BusBandwidth(RateUnit::MegaBytes)),
];

const WIDTHS: [(&str, &str, Width); 2] =
    [("one-column", "85 mm", Width::OneColumn), ("two-columns", "178 mm", Width::TwoColumns)];

const SCALES: [(&str, &str, Scale); 3] = [
    (
        "auto",
        "Logarithmic for sizes, curves, and values that differ by a factor of 10; else linear",
        Scale::Auto,
    ),
    ("log", "Logarithmic", Scale::Log),
    ("linear", "Linear", Scale::Linear),
];

/// Formats of the file, by their names.
const FORMATS: [(&str, FileFormat); 3] =
    [("svg", FileFormat::Svg), ("pdf", FileFormat::Pdf), ("png", FileFormat::Png)];

/// Reads the name of a format.
fn format_named(name: &str) -> std::result::Result<FileFormat, String> {
    let found = FORMATS.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| format).ok_or_else(|| "not one of svg, pdf, png".to_owned())
}

pub(crate) fn plot(args: &PlotArgs) -> Result<u8> {
    let out = args.out.as_path();
    FileFormat::check().map_err(|why| Error::usage(why.to_string()))?;
    let format = args.format.map_or_else(|| format(out), Ok)?;
    target::check(out, "-o", args.files.iter().map(|file| (target::READ, file.as_path())))?;
    if !args.force {
        target::check_new(out)?;
    }
    let (groups, sweeps) = read(args)?;
    let links = groups.iter().all(|(_, cases)| cases.is_empty()) && !sweeps.is_empty();
    let mut cases = groups.iter().flat_map(|(_, cases)| cases).peekable();
    let is_aligned = |case: &CaseSamples| case.row().axes.contains_key(ALIGNMENT_AXIS);
    let of_rows = if cases.peek().is_some() && cases.all(is_aligned) { Kind::Alignment } else { Kind::Curve };
    let kind = args.kind.unwrap_or((!links).then_some(of_rows));
    if links && kind.is_some() {
        return Err(Error::usage("results of ombx links have one kind of figure: --kind heatmap"));
    }
    args.check_options(kind)?;
    if args.kind.is_none() && !links && !sweeps.is_empty() {
        note_line!("ombx: results of ombx links are not drawn: --kind heatmap draws them");
    }
    let drawing = match kind {
        Some(kind) => rows(args, kind, &groups),
        None => heat_map(args, &sweeps),
    };
    let drawing = drawing?;
    if let Some((drawn, all)) = drawing.drawn {
        note_line!("ombx: {drawn} of {all} cases are drawn: choose others by --rows and --sizes");
    }
    let written = drawing.file(format).map_err(|e| Error::usage(e.to_string()))?;
    target::replace(out, &written).map_err(|e| {
        Error::storage(format!("cannot write the figure to {}: {}", out.display(), reason(&e)))
    })?;
    Ok(0)
}

/// Cases by their name in the legend, in the order of files.
type Groups = Vec<(String, Vec<CaseSamples>)>;

/// Reads rows of benchmarks, and runs of `ombx links`, whose links in rounds are summed up.
fn read(args: &PlotArgs) -> Result<(Groups, Vec<SweptRun>)> {
    let mut stores: Vec<(String, SampleStore)> = Vec::new();
    let (mut sweeps, mut known) = (Vec::new(), KnownRuns::default());
    for (path, label) in args.files.iter().zip(args.names()) {
        let at = stores.iter().position(|(name, _)| *name == label).unwrap_or_else(|| {
            stores.push((label, SampleStore::default()));
            stores.len() - 1
        });
        let (mut links, mut sorter) = (SweepCollector::default(), Sorter::default());
        let mut pass = |event: Event<'static>, is_sweep: bool| {
            if is_sweep {
                links.event(event);
            } else {
                stores[at].1.event(&event);
            }
            Ok(())
        };
        known.each(records(path)?, path, |record| sorter.take(record, &mut pass))?;
        sorter.end(pass)?;
        sweeps.extend(links.end());
    }
    let mut groups = Vec::new();
    for (label, store) in stores {
        let cases = store.into_cases();
        // The sizes of a heat map are those of links.
        let links = args.kind == Some(None);
        let mut cases = if links { cases } else { args.rows.choose(cases, &label)? };
        if args.kind.flatten() == Some(Kind::Model) {
            cases.retain(|case| model::is_ping_pong(&case.row().bench));
        }
        groups.push((label, cases));
    }
    Ok((groups, sweeps))
}

impl PlotArgs {
    /// Returns the name of each file: its text for the legend, or its name without directory and ending if that is unique.
    fn names(&self) -> Vec<String> {
        if self.label.len() == self.files.len() && self.files.len() > 1 {
            return self.label.clone();
        }
        self.files.iter().map(|path| self.name(path)).collect()
    }

    /// Returns the name of a file without directory and ending if it is unique, else its path.
    fn name(&self, path: &Path) -> String {
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match self.files.iter().filter(|other| stem(other) == stem(path)).count() {
            1 => stem(path),
            _ => path.display().to_string(),
        }
    }

    /// Refuses options that do nothing in a kind of figure.
    fn check_options(&self, kind: Option<Kind>) -> Result<()> {
        let (x, y) = match kind {
            Some(Kind::Curve | Kind::Rate | Kind::Alignment | Kind::Histogram | Kind::Model) => (true, true),
            Some(Kind::Cdf) => (true, false),
            Some(Kind::Violin | Kind::Samples | Kind::Launches) => (false, true),
            None => (false, false),
        };
        let idle = [
            ("--x-axis", !x && self.x_axis != Scale::Auto),
            ("--y-axis", !y && self.y_axis != Scale::Auto),
            ("--quantity", self.quantity.is_some() && kind != Some(Kind::Curve)),
            ("--label", kind.is_none() && !self.label.is_empty()),
            ("--rows", kind.is_none() && self.rows.has_patterns()),
        ];
        match idle.iter().find(|(_, idle)| *idle) {
            Some((option, _)) => {
                Err(Error::usage(format!("this kind of figure has no {option}: leave it out")))
            }
            None => Ok(()),
        }
    }

    fn options(&self) -> Options<'_> {
        let per_series = self.files.len() == 1 || self.label.len() != self.files.len();
        Options {
            width: self.width,
            x: self.x_axis,
            y: self.y_axis,
            title: self.title.as_deref(),
            quantity: self.quantity,
            units: Units::default(),
            labels: if per_series { &self.label } else { &[] },
        }
    }
}

fn rows(args: &PlotArgs, kind: Kind, groups: &[(String, Vec<CaseSamples>)]) -> Result<Drawing> {
    let inputs: Vec<Input<'_>> = groups.iter().map(|(label, cases)| Input { label, cases }).collect();
    ombx_draw::draw(kind, &inputs, &args.options()).map_err(|e| match e {
        PlotError::Mixed | PlotError::TooMany(_) => {
            let mut names: Vec<&str> =
                groups.iter().flat_map(|(_, cases)| cases).map(|case| case.row().bench.as_str()).collect();
            names.dedup();
            Error::usage(format!("{e}, for example --rows {}", names.first().unwrap_or(&"p2p.latency")))
        }
        PlotError::Unfit(_) | PlotError::Library(_) | PlotError::NotBuilt => Error::usage(e.to_string()),
    })
}

/// Draws the only sweep over links among the runs.
fn heat_map(args: &PlotArgs, runs: &[SweptRun]) -> Result<Drawing> {
    let sweep = only_sweep(runs).map_err(|e| e.within("a heat map"))?;
    let slow =
        runs.iter().rev().find_map(|swept| swept.run.verdict.as_ref()).map_or(Vec::new(), |v| v.components());
    let bytes = match args.rows.sizes.as_deref() {
        None => None,
        Some([bytes]) => Some(bytes.0),
        Some(_) => return Err(Error::usage("a heat map shows one message size: give one with --sizes")),
    };
    ombx_draw::heat_map(&sweep, &slow, bytes, &args.options()).map_err(|e| Error::usage(e.to_string()))
}

/// Returns the format that the ending of a file chooses.
fn format(path: &Path) -> Result<FileFormat> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.and_then(|ending| format_named(&ending).ok()).ok_or_else(|| {
        let name = path.display();
        Error::usage(format!("-o {name}: give a name that ends with .svg, .pdf or .png, or choose --format"))
    })
}
