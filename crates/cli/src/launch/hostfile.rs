//! Host files: each line names hosts, in the format of any launcher. `#` and `//` begin a comment.

use std::{fmt::Display, path::Path};

use ombx_core::{
    error::{Error, Result},
    system::file::read_named,
};

/// Lines of a host file that name hosts. There is at least one.
pub(crate) struct Hostfile(Vec<Line>);

struct Line {
    text: String,
    /// Name of the file and number of the line.
    place: String,
}

impl Hostfile {
    pub(crate) fn read(path: &Path) -> Result<Hostfile> {
        let name = path.display().to_string();
        match read_named(path) {
            Ok(text) => Hostfile::parse(&name, &text),
            Err(e) => Err(Error::usage(format!("cannot read the host file {name}: {e}"))),
        }
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Hostfile> {
        let wrong = |why: &dyn Display| Err(Error::usage(format!("the host file {name} {why}")));
        if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
            return wrong(&"is not a text file");
        }
        let lines = text.lines().map(before_comment);
        let lines = (1..).zip(lines).filter(|(_, text)| !text.is_empty());
        let line =
            |(number, text): (u32, &str)| Line { text: text.into(), place: format!("{name}, line {number}") };
        let lines: Vec<Line> = lines.map(line).collect();
        let file = Hostfile(lines);
        if file.0.is_empty() { wrong(&"names no host") } else { Ok(file) }
    }

    /// Parses each line. Errors name the file and the line.
    pub(crate) fn each<T>(&self, parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
        self.0.iter().map(|line| parse(&line.text).map_err(|e| e.within(&line.place))).collect()
    }
}

/// Returns a line without its comment.
fn before_comment(line: &str) -> &str {
    let end = line.find('#').into_iter().chain(line.find("//")).min();
    line[..end.unwrap_or(line.len())].trim()
}
