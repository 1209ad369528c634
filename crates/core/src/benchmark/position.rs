//! Positions in the queues of the library: rows for single numbers of earlier messages.

use ombx_record::{
    error::{Error, Result},
    result::ALIGNMENT_AXIS,
    unit::digits,
};

use crate::benchmark::{Case, CaseValues, Named, Parameter, Reader, Value};

/// Numbers of earlier messages, of which each has rows of its own.
pub static ALIGNMENT: Parameter = Parameter::read_by(
    ALIGNMENT_AXIS,
    "NUMBERS",
    "A row for each number of earlier messages, counted from where the first row happens to start, in place \
     of the mean over them; in one launch, for example: --alignment 0..63 (every number)",
    Reader::List(read),
)
.named(Named::AfterSize(|values, _| values.text(&ALIGNMENT).map(str::to_owned)));

/// Largest number, far above the length of any queue.
const MOST: u64 = 1 << 16;
/// Maximum number of rows.
const MOST_ROWS: usize = 4096;

fn read(text: &str) -> Result<Vec<Value>> {
    let number = |text: &str| digits::<u64>(text).filter(|number| *number <= MOST);
    let range = |item: &str| match item.split_once("..") {
        None => number(item).map(|at| at..=at),
        Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| from..=to),
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let numbers: Option<Vec<u64>> =
        ranges.map(|ranges| ranges.into_iter().flatten().take(MOST_ROWS + 1).collect());
    let Some(mut numbers) = numbers.filter(|numbers| !numbers.is_empty() && numbers.len() <= MOST_ROWS)
    else {
        return Err(Error::usage(format!(
            "{text:?} is no list of at most {MOST_ROWS} numbers of earlier messages, each from 0 to {MOST}: \
             use a number, a list such as 0,8,16, or a range such as 0..63"
        )));
    };
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers.into_iter().map(|number| number.to_string().into()).collect())
}

/// Position of a case.
pub struct Position {
    /// Number of earlier messages.
    pub at: u64,
    /// Key that all cases have in common which differ in the position only.
    pub pass: String,
}

/// Returns the position of a case of a benchmark; `None` if it has none.
pub fn position(case: &Case, bench: &str) -> Option<Position> {
    let at = case.values.number(&ALIGNMENT)?;
    let mut values = CaseValues::default();
    case.values
        .iter()
        .filter(|(known, _)| **known != ALIGNMENT)
        .for_each(|(known, value)| values.push(known, value.map(Value::from)));
    Some(Position { at, pass: Case { values, ..case.clone() }.key(bench, None) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_every_number_of_a_range() {
        let read = |text: &str| ALIGNMENT.read(text).map(|values| values.join(" "));
        assert_eq!(read("0..3").unwrap(), "0 1 2 3");
        assert_eq!(read("8,0,4..6,5").unwrap(), "0 4 5 6 8");
        for text in
            ["", "a", "-1", "3..1", "0..", "0..5000", "65537", "1,,2", "+1", "0..18446744073709551615"]
        {
            assert!(read(text).unwrap_err().to_string().contains("such as 0..63"), "{text}");
        }
    }
}
