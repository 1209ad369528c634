//! docs/OMB.md: the OSU programs and options that ombx supports.

use std::fmt::Write as _;

use ombx_core::registry::Registry;

use super::names;

const INTRODUCTION: &str = include_str!("document.md");

/// Returns the page: the introduction, then a table of programs from the registry.
pub(crate) fn page(registry: &Registry) -> String {
    let covered = names::covered(registry);
    let mut page = INTRODUCTION.to_owned();
    page += "\n## Programs\n\n| OSU program | here | header |\n|---|---|---|\n";
    for name in names::all() {
        // Writing to a String cannot fail.
        let _ = match covered.iter().find(|(osu, _)| osu.name == name) {
            Some((osu, bench)) => {
                let chosen: Vec<String> =
                    osu.axes.iter().map(|(axis, value)| format!(" `--{axis} {value}`")).collect();
                writeln!(page, "| {name} | {}{} | {} |", bench.name, chosen.concat(), osu.title)
            }
            None => {
                writeln!(page, "| {name} | not supported: {} | |", names::uncovered(name).unwrap_or_default())
            }
        };
    }
    page
}
