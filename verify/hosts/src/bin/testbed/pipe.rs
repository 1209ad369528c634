//! Relay between standard input and output and a TCP connection, through which ssh of this machine reaches hosts of a bed.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
};

use ombx_toolchain::{Failure, Result};

/// Runs until the peer closes the connection.
pub(crate) fn run(address: &str, port: u16) -> Result<()> {
    let name = format!("{address} port {port}");
    let mut from = TcpStream::connect((address, port)).map_err(Failure::file(&*name))?;
    let _ = from.set_nodelay(true);
    let mut to = from.try_clone().map_err(Failure::file(&*name))?;
    let own = |copy: rustix::io::Result<_>| {
        copy.map(File::from).map_err(|e| Failure::Missing(format!("standard input and output: {e}")))
    };
    // Unbuffered: the buffer of the standard library would hold back incomplete lines.
    let mut input = own(rustix::io::dup(rustix::stdio::stdin()))?;
    let mut output = own(rustix::io::dup(rustix::stdio::stdout()))?;
    thread::spawn(move || {
        let _ = copy(&mut input, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    copy(&mut from, &mut output).map_err(Failure::file(&*name))
}

/// Copies without delay. [`io::copy`] may wait for a full pipe if the kernel copies.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 32 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.write_all(&buffer[..length])?,
        }
    }
}
