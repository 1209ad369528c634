//! The activity of a passive target.

ombx_core::parameter! {
    /// Activity of a passive target during accesses
    pub enum Target: "target", IfChosen, default Waiting {
        /// Wait in a barrier
        Waiting = "waiting",
        /// Compute, and call MPI once per 50 us
        Computing = "computing",
    }
}
