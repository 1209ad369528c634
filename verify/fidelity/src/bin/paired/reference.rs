//! The C loops. All unsafe code of this program is here.

use std::ffi::{CStr, CString, c_char, c_int, c_long};

use ombx_mpi::Handles;

/// `struct row` of the C code.
#[repr(C)]
struct Row {
    _private: [u8; 0],
}

unsafe extern "C" {
    safe static fidelity_setup_size: usize;
    fn fidelity_find(name: *const c_char) -> *const Row;
    fn fidelity_set_depth(setup: *mut Handles, depth: c_int);
    fn fidelity_name(at: usize) -> *const c_char;
    safe fn fidelity_tick() -> u64;
    fn fidelity_timed(
        row: *const Row,
        setup: *const Handles,
        batch: c_long,
        samples: c_long,
        stamps: *mut u64,
    );
    fn fidelity_answered(row: *const Row, setup: *const Handles, batch: c_long, samples: c_long);
}

/// A loop in C, with what an open kernel of ombx works on.
pub(crate) struct Loop {
    row: *const Row,
    handles: Handles,
}

// SAFETY: a thread that runs the loop is the only one that uses the handles meanwhile: `run` waits for it.
unsafe impl Send for Loop {}

impl Loop {
    /// Finds the loop of this name, with `depth` messages in flight. The kernel that the handles belong to must stay open as long as the loop is used.
    pub(crate) fn find(name: &str, mut handles: Handles, depth: u32) -> Option<Loop> {
        assert_eq!(
            fidelity_setup_size,
            size_of::<Handles>(),
            "loops.h and handles.rs declare different fields"
        );
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with NUL, and the function only reads it.
        let row = unsafe { fidelity_find(name.as_ptr()) };
        // SAFETY: the function writes one field of the structure, which both languages declare alike.
        unsafe { fidelity_set_depth(&raw mut handles, depth as c_int) };
        (!row.is_null()).then_some(Loop { row, handles })
    }

    /// Runs the loop of a timed rank: `stamps` has as many readings as the loop of ombx takes for `samples` samples.
    pub(crate) fn timed(&self, batch: u64, samples: u64, stamps: &mut [u64]) {
        // SAFETY: `row` is a static of the C code. The handles belong to the open kernel, and the stamps suffice: the C macros
        // write as many readings as `OpenKernel::readings` says.
        unsafe {
            fidelity_timed(
                self.row,
                &raw const self.handles,
                batch as c_long,
                samples as c_long,
                stamps.as_mut_ptr(),
            );
        }
    }

    /// Runs the loop of a rank that answers.
    pub(crate) fn answered(&self, batch: u64, samples: u64) {
        // SAFETY: as in `timed`.
        unsafe { fidelity_answered(self.row, &raw const self.handles, batch as c_long, samples as c_long) }
    }
}

/// Returns the raw time that the C loops read.
pub(crate) fn tick() -> u64 {
    fidelity_tick()
}

/// Returns the names of all loops.
pub(crate) fn names() -> Vec<String> {
    let names = (0..).map_while(|at| {
        // SAFETY: the function returns a string literal, or null beyond the last name.
        let name = unsafe { fidelity_name(at) };
        // SAFETY: as above, and it is not null.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    });
    names.collect()
}
