//! What the kernel counts of a TCP connection (`TCP_INFO`, tcp(7)), and whether a connection is MPTCP (`MPTCP_INFO`, Linux 5.16).

#![expect(unsafe_code, reason = "rustix has neither option")]

use std::{
    ffi::c_int,
    mem::offset_of,
    os::fd::{AsFd, AsRawFd},
};

use ombx_core::{
    benchmark::ConnectionCounters,
    error::{Error, Result},
};
use rustix::io::Errno;

use crate::link::transfer::failed;

/// Level and name of `MPTCP_INFO`, from linux/socket.h and linux/mptcp.h.
const SOL_MPTCP: c_int = 284;
const MPTCP_INFO: c_int = 1;
/// Place of `mptcpi_flags` in the structure, and the flag of a connection that is plain TCP.
const MPTCP_FLAGS: usize = 8;
const FALLBACK: u32 = 1;

/// Place of `tcpi_min_rtt`, from linux/tcp.h.
const LEAST_RTT: usize = 148;

/// Structure of the kernel, as bytes.
struct Info {
    bytes: [u8; Info::MOST],
    length: usize,
}

impl Info {
    const MOST: usize = 512;

    fn read(socket: impl AsFd, level: c_int, name: c_int) -> rustix::io::Result<Info> {
        let mut bytes = [0; Info::MOST];
        let mut length = Info::MOST as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into memory that is ours, and sets `length` to what it wrote.
        let code = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                level,
                name,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        match code {
            0 => Ok(Info { bytes, length: length as usize }),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        }
    }

    /// Returns the number at a place; `None` if this kernel's structure is shorter.
    fn number(&self, at: usize) -> Option<u32> {
        self.bytes[..self.length].get(at..at + 4)?.first_chunk().copied().map(u32::from_ne_bytes)
    }
}

/// Returns the counters of a connection from this rank to its peer; `None` if this kernel has fewer counters.
pub(super) fn connection(socket: impl AsFd) -> Result<Option<ConnectionCounters>> {
    let info = Info::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO).map_err(failed)?;
    let number = |at| info.number(at).map(u64::from);
    let counted = (
        number(offset_of!(libc::tcp_info, tcpi_total_retrans)),
        number(offset_of!(libc::tcp_info, tcpi_snd_cwnd)),
        number(offset_of!(libc::tcp_info, tcpi_snd_mss)),
    );
    let (Some(retransmits), Some(segments), Some(segment)) = counted else { return Ok(None) };
    Ok(Some(ConnectionCounters {
        retransmits,
        cwnd_bytes: segments * segment,
        rtt_us: number(offset_of!(libc::tcp_info, tcpi_rtt)).unwrap_or(0),
        least_rtt_us: number(LEAST_RTT).unwrap_or(0),
    }))
}

/// Returns how many bytes wake a receiver that waits.
pub(super) fn low_water(socket: impl AsFd) -> Result<u32> {
    let value = Info::read(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT).map_err(failed)?;
    Ok(value.number(0).unwrap_or(1))
}

/// Returns an error if a connection with the protocol MPTCP has become one of TCP.
pub(super) fn check_mptcp(socket: impl AsFd) -> Result<()> {
    let flags = Info::read(socket, SOL_MPTCP, MPTCP_INFO).ok().and_then(|info| info.number(MPTCP_FLAGS));
    match flags {
        Some(flags) if flags & FALLBACK == 0 => Ok(()),
        _ => Err(Error::unsupported(
            "the connection fell back to TCP: set net.mptcp.enabled=1 on both hosts, and check firewalls \
             between them for the option MPTCP of TCP",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn a_connection_has_counters_and_is_no_mptcp() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _other = listener.accept().unwrap();
        one.write_all(&[1; 64]).unwrap();
        let counted = connection(&one).unwrap().unwrap();
        assert_eq!(counted.retransmits, 0);
        // At least one segment.
        assert!(counted.cwnd_bytes >= 500, "{counted:?}");
        assert!(counted.rtt_us < 10_000_000 && counted.least_rtt_us < 10_000_000, "{counted:?}");
        assert!(check_mptcp(&one).unwrap_err().to_string().contains("fell back to TCP"));
    }

    #[test]
    fn a_unix_socket_has_no_counters() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(connection(one).is_err());
    }
}
