//! Size of the last-level cache of this host, from sysfs.

use std::{fs, path::Path, sync::OnceLock};

/// Bytes of a last-level cache whose size sysfs does not have.
pub const ASSUMED: u64 = 64 << 20;

const CPUS: &str = "/sys/devices/system/cpu";

/// Returns the bytes of the largest last-level cache of a CPU of this host; `None` if sysfs has none.
pub fn last_level() -> Option<u64> {
    static FOUND: OnceLock<Option<u64>> = OnceLock::new();
    *FOUND.get_or_init(|| last_level_in(Path::new(CPUS)))
}

/// Returns the size of the largest cache of the highest level below a directory of CPUs.
fn last_level_in(cpus: &Path) -> Option<u64> {
    let directories = |path: &Path, prefix: &'static str| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(move |path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(|name| name.strip_prefix(prefix)).is_some_and(|n| n.parse::<u32>().is_ok())
        })
    };
    let caches = directories(cpus, "cpu").flat_map(|cpu| directories(&cpu.join("cache"), "index"));
    let found = caches.filter_map(|cache| {
        let read = |name: &str| fs::read_to_string(cache.join(name)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        (read("type")?.trim() != "Instruction").then_some((level, bytes(read("size")?.trim())?))
    });
    found.max().map(|(_, bytes)| bytes)
}

/// Returns the bytes of a size as the kernel writes it, such as `32768K`; `None` for 0 and for other texts.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let size = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cache_of_the_highest_level_counts() {
        let directory = crate::testkit::Directory::new("cache");
        let root = directory.path();
        assert_eq!(last_level_in(root), None);
        let caches = [
            ("cpu0", 0, "1", "Data", "48K"),
            ("cpu0", 1, "1", "Instruction", "32K"),
            ("cpu0", 3, "3", "Unified", "16M"),
            ("cpu1", 2, "2", "Unified", "131072K"),
            ("cpu1", 3, "3", "Unified", "32768K"),
            ("cpu2", 3, "4", "Unified", "0K"),
            ("cpufreq", 3, "9", "Unified", "1G"),
        ];
        for (cpu, index, level, kind, size) in caches {
            let cache = root.join(cpu).join(format!("cache/index{index}"));
            fs::create_dir_all(&cache).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(last_level_in(root), Some(32 << 20));
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        for (text, found) in [
            ("512", Some(512)),
            ("32K", Some(32 << 10)),
            ("2M", Some(2 << 20)),
            ("", None),
            ("K", None),
            ("-1K", None),
        ] {
            assert_eq!(bytes(text), found, "{text}");
        }
    }
}
