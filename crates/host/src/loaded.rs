//! Files with code that this process has loaded: the program, libraries that communicate, and preloads.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crc32fast::Hasher;
use ombx_record::result::{Contents, LoadedFile, LoadedFiles, OtherFiles};

use crate::environment::read;

/// Starts of the names of MPI libraries.
pub const MPI_LIBRARIES: [&str; 4] = ["libmpi.", "libmpich.", "libmpi_abi.", "libmpi_cray"];
/// Starts of the names of other libraries that communicate. The first two are parts of Open MPI.
const OTHER_LIBRARIES: [&str; 13] = [
    "libopen-pal.",
    "libopen-rte.",
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
/// Variable with files that the loader loads before all others.
pub const PRELOAD: &str = "LD_PRELOAD";
/// What the kernel writes after the path of a file that was removed or replaced since it was mapped.
const DELETED: &str = " (deleted)";

/// Returns the files that this process has loaded; `None` if `/proc/self/maps` cannot be read.
pub fn files() -> Option<LoadedFiles> {
    let program = fs::read_link("/proc/self/exe").ok()?.to_str()?.to_owned();
    let mapped = with_code(&read("/proc/self/maps"));
    if !mapped.contains(&program) {
        return None;
    }
    let preloads = preloads(&mapped);
    let is_listed = |path: &String| *path == program || is_communicating(path) || preloads.contains(path);
    let others = mapped.iter().filter(|path| !is_listed(path));
    let libraries = mapped.iter().filter(|path| is_communicating(path) && !preloads.contains(*path));
    Some(LoadedFiles {
        program: file(&program),
        libraries: libraries.map(|path| file(path)).collect(),
        others: others_of(others),
        preloads: preloads.iter().map(|path| file(path)).collect(),
    })
}

/// Returns whether a file is a library that communicates, by its name.
pub fn is_communicating(path: &str) -> bool {
    is_one_of(path, &MPI_LIBRARIES) || is_one_of(path, &OTHER_LIBRARIES)
}

/// Returns whether the name of a file starts like one of these.
pub fn is_one_of(path: &str, starts: &[&str]) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    starts.iter().any(|start| name.starts_with(start))
}

/// Returns the files that the text of `/proc/self/maps` names with executable memory.
fn with_code(maps: &str) -> BTreeSet<String> {
    let path = |line: &str| {
        let is_code = line.split_whitespace().nth(1)?.contains('x');
        line.find('/').filter(|_| is_code).map(|at| line[at..].to_owned())
    };
    maps.lines().filter_map(path).collect()
}

/// Returns the mapped files that the user or the system preloads.
fn preloads(mapped: &BTreeSet<String>) -> BTreeSet<String> {
    let named = [env::var(PRELOAD).unwrap_or_default(), read("/etc/ld.so.preload")].join(" ");
    let directories: BTreeSet<&Path> = mapped.iter().filter_map(|path| Path::new(path).parent()).collect();
    preloads_named(&named, &directories).into_iter().filter(|path| mapped.contains(path)).collect()
}

/// Returns the files that entries of `LD_PRELOAD` can mean: names without a directory lie in one of the directories.
fn preloads_named(named: &str, directories: &BTreeSet<&Path>) -> BTreeSet<String> {
    // Colons and blanks separate the entries (ld.so(8)).
    let entries = named.split(|c: char| c == ':' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    let candidates = entries.flat_map(|entry| -> Vec<PathBuf> {
        if entry.contains('/') {
            vec![entry.into()]
        } else {
            directories.iter().map(|directory| directory.join(entry)).collect()
        }
    });
    candidates.filter_map(|path| fs::canonicalize(path).ok()?.to_str().map(str::to_owned)).collect()
}

/// Returns what is known of a file at a path that the kernel has written.
fn file(mapped: &str) -> LoadedFile {
    match mapped.strip_suffix(DELETED) {
        Some(path) => LoadedFile { path: path.to_owned(), ..LoadedFile::default() },
        None => LoadedFile {
            path: mapped.to_owned(),
            build_id: build_id(Path::new(mapped)),
            contents: contents(Path::new(mapped)).ok(),
        },
    }
}

/// Returns number and checksum of files that are not listed. Their build IDs are enough, and they are read faster than contents.
fn others_of<'a>(paths: impl Iterator<Item = &'a String>) -> OtherFiles {
    let identity = |path: &Path| {
        let of_contents = || contents(path).ok().map(|Contents { bytes, crc32 }| format!("{bytes} {crc32}"));
        build_id(path).or_else(of_contents).unwrap_or_default()
    };
    let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut files: Vec<(String, String)> =
        paths.map(|path| (name(path), identity(Path::new(path)))).collect();
    files.sort();
    let mut hasher = Hasher::new();
    files.iter().for_each(|(_, identity)| hasher.update(format!("{identity}\n").as_bytes()));
    OtherFiles { count: files.len() as u64, crc32: hex(hasher) }
}

/// Returns length and checksum of a file.
///
/// # Errors
/// The file cannot be read.
pub fn contents(path: &Path) -> io::Result<Contents> {
    let (mut file, mut hasher, mut bytes) = (File::open(path)?, Hasher::new(), 0);
    // A few calls for each megabyte, in a cache of the second level.
    let mut part = vec![0; 256 << 10];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(Contents { bytes, crc32: hex(hasher) }),
            length => {
                hasher.update(&part[..length]);
                bytes += length as u64;
            }
        }
    }
}

fn hex(hasher: Hasher) -> String {
    format!("{:08x}", hasher.finalize())
}

/// Maximum length of a segment of notes that is read. Notes of linkers are some hundred bytes.
const MOST_NOTES: u64 = 64 << 10;

/// Returns the GNU build ID of an ELF file of 64 bits in the byte order of this host; `None` without one.
fn build_id(path: &Path) -> Option<String> {
    const PT_NOTE: u32 = 4;
    let file = File::open(path).ok()?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    // Offsets of `Elf64_Ehdr` and `Elf64_Phdr` in elf(5).
    if head[..4] != *b"\x7fELF" || head[4] != 2 {
        return None;
    }
    let (offset, size, count) = (word(&head, 32)?, u64::from(half(&head, 54)?), u64::from(half(&head, 56)?));
    (0..count).find_map(|at| {
        let mut segment = [0; 56];
        file.read_exact_at(&mut segment, offset.checked_add(at * size)?).ok()?;
        let (start, length) = (word(&segment, 8)?, word(&segment, 32)?);
        if number(&segment, 0)? != PT_NOTE || length > MOST_NOTES {
            return None;
        }
        let mut notes = vec![0; length as usize];
        file.read_exact_at(&mut notes, start).ok()?;
        // Notes of segments that are aligned to 8 bytes are too (elf(5), and the ABI of x86-64 for properties).
        let align = if word(&segment, 48)? == 8 { 8 } else { 4 };
        build_id_of(&notes, align)
    })
}

/// Returns the build ID among notes.
fn build_id_of(mut notes: &[u8], align: usize) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let [name, value] = [number(notes, 0)? as usize, number(notes, 4)? as usize];
        let from = 12_usize.checked_add(name)?.checked_next_multiple_of(align)?;
        let to = from.checked_add(value)?;
        let (is_gnu, value) = (notes.get(12..12 + name)? == b"GNU\0", notes.get(from..to)?);
        if is_gnu && number(notes, 8)? == NT_GNU_BUILD_ID {
            return Some(value.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(to.checked_next_multiple_of(align)?..)?;
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use crate::loaded::*;

    /// Lines of `/proc/self/maps`.
    const MAPS: &str = "\
        7f00-7f01 r--p 00000000 fd:00 10 /opt/my mpi/libmpi.so.12\n\
        7f01-7f02 r-xp 00001000 fd:00 10 /opt/my mpi/libmpi.so.12\n\
        7f03-7f04 rw-s 00000000 fd:00 11 /dev/shm/x\n\
        7f05-7f06 r-xp 00000000 fd:00 12 /usr/lib/libc.so.6 (deleted)\n\
        7ffe-7fff r-xp 00000000 00:00 0 [vdso]\n";

    #[test]
    fn files_with_code_are_those_that_the_kernel_maps_as_executable() {
        let found: Vec<String> = with_code(MAPS).into_iter().collect();
        assert_eq!(found, ["/opt/my mpi/libmpi.so.12", "/usr/lib/libc.so.6 (deleted)"]);
        assert!(is_communicating(&found[0]) && !is_communicating(&found[1]));
        let gone = file(&found[1]);
        assert_eq!((gone.path.as_str(), gone.build_id, gone.contents), ("/usr/lib/libc.so.6", None, None));
    }

    #[test]
    fn this_process_has_loaded_its_program() {
        let files = files().unwrap();
        let program = env::current_exe().unwrap();
        assert_eq!(files.program.path, program.display().to_string());
        assert_eq!(files.program.contents.unwrap().bytes, fs::metadata(program).unwrap().len());
        // At least a C library.
        assert!(files.others.count > 0);
    }

    #[test]
    fn contents_are_length_and_checksum() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "123456789").unwrap();
        // The check value of CRC-32.
        assert_eq!(contents(&path).unwrap(), Contents { bytes: 9, crc32: "cbf43926".into() });
        assert!(build_id(&path).is_none() && contents(directory.path()).is_err());
    }

    #[test]
    fn a_build_id_is_a_note_of_gnu() {
        let note = |name: &[u8], kind: u32, value: &[u8]| {
            let mut bytes: Vec<u8> = [name.len() as u32, value.len() as u32, kind]
                .into_iter()
                .flat_map(u32::to_ne_bytes)
                .collect();
            for part in [name, value] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes =
            [note(b"GNU\0", 1, &[0; 16]), note(b"XYZ\0", 3, &[9]), note(b"GNU\0", 3, &[0xab, 1, 0xcd])];
        let notes = notes.concat();
        assert_eq!(build_id_of(&notes, 4).as_deref(), Some("ab01cd"));
        for length in 0..notes.len() - 1 {
            assert_eq!(build_id_of(&notes[..length], 4), None, "{length}");
        }
        assert_eq!(build_id_of(&[0xff; 64], 4), None);
    }

    #[test]
    fn preloads_have_paths_or_lie_where_libraries_do() {
        let directory = tempfile::tempdir().unwrap();
        let here = fs::canonicalize(directory.path()).unwrap();
        fs::write(here.join("libx.so.1"), "").unwrap();
        fs::write(here.join("y.so"), "").unwrap();
        symlink("libx.so.1", here.join("libx.so")).unwrap();
        let path = |name: &str| here.join(name).display().to_string();
        let named = format!("libx.so:{} absent.so {}", path("y.so"), path("absent.so"));
        let found = preloads_named(&named, &[here.as_path()].into());
        assert_eq!(found, [path("libx.so.1"), path("y.so")].into());
        assert!(preloads_named("libx.so", &BTreeSet::new()).is_empty());
    }
}
