//! What the user's terminal shows: colours, a progress bar, and how many columns.

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use ombx_record::error::{Error, Result};

use crate::launch::detection;

/// Facts about a standard stream and the environment.
struct StreamFacts<'e> {
    variable: &'e dyn Fn(&str) -> Option<String>,
    /// The stream is a terminal.
    is_terminal: bool,
    /// Open MPI's mpirun has started this process. It gives each rank a pseudo-terminal, wherever the user's output goes.
    is_forwarded: bool,
}

impl StreamFacts<'_> {
    /// Returns the value of a variable that is set and not empty.
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// Returns whether the cursor can be moved: the user looks at this stream on a terminal that is not dumb.
    fn is_interactive(&self) -> bool {
        self.is_terminal && !self.is_forwarded && self.set("TERM").is_none_or(|term| term != "dumb")
    }

    /// Returns whether text is coloured unless the user says otherwise. `NO_COLOR` wins over `CLICOLOR_FORCE`.
    fn is_coloured(&self) -> bool {
        let forced = self.set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let refused = self.set("CLICOLOR").is_some_and(|value| value == "0");
        self.set("NO_COLOR").is_none() && (forced || (self.is_interactive() && !refused))
    }

    /// Returns the width in columns: that of `COLUMNS`, else `size` if the user looks at the stream on a terminal.
    fn columns(&self, size: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let variable = self.set("COLUMNS").and_then(|columns| columns.parse().ok());
        let wide = || if self.is_terminal && !self.is_forwarded { size() } else { None };
        variable.or_else(wide).filter(|columns| *columns > 0)
    }
}

fn stream(is_terminal: bool) -> StreamFacts<'static> {
    StreamFacts {
        variable: &|name| env::var(name).ok(),
        is_terminal,
        is_forwarded: detection::is_under_open_mpi(),
    }
}

/// Returns whether text on standard output is coloured unless the user says otherwise.
pub fn stdout_is_coloured() -> bool {
    stream(io::stdout().is_terminal()).is_coloured()
}

/// Returns whether a person looks at standard output on a terminal.
pub fn stdout_is_interactive() -> bool {
    stream(io::stdout().is_terminal()).is_interactive()
}

/// Returns whether standard error can show a progress bar.
pub(crate) fn stderr_is_interactive() -> bool {
    stream(io::stderr().is_terminal()).is_interactive()
}

/// Returns the width of standard output in columns; `None` if neither `COLUMNS` nor a terminal limits it.
pub fn columns() -> Option<usize> {
    let size = || rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| size.ws_col.into());
    stream(io::stdout().is_terminal()).columns(size)
}

/// Returns the height of standard output in lines; `None` unless it is a terminal that tells it.
pub fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0 && stdout_is_interactive())
}

/// Returns columns and lines of standard error; `None` without a terminal that tells them.
pub(crate) fn stderr_size() -> Option<[usize; 2]> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| [size.ws_col.into(), size.ws_row.into()])
}

/// Prints a text and returns the exit code 0.
pub fn print(text: impl AsRef<[u8]>) -> Result<u8> {
    is_closed(io::stdout().lock().write_all(text.as_ref())).map(|_| 0)
}

/// Returns whether printing failed because the reader closed the pipe. Other failures are errors.
pub fn is_closed(printed: io::Result<()>) -> Result<bool> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(e) => Err(Error::storage(format!("standard output: {}", reason(&e)))),
        Ok(()) => Ok(false),
    }
}

/// Returns why a file cannot be written; a full disk is called so.
pub fn reason(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "your quota of the disk is used up".into(),
        _ => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::output::terminal::*;

    fn coloured(variables: &[(&str, &str)], is_terminal: bool, is_forwarded: bool) -> bool {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        StreamFacts { variable: &variable, is_terminal, is_forwarded }.is_coloured()
    }

    #[test]
    fn colours_follow_the_terminal_and_the_conventional_variables() {
        for (variables, is_terminal, is_forwarded, expected) in [
            (&[][..], true, false, true),
            (&[], false, false, false),
            (&[], true, true, false),
            (&[("NO_COLOR", "1")], true, false, false),
            (&[("NO_COLOR", "")], true, false, true),
            (&[("CLICOLOR_FORCE", "1")], false, false, true),
            (&[("CLICOLOR_FORCE", "1")], true, true, true),
            (&[("CLICOLOR_FORCE", "0")], false, false, false),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true, false, false),
            (&[("CLICOLOR", "0")], true, false, false),
            (&[("TERM", "dumb")], true, false, false),
            (&[("TERM", "xterm")], true, false, true),
        ] {
            let found = coloured(variables, is_terminal, is_forwarded);
            assert_eq!(found, expected, "{variables:?}, terminal {is_terminal}, forwarded {is_forwarded}");
        }
    }

    #[test]
    fn a_width_is_that_of_columns_or_of_a_terminal() {
        let columns = |variable: Option<&str>, is_terminal, is_forwarded| {
            let variable = |_: &str| variable.map(str::to_owned);
            StreamFacts { variable: &variable, is_terminal, is_forwarded }.columns(|| Some(100))
        };
        assert_eq!(columns(Some("60"), false, false), Some(60));
        assert_eq!(columns(Some("wide"), true, false), Some(100));
        assert_eq!(columns(None, true, false), Some(100));
        assert_eq!(columns(None, false, false), None);
        assert_eq!(columns(None, true, true), None);
    }
}
