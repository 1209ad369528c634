//! The workspace, as `cargo metadata` describes it: directories, packages and their dependencies.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    command::cannot_run,
    failure::{Failure, Result},
};

/// Package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Name in the manifest.
    pub name: String,
    /// Path of the manifest, relative to the root.
    pub manifest: String,
    /// Declared dependencies, also of packages outside the workspace.
    pub dependencies: Vec<Dependency>,
}

/// Declared dependency.
#[derive(Debug)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// What needs it.
    pub kind: Kind,
}

/// What needs a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The code of the package.
    Normal,
    /// Its build script.
    Build,
    /// Its tests, benches and examples.
    Dev,
}

/// Cargo workspace.
#[derive(Debug)]
pub struct Workspace {
    /// Its directory.
    pub root: PathBuf,
    /// Target directory: `CARGO_TARGET_DIR` if it is set.
    pub target: PathBuf,
    /// Its packages.
    pub packages: Vec<Package>,
}

impl Workspace {
    /// Reads the metadata from cargo, without network access.
    pub fn read() -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--no-deps"]).stderr(Stdio::inherit());
        // The command may be started in any directory: the manifest of the running program is in the workspace.
        if let Some(own) = env::var_os("CARGO_MANIFEST_DIR") {
            command.arg("--manifest-path").arg(Path::new(&own).join("Cargo.toml"));
        }
        let output = command.output().map_err(|source| cannot_run(&command, source))?;
        if !output.status.success() {
            return Err(Failure::Command {
                command: "cargo metadata".into(),
                detail: output.status.to_string(),
            });
        }
        serde_json::from_slice(&output.stdout)
            .map(|metadata| Self::from_metadata(&metadata))
            .map_err(|source| Failure::Output { program: "cargo metadata", source })
    }

    /// Keeps names, manifests and dependencies of the metadata.
    fn from_metadata(metadata: &Value) -> Self {
        let root = text(&metadata["workspace_root"]);
        let packages = list(&metadata["packages"])
            .map(|package| Package {
                name: text(&package["name"]),
                manifest: relative(&text(&package["manifest_path"]), &root),
                dependencies: list(&package["dependencies"])
                    .map(|dependency| Dependency {
                        name: text(&dependency["name"]),
                        kind: match dependency["kind"].as_str() {
                            Some("dev") => Kind::Dev,
                            Some("build") => Kind::Build,
                            _ => Kind::Normal,
                        },
                    })
                    .collect(),
            })
            .collect();
        Self { root: root.into(), target: text(&metadata["target_directory"]).into(), packages }
    }
}

/// Returns a command of the cargo that runs this program, so that nested calls use the same toolchain.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

/// Makes a directory, or makes it empty.
pub fn emptied(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Failure::file(directory))?;
    }
    fs::create_dir_all(directory).map_err(Failure::file(directory))
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn relative(path: &str, root: &str) -> String {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_reduced_to_names_and_kinds() {
        let workspace = Workspace::from_metadata(&serde_json::json!({
            "workspace_root": "/w",
            "target_directory": "/w/target",
            "packages": [{
                "name": "ombx-core",
                "manifest_path": "/w/crates/core/Cargo.toml",
                "dependencies": [{"name": "serde", "kind": null}, {"name": "tempfile", "kind": "dev"}],
            }],
        }));
        let core = &workspace.packages[0];
        assert_eq!((core.name.as_str(), core.manifest.as_str()), ("ombx-core", "crates/core/Cargo.toml"));
        assert_eq!(core.dependencies[0].kind, Kind::Normal);
        assert_eq!(core.dependencies[1].kind, Kind::Dev);
        assert_eq!(workspace.target, Path::new("/w/target"));
    }
}
