//! Options of the connections that carry payload, and their parameters.

use ombx_core::{
    benchmark::{Parameter, ParameterValue},
    error::{Error, Result},
    measure::plan::Plan,
    unit::{Bytes, digits},
};

use crate::socket::{IpVersion, SocketOptions};

ombx_core::parameter! {
    /// TCP_NODELAY: send small messages at once
    pub(crate) enum NoDelay: "nodelay", Always, default On {
        /// Small messages are sent at once
        On = "on",
        /// Small messages may wait to be joined
        Off = "off",
    }
}

ombx_core::parameter! {
    /// MSG_ZEROCOPY: the kernel sends from the buffers of ombx; a send ends when the kernel is done with its buffer
    pub(crate) enum ZeroCopy: "zero-copy", IfChosen, default Off {
        /// The kernel copies
        Off = "off",
        /// The kernel does not copy
        On = "on",
    }
}

ombx_core::parameter! {
    /// GSO and GRO of UDP: one call sends and receives several datagrams
    pub(crate) enum Offload: "offload", IfChosen, default On {
        /// Where kernel, route and message size allow it
        On = "on",
        /// A call sends or receives one datagram
        Off = "off",
    }
}

pub(crate) static SOCKET_BUFFER: Parameter = Parameter::free(
    "socket-buffer",
    "BYTES",
    "Size of the send and receive buffers of sockets, for example: --socket-buffer 4M [default: the kernel's]",
    |text| buffer(text).map(|_| ()),
);

pub(crate) static CONGESTION: Parameter = Parameter::free(
    "congestion",
    "NAME",
    "Congestion control of TCP and MPTCP, for example: --congestion reno [default: the kernel's]",
    |text| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..16).contains(&text.len()) && text.bytes().all(is_of_name) {
            Ok(())
        } else {
            Err(Error::usage(format!("{text:?} is no name of a congestion control; give one such as cubic")))
        }
    },
);

pub(crate) static DSCP: Parameter = Parameter::free(
    "dscp",
    "CLASS",
    "Class of the packets in their IP headers (RFC 2474), a name or a number below 64, for example: --dscp \
     EF or --dscp 46 [default: the kernel's]",
    |text| class(text).map(|_| ()),
);

pub(crate) static LOW_WATER: Parameter = Parameter::free(
    "rcvlowat",
    "BYTES",
    "SO_RCVLOWAT: bytes that wake a receiver of TCP inside a window, for example: --rcvlowat 1, which is \
     the kernel's [default: 128K if both ends have BBR, else the kernel's]",
    |text| low_water_bytes(text).map(|_| ()),
);

pub(crate) fn low_water_bytes(text: &str) -> Result<u32> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        1..=0x3fff_ffff => Ok(bytes as u32),
        _ => Err(Error::usage(format!("a low-water mark has at least 1 and less than 1G bytes, not {text}"))),
    }
}

/// Returns the number of a class: `EF`, `VA` or `VOICE-ADMIT`, `LE`, `DF` or `BE`, `CS0` to `CS7`, `AF11` to `AF43`, or the number itself.
fn class(text: &str) -> Result<u8> {
    let digit =
        |text: &str, most: u8| text.parse().ok().filter(|digit: &u8| text.len() == 1 && *digit <= most);
    let assured = |text: &str| {
        let (class, drop) = text.split_at_checked(1)?;
        let (class, drop) = (digit(class, 4)?, digit(drop, 3)?);
        (class > 0 && drop > 0).then_some(8 * class + 2 * drop)
    };
    let name = text.to_ascii_uppercase();
    let number = match name.as_str() {
        "EF" => Some(46),
        "VA" | "VOICE-ADMIT" => Some(44),
        "LE" => Some(1),
        "DF" | "BE" => Some(0),
        name => match (name.strip_prefix("CS"), name.strip_prefix("AF")) {
            (Some(class), _) => digit(class, 7).map(|class| 8 * class),
            (_, Some(rest)) => assured(rest),
            _ => digits(name).filter(|number| *number < 64),
        },
    };
    number.ok_or_else(|| {
        Error::usage(format!(
            "{text:?} is no DSCP: give a number from 0 to 63 or a name such as EF, CS1 or AF41"
        ))
    })
}

/// Returns the options that the user has set.
pub(crate) fn socket_options(plan: &Plan) -> Result<SocketOptions> {
    Ok(SocketOptions {
        dscp: plan.text(&DSCP).map(class).transpose()?,
        buffer: plan.text(&SOCKET_BUFFER).map(buffer).transpose()?,
        congestion: plan.text(&CONGESTION).map(str::to_owned),
        ..SocketOptions::default()
    })
}

fn buffer(text: &str) -> Result<usize> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        // The kernel's option is an int, which it doubles.
        4096..=0x3fff_ffff => Ok(bytes as usize),
        _ => Err(Error::usage(format!("a socket buffer has at least 4K and less than 1G bytes, not {text}"))),
    }
}

/// How connections that carry payload are made.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    pub(crate) ip: IpVersion,
    pub(crate) socket: SocketOptions,
    /// Connections between two ranks.
    pub(crate) streams: u32,
    /// Whether datagrams go in trains.
    pub(crate) offload: Offload,
    /// Bytes that wake a receiver of TCP inside a window (`SO_RCVLOWAT`). `None`: the default, which depends on the congestion control.
    pub(crate) low_water: Option<u32>,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions {
            ip: IpVersion::DEFAULT,
            socket: SocketOptions::default(),
            streams: 1,
            offload: Offload::DEFAULT,
            low_water: None,
        }
    }
}

impl LinkOptions {
    /// Returns an error if a low-water mark is chosen, for a link of another protocol than TCP.
    pub(crate) fn without_low_water(&self) -> Result<()> {
        match self.low_water {
            None => Ok(()),
            Some(_) => Err(Error::unsupported("--rcvlowat is for TCP only; leave it out")),
        }
    }

    /// Returns an error if several streams are chosen, for a link that has one.
    pub(crate) fn one_stream(&self, link: &str) -> Result<()> {
        match self.streams {
            1 => Ok(()),
            streams => {
                Err(Error::unsupported(format!("{link} has one stream; leave out --streams {streams}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        assert_eq!(buffer("4M").unwrap(), 4 << 20);
        for text in ["", "x", "0", "1", "2G", "-1"] {
            assert!(SOCKET_BUFFER.read(text).is_err(), "{text}");
        }
        for (name, number) in
            [("EF", 46), ("ef", 46), ("CS1", 8), ("AF41", 34), ("af13", 14), ("0", 0), ("63", 63), ("be", 0)]
        {
            assert_eq!(class(name).unwrap(), number, "{name}");
        }
        assert_eq!(low_water_bytes("64K").unwrap(), 64 << 10);
        for text in ["", "x", "0", "1G"] {
            assert!(LOW_WATER.read(text).is_err(), "{text}");
        }
        for text in ["", "64", "-1", "+46", "CS8", "AF44", "AF1", "AF111", "high", "0x2e", "CS"] {
            assert!(DSCP.read(text).unwrap_err().to_string().contains("DSCP"), "{text}");
        }
        assert!(CONGESTION.read("cubic").is_ok());
        for text in ["", "a b", "../x", "much_too_long_name"] {
            assert!(CONGESTION.read(text).is_err(), "{text}");
        }
    }
}
