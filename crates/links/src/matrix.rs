//! Times of links as a dense array in NumPy's file format, version 1.0.
//!
//! The array has the axes message size (ascending), timed rank, and answering rank. Its values are median times of one message in
//! microseconds, as 64-bit floats. A link that was not measured, such as that of a rank and itself, is NaN.

use std::{
    collections::BTreeMap,
    io::{BufWriter, Read, Result, Seek, SeekFrom, Write},
    mem,
};

use ombx_record::{event::Round, link::RETEST, result::Measurement, stats};

use crate::verdict::Link;

/// First bytes of a file: its name and version.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The header ends at a multiple of this number of bytes.
const ALIGNMENT: usize = 64;
/// Maximum number of values of an array in memory.
const MOST_VALUES: usize = 1 << 23;
/// Maximum number of rows in memory before the array is written.
const MOST_ROWS: usize = 1 << 21;
/// Bytes of a row in the temporary file: two ranks and a time.
const ROW: usize = 12;

/// Rows of the sweeps of all launches by bands of timed ranks: an array of any size takes little memory. Rows that exceed a limit go to a
/// temporary file.
#[derive(Debug)]
pub struct Bands<F> {
    ranks: u32,
    /// Number of timed ranks in a band.
    height: u32,
    /// Maximum number of rows in memory.
    most_rows: usize,
    file: F,
    /// By message size and number of the band.
    bands: BTreeMap<(u64, u32), Band>,
    /// Number of rows in memory.
    kept: usize,
}

/// Rows of a band.
#[derive(Debug, Default)]
struct Band {
    /// Rows in memory.
    kept: Vec<Link>,
    /// Start and number of rows of each part of the temporary file.
    parts: Vec<(u64, usize)>,
}

impl<F: Read + Write + Seek> Bands<F> {
    /// Starts without rows. The temporary file is empty.
    pub fn new(ranks: u32, file: F) -> Bands<F> {
        let height = (MOST_VALUES as u32 / ranks.max(1)).max(1);
        Bands { ranks, height, most_rows: MOST_ROWS, file, bands: BTreeMap::new(), kept: 0 }
    }

    /// Adds a row, unless it measured a link again.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn add(&mut self, row: &Measurement) -> Result<()> {
        match (row.bytes, Link::of_row(row)) {
            (Some(bytes), Some(link)) if !row.axes.contains_key(RETEST) => self.link(bytes, link),
            _ => Ok(()),
        }
    }

    /// Adds the links of a round.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn add_round(&mut self, round: &Round) -> Result<()> {
        let Some(bytes) = round.row.bytes else { return Ok(()) };
        round.links().try_for_each(|(from, to, ns)| self.link(bytes, Link { from, to, ns }))
    }

    fn link(&mut self, bytes: u64, Link { from, to, ns }: Link) -> Result<()> {
        if from.max(to) >= self.ranks {
            return Ok(());
        }
        let band = self.bands.entry((bytes, from / self.height)).or_default();
        band.kept.push(Link { from, to, ns });
        self.kept += 1;
        if self.kept > self.most_rows { self.move_to_file() } else { Ok(()) }
    }

    /// Writes the rows in memory to the end of the file.
    fn move_to_file(&mut self) -> Result<()> {
        let mut start = self.file.seek(SeekFrom::End(0))?;
        let mut file = BufWriter::new(&mut self.file);
        for Band { kept, parts } in self.bands.values_mut() {
            let rows = mem::take(kept);
            for Link { from, to, ns } in &rows {
                let parts = [from.to_le_bytes(), to.to_le_bytes(), ns.to_le_bytes()];
                parts.iter().try_for_each(|part| file.write_all(part))?;
            }
            if !rows.is_empty() {
                parts.push((start, rows.len()));
                start += (ROW * rows.len()) as u64;
            }
        }
        self.kept = 0;
        file.flush()
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the message sizes in the order of the array.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.bands.keys().map(|(bytes, _)| *bytes).collect();
        sizes.dedup();
        sizes
    }

    /// Writes the array. Times of several launches are medians over the launches.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write(mut self, out: &mut dyn Write) -> Result<()> {
        let (sizes, ranks) = (self.sizes(), self.ranks as usize);
        out.write_all(&header([sizes.len(), ranks, ranks]))?;
        for bytes in sizes {
            for first in (0..self.ranks).step_by(self.height as usize) {
                let height = self.height.min(self.ranks - first) as usize;
                let band = self.bands.remove(&(bytes, first / self.height)).unwrap_or_default();
                let rows = band.rows(&mut self.file)?;
                write_band(out, rows, first as usize, [height, ranks])?;
            }
        }
        out.flush()
    }
}

impl Band {
    /// Returns all rows.
    fn rows(self, file: &mut (impl Read + Seek)) -> Result<Vec<Link>> {
        let mut rows = self.kept;
        for (start, count) in self.parts {
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = vec![0; ROW * count];
            file.read_exact(&mut bytes)?;
            rows.extend(bytes.chunks_exact(ROW).map(|row| {
                let part = |at: usize| [row[at], row[at + 1], row[at + 2], row[at + 3]];
                let [from, to] = [part(0), part(4)].map(u32::from_le_bytes);
                Link { from, to, ns: f32::from_le_bytes(part(8)) }
            }));
        }
        Ok(rows)
    }
}

/// Writes the lines of a band of timed ranks.
fn write_band(
    out: &mut dyn Write,
    mut rows: Vec<Link>,
    first: usize,
    [height, ranks]: [usize; 2],
) -> Result<()> {
    rows.sort_by_key(|row| (row.from, row.to));
    let mut us = vec![f64::NAN; height * ranks];
    for rows in rows.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
        let ns = match rows {
            [row] => Some(f64::from(row.ns)),
            several => stats::median(&several.iter().map(|row| f64::from(row.ns)).collect::<Vec<_>>()),
        };
        us[(rows[0].from as usize - first) * ranks + rows[0].to as usize] = ns.unwrap_or(f64::NAN) / 1e3;
    }
    us.iter().try_for_each(|us| out.write_all(&us.to_le_bytes()))
}

/// Returns the header of an array of 64-bit floats whose last axis is contiguous.
fn header([sizes, from, to]: [usize; 3]) -> Vec<u8> {
    let mut text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}, {from}, {to}), }}");
    // Magic, two bytes of length, the text and a line end.
    let length = (MAGIC.len() + 2 + text.len() + 1).next_multiple_of(ALIGNMENT) - MAGIC.len() - 2;
    text += &" ".repeat(length - text.len() - 1);
    text.push('\n');
    [MAGIC, &(length as u16).to_le_bytes(), text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ombx_record::stats::Summary;

    use crate::matrix::*;

    /// Returns the file of three ranks: (from + 1) x (to + 1) x bytes microseconds; nothing from rank 2 to rank 0.
    fn written(height: u32, most_rows: usize) -> Vec<u8> {
        let golden = ombx_testkit::golden();
        let mut bands = Bands { height, most_rows, ..Bands::new(3, Cursor::<Vec<u8>>::default()) };
        for (bytes, from, to) in
            [64u64, 8].into_iter().flat_map(|b| (0..9u32).map(move |at| (b, at / 3, at % 3)))
        {
            if from == to || (from, to) == (2, 0) {
                continue;
            }
            let ns = f64::from((from + 1) * (to + 1)) * bytes as f64 * 1e3;
            let axes = [("from", from), ("to", to)].map(|(name, value)| (name.to_owned(), value.to_string()));
            // Of three launches the median counts, and rows of a second measurement do not.
            for factor in [1.0, 0.5, 7.0] {
                let summary = Summary::new(&[factor * ns; 10]);
                let mut row = Measurement {
                    bytes: Some(bytes),
                    axes: axes.clone().into(),
                    summary,
                    ..golden.rows[0].clone()
                };
                bands.add(&row).unwrap();
                row.axes.insert(RETEST.into(), "alone".into());
                bands.add(&row).unwrap();
            }
        }
        assert_eq!((bands.sizes(), bands.ranks()), (vec![8, 64], 3));
        let mut out = Vec::new();
        bands.write(&mut out).unwrap();
        out
    }

    #[test]
    fn the_header_is_that_of_numpy() {
        let file = written(2, 100);
        assert_eq!(file, written(9, 100), "whatever the height of bands");
        assert_eq!(
            (&file, &file),
            (&written(1, 4), &written(2, 0)),
            "whether rows are in memory or in the file"
        );
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((&file[..8], (10 + length) % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
        let text = std::str::from_utf8(&file[10..10 + length]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 3), }");
        assert!(text.ends_with(" \n") && file.len() == 10 + length + 2 * 3 * 3 * 8);
    }

    #[test]
    fn a_file_that_lost_rows_is_an_error() {
        let mut bands = Bands { most_rows: 1, ..Bands::new(3, Cursor::<Vec<u8>>::default()) };
        for from in 0..2 {
            bands.link(8, Link { from, to: 2, ns: 1.0 }).unwrap();
        }
        bands.file.get_mut().pop();
        assert_eq!(bands.write(&mut Vec::new()).unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn values_are_microseconds_by_size_from_and_to() {
        let file = written(1, 7);
        let length = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let values =
            file[length..].chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
        let values: Vec<f64> = values.collect();
        for (at, value) in values.iter().enumerate() {
            let (bytes, from, to) = ([8.0, 64.0][at / 9], at % 9 / 3, at % 3);
            if from == to || (from, to) == (2, 0) {
                assert!(value.is_nan(), "{from} to {to}: {value}");
            } else {
                assert_eq!(*value, ((from + 1) * (to + 1)) as f64 * bytes, "{from} to {to}");
            }
        }
    }
}
