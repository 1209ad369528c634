//! Values of parameters that are lists of pairs of numbers in a file of the user.

use std::path::Path;

use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named_on_ranks, shown_name},
};

use crate::benchmark::Parameter;

/// End of the placeholder of parameters that may be in a file.
const OR_FILE: &str = "@FILE";

/// Returns the value of a parameter: itself, or the list in the file that it names.
///
/// # Errors
/// Usage error for a file that cannot be read or that has other lines.
pub fn content(parameter: &Parameter, value: &str) -> Result<String> {
    match value
        .strip_prefix('@')
        .filter(|_| parameter.placeholder().is_some_and(|value| value.ends_with(OR_FILE)))
    {
        Some(path) => read(&format!("--{}", parameter.name), path),
        None => Ok(value.to_owned()),
    }
}

/// Returns the pairs of a file as a list. Each line has two numbers with a comma between them. Lines that begin with # are comments.
///
/// # Errors
/// Usage error for a file that cannot be read or that has other lines.
pub fn read(option: &str, path: &str) -> Result<String> {
    let name = shown_name(Path::new(path));
    let text = read_named_on_ranks(Path::new(path))
        .map_err(|e| Error::usage(format!("{option}: cannot read {name}: {e}")))?;
    list(option, path, &text)
}

fn list(option: &str, path: &str, text: &str) -> Result<String> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match line.split_once(',').map(|(one, other)| (one.trim(), other.trim())) {
            Some((one, other)) if is_number(one) && is_number(other) => pairs.push(format!("{one}:{other}")),
            _ => {
                return Err(Error::usage(format!(
                    "{option}: {path}:{number}: {line:?} is no pair of numbers: give one a line, as 0,8"
                )));
            }
        }
    }
    if pairs.is_empty() {
        Err(Error::usage(format!("{option}: {path} lists nothing: give a pair of numbers a line, as 0,8")))
    } else {
        Ok(pairs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_pairs() {
        assert_eq!(list("--blocks", "f", "# displacement, length\n0,8\n\n 24 , 16 \n").unwrap(), "0:8,24:16");
        for (text, why) in
            [("0,8\n1;2", "f:2"), ("# nothing", "lists nothing"), ("0,8,9", "f:1"), ("-1,2", "f:1")]
        {
            assert!(list("--blocks", "f", text).unwrap_err().to_string().contains(why), "{text}");
        }
    }
}
