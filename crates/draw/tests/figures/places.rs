//! Positions of symbols and lines, read from the shapes: the labels of ticks say which value is where.

use ombx_draw::{
    Anchor, Color, Drawing, Input, Kind, Options, Point, Quantity, Scale, Shape, Width, draw, heat_map,
};
use ombx_estimate::samples::{CaseSamples, OtherState};
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    result::{Measurement, Metric, Place},
    stats::Percentile,
    unit::Bytes,
};

use crate::{cases, figure, power_law, row, run};

const BLUE: Color = Color(0, 114, 178);
/// Colour of the second series, whose symbols are squares.
const VERMILION: Color = Color(213, 94, 0);

/// Returns value and position of each label of the horizontal axis, in the middle below its tick.
fn ticks_across(figure: &Drawing) -> Vec<(f64, f64)> {
    labels(figure, Anchor::Middle).map(|(value, at)| (value, at.0)).collect()
}

/// Returns value and position of each label of the vertical axis, which ends at the axis.
fn ticks_down(figure: &Drawing) -> Vec<(f64, f64)> {
    labels(figure, Anchor::End).map(|(value, at)| (value, at.1)).collect()
}

/// Returns the texts with this anchor that are values.
fn labels(figure: &Drawing, side: Anchor) -> impl Iterator<Item = (f64, Point)> {
    figure.shapes.iter().filter_map(move |shape| match shape {
        Shape::Text { text, at, anchor, .. } if *anchor == side => {
            let value = text.parse().ok().or(text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64))?;
            Some((value, *at))
        }
        _ => None,
    })
}

/// Returns the position of a value between two ticks of an axis, which is logarithmic unless the scale is linear.
fn position_of(ticks: &[(f64, f64)], value: f64, axis: Scale) -> f64 {
    let scale = |value: f64| if axis == Scale::Linear { value } else { value.ln() };
    let (first, last) = (ticks[0], *ticks.last().unwrap());
    let part = (scale(value) - scale(first.0)) / (scale(last.0) - scale(first.0));
    first.1 + part * (last.1 - first.1)
}

/// Returns the lines of a colour.
fn lines(figure: &Drawing, ink: Color) -> impl Iterator<Item = &Vec<Point>> {
    figure.shapes.iter().filter_map(move |shape| match shape {
        Shape::Line { points, color, .. } if *color == ink => Some(points),
        _ => None,
    })
}

/// Returns the centres of the filled or outlined symbols of the first series, which are circles of 24 corners.
fn symbols(figure: &Drawing) -> Vec<Point> {
    centres(figure, BLUE, 24)
}

/// Returns the centres of the outlines of a colour with this number of corners.
fn centres(figure: &Drawing, color: Color, corners: usize) -> Vec<Point> {
    let closed =
        lines(figure, color).filter(|points| points.len() == corners + 1 && points.first() == points.last());
    closed
        .map(|points| {
            let mean = |pick: fn(&Point) -> f64| points[1..].iter().map(pick).sum::<f64>() / corners as f64;
            (mean(|p| p.0), mean(|p| p.1))
        })
        .collect()
}

fn has_text(figure: &Drawing, wanted: &str) -> bool {
    figure.shapes.iter().any(|shape| matches!(shape, Shape::Text { text, .. } if text == wanted))
}

/// 0.15 points.
const TOLERANCE: f64 = 1.5;

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= TOLERANCE, "{found} is not {expected}");
}

#[test]
fn points_of_a_curve_are_at_their_values() {
    for (x, y) in [(Scale::Auto, Scale::Auto), (Scale::Linear, Scale::Linear), (Scale::Log, Scale::Linear)] {
        let options = Options { x, y, ..Options::default() };
        let figure = figure(Kind::Curve, &[power_law()], &options);
        let (across, down) = (ticks_across(&figure), ticks_down(&figure));
        let symbols = symbols(&figure);
        assert_eq!(symbols.len(), 4, "{figure:?}");
        for ((found_x, found_y), (bytes, us)) in
            symbols.into_iter().zip([(1.0, 1.0), (16.0, 10.0), (256.0, 100.0), (4096.0, 1000.0)])
        {
            assert_near(found_x, position_of(&across, bytes, x));
            assert_near(found_y, position_of(&down, us, y));
        }
    }
}

#[test]
fn message_rates_are_curves_of_their_own() {
    let rows = power_law().into_iter().map(|row| Measurement { metric: Metric::Bandwidth, ..row }).collect();
    let options = Options { quantity: Some(Quantity::MessageRate), ..Options::default() };
    let cases = cases(&[rows]);
    let inputs = [Input { label: "one", cases: &cases }];
    let figure = draw(Kind::Curve, &inputs, &options).unwrap();
    let down = ticks_down(&figure);
    // One message in 1, 10, 100 and 1000 us.
    for (symbol, rate) in symbols(&figure).into_iter().zip([1000.0, 100.0, 10.0, 1.0]) {
        assert_near(symbol.1, position_of(&down, rate, Scale::Log));
    }
    assert!(has_text(&figure, "message rate in kmsg/s"));
    assert!(draw(Kind::Cdf, &inputs, &options).is_err());
}

#[test]
fn a_point_has_its_interval_and_its_tick() {
    let rows = power_law();
    let options = Options { y: Scale::Linear, ..Options::default() };
    let figure = figure(Kind::Curve, std::slice::from_ref(&rows), &options);
    let (across, down, symbols) = (ticks_across(&figure), ticks_down(&figure), symbols(&figure));
    assert_eq!(across.iter().map(|tick| tick.0).collect::<Vec<_>>(), [1.0, 16.0, 256.0, 4096.0]);
    let [low, high] = rows[3].headline().unwrap().ci95.unwrap();
    let upright = |points: &&Vec<Point>| points.len() == 2 && points[0].0 == points[1].0;
    let intervals: Vec<&Vec<Point>> = lines(&figure, BLUE).filter(upright).collect();
    assert_eq!(intervals.len(), 4);
    assert_near(intervals[3][0].0, symbols[3].0);
    assert_near(intervals[3][0].1, position_of(&down, low, Scale::Linear));
    assert_near(intervals[3][1].1, position_of(&down, high, Scale::Linear));
    let faint = |shape: &Shape| matches!(shape, Shape::Area { opacity, .. } if *opacity < 1.0);
    assert!(!figure.shapes.iter().any(faint), "nothing is known between two points");
}

#[test]
fn launches_are_at_their_medians() {
    let launches: Vec<_> = [1000u64, 1500, 2000, 1200, 1800, 1600].map(|ns| vec![row(8, &[ns; 40])]).into();
    let figure = figure(Kind::Launches, &launches, &Options::default());
    let (across, down) = (ticks_across(&figure), ticks_down(&figure));
    let symbols = symbols(&figure);
    for (at, us) in [1.0, 1.5, 2.0, 1.2, 1.8, 1.6].into_iter().enumerate() {
        assert_near(symbols[at].0, position_of(&across, (at + 1) as f64, Scale::Linear));
        assert_near(symbols[at].1, position_of(&down, us, Scale::Linear));
    }
}

#[test]
fn requests_are_at_their_offered_rates() {
    let at_rate = |(rate, ns): (u64, u64)| {
        let mut row = row(64, &[ns; 40]);
        row.summary.as_mut().unwrap().p99 = Some(Percentile { value: 5.0 * ns as f64, ci95: None });
        row.key = format!("p2p.request/rate={rate},bytes=64");
        row.axes.insert("rate".into(), rate.to_string());
        row
    };
    let rows: Vec<Measurement> = [(1000, 2000), (10_000, 3000), (100_000, 40_000)].map(at_rate).into();
    let figure = figure(Kind::Rate, std::slice::from_ref(&rows), &Options::default());
    let (across, down) = (ticks_across(&figure), ticks_down(&figure));
    let symbols = symbols(&figure);
    let slowest = centres(&figure, VERMILION, 4);
    for (at, (rate, us)) in [(1e3, 2.0), (1e4, 3.0), (1e5, 40.0)].into_iter().enumerate() {
        // The first symbol of a series is that of the legend.
        for (found, us) in [(symbols[at + 1], us), (slowest[at + 1], 5.0 * us)] {
            assert_near(found.0, position_of(&across, rate, Scale::Log));
            assert_near(found.1, position_of(&down, us, Scale::Log));
        }
    }
}

#[test]
fn a_distribution_passes_through_its_quantiles() {
    let times: Vec<u64> = (1..=100).map(|i| 1000 + i * 10).collect();
    let figure = figure(Kind::Cdf, &[vec![row(8, &times)]], &Options::default());
    let curve = lines(&figure, BLUE).next().unwrap();
    let (across, down) = (ticks_across(&figure), ticks_down(&figure));
    for (us, share) in [(1.25, 0.25), (1.5, 0.5), (1.9, 0.9), (2.0, 1.0)] {
        let (x, y) = (position_of(&across, us, Scale::Linear), position_of(&down, share, Scale::Linear));
        let nearest = curve.iter().map(|p| (p.0 - x).abs().max((p.1 - y).abs())).fold(f64::MAX, f64::min);
        assert!(nearest <= TOLERANCE, "{us} µs is not at {share}: {nearest}\n{curve:?}");
    }
}

#[test]
fn samples_are_in_their_order() {
    let times: Vec<u64> = (0..60).map(|i| if i == 17 { 3000 } else { 1000 }).collect();
    let figure = figure(Kind::Samples, &[vec![row(8, &times)]], &Options::default());
    let (across, down) = (ticks_across(&figure), ticks_down(&figure));
    let highest = symbols(&figure).into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_near(highest.0, position_of(&across, 18.0, Scale::Linear));
    assert_near(highest.1, position_of(&down, 3.0, Scale::Linear));
}

#[test]
fn a_violin_has_its_median() {
    let times: Vec<u64> = (0..101).map(|i| 1000 + i * 3).collect();
    let figure = figure(Kind::Violin, &[vec![row(8, &times), row(64, &times)]], &Options::default());
    let down = ticks_down(&figure);
    let symbols = symbols(&figure);
    assert_eq!(symbols.len(), 2);
    symbols.iter().for_each(|symbol| assert_near(symbol.1, position_of(&down, 1.15, Scale::Linear)));
}

#[test]
fn several_files_are_several_series() {
    let (one, two) = (cases(&[power_law()]), cases(&[power_law()]));
    let inputs = [Input { label: "MPICH", cases: &one }, Input { label: "Open MPI", cases: &two }];
    let figure =
        draw(Kind::Curve, &inputs, &Options { width: Width::TwoColumns, ..Options::default() }).unwrap();
    assert!(has_text(&figure, "MPICH") && has_text(&figure, "Open MPI"));
    assert!(lines(&figure, VERMILION).next().is_some() && figure.points().0 == 504.6);
    let labels = ["a".to_owned()];
    let error = draw(Kind::Curve, &inputs, &Options { labels: &labels, ..Options::default() }).unwrap_err();
    assert_eq!(error.to_string(), "1 texts for the legend do not fit 2 series: MPICH, Open MPI");
}

/// Returns a row of two pairs.
fn of_two_pairs(bytes: u64) -> Measurement {
    Measurement { pairs: 2, key: format!("p2p.latency/pairs=2,bytes={bytes}"), ..row(bytes, &[2000; 40]) }
}

#[test]
fn a_series_with_the_defaults_has_the_name_of_its_benchmark() {
    let rows = vec![row(8, &[1000; 40]), of_two_pairs(8)];
    let figure = figure(Kind::Cdf, &[rows], &Options::default());
    assert!(has_text(&figure, "p2p.latency") && has_text(&figure, "2 pairs"), "{figure:?}");
}

#[test]
fn another_state_of_the_machine_belongs_to_one_series() {
    let mut cases = cases(&[vec![row(8, &[1000; 40]), of_two_pairs(8)]]);
    let slower = CaseSamples { other: Some(OtherState::Slower), ..cases[1].clone() };
    cases.push(slower);
    let inputs = [Input { label: "one", cases: &cases }];
    let figure = draw(Kind::Cdf, &inputs, &Options::default()).unwrap();
    for name in ["p2p.latency", "2 pairs", "2 pairs · slower launches"] {
        assert!(has_text(&figure, name), "{name}: {figure:?}");
    }
    let labels = ["single".to_owned(), "double".to_owned()];
    let figure = draw(Kind::Cdf, &inputs, &Options { labels: &labels, ..Options::default() }).unwrap();
    assert!(has_text(&figure, "double · slower launches"), "{figure:?}");
    let of_one_pair = [&cases[..1], &[CaseSamples { other: Some(OtherState::Slower), ..cases[0].clone() }]];
    let of_one_pair = of_one_pair.concat();
    let inputs = [Input { label: "one", cases: &of_one_pair }];
    let figure = draw(Kind::Cdf, &inputs, &Options::default()).unwrap();
    assert!(has_text(&figure, "most frequent state") && has_text(&figure, "slower launches"), "{figure:?}");
}

#[test]
fn another_state_whose_headline_is_not_drawn_has_a_name() {
    let mut cases = cases(&[(0..20).map(|at| row(1 << at, &[1000; 40])).collect()]);
    let slower = CaseSamples { other: Some(OtherState::Slower), ..cases[1].clone() };
    cases.push(slower);
    let inputs = [Input { label: "one", cases: &cases }];
    let labels = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let figure = draw(Kind::Cdf, &inputs, &Options { labels: &labels, ..Options::default() }).unwrap();
    assert!(has_text(&figure, "slower launches · 2 bytes"), "{figure:?}");
}

#[test]
fn the_slowest_link_is_the_darkest() {
    let mut run = run();
    let place = run.places[0].clone();
    run.places = ["n0", "n1", "n2"].map(|host| Place { host: host.to_owned(), ..place.clone() }).to_vec();
    let mut sweep = LinkSweep::of_run(&run);
    for (from, to) in (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let mut link = row(8, &[if (from, to) == (0, 2) { 9000 } else { 1000 }; 20]);
        link.bench = "links".into();
        let axes =
            [("pattern", "unidirectional".to_owned()), ("from", from.to_string()), ("to", to.to_string())];
        link.axes = axes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        sweep.add(&link);
    }
    let figure = heat_map(&sweep, &[], Some(8), &Options::default()).unwrap();
    let cells = |shade: Color| {
        let cells = figure.shapes.iter().filter_map(|shape| match shape {
            Shape::Area { corners, color, .. } if *color == shade && corners[1].0 - corners[0].0 > 200.0 => {
                Some(corners[0])
            }
            _ => None,
        });
        cells.collect::<Vec<Point>>()
    };
    let (slow, fast) = (cells(Color(122, 42, 4)), cells(Color(255, 251, 224)));
    assert_eq!((slow.len(), fast.len()), (1, 5), "{figure:?}");
    // Row 0, column 2: at the top on the right.
    let (right, top) =
        fast.iter().fold((0.0, f64::MAX), |(x, y), cell| (f64::max(x, cell.0), f64::min(y, cell.1)));
    assert_eq!(slow[0], (right, top));
    assert!(
        heat_map(&sweep, &[], Some(9), &Options::default()).unwrap_err().to_string().contains("there are 8")
    );
}
