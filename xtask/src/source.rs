//! Rust files as tokens with lines: comments and strings are never mistaken for code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path relative to the root of the workspace.
    pub(crate) path: String,
    pub(crate) tokens: Vec<Token>,
}

/// Identifier, literal, punctuation character or bracket.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Last line, of a literal with several.
    pub(crate) end: usize,
    /// Whether it is in an item marked `#[cfg(test)]` or `#[test]`.
    pub(crate) test: bool,
}

impl Source {
    /// Splits a text into tokens. The error is the line that is not Rust.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, usize> {
        let stream: TokenStream =
            text.parse().map_err(|error: proc_macro2::LexError| error.span().start().line)?;
        let mut tokens = Vec::new();
        flatten(stream, false, &mut tokens);
        Ok(Self { path: path.to_owned(), tokens })
    }

    /// Returns the first token of each place where the wanted tokens follow one another.
    pub(crate) fn find<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = &'a Token> {
        self.tokens
            .windows(wanted.len())
            .filter(move |window| window.iter().zip(wanted).all(|(token, text)| token.text == *text))
            .map(|window| &window[0])
    }

    /// Returns whether it is code of a crate below `crates/`, and not one of its tests, benches or build scripts.
    pub(crate) fn is_crate(&self) -> bool {
        self.path.starts_with("crates/") && self.path.split('/').nth(2) == Some("src")
    }

    /// Returns the directory of the crate below `crates/`, if the file is in one.
    pub(crate) fn crate_directory(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

fn flatten(stream: TokenStream, test: bool, tokens: &mut Vec<Token>) {
    // From a test attribute to the end of its item: the next braces, or the next semicolon.
    let mut item = false;
    let mut hash = false;
    for tree in stream {
        if let TokenTree::Group(group) = &tree
            && hash
            && marks_test(group)
        {
            item = true;
            // The attribute belongs to the test.
            if let Some(hash) = tokens.last_mut() {
                hash.test = true;
            }
        }
        let test = test || item;
        let mut push = |text: String, line| tokens.push(Token { text, line, end: line, test });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), group.span_open().start().line);
                flatten(group.stream(), test, tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.into(), line, end: line, test });
                item &= group.delimiter() != Delimiter::Brace;
                hash = false;
            }
            TokenTree::Punct(punct) => {
                hash = punct.as_char() == '#' || (hash && punct.as_char() == '!');
                item &= punct.as_char() != ';';
                push(punct.as_char().to_string(), punct.span().start().line);
            }
            TokenTree::Ident(ident) => push(ident.to_string(), ident.span().start().line),
            TokenTree::Literal(literal) => {
                let span = literal.span();
                let (line, end) = (span.start().line, span.end().line);
                tokens.push(Token { text: literal.to_string(), line, end, test });
            }
        }
    }
}

/// Returns whether a group is `[cfg(test)]`, `[cfg(all(test, ..))]` or `[test]`.
fn marks_test(group: &Group) -> bool {
    let text: String = group.stream().to_string().split_whitespace().collect();
    group.delimiter() == Delimiter::Bracket
        && (["test", "cfg(test)"].contains(&&*text) || text.starts_with("cfg(all(test,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "//! unsafe\n/* unsafe /* unsafe */ */ fn f<'a>() { let _ = (\"unsafe\", r#\"unsafe\"#, \
                    'u'); }\nunsafe fn g() {}";
        let source = Source::parse("a.rs", text).unwrap();
        assert_eq!(source.find(&["unsafe"]).map(|token| token.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn test_items_are_marked_and_end() {
        let text = "#[cfg(test)]\nmod t { fn a() { inside(); } }\nfn b() { outside(); }\n\
                    #[cfg(test)] use x;\nfn after() {}";
        let source = Source::parse("a.rs", text).unwrap();
        let test = |name: &str| source.find(&[name]).next().unwrap().test;
        assert!(test("inside") && test("x"));
        assert!(!test("outside") && !test("after"));
    }

    #[test]
    fn a_file_that_is_not_rust_is_an_error() {
        assert!(Source::parse("a.rs", "fn f() {\n\n  \"\n").is_err());
    }
}
