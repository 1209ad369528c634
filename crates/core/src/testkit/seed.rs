//! Seed of the random inputs of tests.

use proptest::test_runner::{Config, RngSeed};

/// Environment variable with the seed.
const VARIABLE: &str = "OMBX_TEST_SEED";
/// Seed where the variable is not set.
const DEFAULT: u64 = 1;

/// Returns the seed of random inputs: the number in `OMBX_TEST_SEED`, or the same number in every run.
///
/// Prints the seed. The test harness shows it if the test fails.
///
/// # Panics
/// The variable is not a whole number.
#[expect(clippy::print_stdout, reason = "the test harness shows it below a failed test")]
pub fn seed() -> u64 {
    let seed = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text}: give a whole number")),
        Err(_) => DEFAULT,
    };
    println!("random inputs: {VARIABLE}={seed}");
    seed
}

/// Returns the options of proptest with [`seed`].
pub fn seeded() -> Config {
    Config { rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}
