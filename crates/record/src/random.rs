//! Random numbers and permutations that are the same on every rank.

/// Rounds of the Feistel network.
const ROUNDS: usize = 4;

/// A permutation of `0..n`. Evaluation and inversion need constant memory and, on average, fewer than four passes.
///
/// Method: a balanced Feistel network with cycle walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    n: u32,
    /// Bits of half a block. Two halves hold every number below `n`.
    half: u32,
    keys: [u64; ROUNDS],
}

impl Shuffle {
    /// Returns the permutation of a seed.
    pub fn new(n: u32, seed: u64) -> Shuffle {
        let bits = u32::BITS - n.saturating_sub(1).leading_zeros();
        let mut random = SplitMix64(seed);
        let keys = std::array::from_fn(|_| random.next_u64());
        Shuffle { n, half: bits.div_ceil(2).max(1), keys }
    }

    /// Returns the image of `at`, which is below `n`.
    pub fn forth(&self, at: u32) -> u32 {
        let pass = |block| {
            self.keys.iter().fold(block, |(left, right), key| (right, left ^ self.noise(right, *key)))
        };
        self.walk(at, pass)
    }

    /// Returns the number whose image is `at`.
    pub fn back(&self, at: u32) -> u32 {
        let undo = |(left, right): (u64, u64), key: &u64| (right ^ self.noise(left, *key), left);
        self.walk(at, |block| self.keys.iter().rev().fold(block, undo))
    }

    /// Repeats passes until the result is below `n`. Following the cycles of a permutation of blocks permutes `0..n`.
    fn walk(&self, at: u32, pass: impl Fn((u64, u64)) -> (u64, u64)) -> u32 {
        let mut block = u64::from(at);
        loop {
            let (left, right) = pass((block >> self.half, block & self.mask()));
            block = left << self.half | right;
            if block < u64::from(self.n) {
                return block as u32;
            }
        }
    }

    fn noise(&self, half: u64, key: u64) -> u64 {
        mix(half ^ key) & self.mask()
    }

    fn mask(&self) -> u64 {
        (1 << self.half) - 1
    }
}

/// Random numbers by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), which are the same on every rank. The number is the seed.
#[derive(Debug, Clone)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// Mixes bits with the finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn a_shuffle_is_a_permutation_with_an_inverse(n in 1u32..3000, seed in any::<u64>()) {
            let shuffle = Shuffle::new(n, seed);
            let mut seen = vec![false; n as usize];
            for at in 0..n {
                let to = shuffle.forth(at);
                prop_assert!(to < n && !std::mem::replace(&mut seen[to as usize], true));
                prop_assert_eq!(shuffle.back(to), at);
            }
        }

        #[test]
        fn large_permutations_have_an_inverse(n in 1u32.., at in any::<u32>(), seed in any::<u64>()) {
            let shuffle = Shuffle::new(n, seed);
            prop_assert_eq!(shuffle.back(shuffle.forth(at % n)), at % n);
        }
    }

    #[test]
    fn seeds_give_different_permutations() {
        let of = |seed| (0..100).map(|at| Shuffle::new(100, seed).forth(at)).collect::<Vec<_>>();
        assert_ne!(of(1), of(2));
        assert_eq!(of(7), of(7));
    }
}
