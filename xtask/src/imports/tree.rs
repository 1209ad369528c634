//! Modules of one crate, and what a path in one of them names.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::{self, Module, Use};
use crate::source::Source;

/// Path of a module below the root of its crate.
type Name = Vec<String>;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(Name),
    /// Item and the number of the file that defines it.
    Item(usize, String),
    /// Item of another crate.
    External,
}

/// Modules that a `lib.rs`, a `main.rs` or a file of `src/bin` reaches through `mod`.
#[derive(Debug, Default)]
pub(super) struct Tree {
    modules: BTreeMap<Name, (usize, Module)>,
    exported_macros: BTreeMap<String, usize>,
}

impl Tree {
    /// Reads the modules below a root file. `sources` are all files of the package; numbers of files are places in it.
    pub(super) fn of(root: usize, sources: &[&Source]) -> Self {
        let mut tree = Self::default();
        let mut next = vec![(Name::new(), root)];
        while let Some((name, file)) = next.pop() {
            let path = &sources[file].path;
            let directory = match name.is_empty() {
                true => path.rsplit_once('/').map_or("", |(directory, _)| directory),
                false => path.trim_end_matches(".rs"),
            };
            for module in scan::modules(sources[file]) {
                let own = [&*name, &*module.inline].concat();
                for child in &module.files {
                    let below = [&[directory.to_owned()], &*module.inline, &[format!("{child}.rs")]].concat();
                    let path = below.join("/");
                    if let Some(file) = sources.iter().position(|source| source.path == path) {
                        next.push(([&*own, std::slice::from_ref(child)].concat(), file));
                    }
                }
                tree.exported_macros.extend(module.exported_macros.iter().map(|name| (name.clone(), file)));
                tree.modules.insert(own, (file, module));
            }
        }
        tree
    }

    /// Returns every import of one file by another, with the name of the item.
    pub(super) fn imports(&self) -> BTreeSet<(usize, usize, String)> {
        let mut imports = BTreeSet::new();
        for (own, (file, module)) in &self.modules {
            for Use { path, name, public } in &module.uses {
                match self.resolve(own, path, &mut BTreeSet::new()) {
                    // A module that re-exports names of its own submodules declares them.
                    Some(target) if *public && self.is_below(own, &target) => {}
                    Some(Target::Item(target, name)) => drop(imports.insert((*file, target, name))),
                    Some(Target::Module(target)) if name == "*" => {
                        imports.insert((*file, self.modules[&target].0, "*".to_owned()));
                    }
                    _ => {}
                }
            }
            for path in &module.paths {
                if let Some(Target::Item(target, name)) = self.resolve(own, path, &mut BTreeSet::new()) {
                    imports.insert((*file, target, name));
                }
            }
        }
        imports.retain(|(from, to, _)| from != to);
        imports
    }

    /// Returns the number of each file in the tree.
    pub(super) fn files(&self) -> BTreeSet<usize> {
        self.modules.values().map(|(file, _)| *file).collect()
    }

    fn is_below(&self, own: &Name, target: &Target) -> bool {
        let below = |name: &Name| name.len() > own.len() && name.starts_with(own);
        match target {
            Target::Module(name) => below(name),
            Target::Item(file, _) => self.modules.iter().any(|(name, (of, _))| of == file && below(name)),
            Target::External => false,
        }
    }

    /// Returns what a path names in a module. `None` is a local name, or the first segment of a path of another crate.
    ///
    /// `seen` are the names that are being looked up, since globs and re-exports may refer to each other.
    fn resolve(&self, from: &Name, path: &[String], seen: &mut BTreeSet<(Name, String)>) -> Option<Target> {
        let mut at = from.clone();
        let mut rest = path;
        let mut anchored = false;
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                _ => break,
            }
            (rest, anchored) = (others, true);
        }
        while let [name, others @ ..] = rest {
            match self.lookup(&at, name, seen) {
                Some(Target::Module(module)) => at = module,
                Some(target) => return Some(target),
                // The item comes from a macro.
                None if anchored => {
                    return self.modules.get(&at).map(|(file, _)| Target::Item(*file, name.clone()));
                }
                None => return None,
            }
            (rest, anchored) = (others, true);
        }
        self.modules.contains_key(&at).then_some(Target::Module(at))
    }

    /// Returns what a single name is in a module; a submodule goes before a function of the same name.
    fn lookup(&self, at: &Name, name: &str, seen: &mut BTreeSet<(Name, String)>) -> Option<Target> {
        let (file, module) = self.modules.get(at)?;
        let child = [&**at, &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        if module.items.contains(name) {
            return Some(Target::Item(*file, name.to_owned()));
        }
        if !seen.insert((at.clone(), name.to_owned())) {
            return None;
        }
        if let Some(one) = module.uses.iter().find(|one| one.name == name) {
            return self.resolve(at, &one.path, seen).or(Some(Target::External));
        }
        let globs = module.uses.iter().filter(|one| one.name == "*");
        let mut targets = globs.filter_map(|one| match self.resolve(at, &one.path, seen)? {
            Target::Module(module) => self.lookup(&module, name, seen),
            _ => None,
        });
        let exported = self.exported_macros.get(name).filter(|_| at.is_empty());
        targets.next().or_else(|| exported.map(|file| Target::Item(*file, name.to_owned())))
    }
}
