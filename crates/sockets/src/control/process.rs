//! Processes of this binary in another role: starting them here or on another host, watching them and ending them.

use std::{
    env, fmt,
    io::{self, Write},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ombx_core::error::{Error, Result};
use ombx_host::{limits::start_error, remote_shell::RemoteShell, signals::end_with_this_thread};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::control::{
    channel::{Channel, MAX_PIPELINE_MESSAGE, MessageWriter},
    listener,
};

/// Processes that were asked to end are killed after this time.
const GRACE: Duration = Duration::from_secs(3);

/// How a role of this binary runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Execution {
    Process,
    /// As a thread of the process that starts it.
    Thread,
}

/// Returns the command that runs this binary with a subcommand and arguments: on this host, or through a remote shell on
/// another.
///
/// The command contains no secret. Secrets follow on standard input.
pub fn command(
    remote: Option<(&RemoteShell, &str)>,
    subcommand: &str,
    arguments: &[&str],
) -> Result<Command> {
    let program = env::current_exe();
    let program = program.map_err(|e| Error::fabric(format!("cannot locate the ombx executable: {e}")))?;
    let Some((shell, host)) = remote else {
        let mut command = Command::new(program);
        command.arg(subcommand).args(arguments);
        return Ok(command);
    };
    let program = program.to_str().ok_or_else(|| {
        Error::fabric("the path of the ombx executable is not UTF-8; install it at another path")
    })?;
    let arguments: String = arguments.iter().map(|word| format!(" {}", quoted(word))).collect();
    Ok(shell.command(host, &format!("exec {} {subcommand}{arguments}", quoted(program))))
}

/// Quotes one word for the shell on another host.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A process or thread that was started and is not watched yet.
pub struct Started {
    name: String,
    channel: Option<Channel>,
    child: Option<Child>,
}

impl Started {
    /// Starts a process of this host, whose standard input is a socket: the control channel.
    pub(crate) fn with_socket(mut command: Command, name: String) -> Result<Started> {
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed(&name, &e))?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        let child = spawn(&mut command, &name)?;
        Started::over(ours, name, Some(child))
    }

    /// Starts a process whose standard input and output are the control channel, through ssh for instance.
    pub(crate) fn with_pipes(mut command: Command, name: String) -> Result<Started> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(&mut command, &name)?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let channel = pipes.map(|(from, to)| Channel::pipes(from, to, MAX_PIPELINE_MESSAGE));
        Ok(Started { name, channel, child: Some(child) })
    }

    /// Starts a process, writes its task to its standard input and closes that. It has no control channel.
    pub fn with_input(mut command: Command, name: String, task: &[u8]) -> Result<Started> {
        let mut child = spawn(command.stdin(Stdio::piped()), &name)?;
        if let Some(mut stdin) = child.stdin.take() {
            // Fails if the process has ended already; its exit code gives the reason.
            let _ = stdin.write_all(task);
        }
        Ok(Started { name, channel: None, child: Some(child) })
    }

    /// Starts a thread that gets the other end of the control channel.
    pub(crate) fn thread(name: String, run: impl FnOnce(Channel) + Send + 'static) -> Result<Started> {
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed(&name, &e))?;
        let theirs = Channel::over(OwnedFd::from(theirs).into(), MAX_PIPELINE_MESSAGE)
            .map_err(|e| failed(&name, &e))?;
        std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || run(theirs))
            .map_err(|e| failed(&name, &e))?;
        Started::over(ours, name, None)
    }

    fn over(socket: UnixStream, name: String, child: Option<Child>) -> Result<Started> {
        let channel = Channel::over(OwnedFd::from(socket).into(), MAX_PIPELINE_MESSAGE);
        let channel = channel.map_err(|e| failed(&name, &e))?;
        Ok(Started { name, channel: Some(channel), child })
    }

    /// Sends a message with open files. A process that has ended is no error: its watcher reports it.
    pub(crate) fn send(&self, message: &impl Serialize, files: &[BorrowedFd<'_>]) -> Result<()> {
        let Some(Channel { writer, .. }) = &self.channel else { return Ok(()) };
        match writer.write_with_files(message, files) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Err(failed(&self.name, &e)),
            _ => Ok(()),
        }
    }
}

fn spawn(command: &mut Command, name: &str) -> Result<Child> {
    end_with_this_thread(command);
    command.spawn().map_err(|e| {
        let program = command.get_program().to_string_lossy();
        Error::fabric(format!("cannot start {name}: {program}: {}", start_error(&e)))
    })
}

fn failed(name: &str, error: &io::Error) -> Error {
    Error::fabric(format!("cannot start {name}: {}", start_error(error)))
}

/// An event of a process group. The number is the member's, in the order of [`ProcessGroup::add`].
#[derive(Debug)]
pub(crate) enum ProcessEvent<M> {
    Message(usize, M),
    Exited(usize, MemberEnd),
}

/// How a member ended.
#[derive(Debug)]
pub struct MemberEnd {
    /// Name of the member.
    pub name: String,
    /// Process number; `None` for a thread.
    pub pid: Option<u32>,
    /// Exit status of a process, if the kernel knows it.
    pub status: Option<ExitStatus>,
}

impl fmt::Display for MemberEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(pid) = self.pid {
            write!(f, " (process {pid})")?;
        }
        match self.status.map(|status| (status.signal(), status.code())) {
            Some((Some(9), _)) => f.write_str(" was killed (signal 9)"),
            Some((Some(signal), _)) => write!(f, " died of signal {signal}"),
            Some((None, Some(code))) => write!(f, " ended with exit code {code}"),
            _ => f.write_str(" ended"),
        }
    }
}

type Handler<M> = Arc<dyn Fn(ProcessEvent<M>) + Send + Sync>;

/// Processes or threads that one process has started, and that send messages `M`. Dropping the group ends its members.
pub struct ProcessGroup<M = ()> {
    members: Vec<Member>,
    state: Arc<State>,
    handler: Handler<M>,
}

struct Member {
    writer: Option<MessageWriter>,
    child: Arc<Mutex<Option<Child>>>,
}

/// State of a group that its watching threads share.
#[derive(Default)]
struct State {
    running: Mutex<usize>,
    exited: Condvar,
    /// Set when the group ends its members; from then on no event is reported.
    ending: AtomicBool,
}

impl ProcessGroup {
    /// Returns an empty group of members without control channels. `handler` is called with the number of a member and its end, on any thread.
    pub fn watch_exits(handler: impl Fn(usize, MemberEnd) + Send + Sync + 'static) -> ProcessGroup {
        ProcessGroup::new(move |event| match event {
            ProcessEvent::Exited(member, exit) => handler(member, exit),
            ProcessEvent::Message(..) => {}
        })
    }
}

impl<M: DeserializeOwned + 'static> ProcessGroup<M> {
    /// Returns an empty group. `handler` is called for every event, on any thread.
    pub(crate) fn new(handler: impl Fn(ProcessEvent<M>) + Send + Sync + 'static) -> ProcessGroup<M> {
        ProcessGroup { members: Vec::new(), state: Arc::default(), handler: Arc::new(handler) }
    }

    /// Adds a member and starts a thread that watches it.
    pub fn add(&mut self, started: Started) -> Result<()> {
        let Started { name, channel, child } = started;
        let index = self.members.len();
        let (reader, writer) = channel.map(|Channel { reader, writer }| (reader, writer)).unzip();
        let child = Arc::new(Mutex::new(child));
        self.members.push(Member { writer, child: Arc::clone(&child) });
        *lock(&self.state.running) += 1;
        let (state, handler) = (Arc::clone(&self.state), Arc::clone(&self.handler));
        let watch = move || {
            let report = |event| {
                if !state.ending.load(Ordering::SeqCst) {
                    handler(event);
                }
            };
            if let Some(mut reader) = reader {
                while let Ok(message) = reader.read() {
                    report(ProcessEvent::Message(index, message));
                }
            }
            report(ProcessEvent::Exited(index, wait(name, &child)));
            *lock(&state.running) -= 1;
            state.exited.notify_all();
        };
        let watching = listener::spawn_thread("watch", watch).map(drop);
        if watching.is_err() {
            *lock(&self.state.running) -= 1;
        }
        watching
    }
}

impl<M> ProcessGroup<M> {
    /// Sends a message to every member. A member that has ended is skipped: its watcher reports it.
    pub(crate) fn broadcast(&self, message: &impl Serialize) {
        self.members.iter().filter_map(|m| m.writer.as_ref()).for_each(|to| drop(to.write(message)));
    }

    /// Sends a message to one member. A member that has ended is skipped: its watcher reports it.
    pub(crate) fn send(&self, member: usize, message: &impl Serialize) {
        if let Some(to) = self.members.get(member).and_then(|member| member.writer.as_ref()) {
            let _ = to.write(message);
        }
    }

    /// Ends every member: closes the control channels, and kills the processes that do not end in time.
    pub fn end(&mut self) {
        self.state.ending.store(true, Ordering::SeqCst);
        for member in &mut self.members {
            if let Some(writer) = member.writer.take() {
                writer.close();
            }
        }
        if !self.wait_for_exits() {
            for member in &self.members {
                if let Some(child) = &mut *lock(&member.child) {
                    let _ = child.kill();
                }
            }
            self.wait_for_exits();
        }
    }

    /// Waits until all members have ended, for at most [`GRACE`]. Returns whether they have.
    fn wait_for_exits(&self) -> bool {
        let running = lock(&self.state.running);
        let waited = self.state.exited.wait_timeout_while(running, GRACE, |running| *running > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }
}

impl<M> Drop for ProcessGroup<M> {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a member has ended. The child's mutex is free meanwhile, so that the group can kill it.
fn wait(name: String, child: &Mutex<Option<Child>>) -> MemberEnd {
    let pid = lock(child).as_ref().map(Child::id);
    if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // `NOWAIT` leaves the process number in use: a kill meanwhile cannot hit another process.
        while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            .is_err_and(|e| e == rustix::io::Errno::INTR)
        {}
    }
    let status = lock(child).as_mut().and_then(|child| child.wait().ok());
    MemberEnd { name, pid, status }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_remote_shell_gets_whole_words_and_no_secret() {
        let shell = RemoteShell::ssh(None, &[]);
        let command = command(Some((&shell, "n02")), "pipeline-process", &["node 1"]).unwrap();
        let last = command.get_args().last().unwrap().to_string_lossy();
        assert!(last.starts_with("exec '/") && last.ends_with("' pipeline-process 'node 1'"), "{last}");
    }

    #[test]
    fn words_for_a_shell_are_quoted() {
        assert_eq!(quoted("/opt/a b/ombx"), "'/opt/a b/ombx'");
        assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
    }

    #[test]
    fn members_send_messages_and_their_exits_are_reported() {
        let (sender, events) = mpsc::channel();
        let mut group = ProcessGroup::<u8>::new(move |event| drop(sender.send(event)));
        let task = b"exit 3\n";
        group
            .add(Started::with_input(shell("read line; eval \"$line\""), "a".into(), task).unwrap())
            .unwrap();
        let ProcessEvent::Exited(0, exit) = events.recv().unwrap() else { panic!() };
        assert!(exit.to_string().starts_with("a (process ") && exit.to_string().ends_with("exit code 3"));
        let echo =
            |mut channel: Channel| channel.writer.write(&channel.reader.read::<u8>().unwrap()).unwrap();
        group.add(Started::thread("b".into(), echo).unwrap()).unwrap();
        group.broadcast(&7u8);
        assert!(matches!(events.recv().unwrap(), ProcessEvent::Message(1, 7)));
        assert!(matches!(events.recv().unwrap(), ProcessEvent::Exited(1, MemberEnd { status: None, .. })));
    }

    #[test]
    fn a_process_that_does_not_end_is_killed() {
        let (sender, events) = mpsc::channel();
        let mut group = ProcessGroup::<u8>::new(move |event| drop(sender.send(event)));
        group.add(Started::with_socket(shell("exec sleep 1000"), "a".into()).unwrap()).unwrap();
        group.end();
        let child = group.members[0].child.lock().unwrap().as_mut().unwrap().try_wait().unwrap();
        assert_eq!(child.unwrap().signal(), Some(9));
        assert!(events.try_recv().is_err(), "an end that was asked for was reported");
    }
}
