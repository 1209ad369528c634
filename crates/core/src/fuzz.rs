//! Fuzz targets: readers of options and of messages between ranks, called with arbitrary bytes.
//!
//! The programs of `fuzz/` call them for hours, the tests below for seconds.

use ombx_record::{
    cpu_list::parse_cpus,
    error::{Kind, Result},
    result::Aggregation,
    unit::{self, Bytes, Rank},
};

use crate::{
    benchmark::{Groups, ParameterValue, Root, Threads},
    clock::Clock,
    measure::{collect, runner, session::Memory},
    team::{Alone, Fabric, Team},
};

/// Parses any text as each kind of option value, and checks that printed values parse to the same value.
pub fn grammars(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(sizes) = ombx_record::unit::parse_sizes(&text) {
        assert!(!sizes.is_empty() && sizes.len() <= 10_000);
        sizes.iter().for_each(|size| assert_eq!(size.to_string().parse::<Bytes>().unwrap(), *size));
    }
    if let Ok(duration) = unit::parse_duration(&text) {
        assert!(duration.as_secs() <= 365 * 86_400);
    }
    if let Ok(part) = unit::parse_percent(&text) {
        assert!(part > 0.0 && part <= 1.0);
    }
    value::<Threads>(&text);
    value::<Root>(&text);
    value::<Groups>(&text);
    assert!(parse_cpus(&text).len() <= 1 << 16);
}

fn value<V: ParameterValue>(text: &str) {
    if let Ok(value) = V::parse(text) {
        assert_eq!(V::parse(&value.text()).unwrap(), value);
    }
}

/// Decodes any bytes as messages to rank 0: places of ranks, rounds of samples, errors. Byte 0xFE separates ranks.
pub fn ranks(bytes: &[u8]) {
    let parts: Vec<Vec<u8>> = bytes.split(|byte| *byte == 0xfe).map(<[u8]>::to_vec).collect();
    // Decodes the same bytes with a valid checksum too, so that the decoder behind it is reached.
    let sealed = FuzzedTeam(parts.iter().map(|part| collect::sealed(part)).collect());
    let team = FuzzedTeam(parts);
    let clock = Clock::manual(1).0;
    for aggregation in [Aggregation::Origin, Aggregation::Pairs, Aggregation::Slowest, Aggregation::Global] {
        for team in [&team, &sealed] {
            if let Ok(mut round) = collect::collect(team, aggregation, Vec::new()) {
                collect::compare_starts(&mut round, &clock);
                let mut samples = Vec::new();
                collect::extend(&mut samples, 1, None, round);
            }
        }
    }
    let team: &dyn Team = &team;
    let _ = team.agree(Ok(()));
    let _ = runner::open(team, &clock, &mut Memory::default(), Default::default(), Vec::new());
}

/// A team on which other ranks send arbitrary bytes.
struct FuzzedTeam(Vec<Vec<u8>>);

impl Team for FuzzedTeam {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> u32 {
        self.0.len() as u32
    }

    fn fabric(&self) -> Fabric {
        Fabric { name: "fuzzed", library: String::new() }
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, _: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(Some(self.0.clone()))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        Alone(self.fabric()).subteam(ranks)
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        Alone(self.fabric()).pair(partner, first)
    }

    fn sleeping_barrier(&self) -> Result<()> {
        Ok(())
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        panic!("ended with {code}, {:?}", Kind::Fabric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::hostile;

    #[test]
    fn options_of_any_text_do_not_panic() {
        hostile("grammars", 20_000, grammars);
    }

    #[test]
    fn messages_of_any_bytes_do_not_panic() {
        hostile("ranks", 1500, ranks);
    }
}
