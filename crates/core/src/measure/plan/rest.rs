//! The rest of a plan: what is left to measure after cases that have ended their ranks.

use std::{collections::BTreeSet, fmt, str::FromStr};

use crate::error::{Error, Result};

/// What new ranks measure after earlier ones have ended early. Without fields, the whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest {
    /// Number of the first benchmark in the order of the launch, from 0.
    pub first: usize,
    /// Last case of this benchmark that is done.
    pub after: Option<RowName>,
    /// Run that is continued.
    pub run: Option<String>,
    /// Cases that have ended their ranks, and benchmarks of which no further case is tried.
    pub left_out: BTreeSet<RowName>,
}

impl Rest {
    /// Returns whether a row is left out.
    pub fn leaves_out(&self, key: &str) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&RowName::new(key))
    }

    /// Returns what the rest of a later launch is: everything but what is left out.
    #[must_use]
    pub fn of_next_launch(&self) -> Rest {
        Rest { left_out: self.left_out.clone(), ..Rest::default() }
    }
}

/// 64 bits that identify the key of a row: the rest of a plan is an argument of every rank. Method: FNV-1a.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowName(u64);

impl RowName {
    /// Returns the name of the row with this key.
    pub fn new(key: &str) -> RowName {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        RowName(key.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }
}

/// Writes `2/case/run/case,case`: number, last case, run, and what is left out. Cases are hexadecimal numbers, and may be absent.
impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rest { first, after, run, left_out } = self;
        let after = after.map(|name| format!("{:x}", name.0)).unwrap_or_default();
        let left_out: Vec<String> = left_out.iter().map(|name| format!("{:x}", name.0)).collect();
        write!(f, "{first}/{after}/{}/{}", run.as_deref().unwrap_or_default(), left_out.join(","))
    }
}

impl FromStr for Rest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Rest> {
        let name = |text: &str| u64::from_str_radix(text, 16).ok().map(RowName);
        let parts: Vec<&str> = text.split('/').collect();
        let read = || {
            let [first, after, run, left_out] = parts[..] else { return None };
            let after = if after.is_empty() { None } else { Some(name(after)?) };
            let names = left_out.split(',').filter(|text| !text.is_empty());
            let run = Some(run.to_owned()).filter(|run| !run.is_empty());
            Some(Rest {
                first: first.parse().ok()?,
                after,
                run,
                left_out: names.map(name).collect::<Option<_>>()?,
            })
        };
        read().ok_or_else(|| Error::usage(format!("the rest {text:?} is not number/case/run/case,..")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_printed_and_parsed() {
        let names = |keys: &[&str]| keys.iter().map(|key| RowName::new(key)).collect();
        let left_out: BTreeSet<RowName> = names(&["collective.scan/bytes=8", "p2p.latency/"]);
        let after = Some(RowName::new("p2p.bw/bytes=8,depth=64"));
        for rest in [
            Rest::default(),
            Rest { left_out: left_out.clone(), ..Rest::default() },
            Rest { first: 3, after, run: Some("a-1".into()), left_out },
        ] {
            assert_eq!(rest.to_string().parse::<Rest>().unwrap(), rest);
        }
        for text in ["", "1", "1//", "x///", "1/z//", "1///x", "1////"] {
            assert!(text.parse::<Rest>().is_err(), "{text}");
        }
    }

    #[test]
    fn rows_are_left_out_by_their_keys() {
        let rest = Rest { first: 2, left_out: [RowName::new("a/")].into(), ..Rest::default() };
        assert!(rest.leaves_out("a/") && !rest.leaves_out("a/bytes=8"));
        assert_eq!(rest.of_next_launch(), Rest { first: 0, ..rest });
        assert!(!Rest::default().leaves_out(""));
    }
}
