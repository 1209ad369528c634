//! Sorting by a number. The sort of the standard library is compiled again for every type and comparison, about 5 KB each. Here one is
//! compiled for `f64`, and one for pairs of a number and a place, which take 16 bytes for each item. Grouping keeps the order.

use std::collections::BTreeMap;

/// Sorts values in ascending order. Ordering is that of [`f64::total_cmp`], in all functions of this module.
pub fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
}

/// Sorts items by a value, in ascending order. Items of equal values keep their order.
pub fn sort_by_value<T>(items: &mut [T], mut value: impl FnMut(&T) -> f64) {
    sort_by_number(items, |item| {
        // As in `f64::total_cmp`: negative values are in the reverse order of their bits.
        let bits = value(item).to_bits().cast_signed();
        bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
    });
}

/// Sorts items by a number, in ascending order. Items of equal numbers keep their order.
pub fn sort_by_number<T>(items: &mut [T], mut number: impl FnMut(&T) -> i64) {
    let mut numbers: Vec<(i64, usize)> = Vec::with_capacity(items.len());
    items.iter().for_each(|item| numbers.push((number(item), numbers.len())));
    let mut from = sorted_places(numbers);
    // Each cycle of the permutation is followed once.
    for start in 0..from.len() {
        let mut at = start;
        loop {
            let next = std::mem::replace(&mut from[at], at);
            if next == start {
                break;
            }
            items.swap(at, next);
            at = next;
        }
    }
}

/// Returns the items, each once, in the order in which they are first.
pub fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    each_once_by(items, |one, other| one == other)
}

/// Returns the items, each once, as [`each_once`] does. `is_same` tells which items are one.
pub fn each_once_by<T>(items: impl IntoIterator<Item = T>, is_same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for item in items {
        if !once.iter().any(|known| is_same(known, &item)) {
            once.push(item);
        }
    }
    once
}

/// Groups items by their keys, in the order in which keys first appear.
pub fn grouped<K: Ord + Clone, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let (mut groups, mut places) = (Vec::<(K, Vec<T>)>::new(), BTreeMap::new());
    for (key, item) in items {
        let at = *places.entry(key.clone()).or_insert(groups.len());
        groups.resize_with(groups.len().max(at + 1), || (key.clone(), Vec::new()));
        groups[at].1.push(item);
    }
    groups
}

/// Returns the places of numbers in the order of the numbers, then of places.
fn sorted_places(mut numbers: Vec<(i64, usize)>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::order::*;

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn the_order_is_that_of_a_stable_sort(values in prop::collection::vec(
            prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), Just(f64::INFINITY)], 0..60,
        )) {
            let bits = |items: &[(f64, usize)]| items.iter().map(|(x, at)| (x.to_bits(), *at)).collect::<Vec<_>>();
            let items: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
            let (mut expected, mut sorted) = (items.clone(), items.clone());
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            sort_by_value(&mut sorted, |item| item.0);
            prop_assert_eq!(bits(&expected), bits(&sorted));

            let (mut expected, mut sorted) = (items.clone(), items);
            expected.sort_by(|a, b| b.0.total_cmp(&a.0));
            sort_by_value(&mut sorted, |item| -item.0);
            prop_assert_eq!(bits(&expected), bits(&sorted));
        }
    }

    #[test]
    fn items_of_equal_numbers_keep_their_order() {
        let mut items = vec![(2, 'a'), (i64::MIN, 'b'), (2, 'c'), (i64::MAX, 'd'), (1, 'e'), (2, 'f')];
        sort_by_number(&mut items, |item| item.0);
        assert_eq!(items.iter().map(|item| item.1).collect::<String>(), "beacfd");
    }

    #[test]
    fn groups_have_the_order_in_which_they_appear() {
        let groups = grouped([('b', 1), ('a', 2), ('b', 3), ('c', 4)]);
        assert_eq!(groups, [('b', vec![1, 3]), ('a', vec![2]), ('c', vec![4])]);
    }
}
