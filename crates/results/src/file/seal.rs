//! CRC-32 at the end of each line, which shows that the line was changed or damaged after it was written.

const START: &str = ",\"checksum\":\"";
const END: &str = "\"}";
/// Digits of the checksum.
const DIGITS: usize = 8;

/// Adds the checksum of the bytes before its closing brace to a JSON object, as its last field.
pub(crate) fn add(line: &mut Vec<u8>) {
    if line.pop_if(|last| *last == b'}').is_some() {
        let sum = crc32fast::hash(line);
        line.extend(format!("{START}{sum:08x}{END}").into_bytes());
    }
}

/// What the checksum of a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    Intact,
    Broken,
    /// Other programs may write none.
    Absent,
}

/// Compares a line with its checksum.
pub(crate) fn of(line: &str) -> Seal {
    let split = || {
        let (content, end) =
            line.split_at_checked(line.len().checked_sub(START.len() + DIGITS + END.len())?)?;
        let digits = end.strip_prefix(START)?.strip_suffix(END)?;
        Some((content, u32::from_str_radix(digits, 16).ok()?))
    };
    match split() {
        None => Seal::Absent,
        Some((content, sum)) if crc32fast::hash(content.as_bytes()) == sum => Seal::Intact,
        Some(_) => Seal::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_noticed() {
        let mut line = br#"{"kind":"end","cases":3}"#.to_vec();
        assert_eq!(of(std::str::from_utf8(&line).unwrap()), Seal::Absent);
        add(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(of(&line) == Seal::Intact && serde_json::from_str::<serde_json::Value>(&line).is_ok());
        assert_eq!(of(&line.replace(":3", ":4")), Seal::Broken);
        assert_eq!([of(""), of("{}")], [Seal::Absent; 2]);
    }
}
