//! What the driver of an interface tells about itself by the ioctl SIOCETHTOOL (netdevice(7), `linux/ethtool.h`): the version of the firmware, and
//! its statistics of pauses by priority.
//!
//! Drivers choose the names of their statistics. The kernel's document `mellanox/mlx5/counters` has those of mlx5; those of other drivers are in
//! the files `bnxt_ethtool.c`, `ice_ethtool.c`, `i40e_ethtool.c`, `ixgbe_ethtool.c`, `hclge_main.c`, `mlx4/en_ethtool.c` and
//! `mlxsw/spectrum_ethtool.c` below `drivers/net/ethernet`.
#![expect(unsafe_code, reason = "rustix has no safe interface of this ioctl")]

use std::{ffi::c_char, fs, mem, ops::Range, path::Path};

use rustix::{
    ioctl::{Opcode, Updater, ioctl},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};

use crate::machine::Files;

/// Number of the ioctl (`linux/sockios.h`).
const SIOCETHTOOL: Opcode = 0x8946;
/// Commands that ask the driver for `struct ethtool_drvinfo`, `ethtool_gstrings`, `ethtool_stats` and `ethtool_sset_info`.
const GET_DRIVER_INFORMATION: u32 = 3;
const GET_NAMES: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_NUMBER: u32 = 0x37;
/// Number of the set of names that statistics have (`ETH_SS_STATS`).
const STATISTICS: u32 = 1;
/// Place of the version of the firmware in the first of these structures.
const FIRMWARE: Range<usize> = 68..100;
/// Place of the number of names or statistics in the others.
const NUMBER_OF_NAMES: usize = 8;
const NUMBER_OF_STATISTICS: usize = 4;
const NUMBER_OF_SET: usize = 16;
/// Bytes before the names and before the statistics.
const BEFORE_NAMES: usize = 12;
const BEFORE_STATISTICS: usize = 8;
/// Bytes of a name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;
/// Largest number of statistics that are read. Drivers have some for each of many queues.
const MOST: usize = 1 << 15;
/// Length of the memory of a short answer in bytes.
const SHORT: usize = 256;

/// Names of statistics that count pauses by priority: `?` is `t` for sent frames and `r` for received ones, `#` is the priority. Of frames that
/// begin a pause and frames that end it, as ice counts them, those that begin it count.
const PAUSES: [&str; 8] = [
    // mlx5
    "?x_prio#_pause",
    // mlx4, mlxsw
    "?x_pause_prio_#",
    // bnxt_en
    "?x_pfc_ena_frames_pri#",
    // ice
    "?x_priority_#_xoff.nic",
    // i40e, and earlier versions
    "port.?x_priority_#_xoff_?x",
    "port.?x_priority_#_xoff",
    // ixgbe
    "?x_pb_#_pxoff",
    // hns3
    "mac_?x_pfc_pri#_pkt_num",
];

/// Returns the version of the firmware of an interface; `None` if its driver does not tell it.
pub(super) fn firmware(files: &Files, interface: &str) -> Option<String> {
    let information = ask(files, interface, "drvinfo", &GET_DRIVER_INFORMATION.to_ne_bytes(), SHORT)?;
    let version = text(information.get(FIRMWARE)?);
    let version = String::from_utf8_lossy(version).trim().to_owned();
    // Drivers without a firmware leave the version empty, or write this.
    Some(version).filter(|version| !version.is_empty() && version != "N/A")
}

/// Statistics of an interface that count pauses by priority (PFC).
pub(crate) struct PriorityPauses {
    pub(crate) interface: String,
    /// Number of all statistics.
    number: usize,
    /// Places of those of sent frames, and of received ones.
    places: [Vec<usize>; 2],
}

impl PriorityPauses {
    /// Finds the statistics of an interface by their names; `None` if its driver has none.
    pub(crate) fn new(files: &Files, interface: &str) -> Option<PriorityPauses> {
        let number = number_of_statistics(files, interface)?;
        let question = [GET_NAMES, STATISTICS, number as u32].map(u32::to_ne_bytes).concat();
        let answer = ask(files, interface, "names", &question, BEFORE_NAMES + 2 * number * NAME)?;
        if word(&answer, NUMBER_OF_NAMES)? != number {
            return None;
        }
        let names = answer.get(BEFORE_NAMES..BEFORE_NAMES + number * NAME)?;
        let mut places = [Vec::new(), Vec::new()];
        for (place, name) in names.as_chunks::<NAME>().0.iter().enumerate() {
            if let Some(direction) = direction(text(name)) {
                places[direction].push(place);
            }
        }
        let is_counted = places.iter().any(|all| !all.is_empty());
        is_counted.then(|| PriorityPauses { interface: interface.to_owned(), number, places })
    }

    /// Returns how many frames were sent and received, each `None` if it cannot be read. A driver that has another number of statistics than
    /// before may have them in other places.
    pub(crate) fn frames(&self, files: &Files) -> [Option<u64>; 2] {
        let answer = self.statistics(files).unwrap_or_default();
        let value = |place: usize| {
            let at = BEFORE_STATISTICS + place * size_of::<u64>();
            Some(u64::from_ne_bytes(*answer.get(at..)?.first_chunk()?))
        };
        let add = |sum: u64, place: &usize| Some(sum.wrapping_add(value(*place)?));
        self.places.each_ref().map(|all| all.iter().try_fold(0, add))
    }

    /// Reads all statistics.
    fn statistics(&self, files: &Files) -> Option<Vec<u8>> {
        if number_of_statistics(files, &self.interface)? != self.number {
            return None;
        }
        let question = [GET_STATISTICS, self.number as u32].map(u32::to_ne_bytes).concat();
        let room = BEFORE_STATISTICS + 2 * self.number * size_of::<u64>();
        let answer = ask(files, &self.interface, "statistics", &question, room)?;
        (word(&answer, NUMBER_OF_STATISTICS)? == self.number).then_some(answer)
    }
}

/// Returns which pauses by priority a statistic counts: 0 those that were sent, 1 those that were received; `None` if it counts something else.
fn direction(name: &[u8]) -> Option<usize> {
    let pattern = PAUSES.into_iter().find(|pattern| {
        pattern.len() == name.len() && pattern.bytes().zip(name).all(|(expected, byte)| fits(expected, *byte))
    })?;
    Some(usize::from(name[pattern.find('?')?] == b'r'))
}

fn fits(expected: u8, byte: u8) -> bool {
    match expected {
        b'?' => matches!(byte, b'r' | b't'),
        b'#' => matches!(byte, b'0'..=b'7'),
        _ => byte == expected,
    }
}

/// Returns the number of statistics of an interface; `None` if it has none, or too many.
fn number_of_statistics(files: &Files, interface: &str) -> Option<usize> {
    let sets = (1_u64 << STATISTICS).to_ne_bytes();
    let question = [&GET_NUMBER.to_ne_bytes()[..], &[0_u8; 4], &sets].concat();
    let answer = ask(files, interface, "number", &question, SHORT)?;
    word(&answer, NUMBER_OF_SET).filter(|number| (1..=MOST).contains(number))
}

/// Returns the number at a place of an answer.
fn word(answer: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?) as usize)
}

/// Returns the part of a text before its first zero.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns what the driver of an interface, or a file below another root, answers to a question that begins with a command; `None` without an
/// answer. There is `room` for that many bytes, and never for fewer than a structure without names and statistics has.
fn ask(files: &Files, interface: &str, file: &str, question: &[u8], room: usize) -> Option<Vec<u8>> {
    if files.root != Path::new("/") {
        return fs::read(files.path(&format!("/ethtool/{interface}/{file}"))).ok();
    }
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let mut information = vec![0_u8; room.max(SHORT)];
    information[..question.len()].copy_from_slice(question);
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
    // SAFETY: the kernel reads `request`, and writes where it points. Both are ours and outlive the call. The kernel writes a structure, or as many
    // names or statistics as the driver has at that moment, whatever the question says. `number_of_statistics` has found half as many as there
    // is room for just before, and a driver does not double them meanwhile.
    let answered = unsafe { ioctl(&socket, Updater::<'_, SIOCETHTOOL, libc::ifreq>::new(&mut request)) };
    answered.ok().map(|()| information)
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::machine::driver_information::*;

    /// Returns the answer of a driver with this version of its firmware.
    pub(in super::super) fn answer(firmware: &str) -> Vec<u8> {
        let mut answer = vec![0; 196];
        answer[FIRMWARE][..firmware.len()].copy_from_slice(firmware.as_bytes());
        answer
    }

    /// Returns the answers of a driver with these statistics: names of their files, and their bytes.
    pub(crate) fn statistics(all: &[(&str, u64)]) -> [(&'static str, Vec<u8>); 3] {
        let number = all.len() as u32;
        let mut number_of_set = vec![0; NUMBER_OF_SET];
        number_of_set.extend(number.to_ne_bytes());
        let mut names = [GET_NAMES, STATISTICS, number].map(u32::to_ne_bytes).concat();
        let mut values = [GET_STATISTICS, number].map(u32::to_ne_bytes).concat();
        for (name, value) in all {
            let end = names.len() + NAME;
            names.extend(name.as_bytes());
            names.resize(end, 0);
            values.extend(value.to_ne_bytes());
        }
        [("number", number_of_set), ("names", names), ("statistics", values)]
    }

    /// Writes an answer about an interface.
    fn write(files: &Files, file: &str, answer: &[u8]) {
        let path = files.path(&format!("/ethtool/eth0/{file}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, answer).unwrap();
    }

    #[test]
    fn the_version_ends_at_a_zero_and_may_be_lacking() {
        let directory = ombx_testkit::Directory::new("driver-information");
        let files = Files { root: directory.path().to_owned() };
        let longest = "5720-v1.39 NCSI v1.5.18.0 longer";
        let cases =
            [("3.25, 0x8000", Some("3.25, 0x8000")), (longest, Some(longest)), ("N/A", None), ("", None)];
        for (told, found) in cases {
            write(&files, "drvinfo", &answer(told));
            assert_eq!(firmware(&files, "eth0").as_deref(), found);
        }
        write(&files, "drvinfo", &answer("3.25")[..FIRMWARE.end - 1]);
        assert_eq!(firmware(&files, "eth0"), None);
        assert_eq!(firmware(&files, "eth1"), None);
    }

    #[test]
    fn pauses_by_priority_are_found_by_the_names_of_each_driver() {
        let (sent, received) = (Some(0), Some(1));
        for (name, expected) in [
            ("rx_prio3_pause", received),
            ("tx_prio0_pause", sent),
            ("rx_prio3_pause_duration", None),
            ("rx_prio3_pause_transition", None),
            ("rx_prio3_packets", None),
            ("rx_prio8_pause", None),
            ("rx_global_pause", None),
            ("tx_pause_prio_7", sent),
            ("tx_pause_duration_prio_7", None),
            ("rx_pfc_ena_frames_pri3", received),
            ("pfc_pri3_rx_transitions", None),
            ("pfc_pri3_rx_duration_us", None),
            ("tx_priority_3_xoff.nic", sent),
            ("tx_priority_3_xon.nic", None),
            ("port.rx_priority_3_xoff_rx", received),
            ("port.rx_priority_3_xon_2_xoff", None),
            ("port.tx_priority_3_xoff", sent),
            ("rx_pb_3_pxoff", received),
            ("mac_rx_pfc_pri3_pkt_num", received),
            ("mac_rx_pfc_pkt_num", None),
            ("", None),
        ] {
            assert_eq!(direction(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn pauses_of_all_priorities_are_added() {
        let directory = ombx_testkit::Directory::new("priority-pauses");
        let files = Files { root: directory.path().to_owned() };
        let answer_with = |all: &[(&str, u64)]| {
            statistics(all).iter().for_each(|(file, answer)| write(&files, file, answer));
        };
        answer_with(&[("rx_packets", 9)]);
        assert!(
            PriorityPauses::new(&files, "eth0").is_none() && PriorityPauses::new(&files, "eth1").is_none()
        );
        let all = [
            ("rx_prio0_pause", 1),
            ("tx_prio0_pause", 5),
            ("rx_prio3_pause", 2),
            ("rx_prio3_pause_duration", 90),
        ];
        answer_with(&all);
        let pauses = PriorityPauses::new(&files, "eth0").unwrap();
        assert_eq!(pauses.frames(&files), [Some(5), Some(3)]);
        // Statistics may have moved if there are more or fewer.
        answer_with(&all[1..]);
        assert_eq!(pauses.frames(&files), [None, None]);
        for (file, answer) in statistics(&all) {
            write(&files, file, &answer[..answer.len() - 1]);
        }
        assert!(PriorityPauses::new(&files, "eth0").is_none());
    }

    #[test]
    fn the_kernel_of_this_machine_answers() {
        let files = Files::here();
        for interface in super::super::network::interfaces(&files) {
            assert!(firmware(&files, &interface).is_none_or(|version| !version.contains('\0')));
            if let Some(pauses) = PriorityPauses::new(&files, &interface) {
                assert!(pauses.frames(&files).iter().all(Option::is_some), "{interface}");
            }
        }
        for interface in ["lo", "no-such-device", "a name that no interface can have"] {
            assert_eq!(firmware(&files, interface), None, "{interface}");
            assert!(PriorityPauses::new(&files, interface).is_none(), "{interface}");
        }
    }
}
