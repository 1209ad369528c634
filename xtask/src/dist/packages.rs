//! Packages of distributions, and the bill of materials. The manifest of `crates/cli` describes the packages.

use std::{fs, path::Path, process::Command};

use ombx_toolchain::{Failure, Result, Step};

use super::release::Release;
use crate::install::shipped::Sources;

/// Folder below the root of the sources with the files of the packages. The manifest of `crates/cli` names it.
pub(super) const TREE: &str = "target/package/usr";
/// Changelog of the Debian package. The manifest of `crates/cli` names it.
const CHANGELOG: &str = "target/package/changelog";

/// What packages are made of.
pub(super) struct Packages<'a> {
    pub(super) sources: &'a Sources,
    pub(super) root: &'a Path,
    pub(super) to: &'a Path,
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
        let version = format!("version = \"{}\"", self.release.version);
        let words = ["generate-rpm", "-p", "crates/cli", "--set-metadata", &version];
        self.run("RPM package", self.cargo(&words).arg("--output").arg(self.to))
    }

    /// Writes the bill of materials: every crate that is part of the binary.
    pub(super) fn bill_of_materials(&self) -> Result<()> {
        let name = format!("{}.cdx", self.release.name());
        let words = ["cyclonedx", "--format", "json", "--spec-version", "1.5", "--override-filename", &name];
        self.run("bill of materials", self.cargo(&words).args(["--manifest-path", "crates/cli/Cargo.toml"]))?;
        // The tool writes it beside the manifest.
        let file = format!("{name}.json");
        let written = self.root.join("crates/cli").join(&file);
        fs::rename(&written, self.to.join(&file)).map_err(Failure::file(written))
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
         \n -- The ombx developers <ombx@localhost>  {date}\n"
    )
}
