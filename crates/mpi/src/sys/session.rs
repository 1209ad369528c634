//! Start of MPI as a session, and its end.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::transmute,
    ptr,
    sync::{
        LazyLock,
        atomic::{AtomicU8, Ordering},
    },
};

use mpi::ffi;
use ombx_core::{
    benchmark::Threading,
    error::{Error, Result},
};

unsafe extern "C" {
    fn ombx_session_start(level: *const c_char, all: *mut ffi::MPI_Comm, call: *mut *const c_char) -> c_int;
    fn ombx_session_level(level: *mut c_char, length: c_int);
    safe fn ombx_session_end();
}

const NEVER: u8 = 0;
const OPEN: u8 = 1;
const ENDED: u8 = 2;

/// Whether this process has a session with a communicator of all ranks.
static STATE: AtomicU8 = AtomicU8::new(NEVER);

/// Returns whether the library has sessions.
pub(crate) fn exist() -> bool {
    routine(&[c"MPI_Session_init"]).is_some()
}

/// Returns whether a session is open. `MPI_Initialized` does not say so (MPI 4.0, 11.4.1).
pub(crate) fn is_open() -> bool {
    STATE.load(Ordering::Relaxed) == OPEN
}

/// Returns whether this process has had a session.
pub(crate) fn was_open() -> bool {
    STATE.load(Ordering::Relaxed) != NEVER
}

/// Names of the levels of thread support in the info of a session (MPI 4.1, 11.3.1).
const LEVELS: [(Threading, &CStr); 4] = [
    (Threading::Single, c"MPI_THREAD_SINGLE"),
    (Threading::Funneled, c"MPI_THREAD_FUNNELED"),
    (Threading::Serialized, c"MPI_THREAD_SERIALIZED"),
    (Threading::Multiple, c"MPI_THREAD_MULTIPLE"),
];

/// Returns the level of thread support that the open session grants, if it says so.
pub(crate) fn threading() -> Option<Threading> {
    let mut level = [0; 64];
    if !is_open() {
        return None;
    }
    // SAFETY: the buffer has the length that the call is given, which ends the text by a zero.
    let granted = unsafe {
        ombx_session_level(level.as_mut_ptr(), level.len() as c_int);
        CStr::from_ptr(level.as_ptr())
    };
    LEVELS.into_iter().find(|(_, name)| *name == granted).map(|(level, _)| level)
}

/// Starts a session and returns a communicator of all its ranks, which the caller owns.
///
/// # Errors
/// The library has no sessions, or a call fails.
pub(crate) fn start(threading: Threading) -> Result<ffi::MPI_Comm> {
    // SAFETY: this static of mpi-sys is never written.
    let (mut all, mut call) = (unsafe { ffi::RSMPI_COMM_NULL }, ptr::null());
    let level = LEVELS.into_iter().find(|(level, _)| *level == threading).map_or(c"", |(_, name)| name);
    // SAFETY: the text and both results outlive the call.
    let code = unsafe { ombx_session_start(level.as_ptr(), &raw mut all, &raw mut call) };
    if code != ffi::MPI_SUCCESS as c_int {
        // SAFETY: the shim stores the address of a string constant before it makes any call.
        let call = unsafe { CStr::from_ptr(call) }.to_string_lossy();
        // MPI_Error_string may not work before initialisation.
        return Err(Error::fabric(format!("{call}: error {code}")));
    }
    STATE.store(OPEN, Ordering::Relaxed);
    Ok(all)
}

/// Ends the session. All handles are freed before.
pub(crate) fn end() {
    STATE.store(ENDED, Ordering::Relaxed);
    ombx_session_end();
}

/// Address of an MPI function. The caller casts it to its type.
pub(crate) type Routine = unsafe extern "C" fn();

/// Returns the function of the first name that a loaded library has.
pub(crate) fn routine(names: &[&CStr]) -> Option<Routine> {
    names.iter().find_map(|name| {
        // SAFETY: the name is terminated by zero. An address of a function may be kept as one: no library is unloaded.
        unsafe { transmute::<*mut c_void, Option<Routine>>(libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr())) }
    })
}

/// `MPI_Psend_init` (MPI 4.1, 4.2.1).
pub(crate) type PartitionedInit<Buffer> = unsafe extern "C" fn(
    Buffer,
    c_int,
    ffi::MPI_Count,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    ffi::MPI_Info,
    *mut ffi::MPI_Request,
) -> c_int;

/// Functions for partitioned messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partitioned {
    pub(crate) send_init: PartitionedInit<*const c_void>,
    pub(crate) receive_init: PartitionedInit<*mut c_void>,
    /// `MPI_Pready`.
    pub(crate) ready: unsafe extern "C" fn(c_int, ffi::MPI_Request) -> c_int,
}

impl Partitioned {
    /// Returns the functions, or `None` if the library has no partitioned messages.
    pub(crate) fn find() -> Option<Partitioned> {
        let [send_init, receive_init, ready] =
            [c"MPI_Psend_init", c"MPI_Precv_init", c"MPI_Pready"].map(|name| routine(&[name]));
        // SAFETY: functions of these names have these types in every library (MPI 4.1, 4.2).
        unsafe {
            Some(Partitioned {
                send_init: transmute::<Routine, PartitionedInit<*const c_void>>(send_init?),
                receive_init: transmute::<Routine, PartitionedInit<*mut c_void>>(receive_init?),
                ready: transmute::<Routine, unsafe extern "C" fn(c_int, ffi::MPI_Request) -> c_int>(ready?),
            })
        }
    }
}

/// A blocking call with a large count.
pub(crate) type Blocking<Buffer, Ends> = unsafe extern "C" fn(
    Buffer,
    ffi::MPI_Count,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
    Ends,
) -> c_int;
/// A call with a large count that creates a request.
pub(crate) type Starting<Buffer> = Blocking<Buffer, *mut ffi::MPI_Request>;
/// `MPI_Send_c`, which has no last argument.
pub(crate) type Sending = unsafe extern "C" fn(
    *const c_void,
    ffi::MPI_Count,
    ffi::MPI_Datatype,
    c_int,
    c_int,
    ffi::MPI_Comm,
) -> c_int;

/// Two-sided calls whose counts are `MPI_Count` (MPI 4.1, 2.5.8). In a library without them these convert the count and make the call
/// with `int`; [`LargeCalls::is_native`] is then false, and counts above the largest `int` must not be passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeCalls {
    pub(crate) is_native: bool,
    pub(crate) send: Sending,
    pub(crate) receive: Blocking<*mut c_void, *mut ffi::MPI_Status>,
    pub(crate) start_send: Starting<*const c_void>,
    pub(crate) start_receive: Starting<*mut c_void>,
    pub(crate) send_init: Starting<*const c_void>,
    pub(crate) receive_init: Starting<*mut c_void>,
}

/// Defines a function that has the arguments of a call with a large count, and makes the call with `int`.
macro_rules! with_int {
    ($name:ident, $call:ident, $buffer:ty $(, $last:ty)?) => {
        unsafe extern "C" fn $name(
            buffer: $buffer,
            count: ffi::MPI_Count,
            datatype: ffi::MPI_Datatype,
            peer: c_int,
            tag: c_int,
            comm: ffi::MPI_Comm,
            $(last: $last,)?
        ) -> c_int {
            // SAFETY: the caller fulfils the contract of the call with a large count, and the count fits.
            unsafe { ffi::$call(buffer, count as c_int, datatype, peer, tag, comm $(, last as $last)?) }
        }
    };
}

with_int!(send, MPI_Send, *const c_void);
with_int!(receive, MPI_Recv, *mut c_void, *mut ffi::MPI_Status);
with_int!(start_send, MPI_Isend, *const c_void, *mut ffi::MPI_Request);
with_int!(start_receive, MPI_Irecv, *mut c_void, *mut ffi::MPI_Request);
with_int!(send_init, MPI_Send_init, *const c_void, *mut ffi::MPI_Request);
with_int!(receive_init, MPI_Recv_init, *mut c_void, *mut ffi::MPI_Request);

impl LargeCalls {
    const WITH_INT: LargeCalls =
        LargeCalls { is_native: false, send, receive, start_send, start_receive, send_init, receive_init };

    /// Returns the calls of the library.
    pub(crate) fn get() -> &'static LargeCalls {
        static FOUND: LazyLock<LargeCalls> =
            LazyLock::new(|| LargeCalls::find().unwrap_or(LargeCalls::WITH_INT));
        &FOUND
    }

    fn find() -> Option<LargeCalls> {
        let found = |name: &CStr| routine(&[name]);
        // SAFETY: functions of these names have these types in every library (MPI 4.1, 3.2, 3.7, 3.9).
        unsafe {
            Some(LargeCalls {
                is_native: true,
                send: transmute::<Routine, Sending>(found(c"MPI_Send_c")?),
                receive: transmute::<Routine, Blocking<*mut c_void, *mut ffi::MPI_Status>>(found(
                    c"MPI_Recv_c",
                )?),
                start_send: transmute::<Routine, Starting<*const c_void>>(found(c"MPI_Isend_c")?),
                start_receive: transmute::<Routine, Starting<*mut c_void>>(found(c"MPI_Irecv_c")?),
                send_init: transmute::<Routine, Starting<*const c_void>>(found(c"MPI_Send_init_c")?),
                receive_init: transmute::<Routine, Starting<*mut c_void>>(found(c"MPI_Recv_init_c")?),
            })
        }
    }
}

#[cfg(test)]
mod optional_tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_library_of_the_process() {
        assert!(routine(&[c"MPI_Send"]).is_some());
        assert!(routine(&[c"MPI_Sond", c"MPI_Recv"]).is_some());
        assert!(routine(&[c"MPI_Sond"]).is_none());
    }
}
