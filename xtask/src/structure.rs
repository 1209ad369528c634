//! How much of the code depends on itself: circles of imports, sizes of crates, and names with several meanings.
//!
//! The rules read text: a file counts up to its tests, without comments.

use std::collections::{BTreeMap, BTreeSet};

use ombx_toolchain::table;

use crate::source::{Source, Token};

/// Largest circle of imports, and largest crate in lines, with which a change passes.
const MOST_IN_CIRCLE: usize = 5;
const MOST_IN_CRATE: usize = 10_500;

/// Crates whose circles had more than [`MOST_IN_CIRCLE`] files, with the former number. `draw` was `plot`, and `launch` a part of `cli`.
const FORMER_CIRCLES: [(&str, usize); 6] =
    [("cli", 29), ("core", 20), ("sockets", 12), ("report", 8), ("draw", 7), ("launch", 29)];
/// Crates in which something happens in a run, and what tells it.
const OF_RUNS: [&str; 4] = ["core", "launch", "record", "show"];
const VOCABULARIES: [&str; 6] = ["Event", "Line", "Message", "Record", "Renderer", "Sink"];
/// Structs that hold a lot.
const WIDE: [&str; 4] = ["History", "Output", "Plan", "Table"];
/// Codes of marks that were written as texts most often.
const CODES: [&str; 9] = [
    "\"no_interval\"",
    "\"preempted\"",
    "\"crowded\"",
    "\"bimodal\"",
    "\"waited\"",
    "\"oversubscribed\"",
    "\"not_converged\"",
    "\"autocorrelated\"",
    "\"few_launches\"",
];

/// A number with its value of 28 November 2026 and its goal.
struct Number {
    what: String,
    before: &'static str,
    now: usize,
    goal: usize,
    /// A change fails with a value beyond the goal.
    is_bound: bool,
}

/// File of a crate: its module, and its text up to its tests, without comments.
struct File {
    module: String,
    text: String,
}

impl File {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim().is_empty())
    }
}

/// Numbers of the structure of a repository.
pub(crate) struct Structure(Vec<Number>);

impl Structure {
    /// Counts in files with their texts. `sources` are those files that are Rust.
    pub(crate) fn new(files: &[(String, String)], sources: &[Source]) -> Structure {
        let crates = crates(files);
        let size = |name: &str| -> usize {
            crates.get(name).into_iter().flatten().map(|file| file.lines().count()).sum()
        };
        let product = || crates.values().flatten();
        let text_of = |path: &'static str| text(files, path);
        let number =
            |what: &str, before, now, goal| Number { what: what.into(), before, now, goal, is_bound: false };
        let mut numbers = Vec::new();
        let former = FORMER_CIRCLES.iter().map(|(name, _)| *name);
        let circles: BTreeMap<&str, usize> =
            crates.iter().map(|(name, files)| (name.as_str(), largest_circle(files))).collect();
        let (worst, largest) =
            circles.iter().max_by_key(|(_, files)| **files).map_or(("", 0), |(name, files)| (*name, *files));
        for (name, before) in former.zip(["29", "20", "12", "8", "7", "29"]) {
            let now = circles.get(name).copied().unwrap_or_default();
            numbers.push(number(
                &format!("files in the largest circle of imports of {name}"),
                before,
                now,
                MOST_IN_CIRCLE,
            ));
        }
        let bound = |what: String, before, now, goal| Number { what, before, now, goal, is_bound: true };
        numbers.push(bound(
            format!("files in the largest circle of all crates ({worst})"),
            "29",
            largest,
            MOST_IN_CIRCLE,
        ));

        let of_runs = |source: &&Source| source.crate_directory().is_some_and(|name| OF_RUNS.contains(&name));
        let words = sources.iter().filter(of_runs).filter(|source| source.is_crate());
        let words: Vec<usize> =
            words.flat_map(|source| VOCABULARIES.map(|name| members(source, name))).flatten().collect();
        let several = words.iter().filter(|count| **count > 1).count();
        numbers.push(number(
            "vocabularies of a run: types with several variants or functions",
            "5",
            several,
            2,
        ));
        numbers.push(number(
            "their variants and functions, with those of a sink",
            "44",
            words.iter().sum(),
            20,
        ));

        let launch = crates.get("launch").map(Vec::as_slice).unwrap_or_default();
        let with_clap = launch.iter().filter(|file| file.text.contains("clap")).count();
        numbers.push(number("files of launch, rank, job and output that use clap", "21", with_clap, 0));
        let main = text_of("crates/cli/src/lib.rs");
        let is_parsed = main.find("role::started").is_none_or(|at| main[..at].contains("dispatch("));
        let links_parser = usize::from(text_of("crates/launch/Cargo.toml").contains("\nclap"));
        numbers.push(bound(
            "parsers of words in a started rank".into(),
            "2",
            links_parser + usize::from(is_parsed),
            0,
        ));

        let cli = crates.get("cli").map(Vec::as_slice).unwrap_or_default();
        let conditional = |line: &&str| line.find("cfg(").is_some_and(|at| line[at..].contains("feature"));
        let features = cli.iter().flat_map(File::lines).filter(conditional).count();
        numbers.push(number("cfg(feature ..) in cli", "81", features, 20));
        let read_by = needed("record", files);
        let reading = read_by.iter().map(|name| size(name)).sum();
        let read_by: Vec<String> = read_by.into_iter().collect();
        numbers.push(number(
            &format!("lines that a program compiles to read result files ({})", read_by.join(", ")),
            "29500",
            reading,
            5000,
        ));
        let (name, most) = crates
            .keys()
            .map(|name| (name, size(name)))
            .max_by_key(|(_, size)| *size)
            .unwrap_or_else(|| unreachable!("a workspace has crates"));
        numbers.push(bound(format!("lines of the largest crate ({name})"), "17145", most, MOST_IN_CRATE));

        let of_product = || sources.iter().filter(|source| product_module(&source.path).is_some());
        let widest = of_product().flat_map(|source| WIDE.map(|name| fields(source, name))).max();
        numbers.push(number(
            "fields of the widest of History, Output, Plan, Table",
            "26",
            widest.unwrap_or_default(),
            12,
        ));
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        of_product().flat_map(type_names).for_each(|name| *names.entry(name).or_default() += 1);
        let shared = names.values().filter(|types| **types >= 4).count();
        numbers.push(number("names of four or more types", "16", shared, 0));
        let codes = product()
            .map(|file| CODES.iter().map(|code| codes_as_texts(&file.text, code)).sum::<usize>())
            .sum();
        numbers.push(number("codes of marks as texts", "38", codes, 0));
        let long = product().flat_map(File::lines).filter(|line| line.chars().count() > 120).count();
        numbers.push(number("lines of code above 120 characters", "445", long, 150));
        let is_package = |path: &str| path.starts_with("verify/") && path.ends_with("/Cargo.toml");
        let verify = files.iter().filter(|(path, _)| is_package(path)).count();
        numbers.push(number("packages in verify", "13", verify, 6));
        numbers.push(number("product lines", "71900", crates.keys().map(|name| size(name)).sum(), 69_000));
        Structure(numbers)
    }

    /// Returns the table of all numbers.
    pub(crate) fn table(&self) -> String {
        let line = |number: &Number| {
            let Number { what, before, now, goal, .. } = number;
            format!("{what} | {before} | {now} | {goal} | {}", if now <= goal { "met" } else { "missed" })
        };
        table("number | 28 Nov 2026 | now | at most | goal", self.0.iter().map(line).collect::<Vec<_>>())
    }

    /// Returns a sentence for each bound that does not hold.
    pub(crate) fn broken(&self) -> Vec<String> {
        let beyond = self.0.iter().filter(|number| number.is_bound && number.now > number.goal);
        beyond
            .map(|Number { what, now, goal, .. }| format!("{what}: {now}, at most {goal} are allowed"))
            .collect()
    }
}

/// Returns the text of a file, empty without it.
fn text<'f>(files: &'f [(String, String)], path: &str) -> &'f str {
    files.iter().find(|(at, _)| at == path).map_or("", |(_, text)| text)
}

/// Returns the product files of each crate below `crates/`.
fn crates(files: &[(String, String)]) -> BTreeMap<String, Vec<File>> {
    let mut crates: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for (path, text) in files {
        let Some((name, module)) = product_module(path) else { continue };
        let module =
            if ["lib", "main"].contains(&module) { String::new() } else { module.replace('/', "::") };
        crates.entry(name.to_owned()).or_default().push(File { module, text: without_tests(text) });
    }
    crates
}

/// Returns the crate below `crates/` and the path of the module, without `.rs`; `None` for files that are no product, such as tests.
fn product_module(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let others = ["/test/", "/tests/", "/benches/", "testkit", "fuzz", "/examples/", "/mistakes/"];
    let is_other = others.iter().any(|part| path.contains(part))
        || ["test.rs", "tests.rs"].iter().any(|end| path.ends_with(end));
    Some((name, rest.strip_suffix(".rs").filter(|_| !is_other)?))
}

/// Returns a text without comments, up to its module of tests.
fn without_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |at: &usize| {
        lines[*at].trim() == "#[cfg(test)]"
            && lines[at + 1..]
                .iter()
                .map(|line| line.trim())
                .find(|line| !line.is_empty() && !line.starts_with("#["))
                .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let end = (0..lines.len()).find(is_test).unwrap_or(lines.len());
    let code = lines[..end].iter().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the number of modules in the largest set in which each imports each other, directly or not. A module and those inside it are
/// one.
fn largest_circle(files: &[File]) -> usize {
    let modules: BTreeSet<&str> = files.iter().map(|file| file.module.as_str()).collect();
    let is_inside =
        |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with("::"));
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for File { module, text } in files {
        for path in paths(text) {
            let Some(absolute) = absolute(&path, module) else { continue };
            let prefixes = (1..=absolute.len()).rev().map(|count| absolute[..count].join("::"));
            let Some(to) = prefixes.filter_map(|path| modules.get(path.as_str()).copied()).next() else {
                continue;
            };
            if to != module && !to.is_empty() && !is_inside(module, to) && !is_inside(to, module) {
                edges.entry(module).or_default().insert(to);
            }
        }
    }
    let all: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|module| (*module, reached(module, &edges))).collect();
    let circle = |module: &str| all[module].iter().filter(|other| all[**other].contains(module)).count();
    modules.iter().map(|module| circle(module)).max().unwrap_or(0).max(1)
}

/// Returns the modules that a module imports, directly or not.
fn reached<'m>(from: &str, edges: &BTreeMap<&str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        let new: Vec<&str> =
            edges.get(at).into_iter().flatten().copied().filter(|to| seen.insert(*to)).collect();
        open.extend(new);
    }
    seen
}

/// Returns the segments of a path from the root of the crate; `None` for paths of other crates.
fn absolute(path: &str, module: &str) -> Option<Vec<String>> {
    let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
    let own: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    let base = match *parts.first()? {
        "crate" => Vec::new(),
        "self" => own,
        "super" => {
            let up = parts.iter().take_while(|part| **part == "super").count();
            parts.drain(..up - 1);
            own[..own.len().saturating_sub(up)].to_vec()
        }
        _ => return None,
    };
    parts.remove(0);
    Some(base.into_iter().chain(parts).map(str::to_owned).collect())
}

/// Returns the paths that a text names: those of its `use` statements, one by one, and those inside expressions.
fn paths(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ").filter(|(at, _)| !text[..*at].ends_with(is_word)) {
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        if ["crate::", "super::", "self::"].iter().any(|root| tree.starts_with(root)) {
            expand("", tree, &mut found);
        }
    }
    for root in ["crate", "super"] {
        for (at, _) in text.match_indices(root).filter(|(at, _)| !text[..*at].ends_with(is_word)) {
            let mut end = at + root.len();
            while let Some(rest) = text[end..].strip_prefix("::") {
                let word = rest.len() - rest.trim_start_matches(is_word).len();
                if word == 0 {
                    break;
                }
                end += 2 + word;
            }
            if end > at + root.len() {
                found.push(text[at..end].to_owned());
            }
        }
    }
    found
}

/// Adds each path of a tree of imports to those found.
fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((start, inside)) =
        tree.split_once('{').and_then(|(start, rest)| Some((start, rest.strip_suffix('}')?)))
    else {
        let path = tree.split(" as ").next().unwrap_or(tree).trim();
        found.push(format!("{prefix}{path}"));
        return;
    };
    let prefix = format!("{prefix}{start}");
    let (mut depth, mut from) = (0_usize, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                expand(&prefix, &inside[from..at], found);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !inside[from..].trim().is_empty() {
        expand(&prefix, &inside[from..], found);
    }
}

/// Returns the crate and those of ours that it needs, by their directories.
fn needed(name: &str, files: &[(String, String)]) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop().filter(|name| seen.insert(name.clone())) {
        let manifest = text(files, &format!("crates/{name}/Cargo.toml"));
        let listed = manifest.split("\n[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
        let ours = listed.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("ombx-"));
        open.extend(ours.filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned));
    }
    seen
}

/// Returns the tokens between the braces of the item `keyword name`.
fn body<'a>(source: &'a Source, keyword: &str, name: &str) -> Option<&'a [Token]> {
    let at = source
        .tokens
        .windows(2)
        .position(|pair| pair[0].text == keyword && pair[1].text == name && !pair[0].test)?;
    let rest = &source.tokens[at..];
    let open = rest.iter().position(|token| token.text == "{" || token.text == ";")?;
    let (mut depth, start) = (0_usize, open + 1);
    for (at, token) in rest.iter().enumerate().skip(open) {
        match &*token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return rest.get(start..at);
        }
    }
    None
}

/// Returns how many parts a list of tokens has that begin with a name, apart from attributes.
fn parts(tokens: &[Token]) -> usize {
    let (mut depth, mut count, mut is_open) = (0_usize, 0, true);
    for (at, token) in tokens.iter().enumerate() {
        let is_attribute = token.text == "[" && at > 0 && tokens[at - 1].text == "#";
        match &*token.text {
            "{" | "(" | "[" | "<" => depth += 1,
            ">" if at > 0 && tokens[at - 1].text == "-" => {}
            "}" | ")" | "]" | ">" => depth = depth.saturating_sub(1),
            "," if depth == 0 => is_open = true,
            "#" | "pub" => {}
            _ if depth == 0 && is_open => {
                count += 1;
                is_open = false;
            }
            _ => {}
        }
        debug_assert!(!is_attribute || depth > 0);
    }
    count
}

/// Returns the variants of an enumeration, or the functions of a trait; `None` if the file has no such type.
fn members(source: &Source, name: &str) -> Option<usize> {
    let functions = |tokens: &[Token]| tokens.iter().filter(|token| token.text == "fn").count();
    body(source, "enum", name).map(parts).or_else(|| body(source, "trait", name).map(functions))
}

fn fields(source: &Source, name: &str) -> usize {
    body(source, "struct", name).map_or(0, parts)
}

/// Returns how often a code of a mark is a text.
///
/// A text after a `MarkCode` is the short text of the mark. A text that a variant of another type has is the name of that variant.
fn codes_as_texts(text: &str, code: &str) -> usize {
    let is_of_path = |c: char| c.is_alphanumeric() || "_:".contains(c);
    let is_code = |(at, _): &(usize, &str)| {
        let before = text[..*at].trim_end();
        let path_before =
            |sign: &str| before.strip_suffix(sign)?.trim_end().rsplit(|c| !is_of_path(c)).next();
        let is_short_text = path_before(",").is_some_and(|path| path.starts_with("MarkCode::"));
        let of_variant = path_before("=>").and_then(|path| path.split_once("::"));
        let is_other_name = of_variant.is_some_and(|(of, _)| !["MarkCode", "Self"].contains(&of));
        !is_short_text && !is_other_name
    };
    text.match_indices(code).filter(is_code).count()
}

/// Returns the names of the types that a file defines. A type whose name is an argument of a macro has none here.
fn type_names(source: &Source) -> impl Iterator<Item = &str> {
    let defines = |pair: &&[Token]| {
        ["struct", "enum", "trait"].contains(&&*pair[0].text) && pair[1].text != "$" && !pair[0].test
    };
    source.tokens.windows(2).filter(defines).map(|pair| &*pair[1].text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> (String, String) {
        (path.to_owned(), text.to_owned())
    }

    fn numbers(files: &[(String, String)]) -> Structure {
        let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
        let sources: Vec<Source> = rust.map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        Structure::new(files, &sources)
    }

    fn now(structure: &Structure, what: &str) -> usize {
        structure.0.iter().find(|number| number.what.starts_with(what)).unwrap().now
    }

    #[test]
    fn a_circle_has_all_files_that_import_each_other() {
        let next = |at: usize| {
            file(
                &format!("crates/core/src/m{at}.rs"),
                &format!("use crate::{{m{}::T, x::{{self, Y}}}};\n", (at + 1) % 6),
            )
        };
        let mut files: Vec<_> = (0..6).map(next).collect();
        files.push(file("crates/core/src/lib.rs", "mod m0;\n"));
        files.push(file(
            "crates/core/src/x.rs",
            "// use crate::m0;\nuse super::x::z::A;\n#[cfg(test)]\nmod tests {\n    use crate::m1;\n}\n",
        ));
        files.push(file("crates/core/src/x/z.rs", "use crate::x::B;\n"));
        files.push(file("crates/cli/src/lib.rs", "fn main() { role::started(); dispatch() }"));
        let structure = numbers(&files);
        assert_eq!(now(&structure, "files in the largest circle of imports of core"), 6);
        assert_eq!(
            structure.broken(),
            ["files in the largest circle of all crates (core): 6, at most 5 are allowed"]
        );
        files.remove(3);
        assert!(numbers(&files).broken().is_empty());
    }

    #[test]
    fn a_rank_that_parses_words_breaks_a_bound() {
        let files = [
            file("crates/cli/src/lib.rs", "fn main() { dispatch(); role::started() }"),
            file("crates/launch/Cargo.toml", "[dependencies]\nclap.workspace = true\n"),
        ];
        assert_eq!(
            numbers(&files).broken(),
            ["parsers of words in a started rank: 2, at most 0 are allowed"]
        );
    }

    #[test]
    fn vocabularies_fields_and_names_are_counted() {
        let text = "pub enum Event<'a> { /// x\n Run(Cow<'a, Run>), #[serde(skip)] End { a: u8, b: u8 }, Alive }\n\
                    trait Sink { fn event(&mut self) -> Result<(), E>; }\n\
                    struct Plan { pub a: Map<u8, u8>, pub(crate) b: fn(u8, u8) -> u8, c: u8 }\n";
        let files = [
            file("crates/record/src/a.rs", text),
            file("crates/cli/src/lib.rs", "role::started dispatch(\"few_launches\")"),
            file("crates/record/Cargo.toml", "\n[dependencies]\nserde = 1\n"),
        ];
        let structure = numbers(&files);
        assert_eq!(now(&structure, "vocabularies of a run"), 1);
        assert_eq!(now(&structure, "their variants and functions"), 4);
        assert_eq!(now(&structure, "fields of the widest"), 3);
        assert_eq!(now(&structure, "codes of marks"), 1);
        assert_eq!(now(&structure, "lines that a program compiles"), 4);
        assert!(structure.table().contains("missed") && structure.table().contains("met"));
    }

    #[test]
    fn a_code_is_a_text_unless_it_is_a_short_text_or_the_name_of_another_variant() {
        let count = |text: &str| codes_as_texts(text, "\"crowded\"");
        for text in [
            "mark.code == \"crowded\"",
            "[\"waited\", \"crowded\"]",
            "MarkCode::Crowded => \"crowded\"",
            "Self::Crowded => \"crowded\"",
            "\"x\" => \"crowded\"",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in
            ["Mark::new(\n    MarkCode::Crowded,\n    \"crowded\", cause)", "Stage::Crowded => \"crowded\""]
        {
            assert_eq!(count(text), 0, "{text}");
        }
        assert_eq!(count("\"crowded\" Stage::Crowded => \"crowded\", \"crowded\""), 2);
    }

    #[test]
    fn names_are_those_of_product_types() {
        let types = "macro_rules! types { ($Name:ident) => { enum $Name {} }; }";
        let mut files: Vec<_> = (0..4).map(|at| file(&format!("crates/io/src/m{at}.rs"), types)).collect();
        files.push(file("crates/cli/src/lib.rs", "struct Several; role::started dispatch()"));
        let named = |path: &str| file(path, "struct Several; enum Several {} trait Several {}");
        files.push(named("crates/io/src/file/tests.rs"));
        files.push(named("crates/io/src/file/tests/noise.rs"));
        assert_eq!(now(&numbers(&files), "names of four or more types"), 0);
        files.push(named("crates/io/src/file.rs"));
        assert_eq!(now(&numbers(&files), "names of four or more types"), 1);
    }
}
