//! Lists of CPUs, as the kernel writes them.

use std::collections::BTreeSet;

/// Limit on CPU numbers in a list, above that of any kernel.
const MAX_CPUS: u32 = 1 << 16;

/// Parses a CPU list of the kernel, as `0-3,8`. Skips malformed items.
pub fn parse_cpus(list: &str) -> Vec<u32> {
    let range = |item: &str| {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?.min(MAX_CPUS))
    };
    list.split(',').filter_map(range).flatten().take(MAX_CPUS as usize).collect()
}

/// Returns CPUs as ranges: `0-3,7`.
pub fn cpu_list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push([*cpu; 2]),
        }
    }
    let text =
        |[first, last]: &[u32; 2]| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}
