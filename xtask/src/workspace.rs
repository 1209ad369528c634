//! The workspace as cargo sees it: where it is, where it builds, its packages and what they depend on.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::failure::{Failure, Result};

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One dependency that a package declares.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// What `cargo metadata` knows.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo, without touching the network.
    pub(crate) fn read() -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--no-deps"]).stderr(Stdio::inherit());
        // `cargo xtask` may be typed in any directory of the workspace; its own manifest is always in it.
        if let Some(xtask) = env::var_os("CARGO_MANIFEST_DIR") {
            command.arg("--manifest-path").arg(Path::new(&xtask).join("Cargo.toml"));
        }
        let output = command.output().map_err(|source| Failure::Run { program: "cargo".into(), source })?;
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

    /// Reads what is needed here and ignores the rest.
    pub(crate) fn from_metadata(metadata: &Value) -> Self {
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

/// The cargo that runs this program, so that nested calls use the same toolchain.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
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
