//! Files of figures: vector text, no other files, sizes on paper, and errors.

use ombx_draw::{FileFormat, Kind, Options, Width};

use crate::{figure, power_law};

/// Kinds of figures whose files are tested.
const KINDS: [Kind; 5] = [Kind::Curve, Kind::Violin, Kind::Cdf, Kind::Histogram, Kind::Samples];

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn an_svg_file_needs_no_font_and_no_other_file() {
    for kind in KINDS {
        let file = figure(kind, &[power_law()], &Options::default()).file(FileFormat::Svg).unwrap();
        let svg = String::from_utf8(file).unwrap();
        let foreign =
            ["<text", "<tspan", "<image", "<style", "<script", "<use", "href", "font-family", "url("];
        let found: Vec<&str> = foreign.into_iter().filter(|name| svg.contains(name)).collect();
        assert!(found.is_empty(), "{kind:?}: {found:?}");
        assert!(svg.contains(" width=\"240.9pt\"") && svg.contains(" viewBox=\"0 0 2409 "), "{kind:?}");
        assert!(svg.matches("<path").count() > 30 && svg.matches('Q').count() > 100, "letters are curves");
    }
}

#[test]
fn a_pdf_file_has_text_in_an_embedded_font_and_no_image() {
    for kind in KINDS {
        let pdf = figure(kind, &[power_law()], &Options::default()).file(FileFormat::Pdf).unwrap();
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
        let pdf = figure.file(FileFormat::Pdf).unwrap();
        let at = pdf.windows(10).position(|window| window == b"/MediaBox ").unwrap();
        let numbers = String::from_utf8_lossy(&pdf[at + 10..at + 60]).into_owned();
        let numbers: Vec<f64> =
            numbers.trim_start_matches('[').split([' ', ']']).filter_map(|n| n.parse().ok()).collect();
        assert!((mm(numbers[2]) - expected).abs() < 0.2, "{numbers:?}");
        let png = figure.file(FileFormat::Png).unwrap();
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert!((f64::from(pixels) / 600.0 * 25.4 - expected).abs() < 0.2, "{pixels}");
    }
}

#[test]
fn letters_of_labels_do_not_break_a_file() {
    let labels = ["<b> & \"µ\" ]]>".to_owned()];
    let options = Options { labels: &labels, title: Some("a < b"), ..Options::default() };
    let figure = figure(Kind::Curve, &[power_law()], &options);
    assert!(figure.inline().contains(">&lt;b&gt; &amp; \"µ\" ]]&gt;</text>"));
    assert!(has(&figure.file(FileFormat::Pdf).unwrap(), "/FontFile"));
}
