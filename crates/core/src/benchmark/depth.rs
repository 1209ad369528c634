//! Operations in flight in benchmarks that stream.

use crate::{
    benchmark::{Heading, Parameter, ParameterValue, Reader},
    error::{Error, Result},
    unit::parse_numbers,
};

/// Maximum number of operations in flight.
const MOST: u32 = 1 << 20;

/// Number of operations in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(pub u32);

impl ParameterValue for Depth {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "window",
        "NUMBERS",
        "Operations in flight in bandwidth benchmarks, each number with rows of its own: 64, 1,4,16 (list), 1..64 (doubling)",
        Reader::List(|text| Ok(parse_depths(text)?.iter().map(ToString::to_string).collect())),
    )
    .usually("64")
    .under(Heading::General);
    /// Of a case that does not stream.
    const DEFAULT: Depth = Depth(1);

    fn parse(text: &str) -> Result<Depth> {
        match *parse_depths(text)? {
            [depth] => Ok(Depth(depth)),
            _ => Err(Error::usage(format!("{text:?} is not one number of operations in flight"))),
        }
    }

    fn text(self) -> String {
        self.0.to_string()
    }
}

/// Reads a list of numbers of operations in flight: `64`, `1,4,16` or `1..64`, which doubles.
///
/// # Errors
/// Usage error for a malformed list, and for a number that is 0 or too large.
pub fn parse_depths(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use a number such as 64, a list such as 1,4,16, or a range such as 1..64";
        Error::usage(format!("{text:?} is no list of 1 to {MOST} operations in flight: {examples}"))
    };
    let numbers = parse_numbers(text, MOST.into()).ok_or_else(bad)?;
    Ok(numbers.into_iter().map(|number| number as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_a_list() {
        assert_eq!(parse_depths("64").unwrap(), [64]);
        assert_eq!(parse_depths("1,4,16").unwrap(), [1, 4, 16]);
        assert_eq!(parse_depths("1..64").unwrap(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(parse_depths("1..64:x4,3").unwrap(), [1, 4, 16, 64, 3]);
        for text in ["", "0", "0..4", "-1", "1K", "1048577", "x", "1,", "4..1"] {
            assert!(parse_depths(text).unwrap_err().to_string().contains("such as 1,4,16"), "{text}");
        }
        assert_eq!(Depth::PARAMETER.read("1..4").unwrap().join(" "), "1 2 4");
        assert_eq!(Depth::parse("8").unwrap(), Depth(8));
    }
}
