//! Sets of host names in the notation of ClusterShell and Slurm: `n[01-16,20]`, and `n[01-16],!n07` without one of them.
//!
//! ```
//! use ombx_host::node_set::{expand, fold};
//!
//! assert_eq!(expand("n[08-10],login")?, ["n08", "n09", "n10", "login"]);
//! assert_eq!(expand("n[08-10],!n09")?, ["n08", "n10"]);
//! assert_eq!(fold(["n10", "n08", "login", "n09"]), "login,n[08-10]");
//! # Ok::<(), ombx_record::error::Error>(())
//! ```

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use ombx_record::error::{Error, Result};

/// Maximum number of names of a set.
const MOST_NAMES: usize = 1 << 20;
/// Maximum number of digits of an index.
const MOST_DIGITS: usize = 18;

/// Returns the names of a set in the order in which they are written, each as often as it is written.
///
/// Each pair of brackets holds ranges that are separated by commas: `2`, `01-16`, or `0-9/3` for every third number. Several
/// pairs stand for all combinations. Brackets with a colon belong to an address of IPv6 and stay. An element behind `!` removes its
/// names from the whole list, with their numbers of ranks (`n07:4`).
///
/// # Errors
/// Usage error: brackets or a range are malformed, an element is empty, there are more than 1,048,576 names, a removed name is not in the
/// list, or no name is left.
pub fn expand(text: &str) -> Result<Vec<String>> {
    let wrong = |why: &str| {
        Error::usage(format!("{text:?} is not a list of hosts: {why}. Write it as n01,n02 or n[01-16,20]"))
    };
    let (mut names, mut removed) = (Vec::new(), BTreeSet::new());
    for element in elements(text) {
        match element.strip_prefix('!') {
            Some(element) => removed.extend(expand_one(element, MOST_NAMES).map_err(wrong)?),
            None => names.extend(expand_one(element, MOST_NAMES - names.len()).map_err(wrong)?),
        }
    }
    let listed: BTreeSet<&str> = names.iter().map(|name| without_ranks(name)).collect();
    if let Some(name) = removed.iter().find(|name| !listed.contains(name.as_str())) {
        return Err(Error::usage(format!(
            "{text:?}: !{name} removes a host that the list does not name. Leave it out, or correct the name"
        )));
    }
    names.retain(|name| !removed.contains(without_ranks(name)));
    if names.is_empty() {
        return Err(Error::usage(format!("{text:?} leaves no host: name one that is not removed by `!`")));
    }
    Ok(names)
}

/// Returns a name without its number of ranks, as in `n01:4` or `n01*4`.
fn without_ranks(name: &str) -> &str {
    let split = name.rsplit_once([':', '*']).filter(|(host, ranks)| {
        !host.is_empty() && !host.contains(':') && ranks.bytes().all(|byte| byte.is_ascii_digit())
    });
    split.map_or(name, |(host, _)| host)
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
enum ElementPart<'a> {
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
            ElementPart::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            ElementPart::Ranges(text) => {
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
fn parts(element: &str) -> Parsed<Vec<ElementPart<'_>>> {
    let (mut parts, mut rest) = (Vec::new(), element);
    while let Some((text, after)) = rest.split_once('[') {
        let (content, after) = after.split_once(']').ok_or("a bracket is not closed")?;
        if text.contains(']') || content.contains('[') {
            return Err("its brackets do not match");
        }
        let whole = &rest[..rest.len() - after.len()];
        if content.contains(':') {
            parts.push(ElementPart::Text(whole));
        } else {
            if after.starts_with('[') {
                return Err("two pairs of brackets have no text between them");
            }
            parts.extend([ElementPart::Text(text), ElementPart::Ranges(content)]);
        }
        rest = after;
    }
    if rest.contains(']') {
        return Err("its brackets do not match");
    }
    parts.push(ElementPart::Text(rest));
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

/// Index with its leading zeros, ordered by length, then by value.
type Index<'n> = (usize, &'n str);
/// Indices of one dimension.
type Indices<'n> = BTreeSet<Index<'n>>;
/// Indices of each dimension: all combinations.
type Box<'n> = Vec<Indices<'n>>;

/// Returns the notation of a set of names. Names that occur several times count once.
pub fn fold<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut patterns: BTreeMap<String, BTreeSet<Vec<Index<'n>>>> = BTreeMap::new();
    for name in names {
        let (pattern, indices) = dimensions(name);
        patterns.entry(pattern).or_default().insert(indices);
    }
    let each =
        patterns.iter().flat_map(|(pattern, points)| boxes(points).into_iter().map(|of| text(pattern, &of)));
    each.collect::<Vec<_>>().join(",")
}

/// Place of an index in a pattern; no host name has this character.
const PLACE: char = '\0';

/// Splits a name into its pattern and its indices.
fn dimensions(name: &str) -> (String, Vec<Index<'_>>) {
    let (mut pattern, mut indices, mut rest) = (String::new(), Vec::new(), name);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (run, after) = rest.split_at(digits);
        if (1..=MOST_DIGITS).contains(&digits) {
            pattern.push(PLACE);
            indices.push((digits, run));
        } else {
            pattern.push_str(run);
        }
        let text = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        pattern.push_str(&after[..text]);
        rest = &after[text..];
    }
    (pattern, indices)
}

/// Joins points to boxes, the largest first.
fn boxes<'n>(points: &BTreeSet<Vec<Index<'n>>>) -> Vec<Box<'n>> {
    let single =
        |point: &Vec<Index<'n>>| point.iter().map(|index| BTreeSet::from([*index])).collect::<Box<'n>>();
    let mut all: Vec<Box<'n>> = points.iter().map(single).collect();
    let dimensions = all.first().map_or(0, Vec::len);
    let varies = |at: &usize| all.iter().any(|of| of[*at] != all[0][*at]);
    let varying: Vec<usize> = (0..dimensions).filter(varies).collect();
    if let [one] = varying[..] {
        let mut first = all.swap_remove(0);
        first[one].extend(all.iter().flat_map(|of| &of[one]));
        return vec![first];
    }
    // Neighbours in the order of boxes are tried until nothing changes, then all pairs.
    let mut reach = 1;
    while join(&mut all, reach) || std::mem::replace(&mut reach, usize::MAX) == 1 {}
    all
}

/// Joins boxes with those of the next `reach` in one pass, and returns whether it did.
fn join(all: &mut Vec<Box<'_>>, reach: usize) -> bool {
    all.sort_by_cached_key(|of| {
        let size: usize = of.iter().map(BTreeSet::len).product();
        let text = |index: Option<&Index<'_>>| index.map(|(_, digits)| (*digits).to_owned());
        let each = of.iter().map(|of| (Reverse(of.len()), text(of.first()), text(of.last())));
        (Reverse(size), each.collect::<Vec<_>>())
    });
    let (mut changed, mut at) = (false, 0);
    while at + 1 < all.len() {
        let mut next = at + 1;
        while next < all.len() && next - at <= reach {
            match joined(&all[at], &all[next]) {
                Some(of_both) => {
                    all[at] = of_both;
                    all.remove(next);
                    changed = true;
                }
                None => next += 1,
            }
        }
        at += 1;
    }
    changed
}

/// Returns the box of two that differ in at most one dimension, in which they have no index in common or one contains the other.
fn joined<'n>(one: &Box<'n>, other: &Box<'n>) -> Option<Box<'n>> {
    let mut differing = one.iter().zip(other).enumerate().filter(|(_, (a, b))| a != b);
    let Some((at, (a, b))) = differing.next() else { return Some(one.clone()) };
    let is_simple = a.is_disjoint(b) || a.is_subset(b) || a.is_superset(b);
    (is_simple && differing.next().is_none()).then(|| {
        let mut both = one.clone();
        both[at].extend(b);
        both
    })
}

/// Returns the notation of a box.
fn text(pattern: &str, of: &Box<'_>) -> String {
    let mut dimensions = of.iter();
    let mut text = String::new();
    for c in pattern.chars() {
        match dimensions.as_slice().first().filter(|_| c == PLACE) {
            Some(indices) => {
                dimensions.next();
                let ranges = ranges(indices);
                let _ = if indices.len() > 1 { write!(text, "[{ranges}]") } else { write!(text, "{ranges}") };
            }
            None => text.push(c),
        }
    }
    text
}

/// Range of consecutive indices.
struct Range<'n> {
    first: &'n str,
    last: &'n str,
    /// Whether all of its indices have the length of the first, since an earlier one has leading zeros.
    is_padded: bool,
    width: usize,
}

impl Range<'_> {
    /// Returns the notation of the range.
    fn text(&self) -> String {
        if self.first == self.last { self.first.to_owned() } else { format!("{}-{}", self.first, self.last) }
    }
}

/// Returns the ranges of indices, separated by commas.
fn ranges(indices: &Indices<'_>) -> String {
    let value = |digits: &str| digits.parse::<u64>().unwrap_or(u64::MAX);
    let mut ranges: Vec<Range<'_>> = Vec::new();
    for (width, digits) in indices {
        let (width, has_zeros) = (*width, *width > 1 && digits.starts_with('0'));
        let new = |is_padded| Range { first: digits, last: digits, is_padded, width };
        match ranges.last_mut() {
            Some(range) if range.is_padded && range.width != width || !range.is_padded && has_zeros => {
                ranges.push(new(has_zeros));
            }
            Some(range) if value(range.last) + 1 == value(digits) => range.last = digits,
            // A number after a gap that follows a single one keeps its width.
            Some(range) => {
                let is_padded = if range.first == range.last { range.is_padded } else { has_zeros };
                ranges.push(new(is_padded));
            }
            None => ranges.push(new(has_zeros)),
        }
    }
    ranges.iter().map(Range::text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use crate::node_set::*;

    #[test]
    fn names_keep_their_order_and_their_zeros() {
        let of = |text: &str| expand(text).unwrap().join(" ");
        assert_eq!(of("n[08-11],a,n[1,3]"), "n08 n09 n10 n11 a n1 n3");
        assert_eq!(of("r[1-2]n[2-1]".replace("2-1", "1-2").as_str()), "r1n1 r1n2 r2n1 r2n2");
        assert_eq!(of("me@n[1-2].x:4"), "me@n1.x:4 me@n2.x:4");
        assert_eq!(of("n[0-9/3]"), "n0 n3 n6 n9");
        assert_eq!(of("[::1],[fe80::1]:4"), "[::1] [fe80::1]:4");
        assert_eq!(elements("a[1,2],b").collect::<Vec<_>>(), ["a[1,2]", "b"]);
    }

    #[test]
    fn an_element_behind_an_exclamation_mark_removes_its_names() {
        let of = |text: &str| expand(text).unwrap().join(" ");
        assert_eq!(of("n[01-04],!n03"), "n01 n02 n04");
        assert_eq!(of("!n[2-3],n[1-4],x"), "n1 n4 x");
        assert_eq!(of("n[1-3]:4,n4*2,!n2,!n4"), "n1:4 n3:4");
        assert_eq!(of("fe80::1,fe80::2,!fe80::2"), "fe80::1");
        for (text, part) in [
            ("n[1-4],!n7", "!n7 removes a host that the list does not name"),
            ("n[1-4],!n[4-5]", "!n5 removes"),
            ("n1,!n1", "leaves no host"),
            ("n1,!", "an element is empty"),
        ] {
            let error = expand(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
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

#[cfg(test)]
mod fold_tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::node_set::{expand, *};

    /// Sets as they are typed, as ClusterShell folds them, and their names in the order of text. ClusterShell 1.9.1 wrote them.
    const CASES: &str = include_str!("node_set/cases.tsv");

    #[test]
    fn clustershell_expands_and_folds_the_same() {
        let mut count = 0;
        for line in CASES.lines() {
            let [typed, folded, names] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
            let expanded: BTreeSet<String> = expand(typed).unwrap().into_iter().collect();
            let expected: BTreeSet<String> = names.split(' ').map(str::to_owned).collect();
            assert_eq!(expanded, expected, "{typed}");
            assert_eq!(fold(expanded.iter().map(String::as_str)), folded, "{typed}");
            count += 1;
        }
        assert!(count > 700, "{count} cases");
    }

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn what_is_folded_expands_to_the_same_names(
            names in prop::collection::btree_set("[a-c]{1,2}[0-9]{0,3}(-[0-2]{1,2})?[x.]?", 1..40)
        ) {
            let folded = fold(names.iter().map(String::as_str));
            let expanded: Vec<String> = expand(&folded).unwrap();
            prop_assert_eq!(expanded.len(), names.len(), "{}", folded);
            prop_assert_eq!(expanded.into_iter().collect::<BTreeSet<_>>(), names);
        }
    }

    #[test]
    fn unusual_names_stay_as_they_are() {
        for name in ["login", "1", "n123456789012345678901234567890", "fe80::1%eth0", "me@host"] {
            assert_eq!(fold([name]), name);
        }
        assert_eq!(fold(["n1", "n1"]), "n1");
        assert_eq!(fold([]), "");
    }

    #[test]
    fn racks_of_hosts_fold_in_two_dimensions() {
        let names: Vec<String> =
            (0..40).flat_map(|rack| (0..50).map(move |n| format!("r{rack:02}n{n:02}"))).collect();
        assert_eq!(fold(names.iter().map(String::as_str)), "r[00-39]n[00-49]");
    }
}
