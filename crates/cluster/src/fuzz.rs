//! Entry points for `fuzz/` and for the test with its seeds.

use crate::inventory::Inventory;

/// Parses any bytes as an inventory. Every value that is accepted must be safe as an argument of a program.
pub fn inventory(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(inventory) = Inventory::parse(text) else { return };
    for host in &inventory.hosts {
        for word in [Some(&host.name), host.address.as_ref(), host.interface.as_ref()].into_iter().flatten() {
            assert!(!word.is_empty() && !word.starts_with('-'), "{word:?}");
            assert!(!word.contains([' ', '\'', '"', '$', '\n', ';']), "{word:?}");
        }
    }
    assert!(inventory.env.keys().all(|name| !name.contains(['=', ' '])));
    let _ = inventory.clone().keep(&[text.to_owned()]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_inventory_of_any_bytes_is_safe_or_refused() {
        ombx_testkit::hostile("inventory", 3000, super::inventory);
    }
}
