//! Iterator over the records of a file, for files that do not fit into memory.

use std::{
    cell::Cell,
    error,
    ffi::OsStr,
    io::{self, BufRead, BufReader, Error, Read},
    iter,
    path::Path,
    rc::Rc,
};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{
    StreamingDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::{
    event::Event,
    file::{ReadError, parse},
    link::MOST_RANKS,
    regular_file::{open_found, open_named},
    result::valid::follows_from_samples,
};

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1 << 28;
/// Maximum length in bytes of a line of a file that the user did not name, or that is compressed: a short one may have lines without end.
const LONGEST_FOUND_LINE: u64 = 1 << 24;
/// Maximum number of bytes that a reader may keep of a file that the user did not name.
const MOST_KEPT: u64 = 1 << 30;
/// Maximum length in bytes of such a file whose reader keeps no links of large sweeps. All pairs of 10,000 hosts take 1.7 GB for each message
/// size and launch. The limit is about time: a compressed file without end is read for some minutes.
const LONGEST_STREAM: u64 = 1 << 34;
/// Maximum number of blank lines in a file.
const BLANK_LINES: usize = 10_000;

/// Order of the records of a file.
#[derive(Debug, Default)]
pub struct RecordOrder {
    runs: usize,
    /// Rows of the current run.
    rows: u64,
    ended: bool,
}

impl RecordOrder {
    /// Takes note of the next record.
    ///
    /// # Errors
    /// The record is in the wrong place, or records before it are missing.
    pub fn check(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Run(_) => (self.runs, self.rows, self.ended) = (self.runs + 1, 0, false),
            _ if self.runs == 0 => return Err("a run record must come first".into()),
            Event::Case(_) | Event::Verdict(_) | Event::Launched(_) => {}
            _ if self.ended => return Err("it follows the end record of its run".into()),
            Event::End { tally, .. } if tally.cases != self.rows => {
                let how = if tally.cases > self.rows { "missing" } else { "repeated" };
                return Err(format!(
                    "it counts {} rows, but its run has {}: lines are {how}",
                    tally.cases, self.rows
                ));
            }
            Event::Grown { .. } => {}
            Event::End { .. } => self.ended = true,
            Event::Row(_) => self.rows += 1,
            Event::Round(round) => self.rows += round.len() as u64,
            _ => {}
        }
        Ok(())
    }
}

/// Iterator over the records of a file. It checks their order and ends after the first error.
pub struct Records<R> {
    input: R,
    longest: u64,
    line: Vec<u8>,
    number: usize,
    blank: usize,
    order: RecordOrder,
    /// Whether the current run is over so many ranks that readers do not keep the links of its rounds.
    is_large: bool,
    /// Bytes of the records that readers may keep, and their maximum number.
    kept: u64,
    most_kept: u64,
    cut_off: bool,
    done: bool,
}

impl Records<Box<dyn BufRead>> {
    /// Opens a file that the user did not name, for a reader that may keep all of it.
    ///
    /// # Errors
    /// It is a link, is not a regular file, is too long, or cannot be opened.
    pub fn found(path: &Path) -> io::Result<Self> {
        Self::found_within(path, MOST_KEPT)
    }

    /// Opens a file that the user did not name, for a reader that keeps no links of sweeps over more than [`MOST_RANKS`] ranks. Such a file may
    /// be longer.
    ///
    /// # Errors
    /// Those of [`Records::found`].
    pub fn found_in_stream(path: &Path) -> io::Result<Self> {
        Self::found_within(path, LONGEST_STREAM)
    }

    fn found_within(path: &Path, longest_file: u64) -> io::Result<Self> {
        // A small compressed file may have contents without end.
        let input: Box<dyn BufRead> = Box::new(decoded(open_found(path, longest_file)?)?.take(longest_file));
        Ok(Records { longest: LONGEST_FOUND_LINE, most_kept: MOST_KEPT, ..Records::new(input) })
    }
}

impl<R: BufRead> Records<R> {
    /// Starts at the beginning of a file.
    pub fn new(input: R) -> Records<R> {
        let (is_large, cut_off, done) = (false, false, false);
        Records {
            input,
            longest: MAX_LINE_BYTES,
            line: Vec::new(),
            number: 0,
            blank: 0,
            order: RecordOrder::default(),
            is_large,
            kept: 0,
            most_kept: u64::MAX,
            cut_off,
            done,
        }
    }

    /// Returns whether the file ended inside a record. The answer is valid after the last record.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    /// Returns the next record, or `None` at the end of the file.
    fn advance(&mut self) -> Result<Option<Event<'static>>, ReadError> {
        loop {
            self.line.clear();
            self.number += 1;
            let number = self.number;
            if (&mut self.input).take(self.longest).read_until(b'\n', &mut self.line)? == 0 {
                return match self.order.runs {
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
                Err(ReadError::NotAResult { .. }) if !whole && self.order.runs > 0 => {
                    self.cut_off = true;
                    return Ok(None);
                }
                Err(e) => return Err(e),
                Ok(Some(event)) if event.is_kept() => {
                    self.order.check(&event).map_err(bad)?;
                    self.count_kept(&event)?;
                    if let Event::Row(row) = &event {
                        follows_from_samples(row).map_err(bad)?;
                    }
                    return Ok(Some(event));
                }
                Ok(_) => {}
            }
        }
    }
}

impl<R> Records<R> {
    /// Counts the bytes of a record, unless they are links that no reader keeps. A file with too many is a result file all the same.
    fn count_kept(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::Run(run) = event {
            self.is_large = run.places.len() > MOST_RANKS;
        }
        if self.is_large && matches!(event, Event::Round(_)) {
            return Ok(());
        }
        self.kept += self.line.len() as u64;
        if self.kept > self.most_kept {
            return Err(Error::other(format!(
                "the file has more than {} MiB beside the links of sweeps over more than {MOST_RANKS} \
                 ranks: ombx show FILE reads it",
                self.most_kept >> 20
            )));
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Event<'static>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// End of the names of result files.
pub const ENDING: &str = "jsonl";
/// Ends of the names of compressed files.
const COMPRESSED: [&str; 2] = ["gz", "zst"];

/// Returns whether the name of a file ends like that of a result file: `.jsonl`, `.jsonl.gz` or `.jsonl.zst`.
pub fn is_named_as_result(path: &Path) -> bool {
    let is_compressed =
        path.extension().and_then(OsStr::to_str).is_some_and(|ending| COMPRESSED.contains(&ending));
    let plain = if is_compressed { path.file_stem().map(Path::new) } else { Some(path) };
    plain.is_some_and(|plain| plain.extension().is_some_and(|ending| ending == ENDING))
}

/// Compressed results are at most this many times as long when they are decompressed.
const MOST_EXPANDED: u64 = 64;
/// Number of decompressed bytes that are accepted of any file.
const EXPANDED_ANYWAY: u64 = 1 << 26;

/// Counts the bytes that are read.
struct Counted(Box<dyn Read>, Rc<Cell<u64>>);

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(out)?;
        self.1.set(self.1.get() + count as u64);
        Ok(count)
    }
}

/// Opens a result file that the user names, or standard input for `-`.
pub fn source(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") { decoded(io::stdin()) } else { decoded(open_named(path)?) }
}

/// Returns the contents of a file. Its first bytes tell how it is compressed.
pub(super) fn decoded(file: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let compressed = Rc::new(Cell::new(0));
    let counted = Counted(Box::new(file), Rc::clone(&compressed));
    let mut file = BufReader::new(Box::new(counted) as Box<dyn Read>);
    let first = file.fill_buf()?;
    let (name, input): (_, Box<dyn Read>) = if first.starts_with(GZIP) {
        ("gzip", Box::new(MultiGzDecoder::new(file)))
    } else if first.starts_with(ZSTD) {
        ("zstd", Box::new(Frames(Some(ZstdFrame::open(file).map_err(|e| undecoded("zstd", e))?))))
    } else {
        return Ok(Box::new(file));
    };
    Ok(Box::new(BufReader::new(Decoder { name, input, compressed, decoded: 0, line: 0 })))
}

/// Decoder of a compressed file. Errors in the data name the kind of compression.
struct Decoder {
    name: &'static str,
    input: Box<dyn Read>,
    /// Number of bytes before and after decompression.
    compressed: Rc<Cell<u64>>,
    decoded: u64,
    /// Length of the line that is read.
    line: u64,
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(out).map_err(|e| undecoded(self.name, e))?;
        self.decoded += count as u64;
        let end = out[..count].iter().rposition(|byte| *byte == b'\n');
        self.line = end.map_or(self.line + count as u64, |end| (count - end) as u64);
        if self.line > LONGEST_FOUND_LINE {
            let what = format!("a line of its {} data is longer than {LONGEST_FOUND_LINE} bytes", self.name);
            return Err(Error::other(what));
        }
        if self.decoded > EXPANDED_ANYWAY.max(self.compressed.get().saturating_mul(MOST_EXPANDED)) {
            return Err(Error::other(format!(
                "its {} data is more than {MOST_EXPANDED} times as long when decompressed, which results are not: decompress \
                 the file first if it is one of ombx",
                self.name
            )));
        }
        Ok(count)
    }
}

/// Returns the error of a decoder for people. Data are broken unless the system failed or the decoder has no support for them.
fn undecoded(compression: &str, error: Error) -> Error {
    // `Error::source` leaves out the error that is inside.
    let inside = error.get_ref().map(|inside| inside as &(dyn error::Error + 'static));
    let mut causes = iter::successors(inside, |cause| cause.source());
    let of_system = causes.find_map(|cause| cause.downcast_ref::<Error>()?.raw_os_error());
    if let Some(code) = error.raw_os_error().or(of_system) {
        return Error::from_raw_os_error(code);
    }
    match inside.and_then(|inside| inside.downcast_ref::<FrameDecoderError>()) {
        Some(
            unsupported @ (FrameDecoderError::WindowSizeTooBig { .. }
            | FrameDecoderError::DictNotProvided { .. }
            | FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                ..
            })),
        ) => Error::other(format!(
            "ombx has no support for this kind of {compression} data ({unsupported}): decompress the file first"
        )),
        _ => Error::other(format!("its {compression} data is cut off or broken")),
    }
}

/// One frame of zstd.
struct ZstdFrame(StreamingDecoder<BufReader<Box<dyn Read>>, ruzstd::decoding::FrameDecoder>);

impl ZstdFrame {
    fn open(file: BufReader<Box<dyn Read>>) -> io::Result<ZstdFrame> {
        StreamingDecoder::new(file).map(ZstdFrame).map_err(Error::other)
    }
}

/// The frames of a file, one after the other; `None` after the last.
struct Frames(Option<ZstdFrame>);

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(ZstdFrame(decoder)) = &mut self.0 {
            let count = decoder.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let Some(ZstdFrame(decoder)) = self.0.take() else { break };
            let mut file = decoder.into_inner();
            if !file.fill_buf()?.is_empty() {
                self.0 = Some(ZstdFrame::open(file)?);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, io::Write};

    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use crate::{
        file::{Round, records::*, write},
        link::BENCH,
        result::{Measurement, Metric},
    };

    #[test]
    fn figures_that_do_not_follow_from_the_samples_are_refused() {
        let file = include_str!("../../tests/golden/one_launch.jsonl");
        let row = file.lines().nth(1).unwrap();
        let read = |file: &str| Records::new(file.as_bytes()).find_map(Result::err).map(|e| e.to_string());
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
    fn a_short_compressed_file_with_long_contents_is_refused() {
        let error = |line: &str, count: usize| {
            let mut out = GzEncoder::new(Vec::new(), Compression::best());
            out.write_all(GOLDEN.as_bytes()).unwrap();
            (0..count).for_each(|_| out.write_all(line.as_bytes()).unwrap());
            let records = Records::new(decoded(io::Cursor::new(out.finish().unwrap())).unwrap());
            records.filter_map(Result::err).map(|e| e.to_string()).next().unwrap_or_default()
        };
        assert_eq!(error("", 0), "");
        let lines = error("{\"kind\":\"later\"}\n", EXPANDED_ANYWAY as usize / 17);
        assert!(lines.contains("64 times as long"), "{lines}");
        let line = error(&" ".repeat(1 << 20), 17);
        assert!(line.contains("longer than 16777216 bytes"), "{line}");
    }

    #[test]
    fn input_without_end_is_refused_before_it_fills_memory() {
        let endless = std::io::BufReader::new(std::io::repeat(b'1'));
        let mut records = Records { longest: 1000, ..Records::new(endless) };
        let error = records.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "line 1 is not a record of ombx results: it is longer than 1000 bytes");
        assert!(records.next().is_none());
        let newlines = std::io::BufReader::new(std::io::repeat(b'\n'));
        let error = Records::new(newlines).next().unwrap().unwrap_err().to_string();
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

    #[test]
    fn a_long_file_is_found_by_readers_that_do_not_keep_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long");
        std::fs::write(&path, GOLDEN).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(MOST_KEPT + 1).unwrap();
        assert!(Records::found(&path).is_err());
        assert!(Records::found_in_stream(&path).unwrap().next().unwrap().is_ok());
    }

    /// Returns the error of a run over so many ranks with a round, of which a reader may keep the first record only.
    fn error_of_ranks(ranks: usize) -> Option<String> {
        let Event::Run(mut run) = Records::new(GOLDEN.as_bytes()).next().unwrap().unwrap() else {
            panic!("no run")
        };
        let place = run.places[0].clone();
        run.to_mut().places = vec![place; ranks];
        let mut text = Vec::new();
        write(&mut text, &Event::Run(run)).unwrap();
        let most_kept = text.len() as u64;
        let row = Measurement { bytes: Some(8), ..Measurement::new(BENCH, "links", Metric::Latency, 2) };
        let (from, to, median_ns) = (vec![0], vec![1], vec![900.0]);
        let round = Round { row, number: Some(0), from, to, median_ns, marks: Vec::new() };
        write(&mut text, &Event::Round(Cow::Owned(round))).unwrap();
        let mut records = Records { most_kept, ..Records::new(text.as_slice()) };
        records.find_map(Result::err).map(|error| error.to_string())
    }

    #[test]
    fn the_links_of_large_sweeps_do_not_count_as_kept() {
        assert_eq!(error_of_ranks(MOST_RANKS + 1), None);
        let error = error_of_ranks(MOST_RANKS).unwrap();
        assert!(error.starts_with("the file has more than 0 MiB"), "{error}");
        assert!(error.ends_with("ombx show FILE reads it"), "{error}");
    }

    const GOLDEN: &str = include_str!("../../tests/golden/one_launch.jsonl");

    #[test]
    fn names_end_with_jsonl() {
        for (name, expected) in [
            ("a.jsonl", true),
            ("d/a.jsonl.gz", true),
            ("a.jsonl.zst", true),
            ("a.gz", false),
            ("a.jsonl.xz", false),
            ("jsonl", false),
        ] {
            assert_eq!(is_named_as_result(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn compressed_contents_are_those_of_the_plain_file() {
        let gzip = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let zstd = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
        // Both formats allow that files are joined.
        let (first, second) = GOLDEN.split_at(GOLDEN.len() / 3);
        let directory = tempfile::tempdir().unwrap();
        for bytes in [
            GOLDEN.as_bytes().to_vec(),
            gzip(GOLDEN),
            zstd(GOLDEN),
            [gzip(first), gzip(second)].concat(),
            [zstd(first), zstd(second)].concat(),
        ] {
            let path = directory.path().join("r");
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(io::read_to_string(source(&path).unwrap()).unwrap(), GOLDEN);
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
            let cut = source(&path).and_then(io::read_to_string);
            match cut {
                Ok(text) => {
                    assert!(
                        bytes == GOLDEN.as_bytes(),
                        "a compressed file that is cut off was read as whole"
                    );
                    assert!(GOLDEN.starts_with(&text));
                }
                Err(e) => assert!(e.to_string().ends_with("data is cut off or broken"), "{e}"),
            }
        }
        assert!(source(directory.path()).is_err() && source(&directory.path().join("no")).is_err());
    }

    #[test]
    fn good_data_and_failures_of_the_system_are_not_called_broken() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(Error::from_raw_os_error(5))
            }
        }
        // The window of 2 GiB is one that `zstd --long=31` writes.
        let long: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8, 1, 0, 0];
        let error = decoded(long).and_then(io::read_to_string).unwrap_err().to_string();
        assert!(error.ends_with("decompress the file first"), "{error}");
        for start in [GZIP, ZSTD, long.split_at(5).0] {
            let error = decoded(start.chain(Failing)).and_then(io::read_to_string).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(5), "{error}");
        }
    }
}
