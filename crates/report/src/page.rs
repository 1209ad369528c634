//! The page: its sections in order, the one style and the one script, and a policy that forbids everything else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    Report, Source,
    book::{Book, count},
    comparison, curves, links, pipeline, provenance, rows, summary,
};

const STYLE: &str = include_str!("asset/page.css");
const SCRIPT: &str = include_str!("asset/page.js");
/// Nothing is loaded, sent or run but the two above, which are named by their SHA-256.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; \
    style-src 'sha256-zCUFUC9Kovztu9CnUIPlcAbH1frSsVez4iddbKe446Y='; script-src 'sha256-kK2wN0xl3Lo7HYO/t53BhIMNgnB2Ly1ouOcPrCu72vs='";

/// One HTML page of all that.
pub fn page(report: &Report<'_>) -> String {
    let Report { sources, comparison } = *report;
    let book = Book::of(sources);
    let verdicts = links::verdicts(&book);
    let sections: Vec<(&str, &str, Markup)> = [
        Some(("attention", "Attention", summary::section(&book, &verdicts, comparison))),
        comparison.map(|c| ("comparison", "Comparison", comparison::section(c))),
        curves::section(&book).map(|section| ("curves", "Curves", section)),
        links::section(&book, &verdicts).map(|section| ("links", "Links", section)),
        pipeline::section(&book).map(|section| ("pipeline", "Pipeline", section)),
        Some(("rows", "Rows", rows::section(&book))),
        Some(("provenance", "Provenance", provenance::section(&book))),
    ]
    .into_iter()
    .flatten()
    .collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "ombx " (env!("CARGO_PKG_VERSION")) };
                title { "ombx: " (title(sources)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                header.bar {
                    div {
                        strong { "ombx report" }
                        nav aria-label="Sections" { @for (id, name, _) in &sections { a href={ "#" (id) } { (name) } } }
                        button #theme type="button" hidden { "Dark theme" }
                    }
                }
                main #main {
                    h1 { (title(sources)) }
                    p.lead { (lead(&book)) }
                    @for (_, _, section) in &sections { (section) }
                }
                footer { "Made by ombx " (env!("CARGO_PKG_VERSION")) ". The page is one file and loads nothing. MB is 10" sup { "6" } " bytes." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

fn title(sources: &[Source<'_>]) -> String {
    match sources {
        [one] => one.name.to_owned(),
        [one, rest @ ..] => format!("{} and {}", one.name, count(rest.len(), "other file")),
        [] => "no files".into(),
    }
}

/// Libraries and hosts in one line.
fn lead(book: &Book<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for chapter in &book.runs {
        let run = &chapter.run.run;
        let hosts: std::collections::BTreeSet<&str> = run.places.iter().map(|p| p.host.as_str()).collect();
        let at = match hosts.len() {
            1 => hosts.first().copied().unwrap_or_default().to_owned(),
            n => count(n, "host"),
        };
        let part =
            format!("{}, {} on {at}", ombx_results::render::library(run), count(run.places.len(), "rank"));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let rest = parts.len().saturating_sub(3);
    parts.truncate(3);
    if rest > 0 {
        parts.push(format!("{rest} more"));
    }
    let started = book.runs.first().map(|c| format!(" · {}", c.run.run.started)).unwrap_or_default();
    format!("{}{started}", parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_names_the_style_and_the_script() {
        for (kind, text) in [("style", STYLE), ("script", SCRIPT)] {
            let hash = format!("{kind}-src 'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
            assert!(POLICY.contains(&hash), "page.rs must say {hash}");
        }
    }
}
