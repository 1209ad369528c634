//! Every `allow` gives its reason.

use super::{Violation, source::Source};

pub(super) fn check(source: &Source) -> Vec<Violation> {
    let tokens = &source.tokens;
    let mut violations = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.text == "(");
        // `#[allow(`, `#![allow(`, or inside `#[cfg_attr(.., allow(`: never a call of a function named allow.
        let starts = at > 0 && ["[", ","].contains(&tokens[at - 1].text.as_str()) && in_attribute(source, at);
        if token.text == "allow" && opens && starts {
            let inside = tokens[at + 1..].iter().take_while(|token| token.text != ")");
            if !inside.map(|token| token.text.as_str()).any(|text| text == "reason") {
                violations.push(Violation::new(&source.path, token.line, "`allow` without a reason"));
            }
        }
    }
    violations
}

/// Whether the innermost square brackets around this token follow a `#`.
fn in_attribute(source: &Source, at: usize) -> bool {
    let mut depth = 0;
    for (place, token) in source.tokens[..at].iter().enumerate().rev() {
        match token.text.as_str() {
            "]" | "}" => depth += 1,
            "{" if depth == 0 => return false,
            "[" if depth == 0 => {
                let before = |back: usize| place.checked_sub(back).map(|i| source.tokens[i].text.as_str());
                return before(1) == Some("#") || (before(1) == Some("!") && before(2) == Some("#"));
            }
            "[" | "{" => depth -= 1,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Source::parse("a.rs", text).unwrap()).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_bare_allow_is_found() {
        assert_eq!(lines("#![allow(dead_code)]\n#[allow(unused)]\nfn f() {}"), [1, 2]);
        assert_eq!(lines("#[cfg_attr(test, allow(unused))]\nfn f() {}"), [1]);
    }

    #[test]
    fn an_allow_with_a_reason_passes() {
        assert!(
            lines("#[allow(unused, reason = \"the other MPI needs it\")]\nfn f() { [a, allow(b)]; }")
                .is_empty()
        );
    }
}
