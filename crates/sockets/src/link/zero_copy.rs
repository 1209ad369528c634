//! Sends without copying (`MSG_ZEROCOPY`, Linux 4.14). The socket's error queue reports when the kernel has released a buffer.

#![expect(unsafe_code, reason = "neither the option nor the queue has a safe interface in rustix")]

use std::{
    ffi::{c_int, c_void},
    mem::{size_of, zeroed},
    os::fd::{AsFd, AsRawFd},
    ptr,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::SendFlags,
};

use crate::{link::transfer::TRANSFER_TIMEOUT, socket::timespec};

/// The flag of a send without copying.
pub(crate) const FLAG: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// Constants of notifications, from linux/errqueue.h.
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;

/// Counters of the sends on one socket: made, released by the kernel, and copied by the kernel in spite of zero copy.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    pub(crate) made: u64,
    released: u64,
    copied: u64,
}

/// Enables sends without copying on a socket.
pub(crate) fn allow(socket: impl AsFd) -> rustix::io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Sets an option of a socket whose value is an int.
pub(super) fn set_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> rustix::io::Result<()> {
    // SAFETY: the option's value is an int, which lives through the call.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast::<c_void>(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if code == 0 { Ok(()) } else { Err(last_error()) }
}

impl Sends {
    /// Waits until the kernel has released the buffers of all sends.
    pub(crate) fn finish(&mut self, socket: impl AsFd) -> rustix::io::Result<()> {
        while self.released < self.made {
            self.wait_for_notification(&socket)?;
        }
        Ok(())
    }

    /// Waits for a notification of at least one send.
    pub(crate) fn wait_for_notification(&mut self, socket: impl AsFd) -> rustix::io::Result<()> {
        loop {
            match notification(&socket) {
                Ok((sends, copied)) => {
                    self.released += sends;
                    self.copied += if copied { sends } else { 0 };
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                // `poll` reports errors without a requested event.
                Err(Errno::AGAIN) => {
                    match poll(
                        &mut [PollFd::new(&socket, PollFlags::empty())],
                        Some(&timespec(TRANSFER_TIMEOUT)),
                    ) {
                        Ok(0) => return Err(Errno::AGAIN),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the percentage of sends that the kernel copied in spite of zero copy; `None` before the first release.
    pub(crate) fn copied_percent(&self) -> Option<f64> {
        (self.released > 0).then(|| 100.0 * self.copied as f64 / self.released as f64)
    }
}

/// Reads the next notification: the number of sends, and whether the kernel copied them.
fn notification(socket: impl AsFd) -> rustix::io::Result<(u64, bool)> {
    const SPACE: usize = 128;
    #[repr(align(8))]
    struct Control([u8; SPACE]);
    let mut control = Control([0; SPACE]);
    // SAFETY: the kernel writes at most as many bytes of control data as the length says, into memory that is ours; headers
    // are read where the macros of the C library find whole ones within what the kernel wrote.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = SPACE;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        if libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) < 0 {
            return Err(last_error());
        }
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let is_ip = |level, kind| (*header).cmsg_level == level && (*header).cmsg_type == kind;
            if is_ip(libc::SOL_IP, libc::IP_RECVERR) || is_ip(libc::SOL_IPV6, libc::IPV6_RECVERR) {
                let error: libc::sock_extended_err = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                if error.ee_origin == ORIGIN {
                    // Sends have 32-bit numbers, which wrap around.
                    let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
                    return Ok((sends, error.ee_code & COPIED != 0));
                }
                return Err(Errno::from_raw_os_error(error.ee_errno as i32));
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok((0, false))
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
