//! `cargo xtask dist`: what is published of a version: sources, packages, a bill of materials and checksums.

mod leaks;
mod packages;
pub(crate) mod portable;
mod release;
mod source;

use std::{fs, path::Path, process::ExitCode};

use ombx_toolchain::{Failure, Result, Which, Workspace, cargo, emptied, installed, output, succeeds};

use self::{packages::Packages, release::Release};
use crate::{
    identity::IDENTITY,
    install::{
        parts::Parts,
        prefix::{Contents, Prefix},
        shipped::Sources,
    },
};

/// Programs of cargo that dist needs, by the names of their crates.
const TOOLS: [(&str, &str); 2] = [("deb", "cargo-deb"), ("generate-rpm", "cargo-generate-rpm")];

/// Write sources, Debian and RPM package, bill of materials (CycloneDX) and checksums of the tagged version
///
/// The source archive contains all dependencies. The packages are built from the unpacked archive, offline. The packages link the
/// MPIs of this machine and are for its distribution. A Python wheel and an archive have binaries for the MPIs of other machines.
/// Everything is written to target/dist/VERSION.
#[derive(clap::Args)]
#[command(after_help = "Example: git tag v0.1.0 && cargo xtask dist")]
pub(crate) struct Options {
    /// MPIs to build with [default: every installed one]
    #[arg(long, value_enum, value_delimiter = ',')]
    mpi: Vec<Which>,
    /// Take the last commit as it is, for a trial; its hash is part of the version
    #[arg(long)]
    untagged: bool,
    /// Write only the wheel and the archive of binaries, from the files of the work tree
    #[arg(long, conflicts_with = "mpi")]
    portable: bool,
    /// Write only a part
    #[arg(long, value_enum, conflicts_with = "portable")]
    only: Option<Only>,
}

/// Part of what is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// The source archive.
    Sources,
    /// The source archive, the packages and the bill of materials.
    Packages,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    if options.portable {
        return portable::main();
    }
    if let Some(lacks) = IDENTITY.lacks().filter(|_| !options.untagged) {
        return Err(Failure::Usage(format!("{lacks}. Fill it in, or give --untagged for a trial")));
    }
    let needed = if options.only == Some(Only::Sources) { &[][..] } else { &TOOLS };
    let absent = needed.iter().filter(|(command, _)| !succeeds(cargo().args([command, "--version"])));
    let absent: Vec<&str> = absent.map(|(_, name)| *name).collect();
    if !absent.is_empty() {
        let names = absent.join(" ");
        return Err(Failure::Missing(format!(
            "not installed: {names}. Run `cargo install --locked {names}`"
        )));
    }
    let mpis = installed(options.mpi.iter().copied())?;
    let workspace = Workspace::read()?;
    let release = Release::read(&workspace.root, options.untagged)?;
    let work = workspace.target.join("dist");
    let published = work.join(&release.version);
    for directory in [&published, &work.join("packing"), &work.join("build"), &work.join("cargo")] {
        emptied(directory)?;
    }

    let archive = source::archive(&workspace.root, &work.join("packing"), &published, &release)?;
    if options.only == Some(Only::Sources) {
        println!("{}", archive.display());
        return Ok(ExitCode::SUCCESS);
    }
    // The packages come from the archive alone: a file that it lacks is missing here too.
    let root = source::unpack(&archive, &work.join("build"), &release)?;
    let sources = Sources::vendored(&root, &work.join("install"), &work.join("cargo"));
    let parts = Parts::read(&sources)?;
    parts.complete()?;
    let builds = sources.build_all(&mpis)?;
    for (name, binary) in &builds {
        leaks::check(binary, &[&workspace.root, &work])?;
        println!("{name}: no path of this machine in the binary");
    }
    let tree = root.join(packages::TREE);
    Prefix::claim(&tree)?.fill(&Contents {
        root: &root,
        builds: &builds,
        parts: &parts,
        modulefile: false,
    })?;
    let packages =
        Packages { sources: &sources, root: &root, to: &published, parts: &parts, release: &release };
    packages.debian()?;
    packages.rpm()?;
    packages.bill_of_materials()?;
    if options.only.is_none() {
        portable::write(&sources, &work.join("portable"), &published, &release.version)?;
    }
    sums(&published)?;
    println!("\n{}", published.display());
    print!("{}", output(std::process::Command::new("ls").arg("-lh").current_dir(&published))?);
    Ok(ExitCode::SUCCESS)
}

/// Writes the checksums of all files in the form that `sha256sum --check` reads.
fn sums(directory: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::file(directory))? {
        names.push(entry.map_err(Failure::file(directory))?.file_name());
    }
    names.sort();
    let text = output(std::process::Command::new("sha256sum").args(names).current_dir(directory))?;
    let file = directory.join("SHA256SUMS");
    fs::write(&file, text).map_err(Failure::file(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("b"), "").unwrap();
        fs::write(directory.path().join("a"), "abc").unwrap();
        sums(directory.path()).unwrap();
        let text = fs::read_to_string(directory.path().join("SHA256SUMS")).unwrap();
        // The digests of "abc" and of nothing are published in FIPS 180-4.
        let expected = [
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
