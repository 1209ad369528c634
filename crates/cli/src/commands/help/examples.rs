//! Examples of each command, for its help and its manual page.

use std::{collections::BTreeMap, sync::LazyLock};

use ombx_draw::FileFormat;
use ombx_show::wrapped;
use serde::Deserialize;

/// Example of a file of `ombx check`.
pub(super) const NODE_CHECK: &str = include_str!("../../../suites/node-check.toml");
/// Example of a file of `ombx run`.
pub(super) const SUITE: &str = include_str!("../../../suites/smoke.toml");

/// Examples of a command, in the text of [`ALL`] under its name.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Examples {
    /// What each example does, and its command line.
    pub(super) examples: Vec<(String, String)>,
    /// Options that `-h` shows; all if there are none.
    pub(super) common: Vec<String>,
    /// Pages of `ombx help` that explain the output of the command.
    pub(super) pages: Vec<String>,
}

static ALL: LazyLock<BTreeMap<String, Examples>> =
    LazyLock::new(|| toml::from_str(include_str!("examples.toml")).unwrap_or_default());
static NONE: Examples = Examples { examples: Vec::new(), common: Vec::new(), pages: Vec::new() };

/// Returns the examples of a command; none of one that is not for users.
pub(super) fn for_command(command: &str) -> &'static Examples {
    ALL.get(command).unwrap_or(&NONE)
}

impl Examples {
    /// Returns whether `-h` shows an option.
    pub(super) fn has_common(&self, option: &str) -> bool {
        self.common.iter().any(|common| common == option)
    }

    /// Returns the lines of the first examples. A build without files of figures has none of `ombx plot`.
    pub(super) fn lines(&self, most: usize, columns: usize) -> String {
        let about = |text| wrapped(text, columns.saturating_sub("  # ".len())).join("\n  # ");
        let is_built = |line: &str| FileFormat::check().is_ok() || !line.contains("ombx plot");
        let lines = self.examples.iter().filter(|(_, line)| is_built(line)).take(most);
        lines.map(|(text, line)| format!("  # {}\n  {line}\n", about(text))).collect()
    }
}
