//! What programs read of a command that fails: the line for monitoring systems, exactly one, and errors as JSON.

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
};

use ombx_record::error::{Error, Kind, Result};
use ombx_show::monitoring::{Figure, Status, line};
use serde_json::json;

use crate::{launch::detection, output::terminal};

/// Values of `--format`.
const FORMAT: &str = "nagios";
const JSON: &str = "json";
/// Commands that have this format.
const SERVICES: [&str; 3] = ["check", "doctor", "links"];

/// Whether the line was printed.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Returns the command of a command line that asks for the line; `None` for others.
pub fn service(words: &[OsString]) -> Option<&'static str> {
    let service = SERVICES.into_iter().find(|service| words.get(1).is_some_and(|word| word == service))?;
    is_asked(words, FORMAT).then_some(service)
}

/// Returns whether a command line asks for a format.
fn is_asked(words: &[OsString], format: &str) -> bool {
    let own = || words.iter().take_while(|word| *word != "--");
    own().zip(own().skip(1)).any(|(option, value)| option == "--format" && value == format)
        || own().any(|word| word.to_str() == Some(&format!("--format={format}")))
}

/// Returns an error as one JSON object for a command line that asks for JSON; `None` for others.
pub fn error_as_json(words: &[OsString], error: &Error) -> Option<String> {
    let message = crate::stderr::printable(&error.to_string());
    let described = json!({"error": {"message": message, "exit_code": error.kind().exit_code()}});
    is_asked(words, JSON).then(|| format!("{described}\n"))
}

/// Notes that the line was printed.
pub(crate) fn printed() {
    PRINTED.store(true, Ordering::Relaxed);
}

/// Prints the line and returns the exit code.
pub fn print(service: &str, status: Status, text: &str, figures: &[Figure]) -> Result<u8> {
    printed();
    terminal::print(line(service, status, text, figures)).map(|_| status.code())
}

/// Prints the line of a command that has not printed it, and returns the exit code.
pub fn conclude(service: &str, ended: Result<u8>) -> u8 {
    let printed = PRINTED.load(Ordering::Relaxed);
    let (status, text) = match ended {
        // Help and version have no line either.
        Ok(code) if printed || code == 0 => return code,
        Ok(_) => (Status::Unknown, "not complete: see the messages on standard error".to_owned()),
        Err(error) => {
            // A mistake says nothing about the system.
            let status = match error.kind() {
                Kind::Fabric | Kind::Payload => Status::Critical,
                Kind::Usage | Kind::Unsupported | Kind::Storage => Status::Unknown,
            };
            (status, crate::stderr::printable(&error.to_string()))
        }
    };
    match (detection::is_first_process(), printed) {
        (true, false) => print(service, status, &text, &[]).unwrap_or(status.code()),
        (true, true) => {
            stderr_line!("ombx: {text}");
            status.code()
        }
        (false, _) => status.code(),
    }
}

#[cfg(test)]
mod tests {
    use crate::output::monitoring::*;

    #[test]
    fn the_format_is_found_in_the_words() {
        let of = |line: &str| service(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("ombx links -n 2 --format nagios"), Some("links"));
        assert_eq!(of("ombx doctor --format=nagios"), Some("doctor"));
        for other in ["ombx links --format json", "ombx run nagios --format", "ombx run x --format nagios"] {
            assert_eq!(of(other), None, "{other}");
        }
        let error = Error::usage("no");
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let json = |line: &str| error_as_json(&words(line), &error);
        let expected = "{\"error\":{\"exit_code\":2,\"message\":\"no\"}}\n";
        assert_eq!(json("ombx compare a b --format=json").as_deref(), Some(expected));
        assert_eq!(json("ombx compare a b -- --format json"), None);
    }
}
