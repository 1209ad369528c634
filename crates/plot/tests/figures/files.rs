//! Files of figures: vector text, no other files, sizes on paper, and errors.

use ombx_plot::{Input, Kind, Options, PlotError, Width, draw};
use resvg::usvg::roxmltree::Document;

use crate::{cases, figure, power_law, row};

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn an_svg_file_needs_no_font_and_no_other_file() {
    for kind in [Kind::Curve, Kind::Violin, Kind::Cdf, Kind::Histogram, Kind::Samples] {
        let svg = figure(kind, &[power_law()], &Options::default()).svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        let foreign = ["text", "tspan", "image", "style", "script", "use", "foreignObject"];
        let found: Vec<&str> = document
            .descendants()
            .map(|node| node.tag_name().name())
            .filter(|name| foreign.contains(name))
            .collect();
        assert!(found.is_empty(), "{kind:?}: {found:?}");
        assert!(!svg.contains("href") && !svg.contains("font-family") && !svg.contains("url("), "{kind:?}");
        let root = document.root_element();
        assert_eq!(root.attribute("width"), Some("240.9pt"));
        assert!(root.attribute("viewBox").is_some() && document.descendants().count() > 30);
    }
}

#[test]
fn a_pdf_file_has_text_in_an_embedded_font_and_no_image() {
    for kind in [Kind::Curve, Kind::Violin, Kind::Cdf, Kind::Histogram, Kind::Samples] {
        let pdf = figure(kind, &[power_law()], &Options::default()).pdf().unwrap();
        assert!(pdf.starts_with(b"%PDF") && has(&pdf, "/FontFile") && has(&pdf, "/ToUnicode"), "{kind:?}");
        assert!(
            has(&pdf, "DejaVuSans") && !has(&pdf, "/Subtype /Image") && !has(&pdf, "/Subtype/Image"),
            "{kind:?}"
        );
        assert!(pdf.len() < 200_000, "{kind:?}: {} bytes", pdf.len());
    }
}

#[test]
fn figures_have_the_width_of_a_column() {
    let mm = |points: f64| points * 25.4 / 72.0;
    for (width, expected) in [(Width::OneColumn, 85.0), (Width::TwoColumns, 178.0)] {
        let figure = figure(Kind::Curve, &[power_law()], &Options { width, ..Options::default() });
        let pdf = figure.pdf().unwrap();
        let at = pdf.windows(10).position(|window| window == b"/MediaBox ").unwrap();
        let numbers = String::from_utf8_lossy(&pdf[at + 10..at + 60]).into_owned();
        let numbers: Vec<f64> =
            numbers.trim_start_matches('[').split([' ', ']']).filter_map(|n| n.parse().ok()).collect();
        assert!((mm(numbers[2]) - expected).abs() < 0.2, "{numbers:?}");
        let png = figure.png().unwrap();
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert!((f64::from(pixels) / 600.0 * 25.4 - expected).abs() < 0.2, "{pixels}");
    }
}

#[test]
fn letters_of_labels_do_not_break_a_file() {
    let labels = ["<b> & \"µ\" ]]>".to_owned()];
    let options = Options { labels: &labels, title: Some("a < b"), ..Options::default() };
    let figure = figure(Kind::Curve, &[power_law()], &options);
    assert!(
        Document::parse(figure.inline())
            .unwrap()
            .descendants()
            .any(|n| n.text().is_some_and(|t| t.trim() == labels[0]))
    );
    assert!(has(&figure.pdf().unwrap(), "/FontFile"));
}

#[test]
fn results_that_do_not_fit_are_errors() {
    let error = |kind, rows: &[_]| {
        let cases = cases(&[rows.to_vec()]);
        draw(kind, &[Input { label: "one", cases: &cases }], &Options::default()).unwrap_err()
    };
    assert!(error(Kind::Curve, &[row(8, &[1000; 20])]).to_string().contains("several message sizes"));
    assert!(error(Kind::Rate, &power_law()).to_string().contains("no row has an offered rate"));
    assert!(error(Kind::Launches, &power_law()).to_string().contains("one launch only"));
    assert!(error(Kind::Cdf, &[]).to_string().contains("no measured rows"));
    let many: Vec<_> = (0..9)
        .map(|at| {
            let mut row = row(8, &[1000; 20]);
            (row.bench, row.key) = (format!("p2p.{at}"), format!("p2p.{at}/bytes=8"));
            row
        })
        .collect();
    assert!(matches!(error(Kind::Violin, &many), PlotError::TooMany(9)));
}

#[test]
fn too_many_sizes_are_thinned_and_said() {
    let rows: Vec<_> = (0..20).map(|at| row(1 << at, &[1000; 20])).collect();
    assert_eq!(figure(Kind::Cdf, std::slice::from_ref(&rows), &Options::default()).drawn(), Some((7, 20)));
    assert_eq!(figure(Kind::Curve, &[rows], &Options::default()).drawn(), None);
}
