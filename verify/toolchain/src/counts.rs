//! Recorded counts of instructions of the work on results. They are those of one compiler.

use std::fs;

use serde_json::Value;

use crate::{machine, workspace::Workspace};

/// File of the counts in the workspace.
pub const FILE: &str = "verify/cost/instructions.json";
/// Command that records the counts.
const RECORD: &str = "cargo xtask benches --instructions --record";

/// Returns why counts of this machine cannot be compared with the recorded ones, and what to do; `None` if they can.
pub fn incomparable(workspace: &Workspace) -> Option<String> {
    let text = fs::read_to_string(workspace.root.join(FILE)).unwrap_or_default();
    reason(&text, &machine::compiler())
}

fn reason(recorded: &str, compiler: &str) -> Option<String> {
    let recorded: Value = serde_json::from_str(recorded).unwrap_or_default();
    match recorded["compiler"].as_str() {
        None => Some(format!("{FILE} has no counts: record them by {RECORD}")),
        Some(known) if known == compiler => None,
        Some(known) => Some(format!(
            "{FILE} has the counts of {known}, and this is {compiler}: record new ones by {RECORD}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_another_compiler_are_not_compared() {
        let recorded = r#"{"compiler": "rustc 1.95.0", "instructions": {}}"#;
        assert_eq!(reason(recorded, "rustc 1.95.0"), None);
        let other = reason(recorded, "rustc 1.96.0").unwrap();
        assert!(
            other.contains("the counts of rustc 1.95.0, and this is rustc 1.96.0: record new ones by cargo"),
            "{other}"
        );
        for none in ["", "{}", "no JSON"] {
            let why = reason(none, "rustc 1.95.0").unwrap();
            assert!(why.contains("has no counts: record them by cargo xtask"), "{none}: {why}");
        }
    }
}
