//! A page in Chromium: charts, theme, keyboard, print, console and network.

use ombx_tests::{
    Files, Job,
    browser::{self, Browser},
    results::{self, GOLDEN, links},
    skipped,
};
use serde_json::{Value, json};

const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";
const LIGHT: &str = "rgb(255, 255, 255)";
const DARK: &str = "rgb(20, 23, 28)";
/// Expression that describes the focused element.
const FOCUS: &str = "(e => e.id || (e.matches('.skip') && 'skip') || e.getAttribute('role') || e.type || \
                     e.tagName)(document.activeElement)";

#[test]
fn a_page_is_drawn_and_follows_theme_and_keyboard() {
    let Some(program) = browser::find() else {
        return skipped("no Chromium on the path (cargo xtask setup --browser)");
    };
    let files = Files::default();
    let (results, pairs) =
        (files.write("p2p.jsonl", sweeps()), files.write("links.jsonl", links().replace("-4242", "-4243")));
    let path = files.path("page.html");
    Job::ombx("report").args([&results, &pairs]).arg("-o").arg(&path).run().expect(0);

    let mut page = Browser::start(&program);
    page.prefer("light", "screen");
    page.load(&path);
    curves(&mut page);
    theme(&mut page);
    saving(&mut page);
    assert_eq!(page.complaints(), Vec::<String>::new());
    page.load(&path);
    keyboard(&mut page);
    paper(&mut page);
    assert_eq!(page.complaints(), Vec::<String>::new());
    assert_eq!(page.requests(), [format!("file://{}", path.display())], "nothing but the page is loaded");

    page.prefer("light", "screen");
    phone(&mut page, &path);

    page.prefer("dark", "screen");
    page.load(&path);
    assert_eq!(page.look(BACKGROUND), DARK, "a reader who prefers dark gets it");
    assert_eq!(page.look("document.getElementById('theme').textContent"), "Light theme");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Returns a result file with the latency and the bandwidth of nine sizes.
fn sweeps() -> String {
    let golden = results::lines(GOLDEN);
    let mut lines = vec![golden[0].clone()];
    for (row, bench) in [(&golden[1], "p2p.latency"), (&golden[2], "p2p.bw")] {
        for step in 0..9 {
            let (mut row, bytes) = (row.clone(), 4u64.pow(step));
            row["bench"] = json!(bench);
            row["key"] = json!(format!("{bench}/bytes={bytes}"));
            (row["bytes"], row["work"]["bytes"], row["axes"]) = (json!(bytes), json!(64 * bytes), json!({}));
            slow_down(&mut row, u64::from(step) + 1);
            lines.push(row);
        }
    }
    lines.push(
        json!({"kind": "end", "outcome": "complete", "cases": 18, "skipped": 0, "failed": 0, "corrupt": 0}),
    );
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Multiplies the times of a row.
fn slow_down(row: &mut Value, factor: u64) {
    multiply(&mut row["samples"][0]["elapsed_ns"], factor);
    slow_down_figures(&mut row["summary"], factor);
}

/// Multiplies the times of an object, and of the objects in it.
fn slow_down_figures(figures: &mut Value, factor: u64) {
    for (name, value) in figures.as_object_mut().into_iter().flatten() {
        if name.ends_with("_ns") {
            multiply(value, factor);
        } else {
            slow_down_figures(value, factor);
        }
    }
}

/// Multiplies a number, or each of a list.
fn multiply(value: &mut Value, factor: u64) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| multiply(one, factor)),
        _ => {
            let whole = value.as_u64().map(|number| json!(number * factor));
            *value = whole.unwrap_or_else(|| json!(value.as_f64().map(|number| number * factor as f64)));
        }
    }
}

/// Checks that curves and intervals lie inside their charts and that labels are text.
fn curves(page: &mut Browser) {
    assert_eq!(
        page.look("document.querySelectorAll('#curves .plot').length"),
        3,
        "latency, bandwidth and message rate"
    );
    assert_eq!(page.look("document.querySelectorAll('#curves .plot .mark').length"), 27, "nine sizes each");
    let intervals = page.look("document.querySelectorAll('#curves .plot .ci').length").as_u64().unwrap();
    assert!(intervals > 0, "intervals are drawn");
    let wide = "Math.min(...[...document.querySelectorAll('#curves .plot .line')].map(l => \
                l.getBoundingClientRect().width))";
    assert!(page.look(wide).as_f64().unwrap() > 300.0, "curves go across their charts");
    let inside = "[...document.querySelectorAll('#curves .plot')].every(plot => { const box = \
                  plot.getBoundingClientRect(); return [...plot.querySelectorAll('.mark, text')].every(e \
                  => { const b = e.getBoundingClientRect(); return b.left >= box.left - 1 && b.right <= \
                  box.right + 1 && b.top >= box.top - 1 && b.bottom <= box.bottom + 1; }); })";
    assert_eq!(page.look(inside), true, "nothing is cut off");
    let text = page.look("document.querySelector('#curves .plot').textContent");
    assert!(text.as_str().unwrap().contains("message size in bytes"), "{text}");
    assert_eq!(
        page.look("document.documentElement.scrollWidth <= innerWidth"),
        true,
        "the page is as wide as the window"
    );
}

/// Waits for the next frame and returns false.
fn wait() -> bool {
    std::thread::sleep(std::time::Duration::from_millis(20));
    false
}

/// Checks that a phone shows whole charts with legible text, and says where a table is cut.
fn phone(page: &mut Browser, path: &std::path::Path) {
    page.resize(390, 844);
    page.load(path);
    let seen = "[...document.querySelectorAll('svg.plot, svg.phone')].filter(plot => \
                plot.getBoundingClientRect().width > 0)";
    let charts = page.look(&format!("{seen}.length")).as_u64().unwrap();
    assert!(charts >= 5, "three curves, a map and a histogram: {charts}");
    let whole = format!(
        "{seen}.every(plot => {{ const box = plot.getBoundingClientRect(); return box.left >= 0 && \
         box.right <= innerWidth; }})"
    );
    assert_eq!(page.look(&whole), true, "no chart is cut");
    let labels = "[...document.querySelectorAll('#curves .phone text')].every(label => \
                  label.getBoundingClientRect().height > 8)";
    assert_eq!(page.look(labels), true, "labels are legible");
    assert_eq!(page.look("document.documentElement.scrollWidth <= innerWidth"), true, "the page fits");
    let cut =
        "[...document.querySelectorAll('.wide')].filter(wide => wide.scrollWidth > wide.clientWidth + 1)";
    assert!(page.look(&format!("{cut}.length")).as_u64().unwrap() > 0, "tables of rows are wider");
    // A table below the screen is laid out once it is seen.
    let said = format!(
        "(wide => {{ wide.scrollIntoView(); return getComputedStyle(wide, \
         '::before').content.includes('Scroll sideways'); }})({cut}[0])"
    );
    assert!((0..3000).any(|_| page.look(&said) == true || wait()), "a cut table says so");
    page.look("scrollTo(0, 0)");
    let first = "document.querySelector('#answer').getBoundingClientRect().bottom < \
                 document.querySelector('svg.plot').closest('figure').getBoundingClientRect().top";
    assert_eq!(page.look(first), true, "the answer comes first");
    let near = "document.querySelector('figure').getBoundingClientRect().top < 2 * innerHeight";
    assert_eq!(page.look(near), true, "the first chart follows soon");
    page.resize(1200, 900);
}

fn theme(page: &mut Browser) {
    assert_eq!(page.look(BACKGROUND), LIGHT);
    let stroke = "getComputedStyle(document.querySelector('#curves .plot .line')).stroke";
    let before = page.look(stroke);
    page.look("document.getElementById('theme').focus()");
    page.press("Enter");
    assert_eq!(page.look(BACKGROUND), DARK);
    assert_ne!(page.look(stroke), before, "curves change with their paper");
    page.press(" ");
    assert_eq!(page.look(BACKGROUND), LIGHT);
}

/// Checks that figures are saved as whole SVG files in the colours of paper, whatever the theme.
fn saving(page: &mut Browser) {
    page.look(
        "Blob = class { constructor(parts) { window.saved = parts[0]; } }, URL.createObjectURL = () => '#', \
         HTMLAnchorElement.prototype.click = () => {}, document.documentElement.dataset.theme = 'dark'",
    );
    for (section, color) in [("#curves", "rgb(0, 114, 178)"), ("#distributions", "#0072B2")] {
        page.look(&format!("document.querySelector('{section} .save').click()"));
        let root = "new DOMParser().parseFromString(saved, 'image/svg+xml').documentElement";
        assert_eq!(page.look(&format!("{root}.tagName")), "svg", "{section}");
        let saved = page.look("saved").as_str().unwrap().to_owned();
        assert!(saved.contains(color), "{section}: {saved}");
        assert!(!saved.contains("class=") && !saved.contains("var("), "{section}: {saved}");
        assert_eq!(page.look(BACKGROUND), DARK, "the theme of the reader is back");
    }
    let figures = "document.querySelectorAll('svg.plot, svg.paper').length";
    assert_eq!(page.look("document.querySelectorAll('.save').length"), page.look(figures));
}

/// Checks that the Tab key reaches all controls and that the focus is visible.
fn keyboard(page: &mut Browser) {
    let (mut order, mut curve, mut map) = (Vec::new(), false, false);
    for _ in 0..80 {
        page.press("Tab");
        let at = page.look(FOCUS).as_str().unwrap_or_default().to_owned();
        if at == "BODY" {
            break;
        }
        let outline = page.look("getComputedStyle(document.activeElement).outlineStyle");
        assert!(outline != "none" || at == "skip", "the focus on {at} is not seen");
        match at.as_str() {
            "checkbox" if !curve => {
                curve = true;
                let shown =
                    "getComputedStyle(document.querySelector('#curves .plot .s0')).display !== 'none'";
                assert_eq!(page.look(shown), true);
                page.press(" ");
                assert_eq!(page.look(shown), false, "the curve is gone");
                page.press(" ");
                assert_eq!(page.look(shown), true, "and back");
            }
            "gridcell" => {
                map = true;
                arrows(page);
            }
            _ => {}
        }
        order.push(at);
    }
    assert!(curve && map && order[0] == "skip", "{order:?}");
    let place =
        |what: &str| order.iter().position(|at| at == what).unwrap_or_else(|| panic!("{what}: {order:?}"));
    assert!(place("theme") < place("checkbox") && place("checkbox") < place("gridcell"), "{order:?}");
    assert_eq!(order.iter().filter(|at| *at == "gridcell").count(), 1, "a map is one stop: {order:?}");
}

/// Checks the arrow keys in heat maps and the line below them.
fn arrows(page: &mut Browser) {
    let title = "document.activeElement.querySelector('title').textContent";
    let below = "document.activeElement.closest('figure').querySelector('.readout').textContent";
    page.press("ArrowRight");
    assert!(
        page.look(title).as_str().unwrap().starts_with("rank 0 on n0 and rank 1 on n1: 1000"),
        "{}",
        page.look(title)
    );
    page.press("ArrowDown");
    page.press("End");
    let cell = page.look(title);
    assert!(
        cell.as_str().unwrap().contains("and rank 3 on n3: 2000.0 µs, 2.00 times as long as ordinary links"),
        "{cell}"
    );
    assert_eq!(page.look(below), cell);
}

/// Checks the print layout: no buttons, white background, what is folded takes no room.
fn paper(page: &mut Browser) {
    page.look(
        "document.querySelector('details').open = false, document.documentElement.dataset.theme = 'dark'",
    );
    page.prefer("light", "print");
    assert_eq!(page.look("getComputedStyle(document.querySelector('.bar')).display"), "none");
    assert_eq!(page.look(BACKGROUND), LIGHT);
    let folded = "getComputedStyle(document.querySelector('details:not([open])')).display";
    assert_eq!(page.look(folded), "none", "paper has what the screen has");
}
