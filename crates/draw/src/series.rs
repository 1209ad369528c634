//! Series of a figure: rows that differ in message size only, and their names.

use ombx_estimate::{
    knee::RATE,
    samples::{CaseSamples, OtherState},
};
use ombx_record::{
    order::{sort, sort_by_value},
    result::{ALIGNMENT_AXIS, Headline, Measurement},
    stats::Percentile,
    unit::Bytes,
};

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::{self, Frame, Plane, Sample},
    options::{MAX_SERIES, Options},
    quantity::Quantity,
};

/// Results under one name: those of a file, or of several files.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Name in the legend.
    pub label: &'a str,
    /// Cases in the order of [`ombx_estimate::samples::SampleStore::into_cases`].
    pub cases: &'a [CaseSamples],
}

/// Name of a series that differs from another one in the state of the machine only.
const MOST_FREQUENT: &str = "most frequent state";

/// What the horizontal axis of a curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abscissa {
    /// Message size; a series has the medians.
    Size,
    /// Rate at which requests were offered. Medians and 99th percentiles are series of their own.
    OfferedRate,
    /// Number of earlier messages.
    Alignment,
}

impl Abscissa {
    fn position_of(self, row: &Measurement) -> Option<f64> {
        match self.axis() {
            None => Some(row.bytes.unwrap_or(0) as f64),
            Some(name) => row.axes.get(name)?.parse().ok(),
        }
    }

    /// Returns the axis of rows that it shows; `None` for the message size.
    fn axis(self) -> Option<&'static str> {
        match self {
            Abscissa::Size => None,
            Abscissa::OfferedRate => Some(RATE),
            Abscissa::Alignment => Some(ALIGNMENT_AXIS),
        }
    }
}

/// All series of a figure.
pub(crate) struct Collected<'a> {
    pub(crate) abscissa: Abscissa,
    pub(crate) quantity: Quantity,
    pub(crate) series: Vec<Series<'a>>,
}

/// Rows that differ in message size only, or in the offered rate only.
pub(crate) struct Series<'a> {
    /// Parts of the name: label, benchmark, axes, size of messages at offered rates, window, pairs, setup, state of the machine other than
    /// the most frequent one, `median` or `p99` at offered rates.
    parts: Vec<String>,
    /// In ascending order of the horizontal axis.
    pub(crate) cases: Vec<PlottedCase<'a>>,
}

/// A row over all launches, with its samples.
pub(crate) struct PlottedCase<'a> {
    /// Position on the horizontal axis of a curve.
    pub(crate) x: f64,
    pub(crate) row: Measurement,
    /// What a curve shows of the row.
    pub(crate) headline: Headline,
    pub(crate) quantity: Quantity,
    pub(crate) samples: &'a CaseSamples,
}

/// Cases that a figure shows as one curve each.
pub(crate) struct Curves<'a> {
    pub(crate) quantity: Quantity,
    pub(crate) curves: Vec<Curve<'a>>,
    /// Number of cases that are drawn, and of all, if not all are.
    pub(crate) drawn: Option<(usize, usize)>,
}

impl Curves<'_> {
    /// Draws a figure whose legend names the curves. `inside` draws what is between the axes.
    pub(crate) fn draw(
        &self,
        axes: (Axis, Axis),
        titles: (String, String),
        sample: fn(usize) -> Sample,
        options: &Options<'_>,
        inside: impl FnOnce(&mut Plane<'_>),
    ) -> Drawing {
        let keys = frame::keys(self.curves.iter().map(|curve| &curve.name), sample);
        let drawing = Frame { axes, titles, keys, square: false }.draw(options, inside);
        Drawing { drawn: self.drawn, ..drawing }
    }
}

pub(crate) struct Curve<'a> {
    pub(crate) name: String,
    pub(crate) case: PlottedCase<'a>,
}

impl PlottedCase<'_> {
    /// Returns the values of the samples in their order: of single iterations, if there are any.
    pub(crate) fn distribution(&self) -> Vec<f64> {
        self.samples.distribution().into_iter().map(|value| self.quantity.of_value(value)).collect()
    }

    /// Returns the values that the medians come from, in their order.
    pub(crate) fn batches(&self) -> Vec<f64> {
        self.samples.batches().into_iter().map(|value| self.quantity.of_value(value)).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.row.bytes.unwrap_or(0)
    }
}

/// Forms series of rows, in the order of inputs and cases.
pub(crate) fn collect<'a>(
    inputs: &[Input<'a>],
    abscissa: Abscissa,
    options: &Options<'_>,
) -> Result<Collected<'a>, PlotError> {
    let mut series: Vec<Series<'a>> = Vec::new();
    let mut quantity = None;
    for input in inputs {
        let setups = input.cases.iter().map(|case| case.setup + 1).max().unwrap_or(1);
        let first = series.len();
        for samples in input.cases {
            let row = samples.estimate();
            let own_quantity = options.quantity.unwrap_or(Quantity::new(row.metric, options.units));
            let (Some(median), Some(x)) = (own_quantity.headline(&row), abscissa.position_of(&row)) else {
                continue;
            };
            if *quantity.get_or_insert(own_quantity) != own_quantity {
                return Err(PlotError::Mixed);
            }
            let mut parts = name_parts(&row, abscissa);
            if inputs.len() > 1 {
                parts.insert(0, input.label.to_owned());
            }
            if setups > 1 {
                parts.push(format!("setup {}", samples.setup + 1));
            }
            parts.extend(samples.other.map(|other| other.to_string()));
            let headlines = match abscissa {
                Abscissa::Size | Abscissa::Alignment => vec![(None, median)],
                Abscissa::OfferedRate => {
                    let p99 =
                        p99(&row).map(|headline| (Some("p99 iteration"), own_quantity.of_headline(headline)));
                    std::iter::once((Some("median"), median)).chain(p99).collect()
                }
            };
            for (name, headline) in headlines {
                let parts: Vec<String> = parts.iter().cloned().chain(name.map(str::to_owned)).collect();
                let case = PlottedCase { x, row: row.clone(), headline, quantity: own_quantity, samples };
                match series[first..].iter_mut().find(|series| series.parts == parts) {
                    Some(known) => known.cases.push(case),
                    None => series.push(Series { parts, cases: vec![case] }),
                }
            }
        }
    }
    if series.len() > MAX_SERIES {
        // Other states of the machine give way to the series that the user chose.
        series.retain(|series| series.cases.iter().any(|case| case.samples.other.is_none()));
    }
    series.iter_mut().for_each(|series| sort_by_value(&mut series.cases, |case| case.x));
    // Labels that tell all series apart are names by themselves.
    if inputs.len() > 1
        && series.iter().all(|one| series.iter().filter(|other| other.parts[0] == one.parts[0]).count() == 1)
    {
        series.iter_mut().for_each(|series| series.parts.truncate(1));
    }
    match quantity {
        Some(_) if series.len() > MAX_SERIES => Err(PlotError::TooMany(series.len())),
        Some(quantity) => Ok(Collected { abscissa, quantity, series }),
        None if abscissa == Abscissa::OfferedRate => {
            Err(PlotError::Unfit("no row has an offered rate: measure p2p.request or sockets.request".into()))
        }
        None if abscissa == Abscissa::Alignment => {
            Err(PlotError::Unfit("no row is of one alignment: measure with --alignment 0..63".into()))
        }
        None => Err(PlotError::Unfit("there are no measured rows to draw".into())),
    }
}

/// Returns the 99th percentile of the time of a row, in microseconds.
fn p99(row: &Measurement) -> Option<Headline> {
    let Percentile { value, ci95 } = row.summary.as_ref()?.p99?;
    Some(Headline { value: value / 1e3, ci95: ci95.map(|ends| ends.map(|ns| ns / 1e3)) })
}

/// Returns the curves of figures that have one per case. If there are more than `most`, sizes are chosen at equal distances.
pub(crate) fn by_size<'a>(
    collected: Collected<'a>,
    most: usize,
    options: &Options<'_>,
) -> Result<Curves<'a>, PlotError> {
    let all: usize = collected.series.iter().map(|series| series.cases.len()).sum();
    let each = if all > most { (most / collected.series.len()).max(1) } else { usize::MAX };
    let mut curves: Vec<(Vec<String>, PlottedCase<'a>)> = Vec::new();
    for Series { parts, cases } in collected.series {
        let (last, kept) = (cases.len() - 1, each.min(cases.len()));
        let chosen: Vec<usize> =
            (0..kept).map(|at| if kept == 1 { 0 } else { at * last / (kept - 1) }).collect();
        for (_, case) in cases.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)) {
            let size = case.row.bytes.map(|bytes| Bytes(bytes).with_noun());
            curves.push((parts.iter().cloned().chain(size).collect(), case));
        }
    }
    let drawn = (curves.len() < all).then_some((curves.len(), all));
    let all: Vec<Named<'_>> =
        curves.iter().map(|(parts, case)| Named { parts, samples: case.samples }).collect();
    let names = names(&all, options)?;
    let cases: Vec<PlottedCase<'a>> = curves.into_iter().map(|(_, case)| case).collect();
    let curves = names.into_iter().zip(cases).map(|(name, case)| Curve { name, case }).collect();
    Ok(Curves { quantity: collected.quantity, curves, drawn })
}

impl Collected<'_> {
    /// Returns the name of each series in the legend.
    pub(crate) fn names(&self, options: &Options<'_>) -> Result<Vec<String>, PlotError> {
        let named = self.series.iter().filter_map(|series| {
            Some(Named { parts: &series.parts, samples: series.cases.first()?.samples })
        });
        names(&named.collect::<Vec<_>>(), options)
    }
}

/// A series or curve that gets a name.
struct Named<'a> {
    parts: &'a [String],
    /// Its samples, or some of them.
    samples: &'a CaseSamples,
}

impl Named<'_> {
    fn other(&self) -> Option<OtherState> {
        self.samples.other
    }

    /// Returns the parts without the state of the machine: those of the series in the most frequent state.
    fn parts_of_headline(&self) -> impl Iterator<Item = &String> {
        let state = self.other().map(|state| state.to_string());
        self.parts.iter().filter(move |part| Some(*part) != state.as_ref())
    }
}

/// Returns the texts that the user gave, or the parts of the names that are not the same everywhere. A single series has no name. A series of
/// another state of the machine than the most frequent one comes after the one that it belongs to: its state follows the text of the user. If
/// the one that it belongs to is not drawn, it keeps the name made of its parts.
fn names(series: &[Named<'_>], options: &Options<'_>) -> Result<Vec<String>, PlotError> {
    let made: Vec<String> = series.iter().map(|one| made_name(one, series)).collect();
    let headlines: Vec<&Named<'_>> = series.iter().filter(|one| one.other().is_none()).collect();
    match options.labels.len() {
        0 => Ok(made),
        given if given == series.len() => Ok(options.labels.to_vec()),
        given if given == headlines.len() => {
            let names = series.iter().zip(made);
            Ok(names.map(|(one, made)| labelled(one, made, &headlines, options.labels)).collect())
        }
        given => Err(PlotError::Unfit(format!(
            "{given} texts for the legend do not fit {} series: {}",
            series.len(),
            made.join(", ")
        ))),
    }
}

/// Returns the user's text for the headline of a series, with the state of the series if that is another one; `made` if its headline is
/// not drawn.
fn labelled(one: &Named<'_>, made: String, headlines: &[&Named<'_>], labels: &[String]) -> String {
    let at = headlines.iter().position(|other| other.parts.iter().eq(one.parts_of_headline()));
    match (at.map(|at| &labels[at]), one.other()) {
        (Some(text), Some(state)) => format!("{text} · {state}"),
        (Some(text), None) => text.clone(),
        // The size of its headline is not drawn.
        (None, _) => made,
    }
}

/// Returns the parts of a name that not all of these series have. Without such a part, a series has the defaults or is in the most
/// frequent state.
fn made_name(one: &Named<'_>, series: &[Named<'_>]) -> String {
    let own = one.parts.iter().filter(|part| !series.iter().all(|other| other.parts.contains(part)));
    let name = own.map(String::as_str).collect::<Vec<_>>().join(" · ");
    if !name.is_empty() || series.len() == 1 {
        return name;
    }
    let is_state_of_it =
        |other: &Named<'_>| other.other().is_some() && other.parts_of_headline().eq(one.parts);
    if series.iter().any(is_state_of_it) { MOST_FREQUENT.to_owned() } else { one.samples.row().bench.clone() }
}

/// Returns the parts of the name of a row's series, which leave out the position on the horizontal axis.
pub fn name_parts(row: &Measurement, abscissa: Abscissa) -> Vec<String> {
    let axes = row
        .axes
        .iter()
        .filter(|(name, _)| abscissa.axis() != Some(name))
        .map(|(name, value)| format!("{name}={value}"));
    let depth = row.depth.map(|depth| format!("window {depth}"));
    let pairs = (row.pairs > 1).then(|| format!("{} pairs", row.pairs));
    let size = row.bytes.filter(|_| abscissa != Abscissa::Size).map(|bytes| Bytes(bytes).with_noun());
    std::iter::once(row.bench.clone()).chain(axes).chain(size).chain(depth).chain(pairs).collect()
}

/// Returns values in ascending order.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    sort(&mut values);
    values
}

/// Returns the smallest and the largest value.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::MAX, f64::MIN], |[low, high], value| [low.min(value), high.max(value)])
}

pub(crate) fn no_samples() -> PlotError {
    PlotError::Unfit(
        "the rows have no raw samples: read a result file that ombx wrote, not a part of one".into(),
    )
}
