//! Drawing of start-up and memory of a rank against the number of ranks, on logarithmic axes.

use maud::{Markup, html};
use ombx_results::plot::{LogAxis, Ticks};

use ombx_toolchain::svg::{n, page};

use crate::line::Line;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 330.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = HEIGHT - 42.0;

/// Curve: its name and its value.
type Curve = (&'static str, fn(&Line) -> Option<f64>);

fn mib(bytes: u64) -> Option<f64> {
    (bytes > 0).then_some(bytes as f64 / 1_048_576.0)
}

pub(crate) fn draw(lines: &[Line]) -> String {
    let first = lines.first().map(|line| line.flavour);
    let lines: Vec<&Line> = lines.iter().filter(|line| Some(line.flavour) == first).collect();
    let start: [Curve; 2] =
        [("bare MPI", |line| line.bare.start_s), ("ombx allreduce", |line| line.tasks[1].start_s)];
    let memory: [Curve; 3] = [
        ("bare MPI", |line| mib(line.bare.rank_bytes)),
        ("ombx allreduce", |line| mib(line.tasks[1].rank_bytes)),
        ("ombx links, rank 0", |line| mib(line.tasks[0].most_bytes)),
    ];
    let content = html! {
        (panel(&lines, 0.0, "seconds to the first record", &start))
        (panel(&lines, WIDTH / 2.0, "MiB per rank", &memory))
    };
    page(WIDTH, HEIGHT, "Start-up and memory against ranks", &content)
}

fn panel(lines: &[&Line], from: f64, title: &str, curves: &[Curve]) -> Markup {
    let x = LogAxis::covering(lines.iter().map(|line| f64::from(line.ranks)), Ticks::Binary);
    let values = curves.iter().flat_map(|(_, of)| lines.iter().filter_map(|line| of(line)));
    let (Some(x), Some(y)) = (x, LogAxis::covering(values, Ticks::Decimal)) else { return html! {} };
    let (left, right) = (from + 46.0, from + WIDTH / 2.0 - 16.0);
    let across = |ranks: u32| left + x.position(f64::from(ranks)) * (right - left);
    let down = |value: f64| BOTTOM - y.position(value) * (BOTTOM - TOP);
    // Horizontal place of a key, after the names before it.
    let key =
        |at: usize| left + curves[..at].iter().map(|(name, _)| 7.0 * name.len() as f64 + 28.0).sum::<f64>();
    html! {
        text x=(left) y="18" { (title) }
        @for value in y.ticks(8) {
            path.grid d={ "M" (left) " " (n(down(value))) "H" (right) } {}
            text.soft x=(left - 6.0) y=(n(down(value) + 4.0)) text-anchor="end" { (value) }
        }
        @for value in x.ticks(9) {
            text.soft x=(n(across(value as u32))) y=(BOTTOM + 18.0) text-anchor="middle" { (value) }
        }
        text.soft x=((left + right) / 2.0) y=(BOTTOM + 36.0) text-anchor="middle" { "ranks" }
        @for (at, (name, of)) in curves.iter().enumerate() {
            @let points: Vec<(f64, f64)> = lines.iter().filter_map(|line| Some((across(line.ranks), down(of(line)?)))).collect();
            g class={ "s" (at) } {
                polyline.line points=(points.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect::<Vec<_>>().join(" ")) {}
                @for (x, y) in &points { circle cx=(n(*x)) cy=(n(*y)) r="3.5" {} }
                circle cx=(key(at) + 4.0) cy="32" r="4" {}
            }
            text.soft x=(key(at) + 14.0) y="36" { (name) }
        }
    }
}
