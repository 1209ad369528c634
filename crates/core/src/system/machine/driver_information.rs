//! What the driver of an interface tells about itself by the ioctl SIOCETHTOOL (netdevice(7), `linux/ethtool.h`): the version of the firmware.
#![expect(unsafe_code, reason = "rustix has no safe interface of this ioctl")]

use std::{ffi::c_char, fs, mem, ops::Range, path::Path};

use rustix::{
    ioctl::{Opcode, Updater, ioctl},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

use super::Files;

/// Number of the ioctl (`linux/sockios.h`).
const SIOCETHTOOL: Opcode = 0x8946;
/// Command that asks the driver for `struct ethtool_drvinfo`.
const GET_DRIVER_INFORMATION: u32 = 3;
/// Length of that structure in bytes.
const LENGTH: usize = 196;
/// Place of the version of the firmware in it.
const FIRMWARE: Range<usize> = 68..100;

/// Returns the version of the firmware of an interface; `None` if its driver does not tell it.
pub(super) fn firmware(files: &Files, interface: &str) -> Option<String> {
    let information = if files.root == Path::new("/") {
        ask(interface)?
    } else {
        fs::read(files.path(&format!("/ethtool/{interface}/drvinfo"))).ok()?
    };
    let version = information.get(FIRMWARE)?.split(|byte| *byte == 0).next()?;
    let version = String::from_utf8_lossy(version).trim().to_owned();
    // Drivers without a firmware leave the version empty, or write this.
    Some(version).filter(|version| !version.is_empty() && version != "N/A")
}

/// Returns what the driver of an interface tells; `None` without an answer.
fn ask(interface: &str) -> Option<Vec<u8>> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let mut information = vec![0_u8; LENGTH];
    information[..4].copy_from_slice(&GET_DRIVER_INFORMATION.to_ne_bytes());
    // SAFETY: all-zero values are valid for this C structure.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // A zero must follow the name.
    if interface.len() >= request.ifr_name.len() {
        return None;
    }
    for (kept, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *kept = byte as c_char;
    }
    request.ifr_ifru.ifru_data = information.as_mut_ptr().cast();
    // SAFETY: the kernel reads `request`, and writes at most `LENGTH` bytes where it points. Both are ours and outlive the call.
    let answered = unsafe { ioctl(&socket, Updater::<'_, SIOCETHTOOL, libc::ifreq>::new(&mut request)) };
    answered.ok().map(|()| information)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the answer of a driver with this version of its firmware.
    pub(in super::super) fn answer(firmware: &str) -> Vec<u8> {
        let mut answer = vec![0; LENGTH];
        answer[FIRMWARE][..firmware.len()].copy_from_slice(firmware.as_bytes());
        answer
    }

    #[test]
    fn the_version_ends_at_a_zero_and_may_be_lacking() {
        let directory = crate::testkit::Directory::new("driver-information");
        let files = Files { root: directory.path().to_owned() };
        let path = files.path("/ethtool/eth0/drvinfo");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let longest = "5720-v1.39 NCSI v1.5.18.0 longer";
        let cases =
            [("3.25, 0x8000", Some("3.25, 0x8000")), (longest, Some(longest)), ("N/A", None), ("", None)];
        for (told, found) in cases {
            fs::write(&path, answer(told)).unwrap();
            assert_eq!(firmware(&files, "eth0").as_deref(), found);
        }
        fs::write(&path, &answer("3.25")[..FIRMWARE.end - 1]).unwrap();
        assert_eq!(firmware(&files, "eth0"), None);
        assert_eq!(firmware(&files, "eth1"), None);
    }

    #[test]
    fn the_kernel_of_this_machine_answers() {
        let files = Files::here();
        for interface in super::super::network::interfaces(&files) {
            assert!(firmware(&files, &interface).is_none_or(|version| !version.contains('\0')));
        }
        for interface in ["lo", "no-such-device", "a name that no interface can have"] {
            assert_eq!(firmware(&files, interface), None, "{interface}");
        }
    }
}
