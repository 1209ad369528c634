//! A server that starts ranks for clients on other hosts, for networks without ssh. One client is served at a time.
//!
//! A client shows the server's token and holds its connection for the whole run. For each launch it asks for one rank, over a second
//! connection, which carries the rank's messages and exit code. The rank joins the session of the client's coordinator.

use std::{
    io::{BufRead, BufReader, PipeReader},
    net::SocketAddr,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use ombx_core::{
    codec,
    error::{Error, Exit, Result},
};
use ombx_host::{environment::hostname, since::Since};
use serde::{Deserialize, Serialize};

use crate::{
    control::{
        Attempt, Channel, FrameError, Listener, MAX_BODY, MessageReader, MessageWriter, ProcessGroup,
        Started, Token, listener, process::MemberEnd,
    },
    session::connection::{End, set_keep_alive, version},
    socket::{Address, Deadline, ScopedIp, SocketOptions, Stream, loopback},
};

/// A client that was admitted asks for its rank within this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line of a rank that is passed on, in bytes.
const LONGEST_LINE: usize = 4096;

/// What a client asks of the server: one rank of its session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankRequest {
    /// Token of the session.
    pub session: Token,
    /// Port of the session's coordinator, on the client's host.
    pub port: u16,
    /// Number of the rank among those of its host, and their count.
    pub on_host: (u32, u32),
    /// What the rank measures, in a form that the server's program reads.
    #[serde(with = "serde_bytes")]
    pub job: Vec<u8>,
}

impl RankRequest {
    /// Returns whether the number of the rank can be.
    fn is_possible(&self) -> bool {
        let (rank, count) = self.on_host;
        rank < count && count <= 2
    }
}

/// Message between a server and a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum ServerMessage {
    /// From the server: the connection is admitted.
    Admitted {
        /// Number of the client.
        client: u64,
        /// Host of the server.
        host: String,
    },
    /// To the server: run a rank.
    Run(RankRequest),
    /// From the server: a line that the rank has printed on standard error.
    Line(String),
    /// From the server: the exit code of the rank.
    Exited(u8),
    /// From the server: why it refuses.
    Refused(End),
}

/// Returns the command of a rank and its standard input, for a request from an address. An error is sent to the client.
pub type StartRank = Box<dyn Fn(&RankRequest, ScopedIp) -> Result<(Command, Vec<u8>)> + Send + Sync>;

/// An event of a server, for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A client was admitted: its host.
    Connected(String),
    /// The client has ended its run: its host, and how many ranks it has started.
    Left(String, u64),
    /// A client was refused although it has the token: its host, and why.
    Refused(String, String),
    /// Connections without the token were rejected: how many until now.
    Rejected(u64),
}

/// When a server ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerLifetime {
    /// After one client.
    pub once: bool,
    /// After this time without a client.
    pub idle: Option<Duration>,
}

enum ConnectionEvent {
    Attempt(Attempt),
    /// The connection of a client has ended.
    Left(u64),
}

/// The client that is served.
struct Client {
    number: u64,
    host: String,
    ranks: u64,
}

/// What a client says of itself after the token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    version: String,
    host: String,
    /// Number that the server has given to the client; 0 if it has none yet.
    client: u64,
}

impl Hello {
    fn of_this_process(client: u64) -> Hello {
        Hello { version: version(), host: hostname(), client }
    }

    /// Decodes a hello. Its host may be printed.
    fn decode(bytes: &[u8]) -> Option<Hello> {
        let hello: Hello = codec::decode(bytes)?;
        Some(Hello { host: hello.host.chars().filter(|c| !c.is_control()).take(255).collect(), ..hello })
    }
}

/// Serves one client after another until a limit is reached. Its threads wait in the kernel: they use no CPU time while ranks measure.
///
/// # Errors
/// A thread cannot be started.
pub fn serve(
    listener: Listener,
    lifetime: ServerLifetime,
    start: StartRank,
    on_event: impl Fn(ServerEvent),
) -> Result<()> {
    let (send, events) = mpsc::channel();
    let to_main = send.clone();
    let admit = move || listener.admit(|attempt| to_main.send(ConnectionEvent::Attempt(attempt)).is_ok());
    listener::spawn_thread("listener", admit)?;
    let ranks = Arc::new(Ranks { start, one_at_a_time: Mutex::new(()) });
    let (mut client, mut clients, mut idle_since): (Option<Client>, u64, Since) = (None, 0, Since::now());
    loop {
        let event = match lifetime.idle.filter(|_| client.is_none()) {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => events.recv_timeout(limit.saturating_sub(idle_since.elapsed())),
        };
        match event {
            Err(_) => return Ok(()),
            Ok(ConnectionEvent::Attempt(Attempt::Rejected(count))) => on_event(ServerEvent::Rejected(count)),
            Ok(ConnectionEvent::Left(number)) => {
                if let Some(gone) = client.take_if(|client| client.number == number) {
                    on_event(ServerEvent::Left(gone.host, gone.ranks));
                    idle_since = Since::now();
                    if lifetime.once {
                        return Ok(());
                    }
                }
            }
            Ok(ConnectionEvent::Attempt(Attempt::Admitted(peer))) => {
                let Some(hello) = Hello::decode(&peer.hello) else { continue };
                let Ok((reader, writer)) = channel(peer.stream) else { continue };
                match admitted(&hello, client.as_mut(), clients) {
                    Err(why) => {
                        let _ = writer.0.write(&ServerMessage::Refused(End::new(Exit::Fabric.code(), &why)));
                        on_event(ServerEvent::Refused(hello.host, why));
                    }
                    Ok(Purpose::Client) => {
                        clients += 1;
                        let admitted = ServerMessage::Admitted { client: clients, host: hostname() };
                        if writer.0.write(&admitted).is_ok()
                            && wait_for_end(reader, clients, send.clone()).is_ok()
                        {
                            on_event(ServerEvent::Connected(hello.host.clone()));
                            client = Some(Client { number: clients, host: hello.host, ranks: 0 });
                        }
                    }
                    Ok(Purpose::Rank) => {
                        let ranks = Arc::clone(&ranks);
                        // Without a thread the client finds its connection closed.
                        // It calls a function of the caller, which may need more than a small stack.
                        let rank = std::thread::Builder::new().name("rank".into());
                        let _ = rank.spawn(move || ranks.run(reader, &writer));
                    }
                }
            }
        }
    }
}

enum Purpose {
    Client,
    Rank,
}

/// Returns what a connection is for, or why it is refused.
fn admitted(
    hello: &Hello,
    client: Option<&mut Client>,
    clients: u64,
) -> std::result::Result<Purpose, String> {
    let here = hostname();
    if hello.version != version() {
        return Err(format!(
            "{here} runs another build of ombx ({}, not {}): install the same on both hosts",
            version(),
            hello.version
        ));
    }
    match client {
        None if hello.client == 0 => Ok(Purpose::Client),
        Some(client) if hello.client == client.number => {
            client.ranks += 1;
            Ok(Purpose::Rank)
        }
        Some(client) if hello.client == 0 || hello.client > clients => Err(format!(
            "{here} serves a run of {} now: wait for its end, or start a second server there with another --port",
            client.host
        )),
        _ => Err(format!(
            "{here} does not serve this run any more: its server lost the connection or started again"
        )),
    }
}

/// A writer whose address of the other end is known.
struct Writer(MessageWriter, ScopedIp);

fn channel(stream: Stream) -> std::io::Result<(MessageReader, Writer)> {
    let address = stream.peer().map(ScopedIp::from);
    set_keep_alive(&stream)?;
    let Channel { reader, writer } = Channel::over(stream, MAX_BODY)?;
    Ok((reader, Writer(writer, address.unwrap_or_else(|| loopback().into()))))
}

/// Waits on a thread until a client closes its connection.
fn wait_for_end(mut reader: MessageReader, number: u64, events: Sender<ConnectionEvent>) -> Result<()> {
    let wait = move || {
        while reader.read::<ServerMessage>().is_ok() {}
        let _ = events.send(ConnectionEvent::Left(number));
    };
    listener::spawn_thread("client", wait).map(drop)
}

/// Starts ranks, one after the other: a rank that was interrupted ends before the next one starts.
struct Ranks {
    start: StartRank,
    one_at_a_time: Mutex<()>,
}

impl Ranks {
    /// Runs the rank that a client asks for, and ends it when the client closes the connection.
    fn run(&self, reader: MessageReader, Writer(writer, address): &Writer) {
        let refuse = |error: &Error| {
            let end = End::new(error.kind().exit_code(), &error.to_string());
            drop(writer.write(&ServerMessage::Refused(end)));
        };
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.write(&ServerMessage::Admitted { client: 0, host: hostname() }).is_err() {
            return;
        }
        let (send, ended) = mpsc::channel();
        let (request, asked) = mpsc::channel();
        let closed = send.clone();
        let read = move || read_request(reader, request, closed);
        if let Err(error) = listener::spawn_thread("request", read) {
            return refuse(&error);
        }
        let request = match asked.recv_timeout(REQUEST_TIMEOUT) {
            Ok(ServerMessage::Run(request)) if request.is_possible() => request,
            _ => return refuse(&Error::fabric("the client sent no valid request for a rank")),
        };
        let started = (self.start)(&request, *address).and_then(|(command, input)| {
            let exited = move |_, exit: MemberEnd| drop(send.send(Some(exit)));
            let mut group = ProcessGroup::watch_exits(exited);
            let lines = start_rank(&mut group, command, &input, writer)?;
            Ok((group, lines))
        });
        match started {
            Err(error) => refuse(&error),
            Ok((mut group, lines)) => match ended.recv() {
                Ok(Some(exit)) => {
                    // All of the rank's messages come before its exit code.
                    let _ = lines.join();
                    let code = exit.status.map_or(1, Exit::code_of_process);
                    let _ = writer.write(&ServerMessage::Exited(code));
                }
                _ => group.end(),
            },
        }
    }
}

/// Reads the request of a client. It comes first, and nothing follows it but the end of the connection.
fn read_request(
    mut reader: MessageReader,
    request: Sender<ServerMessage>,
    closed: Sender<Option<MemberEnd>>,
) {
    while let Ok(message) = reader.read() {
        let _ = request.send(message);
    }
    let _ = closed.send(None);
}

/// Starts a process whose lines on standard error are sent to the client.
fn start_rank(
    group: &mut ProcessGroup,
    mut command: Command,
    input: &[u8],
    writer: &MessageWriter,
) -> Result<std::thread::JoinHandle<()>> {
    let (from, to) = std::io::pipe().map_err(|e| Error::fabric(format!("cannot start a rank: {e}")))?;
    command.stdout(Stdio::null()).stderr(to);
    group.add(Started::with_input(command, "the rank".into(), input)?)?;
    let writer = writer.clone();
    listener::spawn_thread("lines", move || pass_lines_on(from, writer))
}

/// Sends the lines of a process to the client.
fn pass_lines_on(from: PipeReader, writer: MessageWriter) {
    for line in BufReader::new(from).split(b'\n').map_while(std::result::Result::ok) {
        let line = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LINE)]).into_owned();
        let _ = writer.write(&ServerMessage::Line(line));
    }
}

/// One address of the server answers within this time, else the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// A server that is reserved for this process until the value is dropped.
pub struct Reservation {
    /// Number of this process as a client of the server.
    pub client: u64,
    /// Host of the server.
    pub host: String,
    _connection: (MessageReader, MessageWriter),
}

impl Reservation {
    /// Connects to a server and reserves it.
    ///
    /// # Errors
    /// Nothing listens, the token is wrong, the server serves another client or is another build of ombx.
    pub fn connect(addresses: &[SocketAddr], token: &Token) -> Result<Reservation> {
        let (connection, client, host) = connect(addresses, token, &Hello::of_this_process(0))?;
        Ok(Reservation { client, host, _connection: connection })
    }
}

/// How a rank of a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankEnd {
    /// It exited with this code.
    Code(u8),
    /// The connection to the server broke.
    Lost,
}

/// Lets a server run a rank, waits for its end, and passes on the lines that it prints on standard error.
///
/// # Errors
/// The server cannot be reached or refuses the request.
pub fn run_rank(
    addresses: &[SocketAddr],
    token: &Token,
    client: u64,
    request: &RankRequest,
    on_line: impl Fn(&str),
) -> Result<RankEnd> {
    let ((mut reader, writer), ..) = connect(addresses, token, &Hello::of_this_process(client))?;
    if writer.write(&ServerMessage::Run(request.clone())).is_err() {
        return Ok(RankEnd::Lost);
    }
    loop {
        match reader.read() {
            Ok(ServerMessage::Line(line)) => on_line(&line),
            Ok(ServerMessage::Exited(code)) => return Ok(RankEnd::Code(code)),
            Ok(ServerMessage::Refused(end)) => return Err(Error::fabric(end.why)),
            Ok(_) | Err(_) => return Ok(RankEnd::Lost),
        }
    }
}

type Connected = ((MessageReader, MessageWriter), u64, String);

/// Connects to the first address that answers, and waits until the server has admitted this process.
fn connect(addresses: &[SocketAddr], token: &Token, hello: &Hello) -> Result<Connected> {
    let mut failure = Error::fabric("the server has no address");
    for address in addresses {
        let (to, deadline) = (Address::Tcp(*address), Deadline::after(CONNECT_TIMEOUT));
        match listener::connect(&to, token, &codec::encode(hello), &SocketOptions::default(), deadline) {
            Ok(stream) => {
                let io = |e: std::io::Error| Error::fabric(format!("{address}: {e}"));
                let socket = stream.try_clone().map_err(io)?;
                let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).map_err(io)?;
                return match reader.read().map_err(|e| refused(*address, &e))? {
                    ServerMessage::Admitted { client, host } => {
                        set_keep_alive(&socket).map_err(io)?;
                        Ok(((reader, writer), client, host))
                    }
                    ServerMessage::Refused(end) => Err(Error::fabric(end.why)),
                    _ => Err(refused(*address, &FrameError::Invalid)),
                };
            }
            Err(error) => failure = error,
        }
    }
    Err(Error::fabric(format!(
        "{failure}. Start `ombx sockets serve` there, and check the port and the firewall"
    )))
}

/// Returns why a server has not admitted this process.
fn refused(address: SocketAddr, error: &FrameError) -> Error {
    Error::fabric(match error {
        FrameError::Closed | FrameError::Torn => format!(
            "{address} rejected the token: give the one of the server, which it has printed or read from \
             its --token-file"
        ),
        FrameError::TimedOut => format!(
            "{address} accepted the connection and did not answer within {} s: is that the port of `ombx \
             sockets serve`?",
            CONNECT_TIMEOUT.as_secs()
        ),
        _ => format!("{address} is no server of ombx: give the port of `ombx sockets serve`"),
    })
}

#[cfg(test)]
mod tests;
