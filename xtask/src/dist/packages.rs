//! Packages of distributions, and the bill of materials. The manifest of `crates/cli` describes the packages.

use std::{fs, path::Path, process::Command};

use ombx_toolchain::{Failure, Result, Step};

use super::release::Release;
use crate::{
    identity::IDENTITY,
    install::{parts::Parts, shipped::Sources},
};

/// Folder below the root of the sources with the files of the packages. The manifest of `crates/cli` names it.
pub(super) const TREE: &str = "target/package/usr";
/// Changelog of the Debian package. The manifest of `crates/cli` names it.
const CHANGELOG: &str = "target/package/changelog";

/// What packages are made of.
pub(super) struct Packages<'a> {
    pub(super) sources: &'a Sources,
    pub(super) root: &'a Path,
    pub(super) to: &'a Path,
    pub(super) parts: &'a Parts,
    pub(super) release: &'a Release,
}

impl Packages<'_> {
    /// Writes the Debian package.
    pub(super) fn debian(&self) -> Result<()> {
        let changelog = self.root.join(CHANGELOG);
        let text = entry(self.release);
        fs::write(&changelog, text).map_err(Failure::file(&changelog))?;
        let version = format!("{}-1", self.release.version);
        let words = ["deb", "-p", "ombx-cli", "--no-build", "--no-strip", "--deb-version", &version];
        self.run("Debian package", self.cargo(&words).arg("--output").arg(self.to))
    }

    /// Writes the RPM package.
    pub(super) fn rpm(&self) -> Result<()> {
        let (version, license) = (&self.release.version, self.parts.expression());
        let metadata = format!("version = \"{version}\"\nlicense = \"{license}\"");
        let words = ["generate-rpm", "-p", "crates/cli", "--set-metadata", &metadata];
        self.run("RPM package", self.cargo(&words).arg("--output").arg(self.to))
    }

    /// Writes the bill of materials: what others have written of the binary.
    pub(super) fn bill_of_materials(&self) -> Result<()> {
        let file = self.to.join(format!("{}.cdx.json", self.release.name()));
        fs::write(&file, self.parts.bill(&self.release.version)).map_err(Failure::file(&file))
    }

    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = self.sources.cargo();
        command.args(words).env("SOURCE_DATE_EPOCH", &self.release.seconds);
        command
    }

    fn run(&self, what: &str, command: &mut Command) -> Result<()> {
        Step::run(what, command).built()
    }
}

/// Returns the entry of Debian's changelog.
fn entry(release: &Release) -> String {
    let Release { version, date, .. } = release;
    format!(
        "ombx ({version}-1) unstable; urgency=medium\n\n  * Version {version} of ombx.\n\
         \n -- {}  {date}\n",
        IDENTITY.contact()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::prefix::{BILL, LICENSES};

    /// The other packages have the whole tree.
    #[test]
    fn both_packages_have_the_terms_of_their_parts() {
        let manifest = include_str!("../../../crates/cli/Cargo.toml");
        let (_, packages) = manifest.split_once("[package.metadata.deb]").unwrap();
        let (debian, rpm) = packages.split_once("[package.metadata.generate-rpm]").unwrap();
        for file in [&format!("{LICENSES}/*"), BILL] {
            assert!(debian.contains(&format!("/{TREE}/{file}\"")), "{file}");
        }
        assert!(rpm.contains(&format!("{TREE}/share/doc/**/*")));
    }
}
