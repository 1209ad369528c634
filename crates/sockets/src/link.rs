//! Links: connections between two ranks that carry the payload of a case.

pub(crate) mod connections;
pub(crate) mod datagrams;
pub(crate) mod paced;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod streams;
mod tcp_info;
mod zero_copy;

use ombx_core::{
    benchmark::{Case, Named, Parameter, ParameterValue, Reader, if_chosen},
    error::{Error, Result},
    measure::plan::Plan,
    unit::parse_numbers,
};

use self::streams::MAX_STREAMS;

/// Number of streams between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streams(pub(crate) u32);

impl ParameterValue for Streams {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "streams",
        "NUMBERS",
        "Connections over which the messages of a window are divided, each number with a row, for example: --streams 8 or --streams 1..16",
        Reader::List(|text| Ok(parse(text)?.iter().map(ToString::to_string).collect())),
    )
    .usually("1")
    .named(Named::First(if_chosen::<Streams>));
    const DEFAULT: Streams = Streams(1);

    fn parse(text: &str) -> Result<Streams> {
        match *parse(text)? {
            [streams] => Ok(Streams(streams)),
            _ => Err(Error::usage(format!("{text:?} is not one number of streams"))),
        }
    }

    fn text(self) -> String {
        self.0.to_string()
    }
}

/// Reads a list of numbers of streams: `8`, `1,3,10` or `1..16`, which doubles.
fn parse(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use numbers such as 8 or 1,4 or a range such as 1..16";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_STREAMS} streams; {examples}"))
    };
    let streams = parse_numbers(text, MAX_STREAMS.into()).ok_or_else(bad)?;
    Ok(streams.into_iter().map(|number| number as u32).collect())
}

/// Returns an error with the reason if a window has fewer messages than streams.
pub(crate) fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let (Streams(streams), least) = (case.get(), plan.depths().into_iter().min().unwrap_or(1));
    match streams > least {
        true => Err(format!(
            "--streams {streams} divides the messages of a window, which has {least}: give --window {streams} or fewer streams"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stream_counts_tests {
    use super::*;

    #[test]
    fn streams_are_lists_and_ranges() {
        assert_eq!(parse("10").unwrap(), [10]);
        assert_eq!(parse("1,3,128").unwrap(), [1, 3, 128]);
        assert_eq!(parse("1..16").unwrap(), [1, 2, 4, 8, 16]);
        for text in ["", "0", "129", "1K", "-1", "many", "8..1", "1,,2"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ombx_core::error::Kind::Usage, "{text}");
            assert!(error.to_string().contains("1 to 128 streams"), "{error}");
        }
        assert_eq!(Streams::PARAMETER.defaults().join(","), "1");
    }
}
