//! Folding compared with ClusterShell, and round trips.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::system::node_set::expand;

/// Sets as they are typed, as ClusterShell folds them, and their names in the order of text. ClusterShell 1.9.1 wrote them.
const CASES: &str = include_str!("../cases.tsv");

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
    #![proptest_config(crate::testkit::seeded())]
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
