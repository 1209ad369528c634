//! The name that a mistyped word probably means.

/// Longer words are not taken for mistyped names.
const LONGEST_NAME: usize = 64;

/// Returns the most similar name, unless more than half of its letters differ.
pub(super) fn name<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if wrong.len() > LONGEST_NAME {
        return None;
    }
    let scored = names.map(|name| (strsim::damerau_levenshtein(name, wrong), name));
    scored.min().filter(|(errors, _)| *errors <= (wrong.len() / 2).max(2)).map(|(_, name)| name)
}
