//! What a process of ombx tells another one that it starts for a job: a hidden argument, beside the words of the user.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    str::FromStr,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ombx_core::{
    error::{Error, Result},
    measure::plan::{KnownBatches, Launch, Rest},
};
use serde::{Deserialize, Serialize};

use crate::job::RankKind;

/// Start of the argument.
const ROLE: &str = "--role=";
/// Start of the argument of the ranks of a sweep: groups of hosts that the launching process has read, as one line.
pub(crate) const GROUPING: &str = "--grouping=";
/// Maximum length of batches in JSON. They become four thirds as long: 80 KiB of the 128 KiB that Linux allows for an argument.
const LONGEST_BATCHES: usize = 60 << 10;

/// Role of a process in a job, and its part of the job. `ombx ab` starts other builds: a field that one does not know is ignored, and one
/// that it does not get has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    /// Kind of the ranks that this process coordinates, or of which it is one. `None` if no process of ombx has started it as such.
    pub(crate) kind: Option<RankKind>,
    /// Number and order of this launch among several.
    pub(crate) launch: Option<Launch>,
    /// Time of each row in this launch.
    pub(crate) row_time: Option<Duration>,
    /// Iterations per sample of each row in this launch.
    pub(crate) batches: KnownBatches,
    /// What is left to measure after cases that have ended their ranks.
    pub(crate) rest: Rest,
    /// Half the round trip of a cache line between two cores of the host.
    pub(crate) core_to_core_ns: Option<f64>,
    /// Number of ranks of the job.
    pub(crate) ranks: Option<u32>,
}

impl Role {
    /// Returns the argument of a process in this role. Batches for which it has no room are left out.
    pub(crate) fn argument(&self) -> OsString {
        let fits = json(&self.batches).len() <= LONGEST_BATCHES;
        let batches = if fits { self.batches.clone() } else { KnownBatches::default() };
        format!("{ROLE}{}", Role { batches, ..self.clone() }).into()
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Writes JSON in Base64, whose letters launchers and shells pass on as they are.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(json(self)))
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Role> {
        let json = URL_SAFE_NO_PAD.decode(text).ok();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
            Error::usage("only another ombx gives a role: install the same build on every host")
        })
    }
}

/// Returns whether another process of ombx added this argument.
pub(crate) fn is_internal(argument: &OsStr) -> bool {
    [ROLE, GROUPING].iter().any(|start| argument.as_encoded_bytes().starts_with(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Medium, Threading},
        measure::plan::RowName,
    };

    use super::*;

    #[test]
    fn a_role_is_read_as_it_was_written() {
        let mut batches = KnownBatches::default();
        batches.insert("p2p.latency/bytes=8", 25);
        let role = Role {
            kind: Some(RankKind { medium: Medium::Mpi, threading: Threading::Multiple }),
            launch: Some(Launch { number: 2, of: 5, order: 42 }),
            row_time: Some(Duration::from_micros(1500)),
            batches,
            rest: Rest {
                first: 3,
                after: Some(RowName::new("p2p.bw/bytes=8")),
                run: Some("a-1".into()),
                left_out: [RowName::new("p2p.latency/")].into(),
            },
            core_to_core_ns: Some(51.25),
            ranks: Some(4),
        };
        for role in [Role::default(), role] {
            let argument = role.argument().into_string().unwrap();
            assert!(is_internal(argument.as_ref()) && !is_internal("--roles=1".as_ref()));
            let text = argument.strip_prefix(ROLE).unwrap();
            assert_eq!(text.parse::<Role>().unwrap(), role);
            assert!((0..text.len()).all(|cut| text[..cut].parse::<Role>().is_err()));
        }
        assert!(["", "x", "records", "ü"].iter().all(|text| text.parse::<Role>().is_err()));
    }

    #[test]
    fn another_build_may_have_other_fields() {
        let argument = URL_SAFE_NO_PAD.encode(r#"{"ranks":4,"of_a_later_build":[1]}"#);
        assert_eq!(argument.parse::<Role>().unwrap(), Role { ranks: Some(4), ..Role::default() });
    }

    #[test]
    fn an_argument_has_a_length_that_launchers_pass_on() {
        let mut role = Role { ranks: Some(2), ..Role::default() };
        (0..9000).for_each(|row| role.batches.insert(&row.to_string(), 1000));
        let argument = role.argument().into_string().unwrap();
        let read: Role = argument.strip_prefix(ROLE).unwrap().parse().unwrap();
        assert_eq!(read, Role { ranks: Some(2), ..Role::default() });
    }
}
