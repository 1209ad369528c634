//! Iterator over the records of a file, for files that do not fit into memory.

use std::{
    io::{self, BufRead, Read},
    path::Path,
};

use super::{
    parse,
    record::{ReadError, Record},
    source::decoded,
    validity,
};

use ombx_core::system::file::open_found;

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1 << 28;
/// Maximum length in bytes of a file that the user did not name, and of a line of it.
const FOUND: [u64; 2] = [1 << 30, 1 << 24];
/// Maximum number of blank lines in a file.
const BLANK_LINES: usize = 10_000;

/// Iterator over the records of a file. It checks their order and ends after the first error.
pub struct Records<R> {
    input: R,
    longest: u64,
    line: Vec<u8>,
    number: usize,
    blank: usize,
    runs: usize,
    /// Rows of the current run.
    rows: u64,
    ended: bool,
    cut_off: bool,
    done: bool,
}

impl Records<Box<dyn BufRead>> {
    /// Opens a file that the user did not name.
    ///
    /// # Errors
    /// It is a link, is not a regular file, is too long, or cannot be opened.
    pub fn found(path: &Path) -> io::Result<Self> {
        let [longest_file, longest] = FOUND;
        // A small compressed file may have contents without end.
        let input: Box<dyn BufRead> = Box::new(decoded(open_found(path, longest_file)?)?.take(longest_file));
        Ok(Records { longest, ..Records::of(input) })
    }
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
            blank: 0,
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
            if self.line.trim_ascii().is_empty() {
                self.blank += 1;
                if self.blank > BLANK_LINES {
                    return Err(bad(format!("the file has more than {BLANK_LINES} blank lines")));
                }
                continue;
            }
            let text = std::str::from_utf8(&self.line).map_err(|e| bad(e.to_string()));
            match text.and_then(|text| parse(text, number)) {
                Err(ReadError::NotAResult { .. }) if !whole && self.runs > 0 => {
                    self.cut_off = true;
                    return Ok(None);
                }
                Err(e) => return Err(e),
                Ok(None) => {}
                Ok(Some(record)) => {
                    self.in_order(&record).map_err(bad)?;
                    if let Record::Launch(row) = &record {
                        validity::follows_from_samples(row).map_err(bad)?;
                    }
                    return Ok(Some(record));
                }
            }
        }
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
    fn figures_that_do_not_follow_from_the_samples_are_refused() {
        let file = include_str!("../../tests/golden/one_launch.jsonl");
        let row = file.lines().nth(1).unwrap();
        let read = |file: &str| Records::of(file.as_bytes()).find_map(Result::err).map(|e| e.to_string());
        assert_eq!(read(file), None);
        let summary = &row[row.find("\"summary\":").unwrap()..];
        for name in ["median_ns", "min_ns", "mean_ns", "max_ns"] {
            let start = summary.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
            let length = summary[start..].find([',', '}']).unwrap();
            let value: f64 = summary[start..start + length].parse().unwrap();
            let other = format!("{}{}{}", &summary[..start], value * 2.0, &summary[start + length..]);
            let doctored = read(&file.replace(summary, &other)).unwrap_or_else(|| panic!("{name}"));
            assert!(doctored.contains(name), "{name}: {doctored}");
        }
    }

    #[test]
    fn input_without_end_is_refused_before_it_fills_memory() {
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let mut records = Records { longest: 1000, ..Records::of(endless) };
        let error = records.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "line 1 is not a record of ombx results: it is longer than 1000 bytes");
        assert!(records.next().is_none());
        let newlines = std::io::BufReader::new(std::io::repeat(b'\n'));
        let error = Records::of(newlines).next().unwrap().unwrap_err().to_string();
        assert!(error.ends_with("the file has more than 10000 blank lines"), "{error}");
    }

    #[test]
    fn a_file_that_nobody_named_is_plain_and_short() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("plain"), include_str!("../../tests/golden/one_launch.jsonl")).unwrap();
        assert!(Records::found(&at("plain")).unwrap().all(|record| record.is_ok()));
        std::os::unix::fs::symlink("plain", at("link")).unwrap();
        assert!(Records::found(&at("link")).is_err());
        std::fs::File::create(at("endless")).unwrap().set_len(1 << 40).unwrap();
        assert!(Records::found(&at("endless")).is_err());
        std::fs::File::create(at("line")).unwrap().set_len(1 << 25).unwrap();
        let error = Records::found(&at("line")).unwrap().next().unwrap().unwrap_err();
        assert!(error.to_string().ends_with("it is longer than 16777216 bytes"), "{error}");
    }
}
