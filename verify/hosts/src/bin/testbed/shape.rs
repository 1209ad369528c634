//! Shape of the network: delay and rate of the wire between each pair of hosts.

use std::time::Duration;

use ombx_record::unit::parse_duration;

/// One direction of the connection between two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) delay: Duration,
    /// Bits per second; `None` is unlimited.
    pub(crate) rate: Option<u64>,
    /// Frames of a million that arrive damaged.
    pub(crate) damaged: u32,
    /// What it shares with other wires, before its own rate; `None` for nothing.
    pub(crate) shared: Option<SharedRate>,
}

/// Rate that several wires share: the port of a host, or the uplink of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedRate {
    /// Number of the port or uplink.
    pub(crate) number: usize,
    /// Bits per second.
    pub(crate) rate: u64,
}

/// Hosts whose wires to all others share a rate, and the wires from others to them another one of the same size.
#[derive(Clone, Debug)]
pub(crate) struct Uplink {
    hosts: Vec<usize>,
    rate: u64,
}

impl Uplink {
    /// Parses hosts and a rate: `h1,h2,h3:rate=10Mbit`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let form = || format!("{text:?} is no uplink such as h1,h2,h3:rate=10Mbit");
        let (hosts, rate) = text.split_once(":rate=").ok_or_else(form)?;
        let hosts = hosts.split(',').map(host_number).collect::<Result<_, _>>()?;
        Ok(Self { hosts, rate: parse_rate(rate)? })
    }
}

/// Payload and length of a full frame of a TCP stream with timestamps: 14 bytes of Ethernet, 20 of IP, 32 of TCP, and payload.
const FRAME: (f64, f64) = (1448.0, 1514.0);

impl Wire {
    /// Returns the expected TCP rate and delay with their formulas; `None` for a wire without limits.
    fn expectation(self) -> Option<String> {
        let delay = self.delay.as_secs_f64() * 1e3;
        let Some(rate) = self.rate.map(|rate| rate as f64 / 1e6) else {
            return (delay > 0.0).then(|| {
                format!("A link of {delay} ms: one way takes {delay} ms plus the time of the hosts.")
            });
        };
        let (payload, frame) = FRAME;
        Some(format!(
            "A link of {delay} ms, {rate} Mbit/s: TCP payload is {payload}/{frame} of it, {rate} / 8 * \
             {payload} / {frame} = {:.3} MB/s; one way takes {delay} ms plus 8 * bytes of the frame / \
             {rate} us plus the time of the hosts.",
            rate / 8.0 * payload / frame
        ))
    }
}

/// Changes of the wires between two hosts, or of all wires of a host; `None` keeps the value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    host: usize,
    /// Second host of a link.
    other: Option<usize>,
    delay: Option<Duration>,
    rate: Option<u64>,
    /// Of the direction towards the host, or the first host of a link.
    damaged: Option<u32>,
}

/// Wires of a full mesh of hosts; each direction of each pair has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) hosts: usize,
    wires: Vec<Wire>,
}

impl Shape {
    /// Gives all wires the same delay and rate, then makes the changes in their order.
    pub(crate) fn new<'a>(
        hosts: usize,
        all: Wire,
        changes: impl IntoIterator<Item = &'a Change>,
    ) -> Result<Self, String> {
        let mut shape = Self { hosts, wires: vec![all; hosts * hosts] };
        for change in changes {
            let host = check_host(change.host, hosts)?;
            let others = match change.other {
                Some(other) => check_host(other, hosts)?..other + 1,
                None => 0..hosts,
            };
            for other in others {
                let [from, towards] = [host * hosts + other, other * hosts + host];
                for at in [from, towards] {
                    let wire = &mut shape.wires[at];
                    wire.delay = change.delay.unwrap_or(wire.delay);
                    wire.rate = change.rate.or(wire.rate);
                }
                let wire = &mut shape.wires[towards];
                wire.damaged = change.damaged.unwrap_or(wire.damaged);
            }
        }
        Ok(shape)
    }

    /// Limits what each host sends to all other hosts together.
    pub(crate) fn with_ports(mut self, rate: Option<u64>) -> Self {
        if let Some(rate) = rate {
            for (at, wire) in self.wires.iter_mut().enumerate() {
                wire.shared = Some(SharedRate { number: at / self.hosts, rate });
            }
        }
        self
    }

    /// Limits what hosts send to all others together, and what they receive from these. A wire has one limit of this kind, the last.
    pub(crate) fn with_uplinks(mut self, uplinks: &[Uplink]) -> Result<Self, String> {
        let count = self.hosts;
        for (number, Uplink { hosts, rate }) in (count..).step_by(2).zip(uplinks) {
            hosts.iter().try_for_each(|host| check_host(*host, count).map(|_| ()))?;
            for (at, wire) in self.wires.iter_mut().enumerate() {
                let [leaves, arrives] = [at / count, at % count].map(|end| hosts.contains(&end));
                if leaves != arrives {
                    wire.shared = Some(SharedRate { number: number + usize::from(arrives), rate: *rate });
                }
            }
        }
        Ok(self)
    }

    /// Returns the largest rate of the wires of a host, in Mbit/s: the speed that its device reports; `None` if one has no limit.
    pub(crate) fn speed(&self, host: usize) -> Option<u64> {
        let rates = (0..self.hosts).filter(|other| *other != host).map(|other| self.wire(host, other).rate);
        let rates: Vec<u64> = rates.collect::<Option<_>>()?;
        rates.into_iter().max().map(|rate| rate / 1_000_000).filter(|mbit| *mbit > 0)
    }

    /// Returns the wire from one host to another. Wires of the head have no limits.
    pub(crate) fn wire(&self, from: usize, to: usize) -> Wire {
        if from < self.hosts && to < self.hosts {
            self.wires[from * self.hosts + to]
        } else {
            Wire::default()
        }
    }

    /// Returns the expected rate and delay of each different wire, and what wires share.
    pub(crate) fn expectations(&self) -> Vec<String> {
        let pairs = (0..self.hosts).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut lines: Vec<String> = pairs.filter_map(|(a, b)| self.wire(a, b).expectation()).collect();
        lines.sort();
        lines.dedup();
        let mut shared: Vec<f64> =
            self.wires.iter().filter_map(|wire| wire.shared).map(|shared| shared.rate as f64 / 1e6).collect();
        shared.sort_by(f64::total_cmp);
        shared.dedup();
        lines.extend(shared.into_iter().map(|rate| {
            format!(
                "Links of a port or uplink share {rate} Mbit/s: each frame first takes 8 * bytes of the frame / {rate} us of it."
            )
        }));
        lines
    }

    /// Returns a line with the number of hosts, then one per direction: from, to, nanoseconds, bits per second (0: unlimited), damaged frames
    /// of a million, and number and bits per second of what it shares (0 and 0: nothing).
    pub(crate) fn to_text(&self) -> String {
        let line = |at: usize| {
            let wire = self.wires[at];
            let (from, to) = (at / self.hosts, at % self.hosts);
            let delay = wire.delay.as_nanos();
            let shared = wire.shared.unwrap_or(SharedRate { number: 0, rate: 0 });
            let rate = wire.rate.unwrap_or(0);
            format!("{from} {to} {delay} {rate} {} {} {}\n", wire.damaged, shared.number, shared.rate)
        };
        format!("{}\n", self.hosts) + &(0..self.wires.len()).map(line).collect::<String>()
    }

    /// Parses the text of [`Shape::to_text`].
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let hosts: usize = lines.next()?.parse().ok()?;
        let mut shape = Self { hosts, wires: vec![Wire::default(); hosts.checked_mul(hosts)?] };
        for line in lines {
            let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
            let [from, to, delay, rate, damaged, number, shared] = numbers[..] else { return None };
            let wire = shape.wires.get_mut(from as usize * hosts + to as usize)?;
            let known = |rate: u64| Some(rate).filter(|rate| *rate > 0);
            *wire = Wire {
                delay: Duration::from_nanos(delay),
                rate: known(rate),
                damaged: damaged.try_into().ok()?,
                shared: known(shared).map(|rate| SharedRate { number: number as usize, rate }),
            };
        }
        Some(shape)
    }
}

/// Returns the number of a host, or an error if there is none with this number.
fn check_host(host: usize, hosts: usize) -> Result<usize, String> {
    if host >= hosts {
        return Err(format!("there is no {}: hosts are h1 to h{hosts}", host_name(host)));
    }
    Ok(host)
}

/// Returns the name of a host by its number, from 0.
pub(crate) fn host_name(host: usize) -> String {
    format!("h{}", host + 1)
}

/// Returns the number of a host by its name.
pub(crate) fn host_number(name: &str) -> Result<usize, String> {
    let number =
        name.strip_prefix('h').and_then(|n| n.parse::<usize>().ok()).filter(|n| (1..=99).contains(n));
    number.map(|n| n - 1).ok_or_else(|| format!("{name:?} is not a host of a test bed; hosts are h1, h2, .."))
}

impl Change {
    /// Parses the changes of a link: `h1-h2:delay=5ms,rate=10Mbit`.
    pub(crate) fn of_link(text: &str) -> Result<Self, String> {
        let (hosts, changes) = text.split_once(':').ok_or("write a link as h1-h2:delay=5ms,rate=10Mbit")?;
        let [host, other] = parse_link(hosts)?;
        Self { host, other: Some(other), ..Self::default() }.with(changes)
    }

    /// Parses the changes of all wires of a host: `h3:delay=5ms`.
    pub(crate) fn of_host(text: &str) -> Result<Self, String> {
        let (host, changes) = text.split_once(':').ok_or("write a host as h3:delay=5ms,rate=10Mbit")?;
        Self { host: host_number(host)?, ..Self::default() }.with(changes)
    }

    fn with(mut self, changes: &str) -> Result<Self, String> {
        for part in changes.split(',') {
            match part.split_once('=') {
                Some(("delay", value)) => self.delay = Some(parse_delay(value)?),
                Some(("rate", value)) => self.rate = Some(parse_rate(value)?),
                Some(("damaged", value)) => self.damaged = Some(parse_damaged(value)?),
                _ => return Err(format!("{part:?} is none of delay=TIME, rate=RATE and damaged=PERCENT")),
            }
        }
        Ok(self)
    }
}

/// Parses bits per second such as `100Mbit`.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let bad = || format!("{text:?} is not a rate such as 100Mbit, 1Gbit or 500kbit");
    let number = lower.strip_suffix("bit").or(lower.strip_suffix("bit/s")).ok_or_else(bad)?;
    let (number, unit) = match number.char_indices().last() {
        Some((at, 'k')) => (&number[..at], 1e3),
        Some((at, 'm')) => (&number[..at], 1e6),
        Some((at, 'g')) => (&number[..at], 1e9),
        _ => (number, 1.0),
    };
    let rate = number.trim().parse::<f64>().map_err(|_| bad())? * unit;
    if (1e3..=1e12).contains(&rate) { Ok(rate as u64) } else { Err(bad()) }
}

/// Parses a percentage such as `0.5%` as frames of a million.
fn parse_damaged(text: &str) -> Result<u32, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent
        .map(|percent| (percent * 1e4) as u32)
        .ok_or_else(|| format!("{text:?} is no percentage such as 0.5%"))
}

/// Parses a link such as `h1-h2`.
pub(crate) fn parse_link(text: &str) -> Result<[usize; 2], String> {
    let (a, b) = text.split_once('-').ok_or_else(|| format!("{text:?} is not a link such as h1-h2"))?;
    let hosts = [host_number(a)?, host_number(b)?];
    if hosts[0] == hosts[1] { Err(format!("{text:?} joins a host to itself")) } else { Ok(hosts) }
}

/// Parses a one-way delay of at most ten seconds.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let delay = parse_duration(text).map_err(|e| e.to_string())?;
    if delay <= Duration::from_secs(10) { Ok(delay) } else { Err(format!("a delay of {text} is above 10s")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn settings_of_a_link_override_those_of_its_hosts_and_defaults() {
        let all = Wire { delay: 2 * MS, rate: Some(100_000_000), ..Wire::default() };
        let hosts = ["h3:delay=4ms", "h4:damaged=0.5%"].map(|host| Change::of_host(host).unwrap());
        let link = Change::of_link("h3-h1:rate=10Mbit").unwrap();
        let shape = Shape::new(4, all, hosts.iter().chain([&link])).unwrap();
        assert_eq!(shape.wire(0, 1), all);
        assert_eq!(shape.wire(3, 2), Wire { delay: 4 * MS, ..all });
        assert_eq!((shape.wire(1, 3).damaged, shape.wire(3, 1).damaged), (5000, 0));
        assert_eq!((shape.speed(1), shape.speed(3)), (Some(100), Some(100)));
        for (from, to) in [(0, 2), (2, 0)] {
            assert_eq!(shape.wire(from, to), Wire { delay: 4 * MS, rate: Some(10_000_000), ..all });
        }
        assert_eq!(shape.wire(0, 4), Wire::default());
        let rate = 5_000_000;
        let shape = shape.with_ports(Some(rate));
        let shared = |number| Some(SharedRate { number, rate });
        assert_eq!((shape.wire(0, 3).shared, shape.wire(0, 4).shared), (shared(0), None));
        let uplink = Uplink::parse("h1,h2:rate=5Mbit").unwrap();
        let shape = shape.with_uplinks(&[uplink]).unwrap();
        let of = |from, to| shape.wire(from, to).shared;
        assert_eq!([of(0, 1), of(0, 2), of(1, 3), of(3, 1), of(3, 2)], [0, 4, 4, 5, 3].map(shared));
        assert_eq!(Shape::from_text(&shape.to_text()), Some(shape));
    }

    #[test]
    fn the_expected_rate_of_tcp_is_printed() {
        let all = Wire { delay: 2 * MS, rate: Some(100_000_000), ..Wire::default() };
        let lines =
            Shape::new(3, all, &[Change::of_link("h1-h2:rate=40Mbit").unwrap()]).unwrap().expectations();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("2 ms, 100 Mbit/s") && lines[0].contains("= 11.955 MB/s"), "{lines:?}");
        assert!(lines[1].contains("= 4.782 MB/s"), "{lines:?}");
    }

    #[test]
    fn rates_are_decimal() {
        for (text, rate) in [("100Mbit", 100_000_000), ("1.5gbit", 1_500_000_000), ("500kbit/s", 500_000)] {
            assert_eq!(parse_rate(text).unwrap(), rate);
        }
        for text in ["100", "100MB", "-1Mbit", "Mbit", "infbit", "1bit"] {
            parse_rate(text).unwrap_err();
        }
    }

    #[test]
    fn mistakes_are_errors() {
        for text in [
            "h1-h1:delay=1ms",
            "h1:delay=1ms",
            "h1-x:delay=1ms",
            "h1-h2:jitter=1ms",
            "h1-h2:damaged=2",
            "h0-h1:delay=1ms",
        ] {
            Change::of_link(text).unwrap_err();
        }
        let link = Change::of_link("h1-h9:delay=1ms").unwrap();
        assert!(Shape::new(2, Wire::default(), [&link]).unwrap_err().contains("no h9"));
    }
}
