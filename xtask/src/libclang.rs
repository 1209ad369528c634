//! Search for libclang and its headers, as bindgen does it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Finds libclang as clang-sys and bindgen do. The error says what is missing.
pub(crate) fn find() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        // bindgen does not search elsewhere if the variable is set.
        let library = if is_libclang(&path) { Some(path.clone()) } else { library_in(&path) };
        return library.ok_or_else(|| format!("LIBCLANG_PATH={} has no libclang", path.display()));
    }
    let library = directories(Path::new("/")).iter().find_map(|directory| library_in(directory));
    let library = library.ok_or("no libclang.so")?;
    if !has_headers(Path::new("/")) {
        return Err(format!("{} exists, but the headers of clang are missing (stddef.h)", library.display()));
    }
    Ok(library)
}

/// Returns the directories that distributions use, newest LLVM first.
fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = llvm_config().into_iter().collect();
    found.extend(versions(&root.join("usr/lib"), "llvm").into_iter().map(|llvm| llvm.join("lib")));
    found.extend(versions(&root.join("usr/lib64"), "llvm").into_iter().map(|llvm| llvm.join("lib")));
    found.extend(versions(&root.join("usr/local"), "llvm").into_iter().map(|llvm| llvm.join("lib")));
    let machine = format!("usr/lib/{}-linux-gnu", env::consts::ARCH);
    let plain = ["usr/lib64", "usr/lib", &machine, "usr/local/lib", "usr/local/lib64", "usr/lib64/llvm"];
    found.extend(plain.iter().map(|directory| root.join(directory)));
    found
}

fn llvm_config() -> Option<PathBuf> {
    let program = env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    let output =
        Command::new(program).arg("--libdir").output().ok().filter(|output| output.status.success())?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// Returns the subdirectories with this prefix, last version first.
fn versions(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.reverse();
    found
}

fn library_in(directory: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_libclang(path))
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Returns whether a path is `libclang.so`, `libclang-*.so`, `libclang.so.*` or `libclang-*.so.*`, and an existing file.
fn is_libclang(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix("libclang").filter(|rest| !rest.starts_with("-cpp"));
    let named = rest.is_some_and(|rest| {
        (rest.starts_with(".so") || rest.starts_with('-')) && (rest.ends_with(".so") || rest.contains(".so."))
    });
    named && path.is_file()
}

/// Returns whether the resource directory exists. `mpi.h` includes `stddef.h`, which is there.
fn has_headers(root: &Path) -> bool {
    let mut resources =
        vec![root.join("usr/lib/clang"), root.join("usr/lib64/clang"), root.join("usr/local/lib/clang")];
    for parent in ["usr/lib", "usr/lib64", "usr/local"] {
        resources.extend(versions(&root.join(parent), "llvm").into_iter().map(|llvm| llvm.join("lib/clang")));
    }
    if let Some(libdir) = llvm_config() {
        resources.push(libdir.join("clang"));
    }
    resources
        .iter()
        .flat_map(|directory| versions(directory, ""))
        .any(|version| version.join("include/stddef.h").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn the_library_is_known_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        for name in ["libclang.so", "libclang-14.so", "libclang.so.1", "libclang-14.so.14.0.6"] {
            touch(&root.path().join(name));
            assert!(is_libclang(&root.path().join(name)), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclangAST.a", "libclang.a"] {
            touch(&root.path().join(name));
            assert!(!is_libclang(&root.path().join(name)), "{name}");
        }
        assert!(!is_libclang(Path::new("/nonexistent/libclang.so")));
    }

    #[test]
    fn debian_and_fedora_layouts_are_searched() {
        let root = tempfile::tempdir().unwrap();
        touch(&root.path().join("usr/lib/llvm-14/lib/libclang.so.1"));
        touch(&root.path().join("usr/lib64/libclang.so.19"));
        let found: Vec<_> =
            directories(root.path()).iter().filter_map(|directory| library_in(directory)).collect();
        assert!(found.contains(&root.path().join("usr/lib/llvm-14/lib/libclang.so.1")));
        assert!(found.contains(&root.path().join("usr/lib64/libclang.so.19")));
    }

    #[test]
    fn an_empty_directory_has_no_libclang() {
        assert_eq!(library_in(tempfile::tempdir().unwrap().path()), None);
    }
}
