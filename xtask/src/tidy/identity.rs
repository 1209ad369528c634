//! Addresses and authors in files that cannot read `Cargo.toml`: they are those of `Cargo.toml`.

use super::violation::Violation;
use crate::identity::Identity;

/// The file that has them.
const HOME: &str = "Cargo.toml";
/// Text that the page of a registry shows. There a relative link leads nowhere.
const REGISTRY: &str = "packaging/registry.md";

/// Checks the files that repeat an address or the authors, and that no other file does. `files` are path and text of each
/// text file.
pub(super) fn check(files: &[(String, String)], identity: &Identity) -> Vec<Violation> {
    let repeated = lines(identity);
    let mut violations = Vec::new();
    for (path, line) in &repeated {
        let text = files.iter().find(|(name, _)| name == path).map_or("", |(_, text)| text);
        if !text.lines().any(|found| found.trim() == line) {
            violations.push(Violation::new(path, 1, format!("no line `{line}`, which follows from {HOME}")));
        }
    }
    for (path, text) in files.iter().filter(|(path, _)| path != HOME) {
        if repeated.iter().any(|(known, _)| known == path) {
            continue;
        }
        let addresses = [identity.homepage, identity.repository, identity.contact()];
        for (at, line) in text.lines().enumerate() {
            if addresses.iter().any(|address| !address.is_empty() && line.contains(address)) {
                let what =
                    format!("repeats an address of {HOME}: read it there, or add the file to {}", file!());
                violations.push(Violation::new(path, at + 1, what));
            }
        }
    }
    let page = files.iter().find(|(path, _)| path == REGISTRY).map_or("", |(_, text)| text);
    for (at, line) in page.lines().enumerate() {
        let mut targets = line.split("](").skip(1);
        if targets.any(|target| !target.starts_with("https://")) {
            violations.push(Violation::new(
                REGISTRY,
                at + 1,
                "a relative link, which is dead on a registry's page",
            ));
        }
    }
    violations
}

/// Returns the files that repeat something, each with a line that it has.
fn lines(identity: &Identity) -> Vec<(&'static str, String)> {
    let Identity { homepage, repository, .. } = identity;
    let names = identity.names().join(", ");
    let mut lines = vec![
        ("LICENSE-MIT", format!("Copyright (c) 2026 {names}")),
        ("CITATION.cff", format!("url: \"{homepage}\"")),
        ("CITATION.cff", format!("repository-code: \"{repository}\"")),
        ("packaging/debian/copyright", format!("Copyright: 2026 {names}")),
        ("packaging/debian/copyright", format!("Upstream-Contact: {}", identity.contact())),
        ("packaging/debian/copyright", format!("Source: {repository}")),
        ("packaging/easybuild/ombx-0.1.0.eb", format!("homepage = '{homepage}'")),
        ("packaging/conda/recipe.yaml", format!("homepage: {homepage}")),
        ("packaging/conda/recipe.yaml", format!("repository: {repository}")),
        ("packaging/openhpc/ombx.spec", format!("URL:       {homepage}")),
        ("packaging/spack/package.py", format!("homepage = \"{homepage}\"")),
    ];
    lines.extend(identity.names().iter().map(|name| ("CITATION.cff", format!("- name: \"{name}\""))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        authors: "A. Author <a@example.org>:B. Author",
        homepage: "https://example.org/ombx",
        repository: "https://example.com/git",
    };

    /// Returns files that agree with Cargo.toml, and another one.
    fn agreeing(path: &str, text: &str) -> Vec<(String, String)> {
        let mut files = vec![(path.to_owned(), text.to_owned())];
        for (path, line) in lines(&IDENTITY) {
            files.push((path.into(), String::new()));
            let text = &mut files.iter_mut().find(|(name, _)| name == path).unwrap().1;
            *text += &format!("  {line}\n");
        }
        files
    }

    fn found(files: &[(String, String)]) -> Vec<String> {
        check(files, &IDENTITY).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_repetition_agrees() {
        assert!(found(&agreeing("README.md", "ombx\n")).is_empty());
        for (path, line) in lines(&IDENTITY) {
            let mut files = agreeing("README.md", "");
            for (_, text) in files.iter_mut().filter(|(name, _)| name == path) {
                *text = text.replace(&format!("  {line}\n"), "");
            }
            assert_eq!(found(&files), [format!("{path}:1: no line `{line}`, which follows from Cargo.toml")]);
        }
    }

    #[test]
    fn another_file_repeats_nothing() {
        for line in
            ["see https://example.org/ombx", "x https://example.com/git/tree", "by A. Author <a@example.org>"]
        {
            let found = found(&agreeing("docs/GUIDE.md", &format!("\n{line}\n")));
            assert!(found[0].starts_with("docs/GUIDE.md:2: repeats an address"), "{found:?}");
        }
        assert!(found(&agreeing("Cargo.toml", "https://example.com/git\n")).is_empty());
    }

    #[test]
    fn a_registry_shows_no_relative_link() {
        for (line, count) in
            [("[a](docs/a.md)", 1), ("[a](#a)", 1), ("![a](a.png)", 1), ("[a](https://b.org)", 0)]
        {
            assert_eq!(found(&agreeing(REGISTRY, line)).len(), count, "{line}");
        }
    }
}
