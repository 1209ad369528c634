//! What runs on other ranks of the job while a benchmark is measured.

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, Result},
    unit::Bytes,
};

/// Word for no load.
const NOTHING: &str = "nothing";
/// Message size of congestors, as in GPCNeT.
const USUAL_BYTES: Bytes = Bytes(4096);

/// Load on the ranks that are not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Under {
    /// None: they sleep.
    Nothing,
    /// A benchmark that they repeat.
    Congestor(Congestor),
}

/// A benchmark that is repeated as load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Congestor {
    /// Name of the benchmark.
    pub bench: String,
    /// Message size.
    pub bytes: Bytes,
}

impl Under {
    /// End of the name of a load that is measured for the second time.
    pub const AGAIN: &str = "-again";
    /// Minimum number of ranks that are kept for the load.
    pub const LEAST_RANKS: u32 = 2;
}

/// Reads `nothing`, `p2p.bw` or `p2p.bw:64K`.
impl FromStr for Under {
    type Err = Error;

    fn from_str(text: &str) -> Result<Under> {
        let (bench, bytes) = match text.split_once(':') {
            _ if text == NOTHING => return Ok(Under::Nothing),
            Some((bench, bytes)) => (bench, bytes.parse()?),
            None => (text, USUAL_BYTES),
        };
        match bench {
            "" => Err(Error::usage(format!(
                "load {text:?} is not nothing, a benchmark, or a benchmark and a size such as p2p.bw:64K"
            ))),
            _ => Ok(Under::Congestor(Congestor { bench: bench.into(), bytes })),
        }
    }
}

impl fmt::Display for Under {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Under::Nothing => f.write_str(NOTHING),
            Under::Congestor(Congestor { bench, bytes }) => write!(f, "{bench}:{bytes}"),
        }
    }
}

/// Returns the names of loads in rows: of two equal ones, the second has [`Under::AGAIN`] after its name.
pub fn load_names(loads: &[Under]) -> Vec<String> {
    let name = |(at, load): (usize, &Under)| match loads[..at].contains(load) {
        true => format!("{load}{}", Under::AGAIN),
        false => load.to_string(),
    };
    loads.iter().enumerate().map(name).collect()
}

/// Checks a list of loads.
///
/// # Errors
/// Usage error for a load that is named three times: rows could not be distinguished.
pub fn check_loads(loads: &[Under]) -> Result<()> {
    let often = |load: &&Under| loads.iter().filter(|other| other == load).count() > 2;
    match loads.iter().find(often) {
        Some(load) => Err(Error::usage(format!("{load} is measured more than twice: name it at most twice"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Under> {
        text.split(',').map(|load| load.parse().unwrap()).collect()
    }

    #[test]
    fn loads_are_read_and_named() {
        let loads = read("nothing,p2p.bw,collective.alltoall:64K,nothing");
        assert_eq!(load_names(&loads), ["nothing", "p2p.bw:4K", "collective.alltoall:64K", "nothing-again"]);
        check_loads(&loads).unwrap();
        assert!(check_loads(&read("nothing,p2p.bw,nothing,nothing")).is_err());
        for text in ["", ":4K", "p2p.bw:", "p2p.bw:x"] {
            assert!(text.parse::<Under>().is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn any_text_is_read_and_printed_or_refused(text in "[a-z.:0-9KM]{0,12}") {
            if let Ok(load) = text.parse::<Under>() {
                prop_assert_eq!(load.to_string().parse::<Under>().unwrap(), load);
            }
        }
    }
}
