//! Times of links as a dense array in NumPy's file format, version 1.0.
//!
//! The array has the axes message size (ascending), timed rank, and answering rank. Its values are median times of one message in
//! microseconds, as 64-bit floats. A link that was not measured, such as that of a rank and itself, is NaN.

use std::{
    collections::BTreeMap,
    io::{BufReader, BufWriter, Read, Result, Seek, SeekFrom, Write},
};

use ombx_core::{result::Measurement, stats};

use crate::{
    file::Round,
    verdict::{Link, RETEST},
};

/// First bytes of a file: its name and version.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The header ends at a multiple of this number of bytes.
const ALIGNMENT: usize = 64;
/// Maximum number of values of an array in memory.
const MOST_VALUES: usize = 1 << 23;
/// Bytes of a row in a temporary file: two ranks and a time.
const ROW: usize = 12;

/// Rows of the sweeps of all launches in temporary files, each with a band of timed ranks: an array of any size takes little memory.
#[derive(Debug)]
pub struct Bands<F: Write> {
    ranks: u32,
    /// Number of timed ranks in a band.
    height: u32,
    open: fn() -> F,
    /// By message size and number of the band.
    files: BTreeMap<(u64, u32), BufWriter<F>>,
}

impl<F: Read + Write + Seek> Bands<F> {
    /// Starts without rows; `open` opens a temporary file.
    pub fn new(ranks: u32, open: fn() -> F) -> Bands<F> {
        let height = (MOST_VALUES as u32 / ranks.max(1)).max(1);
        Bands { ranks, height, open, files: BTreeMap::new() }
    }

    /// Adds a row, unless it measured a link again.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn add(&mut self, row: &Measurement) -> Result<()> {
        let rank = |axis: &str| row.axes.get(axis)?.parse().ok();
        match (row.bytes, rank("from"), rank("to"), &row.summary) {
            (Some(bytes), Some(from), Some(to), Some(summary)) if !row.axes.contains_key(RETEST) => {
                self.link(bytes, Link { from, to, ns: summary.median as f32 })
            }
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
        let open = self.open;
        let file = self.files.entry((bytes, from / self.height)).or_insert_with(|| BufWriter::new(open()));
        [from.to_le_bytes(), to.to_le_bytes(), ns.to_le_bytes()]
            .iter()
            .try_for_each(|part| file.write_all(part))
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the message sizes in the order of the array.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.files.keys().map(|(bytes, _)| *bytes).collect();
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
                let file = self.files.remove(&(bytes, first / self.height));
                let rows = file.map_or(Ok(Vec::new()), rows)?;
                write_band(out, rows, first as usize, [height, ranks])?;
            }
        }
        out.flush()
    }
}

/// Reads the rows of a temporary file.
fn rows<F: Read + Write + Seek>(file: BufWriter<F>) -> Result<Vec<Link>> {
    let mut file = file.into_inner()?;
    let mut file = {
        file.seek(SeekFrom::Start(0))?;
        BufReader::with_capacity(1 << 16, file)
    };
    let (mut rows, mut row) = (Vec::new(), [0; ROW]);
    while let Ok(()) = file.read_exact(&mut row) {
        let part = |at: usize| [row[at], row[at + 1], row[at + 2], row[at + 3]];
        let [from, to] = [part(0), part(4)].map(u32::from_le_bytes);
        rows.push(Link { from, to, ns: f32::from_le_bytes(part(8)) });
    }
    Ok(rows)
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
    use super::*;
    use std::io::Cursor;

    use ombx_core::stats::Summary;

    /// Returns the file of three ranks: (from + 1) x (to + 1) x bytes microseconds; nothing from rank 2 to rank 0.
    fn written(height: u32) -> Vec<u8> {
        let golden = crate::golden();
        let mut bands = Bands { height, ..Bands::new(3, Cursor::<Vec<u8>>::default) };
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
                let summary = Summary::of(&[factor * ns; 10]);
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
        let file = written(2);
        assert_eq!(file, written(9), "whatever the height of bands");
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((&file[..8], (10 + length) % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
        let text = std::str::from_utf8(&file[10..10 + length]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 3), }");
        assert!(text.ends_with(" \n") && file.len() == 10 + length + 2 * 3 * 3 * 8);
    }

    #[test]
    fn values_are_microseconds_by_size_from_and_to() {
        let file = written(1);
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
