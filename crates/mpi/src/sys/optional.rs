//! Functions of MPI that not every library has.
//!
//! They are looked up among the libraries that this process has loaded when a case needs them, outside of timed regions. So one build
//! serves all versions of a library.

use std::{
    ffi::{CStr, c_int, c_void},
    mem::transmute,
    sync::LazyLock,
};

use mpi::ffi;

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
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_the_library_of_the_process() {
        assert!(routine(&[c"MPI_Send"]).is_some());
        assert!(routine(&[c"MPI_Sond", c"MPI_Recv"]).is_some());
        assert!(routine(&[c"MPI_Sond"]).is_none());
    }
}
