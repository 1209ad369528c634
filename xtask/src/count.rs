//! `cargo xtask count`: lines of code, files and words of documents in the repository.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use ombx_toolchain::{
    command::output,
    failure::{Failure, Result},
    table::table,
    workspace::Workspace,
};

use crate::source::Source;

/// Count lines of code without comments, blanks and tests, files, and words of documents, of what git tracks
///
/// Tests are items marked `#[cfg(test)]`, modules that are declared so, files named tests.rs, and files in directories named tests.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask count")]
pub(crate) struct Options {}

pub(crate) fn main(_: &Options) -> Result<std::process::ExitCode> {
    let root = Workspace::read()?.root;
    let mut counts = Counts::default();
    let files = tracked(&root)?;
    let sources: Vec<&File> = files.iter().filter(|file| is_extension(&file.path, "rs")).collect();
    let parsed: Vec<Source> = sources.iter().map(|file| parsed(file)).collect::<Result<_>>()?;
    let tests: BTreeSet<String> = parsed.iter().flat_map(test_modules).collect();
    for (file, source) in sources.iter().zip(&parsed) {
        counts.add(file, source, &tests);
    }
    for document in files.iter().filter(|file| is_document(&file.path)) {
        counts.documents.add(words(&document.text));
    }
    println!("{}", counts.table());
    Ok(std::process::ExitCode::SUCCESS)
}

/// Text file that git tracks.
struct File {
    /// Path relative to the root.
    path: String,
    text: String,
}

/// Reads the files that git tracks. Leaves out binary files, links, and files that are removed in the work tree.
fn tracked(root: &Path) -> Result<Vec<File>> {
    let paths = output(Command::new("git").arg("ls-files").current_dir(root))?;
    let read = |path: &str| {
        let file = root.join(path);
        let is_file = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
        let text = is_file.then(|| fs::read_to_string(file).ok()).flatten()?;
        Some(File { path: path.to_owned(), text })
    };
    Ok(paths.lines().filter_map(read).collect())
}

fn parsed(file: &File) -> Result<Source> {
    Source::parse(&file.path, &file.text)
        .map_err(|line| Failure::Missing(format!("{}:{line}: is not Rust", file.path)))
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
    fn add(&mut self, file: &File, source: &Source, modules: &BTreeSet<String>) {
        let [code, inline] = lines(source, &file.text);
        if is_test(&file.path, modules) {
            self.tests.add(code + inline);
            return;
        }
        match file.path.split('/').next() {
            Some("crates") => &mut self.product,
            Some("verify" | "xtask") => &mut self.verification,
            _ => &mut self.others,
        }
        .add(code);
        self.tests.amount += inline;
    }

    fn table(&self) -> String {
        let line = |what: &str, count: &Count, unit: &str| {
            vec![what.to_owned(), count.files.to_string(), format!("{} {unit}", count.amount)]
        };
        table(
            &["what", "files", "size"],
            vec![
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
            let file = File { path: path.into(), text: TEXT.into() };
            counts.add(&file, &Source::parse(path, TEXT).unwrap(), &BTreeSet::new());
        }
        for count in [&counts.product, &counts.verification, &counts.others] {
            assert_eq!(*count, Count { files: 1, amount: 4 });
        }
        assert_eq!(counts.tests, Count { files: 1, amount: 8 + 3 * 4 });
    }
}
