//! Parts of a binary that others have written: their licences, and the list of them (CycloneDX).

use std::{
    collections::{BTreeMap, BTreeSet},
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ombx_toolchain::{Failure, Result, output, release};
use serde_json::{Value, json};

use super::shipped::{Sources, rustc, sysroot};

/// License of ombx.
const OWN_LICENSE: &str = "MIT OR Apache-2.0";
/// Beginnings of the names of files with the terms of a crate, in capitals.
const NAMES: [&str; 5] = ["LICEN", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];
/// Terms of Rust's library, below the directory of a toolchain.
const RUST_LIBRARY: &str = "share/doc/rust/COPYRIGHT-library.html";

/// What others have written of a binary.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    /// Terms of Rust's library, where a toolchain of rustup has them.
    rust_library: PathBuf,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    /// Expression of SPDX.
    license: String,
    /// Name of the package for tools that read the list; empty if it is no crate.
    purl: String,
    texts: BTreeSet<String>,
}

impl Parts {
    /// Reads the terms of all that an installed binary contains. An error if a crate carries none that is known.
    pub(crate) fn read(sources: &Sources) -> Result<Self> {
        let triple = format!("{ARCH}-unknown-linux-gnu");
        let mut tree = sources.cargo();
        tree.args(["tree", "--locked", "-p", "ombx-cli", "--edges", "normal,no-proc-macro"]);
        tree.args(["--prefix", "none", "--format", "{p} ", "--target", &triple]).args(release::INSTALLED);
        let linked = output(&mut tree)?;
        let linked: BTreeSet<String> = linked.lines().filter_map(name_and_version).collect();
        let mut metadata = sources.cargo();
        metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &triple]);
        metadata.args(["--all-features", "--manifest-path"]).arg(sources.root.join("crates/cli/Cargo.toml"));
        let metadata: Value = serde_json::from_str(&output(&mut metadata)?)
            .map_err(|source| Failure::Output { program: "cargo metadata", source })?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let name = |package: &Value| format!("{} v{}", text(package, "name"), text(package, "version"));
        let packages: BTreeMap<String, &Value> = packages.map(|package| (name(package), package)).collect();
        let mut parts = Vec::new();
        for name in &linked {
            let package = packages.get(name).ok_or_else(|| {
                Failure::Missing(format!("cargo metadata does not know {name}, which is part of ombx"))
            })?;
            parts.push(of_crate(package, &sources.root)?);
        }
        let font = sources.root.join("crates/draw/font/LICENSE");
        parts.push(Part {
            name: "DejaVu Sans".into(),
            version: "2.37".into(),
            license: "Bitstream-Vera".into(),
            purl: String::new(),
            texts: BTreeSet::from([fs::read_to_string(&font).map_err(Failure::file(&font))?]),
        });
        let compiler = output(Command::new(rustc()).arg("--version").current_dir(&sources.root))?;
        parts.push(Part {
            name: "std of Rust".into(),
            version: compiler.split_whitespace().nth(1).unwrap_or_default().into(),
            license: OWN_LICENSE.into(),
            purl: String::new(),
            texts: standard(OWN_LICENSE, "The Rust Project Contributors", &sources.root)?,
        });
        parts.sort();
        Ok(Self { parts, rust_library: sysroot(&sources.root)?.join(RUST_LIBRARY) })
    }

    /// Returns the files with terms by their names. Those of Rust's library are absent if the toolchain lacks them.
    pub(crate) fn licenses(&self) -> Vec<(&'static str, String)> {
        let library = fs::read_to_string(&self.rust_library).ok();
        let library = library.map(|text| ("rust-library.html", text));
        [("third-party.txt", self.texts())].into_iter().chain(library).collect()
    }

    /// Fails if the toolchain lacks the terms of Rust's library. What is published must have them.
    pub(crate) fn complete(&self) -> Result<()> {
        if self.rust_library.is_file() {
            return Ok(());
        }
        Err(Failure::Missing(format!(
            "{} is missing: the terms of Rust's library. Use a toolchain of rustup, which has them",
            self.rust_library.display()
        )))
    }

    /// Returns the license of a binary with all its parts, as an expression of SPDX.
    pub(crate) fn expression(&self) -> String {
        let all: BTreeSet<&str> = self.parts.iter().map(|part| part.license.as_str()).collect();
        let others = all.into_iter().filter(|license| *license != OWN_LICENSE);
        let grouped =
            |license: &str| if license.contains(" OR ") { format!("({license})") } else { license.into() };
        [OWN_LICENSE].into_iter().chain(others).map(grouped).collect::<Vec<String>>().join(" AND ")
    }

    /// Returns the list of parts in the form of CycloneDX 1.5.
    pub(crate) fn bill(&self, version: &str) -> String {
        let component = |part: &Part| {
            let mut component = json!({
                "type": "library",
                "name": part.name,
                "version": part.version,
                "licenses": [{"expression": part.license}],
            });
            if !part.purl.is_empty() {
                component["purl"] = json!(part.purl);
                component["bom-ref"] = json!(part.purl);
            }
            component
        };
        let own = json!({
            "type": "application", "name": "ombx", "version": version,
            "licenses": [{"expression": OWN_LICENSE}],
        });
        let list = json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": own},
            "components": self.parts.iter().map(component).collect::<Vec<Value>>(),
        });
        format!("{list:#}\n")
    }

    /// Returns all terms. A text that several parts share is there once.
    fn texts(&self) -> String {
        let mut text = String::from("Parts of ombx that others have written, and their licenses\n\n");
        let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for part in &self.parts {
            let name = format!("{} {}", part.name, part.version);
            text += &format!("{name}: {}\n", part.license);
            for terms in &part.texts {
                by_text.entry(terms).or_default().push(name.clone());
            }
        }
        for (terms, names) in by_text {
            text += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), names.join(", "), terms.trim_end());
        }
        text
    }
}

/// Returns name and version of a line such as `adler2 v2.0.1 (*)`. Crates of ombx stand there with their directories.
fn name_and_version(line: &str) -> Option<String> {
    if line.contains("(/") {
        return None;
    }
    let mut words = line.split(' ');
    Some(format!("{} {}", words.next()?, words.next()?))
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Reads the terms of a crate, beside its manifest. Those of a crate without a file follow from its license.
fn of_crate(package: &Value, root: &Path) -> Result<Part> {
    let (name, version) = (text(package, "name").to_owned(), text(package, "version").to_owned());
    // Cargo once had this sign for `OR`.
    let license = text(package, "license").replace('/', " OR ");
    let directory = Path::new(text(package, "manifest_path")).parent().unwrap_or(root);
    let mut texts = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(Failure::file(directory))? {
        let entry = entry.map_err(Failure::file(directory))?;
        let file_name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.path().is_file() && NAMES.iter().any(|start| file_name.starts_with(start)) {
            let terms = fs::read(entry.path()).map_err(Failure::file(entry.path()))?;
            texts.insert(String::from_utf8_lossy(&terms).replace('\r', ""));
        }
    }
    if texts.is_empty() {
        let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let authors = authors.collect::<Vec<&str>>().join(", ");
        let holders = if authors.is_empty() { format!("the authors of {name}") } else { authors };
        texts = standard(&license, &holders, root)?;
    }
    if texts.is_empty() {
        return Err(Failure::Missing(format!(
            "{name} {version} carries no file with its license ({license}), and ombx has no text of it: add it to {}",
            file!()
        )));
    }
    Ok(Part { purl: format!("pkg:cargo/{name}@{version}"), name, version, license, texts })
}

/// Returns the texts of those alternatives of a license that ombx has too, with the holders of the rights.
fn standard(license: &str, holders: &str, root: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for (alternative, file) in [("MIT", "LICENSE-MIT"), ("Apache-2.0", "LICENSE-APACHE")] {
        if license.split(" OR ").any(|name| name == alternative) {
            let file = root.join(file);
            let own = fs::read_to_string(&file).map_err(Failure::file(&file))?;
            let line = |line: &str| {
                let is_own = line.starts_with("Copyright (c)");
                if is_own { format!("Copyright (c) {holders}\n") } else { format!("{line}\n") }
            };
            texts.insert(own.lines().map(line).collect());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        Sources::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Path::new("target"))
    }

    fn package(directory: &Path, license: &str) -> Value {
        json!({
            "name": "part", "version": "1.0.0", "license": license, "authors": ["A. Author"],
            "manifest_path": directory.join("Cargo.toml"),
        })
    }

    #[test]
    fn every_linked_crate_has_its_terms() {
        let parts = Parts::read(&sources()).unwrap();
        let texts = parts.texts();
        // A crate with a file, one without, a font of our own crates, a crate of figures, one of MPI, and Rust itself.
        for name in ["serde_json", "maud", "DejaVu Sans", "tiny-skia", "mpi-sys", "std of Rust"] {
            assert!(texts.matches(&format!("{name} ")).count() >= 2, "{name}");
        }
        assert!(parts.parts.iter().all(|part| !part.texts.is_empty() && !part.version.is_empty()));
        // Programs that run while ombx is built are no part of it, and tests neither.
        assert!(!["bindgen", "criterion", "syn"].iter().any(|name| texts.contains(&format!("\n{name} "))));
        let bill: Value = serde_json::from_str(&parts.bill("1.2.3")).unwrap();
        assert_eq!(bill["components"].as_array().unwrap().len(), parts.parts.len());
        assert!(parts.expression().starts_with("(MIT OR Apache-2.0) AND "), "{}", parts.expression());
    }

    #[test]
    fn a_crate_without_a_file_has_the_text_of_a_license_that_it_names() {
        let directory = tempfile::tempdir().unwrap();
        let root = &sources().root;
        let part = of_crate(&package(directory.path(), "MIT/Apache-2.0"), root).unwrap();
        assert_eq!((part.license.as_str(), part.texts.len()), ("MIT OR Apache-2.0", 2));
        let mit = part.texts.iter().find(|text| text.contains("Copyright (c)")).unwrap();
        assert!(mit.contains("Copyright (c) A. Author") && !mit.contains("ombx"), "{mit}");
        for license in ["BSD-3-Clause", "MPL-2.0", "", "MIT AND Zlib"] {
            let why = of_crate(&package(directory.path(), license), root).unwrap_err().to_string();
            assert!(why.contains("part 1.0.0 carries no file"), "{why}");
        }
        fs::write(directory.path().join("License.md"), "the terms").unwrap();
        fs::write(directory.path().join("NOTICE"), "a notice").unwrap();
        let part = of_crate(&package(directory.path(), "BSD-3-Clause"), root).unwrap();
        assert_eq!(part.texts, BTreeSet::from(["a notice".to_owned(), "the terms".to_owned()]));
    }

    #[test]
    fn what_is_published_has_the_terms_of_the_library() {
        let absent = Parts { parts: Vec::new(), rust_library: "/none/library.html".into() };
        let why = absent.complete().unwrap_err().to_string();
        assert!(why.contains("/none/library.html is missing"), "{why}");
        assert_eq!(absent.licenses().len(), 1);
    }
}
