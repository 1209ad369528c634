//! Choice by a part of a name, which must choose something.

use crate::failure::{Failure, Result};

/// Returns the elements whose names contain a part.
///
/// # Errors
/// No name contains it. The sentence lists all names.
pub fn named<T>(
    all: impl IntoIterator<Item = T>,
    part: &str,
    what: &str,
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>> {
    let (chosen, others): (Vec<T>, Vec<T>) = all.into_iter().partition(|one| name(one).contains(part));
    if chosen.is_empty() {
        let names: Vec<String> = others.iter().map(name).collect();
        return Err(Failure::Usage(format!(
            "no {what} has {part:?} in its name; names are: {}",
            names.join(", ")
        )));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_no_name_contains_is_refused() {
        let named = |part| named(["alpha", "beta"], part, "letter", |name| (*name).to_owned());
        assert_eq!(named("et").unwrap(), ["beta"]);
        assert_eq!(named("").unwrap(), ["alpha", "beta"]);
        let refused = named("gamma").unwrap_err().to_string();
        assert_eq!(refused, "no letter has \"gamma\" in its name; names are: alpha, beta");
    }
}
