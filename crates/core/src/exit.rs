//! Exit codes.

/// How a command ended. `docs/reference/exit-codes.md` says which command ends how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything ran and was verified, and nothing stands against it.
    Success = 0,
    /// The number of ranks is one that OMB refuses.
    Refused = 1,
    /// A mistake in the command line: nothing was started.
    Usage = 2,
    /// A case became worse.
    Regression = 3,
    /// A row failed or was skipped.
    Incomplete = 4,
    /// Data arrived wrong.
    WrongData = 5,
    /// A launcher, MPI or a connection failed, or a rank died.
    Fabric = 6,
    /// Results could not be written or read.
    Storage = 7,
    /// The measurements do not decide.
    Undecided = 8,
    /// Something is slow, or misses a limit.
    Slow = 9,
    /// There is no verdict.
    NoVerdict = 10,
    /// The measurement was skipped, because other processes use the CPUs.
    Busy = 11,
    /// A row does not have the precision that was asked for.
    Imprecise = 12,
}

impl Exit {
    /// All ways to end, in the order of their codes.
    pub const ALL: [Exit; 13] = [
        Exit::Success,
        Exit::Refused,
        Exit::Usage,
        Exit::Regression,
        Exit::Incomplete,
        Exit::WrongData,
        Exit::Fabric,
        Exit::Storage,
        Exit::Undecided,
        Exit::Slow,
        Exit::NoVerdict,
        Exit::Busy,
        Exit::Imprecise,
    ];
    /// A signal adds its number to this code.
    pub const SIGNAL: u8 = 128;

    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        self as u8
    }
}
