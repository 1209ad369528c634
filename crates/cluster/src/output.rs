//! Standard output; no other file of this crate prints.

use std::{
    fmt,
    io::{self, Write as _},
};

/// Prints a line. A closed standard output is ignored: all results are in files.
pub(crate) fn line(text: impl fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}
