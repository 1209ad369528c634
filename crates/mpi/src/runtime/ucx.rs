//! Whether UCX recognises memory of devices. If it does not, it takes such memory for that of the host and crashes, whatever the MPI
//! library says of itself.

use std::{
    env,
    ffi::{CStr, CString, OsStr, c_char},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use ombx_core::benchmark::memory::Api;

use super::library::{function, mapped, version_text};

/// Names of the two modules: transports, and hooks that notice allocations.
const TRANSPORTS: &str = "uct";
const HOOKS: &str = "ucm";

/// Returns why UCX does not recognise memory of devices, if the library communicates over UCX and this can be known.
pub(super) fn problem(api: Api) -> Option<String> {
    if !is_used() {
        return None;
    }
    let tls = env::var("UCX_TLS").unwrap_or_default();
    let (name, copy) = match api {
        Api::Cuda => ("cuda", "cuda_copy"),
        Api::Rocm => ("rocm", "rocm_copy"),
    };
    if !allows(&tls, name, copy) {
        return Some(format!(
            "UCX_TLS={tls} excludes {copy}, without which UCX takes it for memory of the host"
        ));
    }
    // The table of allocations needs the hooks. Without it UCX asks the driver about each address.
    let has_table = !env::var("UCX_MEMTYPE_CACHE")
        .is_ok_and(|value| ["n", "no", "off", "0"].contains(&&*value.to_lowercase()));
    let kinds = [Some(TRANSPORTS), has_table.then_some(HOOKS)];
    let directories = directories();
    let modules = kinds.into_iter().flatten().map(|kind| format!("lib{kind}_{name}.so"));
    let missing =
        modules.filter(|_| !directories.is_empty()).find(|module| !can_load(&directories, module))?;
    Some(format!(
        "its UCX cannot load the module {missing}, without which UCX takes it for memory of the host"
    ))
}

/// Returns whether messages of the library go through UCX.
fn is_used() -> bool {
    match selected_pml() {
        Some(pml) => pml == "ucx",
        None => version_text().contains("ch4:ucx"),
    }
}

/// Returns the component of Open MPI for messages; `None` of another library.
fn selected_pml() -> Option<String> {
    /// Beginning of `mca_base_component_t` of Open MPI 1.7 to 5.
    #[repr(C)]
    struct Component {
        version: [i32; 3],
        project: [c_char; 16],
        project_version: [i32; 3],
        kind: [c_char; 32],
        kind_version: [i32; 3],
        name: [c_char; 64],
    }
    let found = function(c"mca_pml_base_selected_component")?;
    // SAFETY: Open MPI, the only library with this symbol, has a component there, whose texts end with zero.
    let (kind, name) = unsafe {
        let component = &*found.cast::<Component>();
        (CStr::from_ptr(component.kind.as_ptr()), CStr::from_ptr(component.name.as_ptr()))
    };
    (kind == c"pml").then(|| name.to_string_lossy().into_owned())
}

/// Returns whether a value of `UCX_TLS` has the transport that copies from and to devices.
fn allows(tls: &str, all: &str, copy: &str) -> bool {
    let (names, excludes) = tls.strip_prefix('^').map_or((tls, false), |names| (names, true));
    let mut names = names.split(',');
    if excludes {
        names.all(|name| name != all && name != copy)
    } else {
        names.any(|name| ["", "all", all, copy].contains(&name))
    }
}

/// Returns the directories in which UCX looks for modules; none if its libraries are not files of their own.
fn directories() -> Vec<PathBuf> {
    let files = mapped();
    let own = files.iter().find(|path| path.contains("/libucs.so")).map(Path::new).and_then(Path::parent);
    let Some(own) = own else { return Vec::new() };
    [Some(own.join("ucx")), env::var_os("UCX_MODULE_DIR").map(PathBuf::from)].into_iter().flatten().collect()
}

/// Returns whether a file of a module exists and its libraries do too.
fn can_load(directories: &[PathBuf], module: &str) -> bool {
    let of_module =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(module.as_bytes()));
    let files = directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let mut files = files.filter_map(|entry| Some(entry.ok()?.path())).filter(of_module);
    files.any(|path| is_library(path.as_os_str()))
}

fn is_library(path: &OsStr) -> bool {
    let Ok(path) = CString::new(path.as_bytes()) else { return false };
    // SAFETY: UCX loads this module in the same way, or has done so.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_lists() {
        let found = ["", "all", "tcp,cuda", "self,cuda_copy", "^tcp", "tcp,self", "^cuda", "cuda_ipc"]
            .map(|tls| allows(tls, "cuda", "cuda_copy"));
        assert_eq!(found, [true, true, true, true, true, false, false, false]);
    }
}
