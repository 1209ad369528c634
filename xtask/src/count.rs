//! `cargo xtask count`: lines of code, files and words of documents in the repository, and its structure.

use std::{collections::BTreeSet, path::Path};

use ombx_toolchain::{Failure, Result, Workspace, table};

use crate::{repository, source::Source, structure::Structure};

/// Count lines of code without comments, blanks and tests, files, words of documents, and circles of imports, of what git tracks
///
/// Fails if a circle of imports has more than 5 files, a crate more than 10,500 lines, or a started rank parses words of the user.
/// Lines of the second table have comments and blanks left out, and not the other items that are tests.
///
/// Tests are items marked `#[cfg(test)]`, modules that are declared so, files named tests.rs, and files in directories named tests.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask count")]
pub(crate) struct Options {}

pub(crate) fn main(_: &Options) -> Result<std::process::ExitCode> {
    let files = repository::files(&Workspace::read()?.root, &[])?;
    let rust = || files.iter().filter(|(path, _)| is_extension(path, "rs"));
    let sources = sources(&files)?;
    let tests: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    let mut counts = Counts::default();
    for ((_, text), source) in rust().zip(&sources) {
        counts.add(source, text, &tests);
    }
    for (_, text) in files.iter().filter(|(path, _)| is_document(path)) {
        counts.documents.add(words(text));
    }
    let structure = Structure::new(&files, &sources);
    println!("{}\n\n{}", counts.table(), structure.table());
    let broken = structure.broken();
    broken.iter().for_each(|sentence| println!("{sentence}"));
    Ok(if broken.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE })
}

/// Prints the bounds that do not hold, and returns their number.
pub(crate) fn check() -> Result<usize> {
    let files = repository::files(&Workspace::read()?.root, &[])?;
    let broken = Structure::new(&files, &sources(&files)?).broken();
    broken.iter().for_each(|sentence| println!("{sentence}"));
    Ok(broken.len())
}

fn sources(files: &[(String, String)]) -> Result<Vec<Source>> {
    let parsed = |(path, text): &(String, String)| {
        Source::parse(path, text).map_err(|line| Failure::Missing(format!("{path}:{line}: is not Rust")))
    };
    files.iter().filter(|(path, _)| is_extension(path, "rs")).map(parsed).collect()
}

fn is_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == extension)
}

fn is_document(path: &str) -> bool {
    is_extension(path, "md") || path.starts_with("docs/man/")
}

/// Returns the number of words, which have a letter or a digit: the bars of tables are none.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Returns the paths, without their ends, of modules that are declared as tests.
fn test_modules(source: &Source) -> Vec<String> {
    let path = source.path.trim_end_matches(".rs");
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let inside = if ["lib", "main"].contains(&name) { directory } else { path };
    let declared = source
        .tokens
        .windows(3)
        .filter(|window| window[0].text == "mod" && window[0].test && window[2].text == ";");
    declared.map(|window| format!("{inside}/{}", window[1].text)).collect()
}

/// Returns whether a whole file is a test.
fn is_test(path: &str, modules: &BTreeSet<String>) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop();
    let stem = path.trim_end_matches(".rs");
    let is_declared = |module: &String| {
        stem == *module || stem.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    name == Some("tests.rs") || folders.contains(&"tests") || modules.iter().any(is_declared)
}

/// Files, and their lines or words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    files: usize,
    amount: usize,
}

impl Count {
    fn add(&mut self, amount: usize) {
        self.files += 1;
        self.amount += amount;
    }
}

#[derive(Debug, Default)]
struct Counts {
    product: Count,
    verification: Count,
    others: Count,
    tests: Count,
    documents: Count,
}

impl Counts {
    fn add(&mut self, source: &Source, text: &str, modules: &BTreeSet<String>) {
        let [code, inline] = lines(source, text);
        if is_test(&source.path, modules) {
            self.tests.add(code + inline);
            return;
        }
        match source.path.split('/').next() {
            Some("crates") => &mut self.product,
            Some("verify" | "xtask") => &mut self.verification,
            _ => &mut self.others,
        }
        .add(code);
        self.tests.amount += inline;
    }

    fn table(&self) -> String {
        let line = |what: &str, count: &Count, unit: &str| {
            format!("{what} | {} | {} {unit}", count.files, count.amount)
        };
        table(
            "what | files | size",
            [
                line("product (crates)", &self.product, "lines"),
                line("verify and xtask", &self.verification, "lines"),
                line("examples and fuzz targets", &self.others, "lines"),
                line("tests, those inside other files too", &self.tests, "lines"),
                line("documents", &self.documents, "words"),
            ],
        )
    }
}

/// Returns the number of lines with code outside tests, and of those inside.
fn lines(source: &Source, text: &str) -> [usize; 2] {
    let texts: Vec<&str> = text.lines().collect();
    // The parser makes attributes of doc comments.
    let is_code = |line: &usize| texts.get(line - 1).is_some_and(|text| !text.trim_start().starts_with("//"));
    let of = |test: bool| -> BTreeSet<usize> {
        let tokens = source.tokens.iter().filter(|token| token.test == test);
        tokens.flat_map(|token| token.line..=token.end).filter(is_code).collect()
    };
    let [code, inline] = [of(false), of(true)];
    [code.len(), inline.difference(&code).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! A file.\n\n/// Says a.\nfn a() {\n    // Nothing.\n    b(\"one\n two\");\n}\n\n#[cfg(test)]\nmod t {\n    fn c() {}\n}\n";

    #[test]
    fn comments_blanks_and_tests_are_no_code() {
        let source = Source::parse("crates/core/src/a.rs", TEXT).unwrap();
        assert_eq!(lines(&source, TEXT), [4, 4]);
    }

    #[test]
    fn test_files_are_known_by_name_folder_and_declaration() {
        let source = Source::parse("crates/core/src/a.rs", "#[cfg(test)]\nmod model;\nmod b;\n").unwrap();
        let modules: BTreeSet<String> = test_modules(&source).into_iter().collect();
        for path in ["crates/core/src/a/tests.rs", "tests/tests/cli/main.rs", "crates/core/src/a/model/x.rs"]
        {
            assert!(is_test(path, &modules), "{path}");
        }
        assert!(!is_test("crates/core/src/a/b.rs", &modules) && !is_test("crates/core/src/b.rs", &modules));
    }

    #[test]
    fn each_kind_of_file_is_counted_apart() {
        let mut counts = Counts::default();
        for path in ["crates/core/src/a.rs", "xtask/src/a.rs", "fuzz/a.rs", "crates/core/tests/a.rs"] {
            counts.add(&Source::parse(path, TEXT).unwrap(), TEXT, &BTreeSet::new());
        }
        for count in [&counts.product, &counts.verification, &counts.others] {
            assert_eq!(*count, Count { files: 1, amount: 4 });
        }
        assert_eq!(counts.tests, Count { files: 1, amount: 8 + 3 * 4 });
    }
}
