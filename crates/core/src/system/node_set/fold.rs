//! Folding: the shortest notation of a set of names, as ClusterShell writes it.
//!
//! Every run of digits in a name is a dimension. Names that differ in one dimension share ranges. In several dimensions,
//! boxes that differ in one are joined until no two can be (RangeSetND of ClusterShell 1.9).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::MOST_DIGITS;

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
    let mut all_pairs = false;
    while join(&mut all, all_pairs) || !std::mem::replace(&mut all_pairs, true) {}
    all
}

/// Joins boxes with later ones in one pass, and returns whether it did.
fn join(all: &mut Vec<Box<'_>>, all_pairs: bool) -> bool {
    all.sort_by_cached_key(|of| {
        let size: usize = of.iter().map(BTreeSet::len).product();
        let text = |index: Option<&Index<'_>>| index.map(|(_, digits)| (*digits).to_owned());
        let each = of.iter().map(|of| (Reverse(of.len()), text(of.first()), text(of.last())));
        (Reverse(size), each.collect::<Vec<_>>())
    });
    let (mut changed, mut at) = (false, 0);
    while at + 1 < all.len() {
        let mut next = at + 1;
        while next < all.len() {
            match joined(&all[at], &all[next]) {
                Some(of_both) => {
                    all[at] = of_both;
                    all.remove(next);
                    changed = true;
                }
                None if all_pairs => next += 1,
                None => break,
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
    let text = |range: &Range<'_>| match range.first == range.last {
        true => range.first.to_owned(),
        false => format!("{}-{}", range.first, range.last),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
