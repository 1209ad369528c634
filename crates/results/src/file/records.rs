//! Iterator over the records of a file, for files that do not fit into memory.

use std::io::{BufRead, Read};

use super::{
    parse,
    record::{ReadError, Record},
    seal::{self, Seal},
};

use ombx_core::result::Measurement;

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1 << 28;

/// Iterator over the records of a file. It checks their order and ends after the first error.
pub struct Records<R> {
    input: R,
    longest: u64,
    line: Vec<u8>,
    number: usize,
    runs: usize,
    /// Rows of the current run.
    rows: u64,
    ended: bool,
    cut_off: bool,
    done: bool,
}

impl<R: BufRead> Records<R> {
    /// Starts at the beginning of a file.
    pub fn of(input: R) -> Records<R> {
        let (ended, cut_off, done) = (false, false, false);
        Records {
            input,
            longest: MAX_LINE_BYTES,
            line: Vec::new(),
            number: 0,
            runs: 0,
            rows: 0,
            ended,
            cut_off,
            done,
        }
    }

    /// Returns whether the file ended inside a record. The answer is valid after the last record.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    /// Returns the next record, or `None` at the end of the file.
    fn advance(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            self.line.clear();
            self.number += 1;
            let number = self.number;
            if (&mut self.input).take(self.longest).read_until(b'\n', &mut self.line)? == 0 {
                return match self.runs {
                    // An empty file belongs to a run that was killed before its first record.
                    0 if number == 1 => {
                        self.cut_off = true;
                        Ok(None)
                    }
                    0 => Err(ReadError::NotAResult { line: 1, why: "the file has no run record".into() }),
                    _ => Ok(None),
                };
            }
            let bad = |why: String| ReadError::NotAResult { line: number, why };
            let whole = self.line.last() == Some(&b'\n');
            if !whole && self.line.len() as u64 == self.longest {
                return Err(bad(format!("it is longer than {} bytes", self.longest)));
            }
            let record = std::str::from_utf8(&self.line)
                .map_err(|e| bad(e.to_string()))
                .and_then(|text| if text.trim().is_empty() { Ok(None) } else { parse(text, number) });
            match record {
                Err(ReadError::NotAResult { .. }) if !whole && self.runs > 0 => {
                    self.cut_off = true;
                    return Ok(None);
                }
                Err(e) => return Err(e),
                Ok(None) => {}
                Ok(Some(Record::Launch(row))) if self.is_contradictory(&row) => {
                    return Err(bad("its median is not that of its samples".into()));
                }
                Ok(Some(record)) => {
                    self.in_order(&record).map_err(bad)?;
                    return Ok(Some(record));
                }
            }
        }
    }

    /// Returns whether a row without a checksum has a summary that does not follow from its samples.
    fn is_contradictory(&self, row: &Measurement) -> bool {
        let line = std::str::from_utf8(&self.line).unwrap_or_default();
        seal::of(line.trim_end()) == Seal::Absent && !median_fits_samples(row)
    }

    fn in_order(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Run(_) => (self.runs, self.rows, self.ended) = (self.runs + 1, 0, false),
            _ if self.runs == 0 => return Err("a run record must come first".into()),
            Record::Case(_) | Record::Verdict(_) | Record::Launched(_) => {}
            _ if self.ended => return Err("it follows the end record of its run".into()),
            Record::End(_, tally) if tally.cases != self.rows => {
                return Err(format!(
                    "it counts {} rows, but its run has {}: lines are missing",
                    tally.cases, self.rows
                ));
            }
            Record::End(..) => self.ended = true,
            Record::Launch(_) => self.rows += 1,
        }
        Ok(())
    }
}

/// Returns whether the median of the summary lies between the middle two of the raw samples. A row without either passes, and one
/// of several pairs, whose headline is that of the total.
fn median_fits_samples(row: &Measurement) -> bool {
    let (Some(summary), Some(work)) = (&row.summary, row.work) else { return true };
    if row.samples.iter().any(|samples| !samples.started_ns.is_empty()) {
        return true;
    }
    let mut times = Measurement::combine(&row.samples, work.legs);
    times.sort_unstable_by(f64::total_cmp);
    let Some(last) = times.len().checked_sub(1) else { return true };
    let [low, high] = [times[last / 2], times[last.div_ceil(2)]];
    let rounding = 1e-9 * summary.median.abs().max(1.0);
    (low - rounding..=high + rounding).contains(&summary.median)
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_that_is_not_that_of_its_samples_is_refused() {
        let file = include_str!("../../tests/golden/one_launch.jsonl");
        let row = file.lines().nth(1).unwrap();
        assert!(row.contains("\"median_ns\":357.6875"));
        let read = |file: &str| Records::of(file.as_bytes()).find_map(Result::err).map(|e| e.to_string());
        assert_eq!(read(file), None);
        let doctored = read(&file.replace("\"median_ns\":357.6875", "\"median_ns\":357.9")).unwrap();
        assert!(doctored.ends_with("its median is not that of its samples"), "{doctored}");
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let mut records = Records { longest: 1000, ..Records::of(endless) };
        let error = records.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "line 1 is not a record of ombx results: it is longer than 1000 bytes");
        assert!(records.next().is_none());
    }
}
