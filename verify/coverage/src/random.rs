//! Random numbers of simulations.

/// Increment of SplitMix64.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word with SplitMix64 (Steele et al., OOPSLA 2014).
pub(crate) fn mixed(word: u64) -> u64 {
    let mut x = word.wrapping_add(INCREMENT);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a number from 0 to 1, both excluded.
pub(crate) fn open_unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Random numbers, of which none is 0 or 1.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number from 0 to 1, both excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        let bits = mixed(self.0);
        self.0 = self.0.wrapping_add(INCREMENT);
        open_unit(bits)
    }

    /// Returns a normally distributed number (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Random numbers, of which some are 0.
pub(crate) struct Uniform(u64);

impl Uniform {
    pub(crate) fn new(seed: u64) -> Uniform {
        Uniform(seed.wrapping_mul(INCREMENT) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number of at least 0 and below 1.
    pub(crate) fn next(&mut self) -> f64 {
        let bits = mixed(self.0);
        self.0 = self.0.wrapping_add(INCREMENT);
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number with a normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.next()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next()).cos()
    }
}
