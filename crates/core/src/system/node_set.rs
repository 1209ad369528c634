//! Sets of host names in the notation of ClusterShell and Slurm: `n[01-16,20]`.
//!
//! ```
//! use ombx_core::system::node_set::{expand, fold};
//!
//! assert_eq!(expand("n[08-10],login")?, ["n08", "n09", "n10", "login"]);
//! assert_eq!(fold(["n10", "n08", "login", "n09"]), "login,n[08-10]");
//! # Ok::<(), ombx_core::error::Error>(())
//! ```

mod fold;

pub use self::fold::fold;

use crate::error::{Error, Result};

/// Maximum number of names of a set.
const MOST_NAMES: usize = 1 << 20;
/// Maximum number of digits of an index.
pub(super) const MOST_DIGITS: usize = 18;

/// Returns the names of a set in the order in which they are written, each as often as it is written.
///
/// Each pair of brackets holds ranges that are separated by commas: `2`, `01-16`, or `0-9/3` for every third number. Several
/// pairs stand for all combinations. Brackets with a colon belong to an address of IPv6 and stay.
///
/// # Errors
/// Usage error: brackets or a range are malformed, an element is empty, or there are more than 1,048,576 names.
pub fn expand(text: &str) -> Result<Vec<String>> {
    let wrong = |why: &str| {
        Error::usage(format!("{text:?} is not a list of hosts: {why}. Write it as n01,n02 or n[01-16,20]"))
    };
    let mut names = Vec::new();
    for element in elements(text) {
        names.extend(expand_one(element, MOST_NAMES - names.len()).map_err(wrong)?);
    }
    Ok(names)
}

/// Returns whether a text has a range in brackets.
pub fn has_range(text: &str) -> bool {
    parts(text).is_ok_and(|parts| parts.iter().any(|part| matches!(part, Part::Ranges(_))))
}

/// Splits a list at the commas outside brackets.
pub fn elements(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split(move |c| {
        inside = if inside { c != ']' } else { c == '[' };
        c == ',' && !inside
    })
}

/// Part of an element.
enum Part<'a> {
    Text(&'a str),
    /// Content of brackets.
    Ranges(&'a str),
}

type Parsed<T> = std::result::Result<T, &'static str>;

/// Returns the names of one element of a list, at most `most`.
fn expand_one(element: &str, most: usize) -> Parsed<Vec<String>> {
    if element.is_empty() {
        return Err("an element is empty");
    }
    let mut names = vec![String::new()];
    for part in parts(element)? {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            Part::Ranges(text) => {
                let indices = indices(text)?;
                if names.len().saturating_mul(indices.len()) > most {
                    return Err("it has too many names");
                }
                let longer =
                    |name: &String| indices.iter().map(|index| format!("{name}{index}")).collect::<Vec<_>>();
                names = names.iter().flat_map(longer).collect();
            }
        }
    }
    if names.len() > most { Err("it has too many names") } else { Ok(names) }
}

/// Splits an element into its texts and its brackets.
fn parts(element: &str) -> Parsed<Vec<Part<'_>>> {
    let (mut parts, mut rest) = (Vec::new(), element);
    while let Some((text, after)) = rest.split_once('[') {
        let (content, after) = after.split_once(']').ok_or("a bracket is not closed")?;
        if text.contains(']') || content.contains('[') {
            return Err("its brackets do not match");
        }
        let whole = &rest[..rest.len() - after.len()];
        if content.contains(':') {
            parts.push(Part::Text(whole));
        } else {
            if after.starts_with('[') {
                return Err("two pairs of brackets have no text between them");
            }
            parts.extend([Part::Text(text), Part::Ranges(content)]);
        }
        rest = after;
    }
    if rest.contains(']') {
        return Err("its brackets do not match");
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Returns the numbers of ranges with their leading zeros.
fn indices(ranges: &str) -> Parsed<Vec<String>> {
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (range, step) = match range.split_once('/') {
            Some((range, step)) if range.contains('-') => (range, number(step)?),
            Some(_) => return Err("a single number has a step"),
            None => (range, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
        let (from, to) = (number(first)?, number(last)?);
        let width = if is_padded(first) || is_padded(last) { first.len() } else { 0 };
        if width > 0 && first.len() != last.len() {
            return Err("the ends of a range with leading zeros have different lengths");
        }
        if from > to || step == 0 {
            return Err("a range runs backwards, or its step is 0");
        }
        if (to - from) / step >= (MOST_NAMES - all.len()) as u64 {
            return Err("it has too many names");
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        all.extend((from..=to).step_by(step).map(|index| format!("{index:0width$}")));
    }
    Ok(all)
}

fn number(digits: &str) -> Parsed<u64> {
    let is_number =
        !digits.is_empty() && digits.len() <= MOST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().ok_or("the ends of a range are numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_their_zeros() {
        let of = |text: &str| expand(text).unwrap().join(" ");
        assert_eq!(of("n[08-11],a,n[1,3]"), "n08 n09 n10 n11 a n1 n3");
        assert_eq!(of("r[1-2]n[2-1]".replace("2-1", "1-2").as_str()), "r1n1 r1n2 r2n1 r2n2");
        assert_eq!(of("me@n[1-2].x:4"), "me@n1.x:4 me@n2.x:4");
        assert_eq!(of("n[0-9/3]"), "n0 n3 n6 n9");
        assert_eq!(of("[::1],[fe80::1]:4"), "[::1] [fe80::1]:4");
        assert!(has_range("a,n[1-2]") && !has_range("a,[::1]"));
        assert_eq!(elements("a[1,2],b").collect::<Vec<_>>(), ["a[1,2]", "b"]);
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in [
            "",
            "a,,b",
            "a,",
            ",a",
            "n[",
            "n]",
            "n[1",
            "n[]",
            "n[1-]",
            "n[-1]",
            "n[1--2]",
            "n[2-1]",
            "n[a]",
            "n[1-2][3-4]",
            "n[09-0010]",
            "n[1-010]",
            "n[[1]]",
            "n[1]]",
            "n[1/2]",
            "n[1-4/0]",
            "n[1-4/]",
            "n[ 1]",
            "n[1-9999999]",
            "n[1-1025]m[1-1024]",
            "n[1-9999999999999999999]",
            "n[+1]",
            "n[1-524288],n[1-524289]",
        ] {
            assert!(expand(text).is_err(), "{text}");
        }
        assert_eq!(expand("n[1-1024]m[1-1024]").unwrap().len(), 1 << 20);
        assert_eq!(expand("n[1-999999999999999999/99999999999999999]").unwrap().len(), 11);
    }
}
