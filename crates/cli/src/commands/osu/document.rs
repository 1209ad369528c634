//! docs/OMB.md: the OSU programs and options that ombx supports.

use ombx_core::benchmark::Registry;

use super::names;

const INTRODUCTION: &str = include_str!("document.md");

/// Returns the page: the introduction, then a table of programs from the registry.
pub(crate) fn page(registry: &Registry) -> String {
    let covered = names::covered(registry);
    let mut page = INTRODUCTION.to_owned();
    page += "\n## Programs\n\n| OSU program | in ombx | header |\n|---|---|---|\n";
    for name in names::all() {
        page += &match covered.iter().find(|(osu, _)| osu.name == name) {
            Some((osu, bench)) => {
                format!("| {name} | {}{} | {} |\n", bench.name, names::options(osu, " `"), osu.title)
            }
            None => {
                format!("| {name} | not supported: {} | |\n", names::uncovered(name).unwrap_or_default())
            }
        };
    }
    page
}
