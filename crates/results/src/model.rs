//! A model of the machine: parameters of LogGP from a ping-pong and a stream, and the sizes at which the protocol switches.
//!
//! LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995) says that a message of s bytes takes
//! o_s + (s - 1) G + L + o_r. Half a round trip of a ping-pong is this time. A window of n messages with one acknowledgement takes
//! (n - 1) (g + (s - 1) G) longer than one message with its acknowledgement (Hoefler, Lichei and Rehm, Low-Overhead LogGP Parameter
//! Assessment for Modern Interconnection Networks, IPDPS 2007: PRTT(n, 0, s) and PRTT(1, 0, s)). Both are lines of the message size,
//! until a library or a network treats longer messages in another way.
//!
//! | module | contents |
//! |---|---|
//! | `curve` | fits lines to the times of several launches |
//! | `loggp` | parameters of LogGP from two curves |
//! | `segments` | finds the sizes between which the line of a curve changes |
//! | `switch` | names what a change looks like |
//!
//! Each launch has its own lines between the same switches. A parameter is the median over launches, and its interval is that of
//! launches' medians.

mod loggp;
mod segments;

use ombx_core::stats::median;

use crate::estimate::interval;

pub use self::{
    loggp::{MachineModel, Parameter, Pattern, is_ping_pong, is_used, models, one_way},
    segments::{Fit, Protocol, Segment, Switch},
};

#[cfg(test)]
mod tests;

/// A value with its interval over launches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over launches.
    pub value: f64,
    /// 95 % interval; with 2 to 5 launches their range; `None` for one launch.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Returns the estimate from the values of launches in their order, at least one.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Estimate {
            value: median(&values).unwrap_or(f64::NAN),
            interval: interval(&values).map(|found| [found.low, found.high]),
        }
    }

    /// Returns the estimate of a time, which is never negative: `None` for a value that is not above 0, and 0 for an end below 0.
    pub fn as_time(self) -> Option<Estimate> {
        let interval = self.interval.map(|ends| ends.map(|end| end.max(0.0)));
        (self.value > 0.0).then_some(Estimate { interval, ..self })
    }

    /// Returns 1 or -1 if the whole interval is above or below 0, else 0.
    pub(crate) fn sign(&self) -> i8 {
        match self.interval {
            Some([low, _]) if low > 0.0 => 1,
            Some([_, high]) if high < 0.0 => -1,
            _ => 0,
        }
    }
}
