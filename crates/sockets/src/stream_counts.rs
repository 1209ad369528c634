//! The option with the number of streams between two ranks. Each number has a row.

use ombx_core::{
    benchmark::{Benchmark, Setting},
    error::{Error, Result},
    measure::plan::{Plan, parse_numbers},
};

use crate::link::streams::MAX_STREAMS;

pub(crate) const STREAMS: Setting = Setting {
    name: "streams",
    value: "NUMBERS",
    about: "Connections over which the messages of a window are divided, each number with a row, for example: --streams 8 or --streams 1..16",
    default: Some("1"),
    check: |text| parse(text).map(|_| ()),
};

/// Reads a list of numbers of streams: `8`, `1,3,10` or `1..16`, which doubles.
fn parse(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use numbers such as 8 or 1,4 or a range such as 1..16";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_STREAMS} streams; {examples}"))
    };
    let streams = parse_numbers(text, MAX_STREAMS.into()).ok_or_else(bad)?;
    Ok(streams.into_iter().map(|number| number as u32).collect())
}

/// Returns the numbers of streams of a benchmark under a plan; none if it has no such option.
///
/// # Errors
/// Usage error for malformed numbers, and for more streams than messages in a window.
pub fn streams_of(bench: &Benchmark, plan: &Plan) -> Result<Vec<u32>> {
    if !bench.settings.iter().any(|setting| setting.name == STREAMS.name) {
        return Ok(Vec::new());
    }
    let streams = parse(plan.setting(&STREAMS).unwrap_or_default())?;
    let least = plan.depths().min().unwrap_or(1);
    match streams.iter().find(|streams| **streams > least) {
        Some(most) => Err(Error::usage(format!(
            "--streams {most} divides the messages of a window, which has {least}: give --window {most} or fewer streams"
        ))),
        None => Ok(streams),
    }
}

#[cfg(test)]
mod tests {
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
        (STREAMS.check)(STREAMS.default.unwrap()).unwrap();
    }
}
