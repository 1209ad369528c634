//! Known defects of the MPI under test.

use ombx_record::result::Measurement;

/// Returns whether MPICH 4.0 or 4.1 may deliver wrong data in this row: its restarted persistent requests have defects.
pub fn may_be_wrong(row: &Measurement) -> bool {
    let defective = ["allgather", "gather", "scatter"].map(|name| format!("collective.{name}_persistent"));
    is_old_mpich() && (defective.contains(&row.bench) || compares_unsigned(row))
}

/// Returns whether a row compares unsigned integers, which MPICH 4.0 compares as signed ones.
pub fn compares_unsigned(row: &Measurement) -> bool {
    let axis = |name: &str| row.axes.get(name).map(String::as_str).unwrap_or_default();
    axis("type").starts_with("uint") && ["min", "max"].contains(&axis("op"))
}

/// Returns whether the MPI is MPICH 4.0 or 4.1.
pub fn is_old_mpich() -> bool {
    let version = ombx_mpi::library_version();
    ["MPICH Version: 4.0", "MPICH Version: 4.1"].iter().any(|old| version.starts_with(old))
}
