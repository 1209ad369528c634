//! Host files, invitations and rendezvous files, from any bytes.

use super::{hosts, invitation::Invitation, rendezvous};

/// Whatever is read as a host could be an argument of ssh; an invitation survives being written again.
pub fn hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match hosts::listed(&text, "hosts") {
        Ok(hosts) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%@".contains(c);
            let sound = |host: &str| !host.starts_with('-') && host.chars().all(plain);
            assert!(hosts.iter().all(|(host, slots)| sound(host) && (1..=4096).contains(slots)));
        }
        Err(error) => crate::fuzz::told(&error.to_string()),
    }
    if let Some(invitation) = Invitation::parse(&text) {
        let mut again = Vec::new();
        invitation.write(&mut again).unwrap();
        let read = Invitation::parse(std::str::from_utf8(&again).unwrap()).unwrap();
        assert_eq!((read.argv, read.addresses), (invitation.argv, invitation.addresses));
    }
    // The name of another host would be looked up.
    if text.contains("\"identity\":\"\"") || !text.contains("identity") {
        let _ = rendezvous::parse(&text);
    }
}
