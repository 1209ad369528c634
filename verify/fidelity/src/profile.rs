//! Profile of callgrind: instructions of one program without libraries, and its calls of libraries.

use std::{collections::BTreeMap, path::Path};

/// Instructions and calls of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    /// Instructions of each function of the program, without its callees.
    pub(crate) own: BTreeMap<String, u64>,
    /// Calls of functions of other objects, by function.
    pub(crate) calls: BTreeMap<String, Calls>,
}

/// Calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) number: u64,
    /// Instructions until they returned.
    pub(crate) instructions: u64,
}

/// Names by number: the file has `(7) name` once and then `(7)`.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn resolve(&mut self, word: &str) -> String {
        let Some((number, name)) = word.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return word.to_owned();
        };
        if !name.trim().is_empty() {
            self.0.insert(number.to_owned(), name.trim().to_owned());
        }
        self.0.get(number).cloned().unwrap_or_default()
    }
}

impl Profile {
    /// Parses a callgrind file (format version 1, one event) for the program with this path.
    pub(crate) fn parse(text: &str, program: &str) -> Self {
        let is_ours = |object: &str| {
            object == program || Path::new(object).file_name() == Path::new(program).file_name()
        };
        let (mut objects, mut functions) = (Names::default(), Names::default());
        let (mut object, mut function) = (String::new(), String::new());
        let mut callee: (Option<String>, String) = (None, String::new());
        // The line after `calls=` is the cost of the callee.
        let (mut in_call, mut leaving) = (false, None);
        let mut profile = Self::default();
        for line in text.lines() {
            if let Some((key, value)) =
                line.split_once('=').filter(|(key, _)| key.chars().all(char::is_alphabetic))
            {
                match key {
                    "ob" => object = objects.resolve(value),
                    "fn" => function = functions.resolve(value),
                    "cob" => callee.0 = Some(objects.resolve(value)),
                    "cfn" => callee.1 = functions.resolve(value),
                    "calls" => {
                        let target = callee.0.take().unwrap_or_else(|| object.clone());
                        let count = value.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
                        leaving = (is_ours(&object) && !is_ours(&target)).then(|| callee.1.clone());
                        if let Some(call) = &leaving {
                            profile.calls.entry(call.clone()).or_default().number += count;
                        }
                        in_call = true;
                    }
                    _ => {}
                }
            } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
                let cost = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                if !in_call && cost > 0 && is_ours(&object) {
                    *profile.own.entry(function.clone()).or_insert(0) += cost;
                }
                if let Some(call) = leaving.take() {
                    profile.calls.entry(call).or_default().instructions += cost;
                }
                in_call = false;
            }
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
version: 1
cmd:  /x/ombx run a=b
positions: line
events: Ir
summary: 900

ob=(2) /lib/libmpi.so
fl=(1) ???
fn=(5) MPI_Send
0 500
cob=(9) /x/ombx
cfn=(8) callback
calls=1 0
0 40

ob=(9)
fl=(3) engine.rs
fn=(6) timed
38 10
+3 20
fi=(4) epoch.rs
* 7
cob=(2)
cfi=(1)
cfn=(5)
calls=21 0
0 540
cob=(2)
cfn=(5)
calls=2 0
* 60
fe=(3)
-2 3
cfn=(7) helper
calls=4 12
38 400

fn=(7)
50 400
";

    #[test]
    fn own_cost_leaves_out_callees_and_other_objects() {
        let profile = Profile::parse(FILE, "/x/ombx");
        let own = BTreeMap::from([("timed".to_owned(), 40), ("helper".to_owned(), 400)]);
        assert_eq!(profile.own, own);
    }

    #[test]
    fn only_calls_that_leave_the_program_are_counted() {
        let profile = Profile::parse(FILE, "/x/ombx");
        let sends = Calls { number: 23, instructions: 600 };
        assert_eq!(profile.calls, BTreeMap::from([("MPI_Send".to_owned(), sends)]));
    }

    #[test]
    fn another_program_has_an_empty_profile() {
        assert_eq!(Profile::parse(FILE, "/x/reference"), Profile::default());
    }
}
