//! Graph of imports between the files of a crate: levels and cycles.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::tree::Tree;
use crate::source::Source;

/// Files of a crate and their imports.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Paths of the files, relative to the root of the workspace.
    pub(crate) files: Vec<String>,
    /// Names that one file imports from another.
    pub(crate) imports: BTreeMap<(usize, usize), BTreeSet<String>>,
    /// Strongly connected components, each sorted.
    components: Vec<Vec<usize>>,
}

impl Graph {
    /// Reads the sources of the crate in a directory such as `crates/core`.
    pub(crate) fn of(directory: &str, sources: &[Source]) -> Self {
        let below = format!("{directory}/src/");
        let sources: Vec<&Source> = sources.iter().filter(|source| source.path.starts_with(&below)).collect();
        let is_root = |path: &str| {
            let inside = path.strip_prefix(&below).unwrap_or_default();
            ["lib.rs", "main.rs"].contains(&inside) || inside.starts_with("bin/")
        };
        let roots = (0..sources.len()).filter(|at| is_root(&sources[*at].path));
        let mut imports: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        let mut reached = BTreeSet::new();
        for tree in roots.map(|root| Tree::of(root, &sources)) {
            reached.extend(tree.files());
            for (from, to, name) in tree.imports() {
                imports.entry((from, to)).or_default().insert(name);
            }
        }
        // Files of tests are not reached.
        let numbers: BTreeMap<usize, usize> = reached.iter().copied().zip(0..).collect();
        let imports = imports.into_iter().map(|((from, to), names)| ((numbers[&from], numbers[&to]), names));
        let files = reached.iter().map(|at| sources[*at].path.clone()).collect();
        Self::new(files, imports.collect())
    }

    fn new(files: Vec<String>, imports: BTreeMap<(usize, usize), BTreeSet<String>>) -> Self {
        let reach: Vec<BTreeSet<usize>> = (0..files.len())
            .map(|start| {
                let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
                while let Some(from) = next.pop() {
                    let targets = imports.keys().filter(|(of, _)| *of == from).map(|(_, to)| *to);
                    next.extend(targets.filter(|to| reached.insert(*to)));
                }
                reached
            })
            .collect();
        let mut components: Vec<Vec<usize>> = Vec::new();
        for at in 0..files.len() {
            let same = |other: usize| reach[at].contains(&other) && reach[other].contains(&at);
            match components.iter_mut().find(|component| same(component[0])) {
                Some(component) => component.push(at),
                None => components.push(vec![at]),
            }
        }
        Self { files, imports, components }
    }

    /// Returns the cycles of more than two files.
    pub(crate) fn cycles(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.components.iter().filter(|component| component.len() > 2)
    }

    /// Returns the imports within a cycle, one a line, with their names.
    pub(crate) fn ties(&self, cycle: &[usize]) -> String {
        let inside = self.imports.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
        let line = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
            format!("\n    {} -> {} ({})", self.short(*from), self.short(*to), joined(names))
        };
        inside.map(line).collect()
    }

    /// Returns the graph in the language of Graphviz.
    pub(crate) fn dot(&self, name: &str) -> String {
        let edges = self
            .imports
            .keys()
            .map(|(from, to)| format!("  \"{}\" -> \"{}\";\n", self.short(*from), self.short(*to)));
        format!("digraph \"{name}\" {{\n{}}}\n", edges.collect::<String>())
    }

    /// Returns the path below `src` without the ending.
    fn short(&self, file: usize) -> &str {
        let path = self.files[file].trim_end_matches(".rs");
        path.split_once("/src/").map_or(path, |(_, short)| short)
    }

    /// Returns the level of each file: 0 for a file without imports, otherwise above all files that it imports outside its cycle.
    fn levels(&self) -> Vec<usize> {
        let mut levels = vec![0; self.files.len()];
        // A path through all components has fewer steps than there are files.
        for _ in 0..self.files.len() {
            for component in &self.components {
                let outside = self
                    .imports
                    .keys()
                    .filter(|(from, to)| component.contains(from) && !component.contains(to));
                let level = outside.map(|(_, to)| levels[*to] + 1).max().unwrap_or(0);
                component.iter().for_each(|file| levels[*file] = level);
            }
        }
        levels
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = self.levels();
        let top = levels.iter().copied().max().unwrap_or(0);
        writeln!(f, "{} files, {} imports, {} levels", self.files.len(), self.imports.len(), top + 1)?;
        for level in (0..=top).rev() {
            writeln!(f, "  level {level}")?;
            for file in (0..self.files.len()).filter(|file| levels[*file] == level) {
                writeln!(f, "    {}", self.short(file))?;
                for ((_, to), names) in self.imports.iter().filter(|((from, _), _)| *from == file) {
                    writeln!(f, "      -> {} ({})", self.short(*to), joined(names))?;
                }
            }
        }
        for cycle in self.cycles() {
            writeln!(f, "  CYCLE of {} files:{}", cycle.len(), self.ties(cycle))?;
        }
        Ok(())
    }
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let parse =
            |(path, text): &(&str, &str)| Source::parse(&format!("crates/x/src/{path}"), text).unwrap();
        Graph::of("crates/x", &files.iter().map(parse).collect::<Vec<_>>())
    }

    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let graph = graph(files);
        let edge = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
            format!("{}>{}:{}", graph.short(*from), graph.short(*to), joined(names))
        };
        graph.imports.iter().map(edge).collect()
    }

    #[test]
    fn declarations_and_re_exports_are_no_imports_and_names_belong_to_their_files() {
        let files = [
            ("lib.rs", "mod a; mod b;\npub use self::a::A;\npub use b::inner::I;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "pub mod inner;\nuse crate::a;\nfn f() { a::A; super::I; crate::b::g() }\nfn g() {}"),
            ("b/inner.rs", "use crate::A;\npub struct I;\nfn f() { super::g(); }"),
        ];
        assert_eq!(edges(&files), ["b>a:A", "b>b/inner:I", "b/inner>a:A", "b/inner>b:g"]);
        assert_eq!(graph(&files).cycles().count(), 0, "two files may need each other");
    }

    #[test]
    fn a_cycle_of_three_files_is_found_with_its_names() {
        let files = [
            ("main.rs", "mod a; mod b; mod c;\nfn main() { a::run(); }"),
            ("a.rs", "use crate::b::*;\npub fn run() {}"),
            ("b.rs", "use super::c::{self, C};\n#[cfg(test)] mod tests;"),
            ("b/tests.rs", "use crate::a::run;"),
            ("c.rs", "pub struct C; fn f() { std::fs::read(crate::a::run()); }"),
        ];
        let graph = graph(&files);
        let cycle = graph.cycles().next().unwrap();
        assert_eq!(cycle.len(), 3);
        assert!(graph.ties(cycle).contains("c -> a (run)"), "{}", graph.ties(cycle));
        assert!(graph.to_string().contains("level 1\n    main\n      -> a (run)"), "{graph}");
        assert!(graph.dot("x").contains("\"main\" -> \"a\";"));
    }

    #[test]
    fn globs_and_aliases_lead_to_the_file_that_defines() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub(crate) use crate::b::B as Other;\npub(crate) use crate::b::*;"),
            ("b.rs", "pub struct B; pub fn free() {}"),
            ("c.rs", "use crate::a::{Other, free};\nfn f() -> crate::a::free { std::a::b }"),
        ];
        assert_eq!(edges(&files), ["a>b:*, B", "c>b:B, free"]);
    }
}
