//! Drawing: for each model its share with an interval, and the band of accepted shares.

use maud::html;
use ombx_toolchain::svg::{n, page};

use crate::line::{GOAL, Line, Verdict, wilson};

const WIDTH: f64 = 860.0;
const LINE: f64 = 20.0;
const LEFT: f64 = 316.0;
const RIGHT: f64 = WIDTH - 110.0;
const TOP: f64 = 34.0;
/// Smallest share that is drawn.
const FROM: f64 = 0.8;

pub(crate) fn draw(lines: &[Line]) -> String {
    let across = |share: f64| LEFT + (share.max(FROM) - FROM) / (1.0 - FROM) * (RIGHT - LEFT);
    let bottom = TOP + LINE * lines.len() as f64;
    let content = html! {
        text x=(LEFT) y="18" { "rows without a mark whose 95 % interval holds the truth, %" }
        text x=(RIGHT + 12.0) y="18" { "marked" }
        path.band d={ "M" (n(across(GOAL[0]))) " " (TOP) "H" (n(across(GOAL[1]))) "V" (n(bottom)) "H" (n(across(GOAL[0]))) "z" } {}
        @for percent in [80, 85, 90, 95, 100] {
            @let x = n(across(f64::from(percent) / 100.0));
            path.grid d={ "M" (x) " " (TOP) "V" (n(bottom)) } {}
            text x=(x) y=(n(bottom + 18.0)) text-anchor="middle" { (percent) }
        }
        @for (at, line) in lines.iter().enumerate() {
            @let c = line.coverage;
            @let y = TOP + LINE * (at as f64 + 0.5);
            text x=(LEFT - 10.0) y=(n(y + 4.0)) text-anchor="end" { (line.model.family) ", " (line.model.name) }
            @if line.verdict() != Verdict::Marked {
                @let [low, high] = wilson(c.silent_covered, c.silent);
                path.ci d={ "M" (n(across(low))) " " (n(y)) "H" (n(across(high))) } {}
                circle.s0 cx=(n(across(c.silent_covered as f64 / c.silent as f64))) cy=(n(y)) r="4" {}
            }
            text.soft x=(RIGHT + 12.0) y=(n(y + 4.0)) { (format!("{:.1} %", 100.0 * c.marked as f64 / c.rows.max(1) as f64)) }
        }
    };
    page(WIDTH, bottom + 30.0, "Shares of intervals that hold the truth, by model of noise", &content)
}
