//! OSU programs that benchmarks replace, and values that their names select.

/// OSU program that a benchmark replaces; used by `ombx osu` and the osu format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osu {
    /// Name of the program, such as `osu_put_bw`.
    pub name: &'static str,
    /// Title that the program prints, without version: `OSU MPI_Put Bandwidth Test`.
    pub title: &'static str,
    /// Values of the benchmark's parameters, if the user selects none.
    pub axes: Preset,
}

/// Parameters and values that a name selects.
pub type Preset = &'static [(&'static str, &'static str)];
