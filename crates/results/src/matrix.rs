//! Times of links as a dense array in NumPy's file format, version 1.0.
//!
//! The array has the axes message size (ascending), timed rank, and answering rank. Its values are median times of one message in
//! microseconds, as 64-bit floats. A link that was not measured, such as that of a rank and itself, is NaN.

use std::io::{Result, Write};

use crate::verdict::LinkSweep;

/// First bytes of a file: its name and version.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The header ends at a multiple of this number of bytes.
const ALIGNMENT: usize = 64;

/// Returns the message sizes of a sweep in the order of the array.
pub fn sizes(sweep: &LinkSweep) -> Vec<u64> {
    let mut sizes: Vec<u64> = sweep.times().0.iter().map(|times| times.bytes).collect();
    sizes.sort_unstable();
    sizes
}

/// Writes the array of a sweep. Times of several launches are medians over the launches.
pub fn write(out: &mut dyn Write, sweep: &LinkSweep) -> Result<()> {
    let ranks = sweep.hosts.ranks() as usize;
    let mut all = sweep.times().0;
    all.sort_by_key(|times| times.bytes);
    out.write_all(&header([all.len(), ranks, ranks]))?;
    for times in all {
        let mut us = vec![f64::NAN; ranks * ranks];
        for link in times.sweep {
            let (from, to) = (link.from as usize, link.to as usize);
            if from.max(to) < ranks {
                us[from * ranks + to] = f64::from(link.ns) / 1e3;
            }
        }
        let bytes: Vec<u8> = us.iter().flat_map(|us| us.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    out.flush()
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
    use ombx_core::{result::Measurement, stats::Summary, team::Place};

    /// Returns the file of three ranks: (from + 1) x (to + 1) x bytes microseconds; nothing from rank 2 to rank 0.
    fn written() -> Vec<u8> {
        let golden = crate::golden();
        let place = |host: &str| Place { host: host.into(), ..golden.run.places[0].clone() };
        let mut run = golden.run.clone();
        run.places = ["a", "b", "c"].map(place).into();
        let mut sweep = LinkSweep::of_run(&run);
        for (bytes, from, to) in
            [64u64, 8].into_iter().flat_map(|b| (0..9u32).map(move |at| (b, at / 3, at % 3)))
        {
            if from == to || (from, to) == (2, 0) {
                continue;
            }
            let ns = f64::from((from + 1) * (to + 1)) * bytes as f64 * 1e3;
            let axes = [("from", from), ("to", to)].map(|(name, value)| (name.to_owned(), value.to_string()));
            let summary = Summary::of(&[ns; 10]);
            sweep.add(&Measurement {
                bytes: Some(bytes),
                axes: axes.into(),
                summary,
                ..golden.rows[0].clone()
            });
        }
        assert_eq!(sizes(&sweep), [8, 64]);
        let mut out = Vec::new();
        write(&mut out, &sweep).unwrap();
        out
    }

    #[test]
    fn the_header_is_that_of_numpy() {
        let file = written();
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((&file[..8], (10 + length) % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
        let text = std::str::from_utf8(&file[10..10 + length]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 3), }");
        assert!(text.ends_with(" \n") && file.len() == 10 + length + 2 * 3 * 3 * 8);
    }

    #[test]
    fn values_are_microseconds_by_size_from_and_to() {
        let file = written();
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
