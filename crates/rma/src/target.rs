//! The activity of a passive target.

ombx_core::axis! {
    /// What a passive target does meanwhile
    pub enum Target: "target", IfChosen, default Waiting {
        /// It waits in a barrier
        Waiting = "waiting",
        /// It computes and seldom calls MPI
        Computing = "computing",
    }
}
