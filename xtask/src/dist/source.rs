//! The source archive: the files of a commit and all dependencies, which builds without a network.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ombx_toolchain::{Failure, Result, cargo, output};

use super::release::Release;

/// Folder of the dependencies.
const VENDOR: &str = "vendor";
/// Configuration of cargo in the archive, after that of the repository.
const CONFIGURATION: &str = r#"
# This archive contains its dependencies.
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"

# There is no repository that the build could ask for its commit.
[env]
OMBX_COMMIT = "@COMMIT@"
"#;

/// Writes the archive of a release. The same commit gives the same bytes.
pub(super) fn archive(root: &Path, work: &Path, to: &Path, release: &Release) -> Result<PathBuf> {
    let name = release.name();
    println!("\n-- sources: {name}");
    let files = work.join("files.tar");
    output(
        Command::new("git")
            .args(["archive", "--format=tar"])
            .arg(format!("--prefix={name}/"))
            .arg(format!("--output={}", files.display()))
            .arg(&release.commit)
            .current_dir(root),
    )?;
    output(Command::new("tar").arg("-xf").arg(&files).current_dir(work))?;
    let sources = work.join(&name);
    output(cargo().args(["vendor", "--locked", "--versioned-dirs", VENDOR]).current_dir(&sources))?;
    let configuration = sources.join(".cargo/config.toml");
    let before = fs::read_to_string(&configuration).map_err(Failure::file(&configuration))?;
    let text = before + &CONFIGURATION.replace("@COMMIT@", &release.commit[..12]);
    fs::write(&configuration, text).map_err(Failure::file(&configuration))?;

    let archive = to.join(format!("{name}.tar.gz"));
    output(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw"])
            .arg(format!("--mtime=@{}", release.seconds))
            .args(["--use-compress-program", "gzip --best --no-name", "-cf"])
            .arg(&archive)
            .arg(&name)
            .current_dir(work),
    )?;
    Ok(archive)
}

/// Unpacks the archive and returns its root.
pub(super) fn unpack(archive: &Path, to: &Path, release: &Release) -> Result<PathBuf> {
    output(Command::new("tar").arg("-xf").arg(archive).current_dir(to))?;
    Ok(to.join(release.name()))
}
