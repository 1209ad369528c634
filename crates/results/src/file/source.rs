//! Contents of result files: plain, or compressed by gzip or zstd.

use std::{
    ffi::OsStr,
    io::{self, BufRead, BufReader, Error, Read},
    path::Path,
};

use flate2::bufread::MultiGzDecoder;
use ombx_core::system::file::open_named;
use ruzstd::decoding::StreamingDecoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// End of the names of result files.
const ENDING: &str = "jsonl";
/// Ends of the names of compressed files.
const COMPRESSED: [&str; 2] = ["gz", "zst"];

/// Returns whether the name of a file ends like that of a result file: `.jsonl`, `.jsonl.gz` or `.jsonl.zst`.
pub fn is_named_as_result(path: &Path) -> bool {
    let is_compressed =
        path.extension().and_then(OsStr::to_str).is_some_and(|ending| COMPRESSED.contains(&ending));
    let plain = if is_compressed { path.file_stem().map(Path::new) } else { Some(path) };
    plain.is_some_and(|plain| plain.extension().is_some_and(|ending| ending == ENDING))
}

/// Opens a result file that the user names, or standard input for `-`.
pub fn source(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if path == Path::new("-") { decoded(io::stdin()) } else { decoded(open_named(path)?) }
}

/// Returns the contents of a file. Its first bytes tell how it is compressed.
pub(super) fn decoded(file: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(Box::new(file) as Box<dyn Read>);
    let first = file.fill_buf()?;
    if first.starts_with(GZIP) {
        Ok(Box::new(BufReader::new(MultiGzDecoder::new(file))))
    } else if first.starts_with(ZSTD) {
        Ok(Box::new(BufReader::new(Frames(Some(Frame::open(file)?)))))
    } else {
        Ok(Box::new(file))
    }
}

/// One frame of zstd.
struct Frame(StreamingDecoder<BufReader<Box<dyn Read>>, ruzstd::decoding::FrameDecoder>);

impl Frame {
    fn open(file: BufReader<Box<dyn Read>>) -> io::Result<Frame> {
        StreamingDecoder::new(file).map(Frame).map_err(Error::other)
    }
}

/// The frames of a file, one after the other; `None` after the last.
struct Frames(Option<Frame>);

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(Frame(decoder)) = &mut self.0 {
            let count = decoder.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let Some(Frame(decoder)) = self.0.take() else { break };
            let mut file = decoder.into_inner();
            if !file.fill_buf()?.is_empty() {
                self.0 = Some(Frame::open(file)?);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

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
            assert!(cut.is_err() || cut.is_ok_and(|text| GOLDEN.starts_with(&text)));
        }
        assert!(source(directory.path()).is_err() && source(&directory.path().join("no")).is_err());
    }
}
