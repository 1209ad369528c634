//! Facts about network devices that the kernel tells by generic netlink only: what a port can, offloads and pauses (ethtool), firmware (devlink).
//! Sources: the kernel's documents `networking/ethtool-netlink`, `networking/devlink` and `userspace-api/netlink`.

use std::{path::Path, time::Duration};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink::GENERIC, socket_with, sockopt};

use crate::machine::Files;

/// Family that knows the numbers of the other families (`linux/genetlink.h`), and its question.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
/// Flag of a question, and type of an answer that is an error (`linux/netlink.h`).
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
/// Bits of the kind of an attribute that are flags.
const FLAGS: u16 = 0xc000;
/// Flag of an attribute that contains attributes. Families that are newer than Linux 5.2 refuse a question without it.
const NESTED: u16 = 0x8000;
/// Attribute of a question to ethtool with the device and flags.
const DEVICE: u16 = 1;
/// Lengths of the header of a message, and of that with the header of generic netlink.
const HEADER: usize = 16;
const HEADERS: usize = 20;
/// Longest answer in bytes.
const LONGEST: usize = 32 << 10;
/// Maximum wait for an answer, which the kernel gives at once.
const WAIT: Duration = Duration::from_millis(500);
/// Flag of a question to ethtool: with statistics.
const WITH_STATISTICS: u32 = 4;
/// Offloads that are named, by the names that the kernel has for them. Those of checksums differ by protocol.
const OFFLOADS: [&str; 10] = [
    "rx-checksum",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "tx-checksum",
    "tx-generic-segmentation",
    "tx-gso-partial",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-udp-segmentation",
];

/// A question about one device: family, command, and name of the file that has the answer in a test.
#[derive(Clone, Copy)]
struct Question {
    family: &'static str,
    command: u8,
    file: &'static str,
}

const LINK_MODES: Question = Question { family: "ethtool", command: 4, file: "linkmodes" };
const FEATURES: Question = Question { family: "ethtool", command: 11, file: "features" };
const PAUSES: Question = Question { family: "ethtool", command: 21, file: "pause" };
const FIRMWARE: Question = Question { family: "devlink", command: 51, file: "firmware" };

/// Returns the highest speed of the link modes that a port supports, in Mbit/s.
pub(super) fn highest_speed(files: &Files, interface: &str) -> Option<u64> {
    let answer = ask_ethtool(files, LINK_MODES, interface, 0)?;
    let speed = |mode: String| mode.split_once("base")?.0.parse::<u64>().ok();
    bits(attribute(&answer, 3)?).into_iter().filter_map(speed).max()
}

/// Returns the offloads of an interface that are on.
pub(super) fn offloads(files: &Files, interface: &str) -> Option<String> {
    let answer = ask_ethtool(files, FEATURES, interface, 0)?;
    let active = bits(attribute(&answer, 4)?);
    let is_on = |offload: &&str| {
        active
            .iter()
            .any(|name| name == offload || *offload == "tx-checksum" && name.starts_with("tx-checksum-"))
    };
    let on: Vec<&str> = OFFLOADS.into_iter().filter(is_on).collect();
    Some(if on.is_empty() { "none".into() } else { on.join(" ") })
}

/// Returns the directions in which an interface pauses: `rx tx`, `rx`, `tx` or `off`.
pub(super) fn pauses(files: &Files, interface: &str) -> Option<String> {
    let answer = ask_ethtool(files, PAUSES, interface, 0)?;
    let is_on = |kind: u16| attribute(&answer, kind).is_some_and(|value| value.first() == Some(&1));
    let on: Vec<&str> =
        [(3, "rx"), (4, "tx")].iter().filter(|(kind, _)| is_on(*kind)).map(|(_, way)| *way).collect();
    Some(if on.is_empty() { "off".into() } else { on.join(" ") })
}

/// Returns how many pause frames an interface has sent and received, each `None` if its driver does not count it.
pub(crate) fn pause_frames(files: &Files, interface: &str) -> [Option<u64>; 2] {
    let answer = ask_ethtool(files, PAUSES, interface, WITH_STATISTICS).unwrap_or_default();
    let counts = attribute(&answer, 5).unwrap_or_default();
    [2, 3].map(|kind| Some(u64::from_ne_bytes(attribute(counts, kind)?.try_into().ok()?)))
}

/// Returns the version of the firmware that runs on a PCI device.
pub(super) fn firmware(files: &Files, address: &str) -> Option<String> {
    let named = [encoded(1, b"pci\0"), encoded(2, format!("{address}\0").as_bytes())].concat();
    let answer = ask(files, FIRMWARE, address, &named)?;
    let running = attributes(&answer).filter(|(kind, _)| *kind == 101);
    let versions =
        running.filter_map(|(_, value)| Some((text(attribute(value, 103)?), text(attribute(value, 104)?))));
    // Drivers name the version as a whole `fw`, `fw.mgmt` or `fw.version`, and parts of it otherwise.
    let rank = |name: &str| ["fw", "fw.version", "fw.mgmt"].iter().position(|known| *known == name);
    versions.filter_map(|(name, version)| Some((rank(&name)?, version))).min().map(|(_, version)| version)
}

fn ask_ethtool(files: &Files, question: Question, interface: &str, flags: u32) -> Option<Vec<u8>> {
    let device = encoded(2, format!("{interface}\0").as_bytes());
    let flags = encoded(3, &flags.to_ne_bytes());
    ask(files, question, interface, &encoded(NESTED | DEVICE, &[device, flags].concat()))
}

/// Returns the attributes of an answer of the kernel, or of a file below another root; `None` without an answer.
fn ask(files: &Files, question: Question, device: &str, attributes: &[u8]) -> Option<Vec<u8>> {
    if files.root != Path::new("/") {
        return std::fs::read(files.path(&format!("/netlink/{device}/{}", question.file))).ok();
    }
    exchange(family_number(question.family)?, question.command, attributes)
}

/// Returns the number of a family; `None` if the kernel does not have it.
fn family_number(family: &str) -> Option<u16> {
    let name = encoded(2, format!("{family}\0").as_bytes());
    let answer = exchange(CONTROL, GET_FAMILY, &name)?;
    Some(u16::from_ne_bytes(attribute(&answer, 1)?.try_into().ok()?))
}

/// Sends a question and returns the attributes of the answer.
fn exchange(family: u16, command: u8, attributes: &[u8]) -> Option<Vec<u8>> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC)).ok()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(WAIT)).ok()?;
    let length = u32::try_from(HEADERS + attributes.len()).ok()?;
    let mut question = length.to_ne_bytes().to_vec();
    for part in [family, REQUEST] {
        question.extend(part.to_ne_bytes());
    }
    // Number of the question and of the sender: the socket has one question, and the kernel knows the sender.
    question.extend([0; 8]);
    question.extend([command, 1, 0, 0]);
    question.extend(attributes);
    rustix::io::write(&socket, &question).ok()?;
    let mut answer = vec![0; LONGEST];
    let length = rustix::io::read(&socket, &mut answer).ok()?;
    answer.truncate(length);
    message_attributes(&answer).map(<[u8]>::to_vec)
}

/// Returns the attributes of the first message; `None` if it is an error.
fn message_attributes(bytes: &[u8]) -> Option<&[u8]> {
    let header = bytes.get(..HEADER)?;
    let length = u32::from_ne_bytes(header[..4].try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(header[4..6].try_into().ok()?);
    if kind == ERROR { None } else { bytes.get(HEADERS..length) }
}

/// Returns an attribute with its header and its padding.
fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the kinds and values of attributes until the first that is damaged.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = bytes.get(4..length)?;
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !FLAGS;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// Returns the names of the bits that a set of bits lists: those that are on, or with a mask those that are known.
fn bits(set: &[u8]) -> Vec<String> {
    let all = attribute(set, 3).unwrap_or_default();
    attributes(all).filter_map(|(_, bit)| Some(text(attribute(bit, 2)?))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use crate::machine::netlink::*;

    /// Returns a set of bits as an attribute of this kind.
    fn bit_set(kind: u16, names: &[&str]) -> Vec<u8> {
        let bit = |name: &&str| encoded(NESTED | 1, &encoded(2, format!("{name}\0").as_bytes()));
        let all: Vec<u8> = names.iter().flat_map(bit).collect();
        encoded(NESTED | kind, &encoded(NESTED | 3, &all))
    }

    /// Returns answers about an interface of 25 Gbit/s, and its firmware: names of their files, and their bytes.
    pub(in super::super) fn answers() -> [(&'static str, Vec<u8>); 4] {
        let modes = ["Autoneg", "10000baseT/Full", "25000baseCR/Full", "FEC_RS"];
        let pause = |tx: u64, rx: u64| {
            let counts = [encoded(2, &tx.to_ne_bytes()), encoded(3, &rx.to_ne_bytes())].concat();
            [encoded(3, &[1]), encoded(4, &[0]), encoded(NESTED | 5, &counts)].concat()
        };
        let version = |name: &[u8], version: &[u8]| {
            encoded(NESTED | 101, &[encoded(103, name), encoded(104, version)].concat())
        };
        [
            ("linkmodes", [encoded(NESTED | DEVICE, &[]), bit_set(3, &modes)].concat()),
            ("features", bit_set(4, &["rx-gro", "tx-checksum-ipv4", "highdma", "tx-tcp-segmentation"])),
            ("pause", pause(3, 70)),
            ("firmware", [version(b"fw.psid\0", b"MT_1\0"), version(b"fw\0", b"26.41.1\0")].concat()),
        ]
    }

    #[test]
    fn damaged_answers_are_no_facts() {
        for (_, answer) in answers() {
            for cut in 0..answer.len() {
                let _ = bits(&answer[..cut]);
                let _ = attributes(&answer[..cut]).count();
            }
        }
        assert_eq!(message_attributes(&[]), None);
        let error = [36_u32.to_ne_bytes().to_vec(), ERROR.to_ne_bytes().to_vec(), vec![0; 30]].concat();
        assert_eq!(message_attributes(&error), None);
        assert_eq!(attributes(&[0; 8]).count(), 0);
    }

    #[test]
    fn a_driver_may_count_one_kind_of_pause_frames() {
        let directory = ombx_testkit::Directory::new("netlink-pause");
        let files = Files { root: directory.path().to_owned() };
        let path = files.path("/netlink/eth0/pause");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, encoded(NESTED | 5, &encoded(3, &70_u64.to_ne_bytes()))).unwrap();
        assert_eq!(pause_frames(&files, "eth0"), [None, Some(70)]);
        assert_eq!(pause_frames(&files, "eth1"), [None, None]);
    }

    #[test]
    fn the_kernel_of_this_machine_answers() {
        let files = Files::here();
        // A network namespace always has a loopback interface.
        if family_number(FEATURES.family).is_some() {
            assert!(offloads(&files, "lo").is_some_and(|offloads| !offloads.is_empty()));
        }
        for interface in super::super::network::interfaces(&files) {
            // Devices without Ethernet have no offloads.
            let _ = (
                offloads(&files, &interface),
                highest_speed(&files, &interface),
                pauses(&files, &interface),
                pause_frames(&files, &interface),
            );
        }
        assert_eq!(offloads(&files, "no-such-device"), None);
    }
}
