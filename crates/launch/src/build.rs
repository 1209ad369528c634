//! The build of this binary: its commit and its compiler.

use ombx_record::fact::{Fact, Facts};

/// Returns the facts about this build that results keep.
pub(crate) fn facts() -> Facts {
    let of = |value: &str, reason: &str| Fact::new(Some(value).filter(|value| !value.is_empty()), reason);
    let commit =
        of(env!("OMBX_BUILD_COMMIT"), "ombx was built outside its repository; set OMBX_COMMIT for the build");
    // This crate has an optimisation of its own, which does not matter for what is timed.
    let compiler =
        format!("{}, timed code with opt-level {}", env!("OMBX_BUILD_COMPILER"), ombx_core::OPT_LEVEL);
    let compiler = of(&compiler, "the compiler did not say its version");
    Facts::from([("commit".to_owned(), commit), ("compiler".to_owned(), compiler)])
}
