//! Modules, items, `use` declarations and paths of one file, found in its tokens.

use std::collections::BTreeSet;

use crate::source::{Source, Token};

/// Module that a file contains: the file itself, or an inline `mod x { .. }`.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Path of inline modules within the file; empty for the file itself.
    pub(super) inline: Vec<String>,
    /// Modules in other files: `mod x;`.
    pub(super) files: Vec<String>,
    /// Functions, types, constants and traits that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Paths of two or more segments in its code, for example `crate::a::b`.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Macros with `#[macro_export]`, which are items of the crate's root.
    pub(super) exported_macros: Vec<String>,
}

/// Name that a `use` declaration brings into a module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// Name in the module; `*` of a glob.
    pub(super) name: String,
    /// Whether other modules may use the name: `pub`, `pub(crate)` and so on.
    pub(super) public: bool,
}

const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Returns the modules of a file without its tests. The first is the file itself.
pub(super) fn modules(source: &Source) -> Vec<Module> {
    let tokens: Vec<&Token> = source.tokens.iter().filter(|token| !token.test).collect();
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut found = Vec::new();
    scan(&words, Vec::new(), &mut found);
    // Inline modules were found before the modules that contain them.
    found.reverse();
    found
}

fn scan(words: &[&str], inline: Vec<String>, found: &mut Vec<Module>) {
    let mut module = Module { inline, ..Module::default() };
    let (mut at, mut depth) = (0, 0_usize);
    while at < words.len() {
        let word = |ahead: usize| words.get(at + ahead).copied().unwrap_or_default();
        match words[at] {
            "mod" if depth == 0 && word(2) == ";" => module.files.push(word(1).to_owned()),
            "mod" if depth == 0 && word(2) == "{" => {
                let end = at + 3 + closing(&words[at + 3..]);
                let inline = [&*module.inline, &[word(1).to_owned()]].concat();
                scan(&words[at + 3..end], inline, found);
                at = end + 1;
                continue;
            }
            "use" => {
                let end = at + words[at..].iter().position(|word| *word == ";").unwrap_or(words.len() - at);
                let public = at > 0 && ["pub", ")"].contains(&words[at - 1]);
                tree(&words[at + 1..end], &[], public, &mut module.uses);
                at = end;
            }
            "macro_rules" => {
                let exported = words[..at].ends_with(&["#", "[", "macro_export", "]"]);
                if exported {
                    module.exported_macros.push(word(2).to_owned());
                }
            }
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            item if depth == 0 && ITEMS.contains(&item) => {
                let name = if word(1) == "mut" { word(2) } else { word(1) };
                if is_name(name) && !ITEMS.contains(&name) {
                    module.items.insert(name.to_owned());
                }
            }
            _ => {}
        }
        let follows = at > 0 && [":", "."].contains(&words[at - 1]) && words[at.saturating_sub(2)] != ",";
        let follows = follows && (words[at - 1] == "." || at > 1 && words[at - 2] == ":");
        if at < words.len() && is_name(words[at]) && !follows {
            let path = path(&words[at..]);
            if path.len() > 1 {
                module.paths.insert(path);
            }
        }
        at += 1;
    }
    found.push(module);
}

/// Returns the position of the brace that closes the one before these words.
fn closing(words: &[&str]) -> usize {
    let mut depth = 1;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len()
}

/// Segments of the path at the start of these words.
fn path(words: &[&str]) -> Vec<String> {
    let mut segments = vec![words[0].to_owned()];
    let mut rest = &words[1..];
    while let [":", ":", name, ..] = rest
        && is_name(name)
    {
        segments.push((*name).to_owned());
        rest = &rest[3..];
    }
    segments
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !word.contains(['"', '\''])
}

/// Adds the names of a tree of `use`: `a::{b, c as d, e::*}`.
fn tree(words: &[&str], prefix: &[String], public: bool, uses: &mut Vec<Use>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < words.len() {
        match words[at] {
            ":" => {}
            "{" => {
                let inside = &words[at + 1..at + 1 + closing(&words[at + 1..])];
                let (mut start, mut depth) = (0, 0);
                for (at, word) in inside.iter().chain([&","]).enumerate() {
                    match *word {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        "," if depth == 0 => {
                            tree(&inside[start..at], &path, public, uses);
                            start = at + 1;
                        }
                        _ => {}
                    }
                }
                return;
            }
            "*" => return uses.push(Use { path, name: "*".into(), public }),
            "as" => {
                let name = words.get(at + 1).copied().unwrap_or_default().to_owned();
                return uses.push(Use { path, name, public });
            }
            // `a::{self}` is `a`.
            "self" if !path.is_empty() => {}
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned() {
        uses.push(Use { path, name, public });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Vec<Module> {
        modules(&Source::parse("a.rs", text).unwrap())
    }

    #[test]
    fn a_use_tree_is_split_into_names() {
        let all = scanned("pub(crate) use a::{self, b::C as D, e::{f, g::*}};\nuse h;");
        let names: Vec<(String, &str, bool)> =
            all[0].uses.iter().map(|one| (one.path.join("::"), &*one.name, one.public)).collect();
        let expected = [
            ("a", "a", true),
            ("a::b::C", "D", true),
            ("a::e::f", "f", true),
            ("a::e::g", "*", true),
            ("h", "h", false),
        ];
        assert_eq!(names, expected.map(|(path, name, public)| (path.to_owned(), name, public)));
    }

    #[test]
    fn items_are_those_of_the_module_alone() {
        let all = scanned(
            "const fn f() { fn inner() {} }\nstatic mut S: u8 = 0;\nimpl T { fn method() {} }\nmod a;\nmod b { struct B; }\n\
             #[cfg(test)] mod tests { struct Unseen; }",
        );
        assert_eq!(all[0].items.iter().collect::<Vec<_>>(), ["S", "f"]);
        assert_eq!(all[0].files, ["a"]);
        assert_eq!((&all[1].inline, all[1].items.contains("B")), (&vec!["b".to_owned()], true));
    }

    #[test]
    fn paths_in_code_and_in_macros_are_found() {
        let all = scanned(
            "/// crate::doc::X\nfn f(x: crate::a::B) -> Vec<super::C> { m!(\"{}\", y::z(), w.v::<T>()); x.y }",
        );
        let paths: Vec<String> = all[0].paths.iter().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["crate::a::B", "super::C", "y::z"]);
    }
}
