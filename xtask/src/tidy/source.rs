//! A Rust file as tokens with lines, so that comments and strings are never mistaken for code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Violation;

/// A file of Rust.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) tokens: Vec<Token>,
}

/// One identifier, literal, punctuation character or bracket.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
    /// Whether it is in an item marked `#[cfg(test)]` or `#[test]`.
    pub(super) test: bool,
}

impl Source {
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, Violation> {
        let stream: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
            Violation::new(path, error.span().start().line, "cannot be read as Rust")
        })?;
        let mut tokens = Vec::new();
        flatten(stream, false, &mut tokens);
        Ok(Self { path: path.to_owned(), tokens })
    }

    /// The lines where these tokens follow one another.
    pub(super) fn find<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = &'a Token> {
        self.tokens
            .windows(wanted.len())
            .filter(move |window| window.iter().zip(wanted).all(|(token, text)| token.text == *text))
            .map(|window| &window[0])
    }

    /// Whether it is a crate's own code: not its tests, benches or build script.
    pub(super) fn is_crate(&self) -> bool {
        self.path.starts_with("crates/") && self.path.split('/').nth(2) == Some("src")
    }

    /// The crate's directory under `crates/`.
    pub(super) fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

fn flatten(stream: TokenStream, test: bool, tokens: &mut Vec<Token>) {
    // From a test attribute to the end of its item: the next braces, or the next semicolon.
    let mut item = false;
    let mut hash = false;
    for tree in stream {
        let test = test || item;
        let mut push = |text: String, line| tokens.push(Token { text, line, test });
        match tree {
            TokenTree::Group(group) => {
                item |= hash && marks_test(&group);
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), group.span_open().start().line);
                flatten(group.stream(), test, tokens);
                tokens.push(Token { text: close.into(), line: group.span_close().start().line, test });
                item &= group.delimiter() != Delimiter::Brace;
                hash = false;
            }
            TokenTree::Punct(punct) => {
                hash = punct.as_char() == '#' || (hash && punct.as_char() == '!');
                item &= punct.as_char() != ';';
                push(punct.as_char().to_string(), punct.span().start().line);
            }
            TokenTree::Ident(ident) => push(ident.to_string(), ident.span().start().line),
            TokenTree::Literal(literal) => push(literal.to_string(), literal.span().start().line),
        }
    }
}

/// `[cfg(test)]` or `[test]`.
fn marks_test(group: &Group) -> bool {
    let text: String = group.stream().to_string().split_whitespace().collect();
    group.delimiter() == Delimiter::Bracket && (text == "test" || text == "cfg(test)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "//! unsafe\n/* unsafe /* unsafe */ */ fn f<'a>() { let _ = (\"unsafe\", r#\"unsafe\"#, 'u'); }\nunsafe fn g() {}";
        let source = Source::parse("a.rs", text).unwrap();
        assert_eq!(source.find(&["unsafe"]).map(|token| token.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn test_items_are_marked_and_end() {
        let text = "#[cfg(test)]\nmod t { fn a() { inside(); } }\nfn b() { outside(); }\n#[cfg(test)] use x;\nfn after() {}";
        let source = Source::parse("a.rs", text).unwrap();
        let test = |name: &str| source.find(&[name]).next().unwrap().test;
        assert!(test("inside") && test("x"));
        assert!(!test("outside") && !test("after"));
    }

    #[test]
    fn what_is_no_rust_is_a_violation_with_its_line() {
        assert_eq!(Source::parse("a.rs", "fn f() {\n\n  \"\n").unwrap_err().path, "a.rs");
    }
}
