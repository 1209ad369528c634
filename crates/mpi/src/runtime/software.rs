//! What the MPI library says about itself, and the files of the communication libraries that this process has loaded.

use std::{collections::BTreeSet, fs};

use ombx_core::fact::{Fact, Facts};

use super::{device_support, library};

/// Lines of `MPI_Get_library_version` of MPICH and its derivatives, and the names of their facts.
const LINES: [(&str, &str); 3] = [
    ("MPICH Device:", "device"),
    ("MPICH CC:", "library_compiler"),
    ("MPICH configure:", "library_configuration"),
];
/// Starts of the names of libraries that communicate.
const LIBRARIES: [&str; 14] = [
    "libmpi.",
    "libmpich.",
    "libmpi_cray",
    "libmpicxx",
    "libucp.",
    "libuct.",
    "libfabric.",
    "libpsm2.",
    "libpsm3.",
    "libhcoll.",
    "libibverbs.",
    "libpmix.",
    "libcxi.",
    "libefa.",
];

/// Returns the facts.
pub(crate) fn facts() -> Facts {
    let text = library::version_text();
    let mut facts = of_text(text.trim_matches('\0'));
    let files = loaded(&fs::read_to_string("/proc/self/maps").unwrap_or_default());
    let files = Some(files.join(", ")).filter(|files| !files.is_empty());
    facts.insert(
        "library_files".into(),
        Fact::of(files, "MPI is linked statically, or /proc/self/maps cannot be read"),
    );
    let granted = library::threading().map(|level| level.name().to_owned());
    facts.insert("thread_level".into(), Fact::of(granted, "the library does not say what it grants"));
    facts.extend(device_support::facts());
    facts
}

fn of_text(text: &str) -> Facts {
    let value = |start: &str| {
        let value = text.lines().find_map(|line| line.trim_start().strip_prefix(start))?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty())
    };
    LINES.iter().filter_map(|(start, name)| Some(((*name).to_owned(), Fact::Known(value(start)?)))).collect()
}

/// Returns the paths of communication libraries in the text of `/proc/self/maps`, sorted.
fn loaded(maps: &str) -> Vec<String> {
    let path = |line: &str| line.find('/').map(|at| line[at..].to_owned());
    let communicates = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        LIBRARIES.iter().any(|library| name.starts_with(library))
    };
    let paths: BTreeSet<String> = maps.lines().filter_map(path).filter(communicates).collect();
    paths.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_mpich_is_split_into_facts() {
        let facts = of_text(
            "MPICH Version:    \t4.0.2\nMPICH Device:    \tch4:ucx\nMPICH CC: \tgcc  -O2\nMPICH CXX: \tg++",
        );
        assert_eq!(facts["device"].known(), Some("ch4:ucx"));
        assert_eq!(facts["library_compiler"].known(), Some("gcc -O2"));
        assert_eq!(facts.len(), 2);
        assert!(of_text("Open MPI v4.1.4, package: Debian OpenMPI").is_empty());
    }

    #[test]
    fn loaded_libraries_are_listed_once() {
        let maps = "7f00-7f01 r--p 0 fe:01 1 /usr/lib/libmpich.so.12.2.2\n7f01-7f02 r-xp 0 fe:01 1 /usr/lib/libmpich.so.12.2.2\n\
                    7f03-7f04 r--p 0 fe:01 2 /opt/a b/libucp.so.0\n7f05-7f06 r--p 0 fe:01 3 /usr/lib/libc.so.6\n7f07-7f08 rw-p 0 0 0 [heap]\n";
        assert_eq!(loaded(maps), ["/opt/a b/libucp.so.0", "/usr/lib/libmpich.so.12.2.2"]);
    }
}
