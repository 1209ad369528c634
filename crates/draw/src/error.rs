//! The reason why a figure cannot be drawn.

use crate::options::MAX_SERIES;

/// A figure that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The results do not fit the kind of figure.
    #[error("{0}")]
    Unfit(String),
    /// Times and rates have no common axis.
    #[error("some rows are times and some are rates, which have no common axis: choose rows of one kind")]
    Mixed,
    /// There are more series than colours and symbols.
    #[error("{0} series are more than the {MAX_SERIES} that readers can distinguish: choose fewer rows")]
    TooMany(usize),
    /// A library failed.
    #[error("the figure cannot be drawn: {0}")]
    Library(String),
    /// The program was built without files of figures.
    #[error(
        "this ombx writes no figures: `cargo xtask install` builds one that does, as does `cargo build -p \
         ombx-cli --features figures`"
    )]
    NotBuilt,
}
