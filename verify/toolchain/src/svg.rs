//! Drawings for the documentation: one file each, readable on light and dark pages.

use maud::{Markup, PreEscaped, html};

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d1d9e0;fill:none}\
    .axis,.ci{stroke:#59636e;fill:none}.band{fill:#1a7f3733}.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}\
    .s2{stroke:#8250df;fill:#8250df}.line{fill:none;stroke-width:1.5}.open{fill:#ffffff}\
    @media(prefers-color-scheme:dark){text{fill:#f0f6fc}.soft{fill:#9198a1}.grid{stroke:#3d444d}.axis,.ci{stroke:#9198a1}\
    .s0{stroke:#4493f8;fill:#4493f8}.s1{stroke:#db6d28;fill:#db6d28}.s2{stroke:#ab7df8;fill:#ab7df8}.open{fill:#0d1117}.line{fill:none}}";

/// Returns the text of an SVG file with its size in pixels.
pub fn page(width: f64, height: f64, title: &str, content: &Markup) -> String {
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            (content)
        }
    };
    format!("{}\n", drawing.into_string())
}

/// Formats a coordinate, to a tenth of a pixel.
pub fn n(value: f64) -> String {
    format!("{value:.1}")
}
