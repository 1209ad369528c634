//! What a benchmark is asked for by: its own name, or that of an OSU program, which may choose something.

/// The OSU program that a benchmark succeeds, for the drop-in and the osu format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osu {
    /// Program: `osu_put_bw`.
    pub name: &'static str,
    /// Its header without number: `OSU MPI_Put Bandwidth Test`.
    pub title: &'static str,
    /// What it chooses on the benchmark's axes, if the user does not.
    pub axes: Preset,
}

/// Axis and value, chosen by a name.
pub type Preset = &'static [(&'static str, &'static str)];
