//! Requests at an offered rate over TCP, with a server that pauses and with wrong data.

use std::{thread, time::Duration};

use ombx_core::{
    benchmark::{Benchmark, Context, Figure, Metric, ParameterValue, payload::Slots},
    error::Result,
    measure::plan::Plan,
    result::{Check, MarkCode, Measurement, Outcome},
    two_sided::{
        request::{self, Rate, run_requests},
        scheduled_link::RequestLink,
    },
    unit::Rank,
};

use super::{measure_bench, plan};
use crate::link::{Tcp, request::RequestStream};

type Plain = RequestStream<Tcp>;

/// What the server does wrong.
trait Fault: 'static {
    /// Called after each request, with its number and the buffer of requests.
    fn after(number: u64, incoming: &mut [u8]);
}

/// Requests over TCP to a server with a fault.
struct Faulty<F>(Plain, std::marker::PhantomData<fn() -> F>);

impl<F: Fault> RequestLink for Faulty<F> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        Ok(Faulty(Plain::open(cx, slots)?, std::marker::PhantomData))
    }
    fn prepare(&mut self, requests: u64) -> Result<()> {
        self.0.prepare(requests)
    }
    fn send_some(&mut self, number: u64) -> Result<bool> {
        self.0.send_some(number)
    }
    fn replies(&mut self) -> Result<u64> {
        self.0.replies()
    }
    fn answer(&mut self, number: u64) -> Result<()> {
        self.0.answer(number)?;
        F::after(number, self.0.incoming());
        Ok(())
    }
    fn echoes(&mut self) -> &[u8] {
        self.0.echoes()
    }
    fn outgoing(&mut self) -> &mut [u8] {
        self.0.outgoing()
    }
    fn incoming(&mut self) -> &mut [u8] {
        self.0.incoming()
    }
}

fn measure<L: RequestLink>(rate: &str, plan: Plan) -> Vec<Measurement> {
    let bench =
        Benchmark::custom("test.request", "x", Metric::Latency, request::method("x"), run_requests::<L>);
    let bench: &'static Benchmark = Box::leak(Box::new(bench.streaming().with(&[Rate::PARAMETER])));
    let mut plan = plan;
    plan.chosen.set("rate", Rate::PARAMETER.read(rate).unwrap());
    measure_bench(bench, &plan, 0).rows
}

#[test]
fn requests_of_every_size_pass() {
    // The largest exceeds the socket buffers and is sent in parts.
    let rows = measure::<Plain>("200,100000", plan(&[1, 1000, 3 << 20], 25, 8));
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}", row.key);
        assert!(
            matches!(row.figures["achieved_rps"], Figure::Value(rate) if rate > 0.0),
            "{:?}",
            row.figures
        );
    }
    assert!(
        rows[5].trust.iter().any(|mark| mark.code == MarkCode::Saturated),
        "300 GB/s: {:?}",
        rows[5].figures
    );
}

enum Pause {}

impl Fault for Pause {
    fn after(number: u64, _: &mut [u8]) {
        if number == 500 {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_pause_of_the_server_delays_the_requests_that_are_due() {
    let row = measure::<Faulty<Pause>>("1000", plan(&[64], 1000, 256)).remove(0);
    let late = row.samples[0].elapsed_ns.iter().filter(|ns| **ns > 50_000_000).count();
    // 100 requests are due in the pause, and half of them wait for at least half of it.
    assert!(late >= 40, "{late} requests took more than 50 ms");
    assert_eq!(row.check, Check::Passed);
}

enum Flip {}

impl Fault for Flip {
    fn after(number: u64, incoming: &mut [u8]) {
        if number == 3 {
            incoming[3 * 64 + 5] ^= 4;
        }
    }
}

#[test]
fn a_flipped_bit_of_a_request_is_caught() {
    let row = measure::<Faulty<Flip>>("10000", plan(&[64], 6, 8)).remove(0);
    let Check::Failed(mismatch) = &row.check else { panic!("{:?}", row.check) };
    assert_eq!((mismatch.rank, mismatch.slot, mismatch.byte), (Rank(1), 3, 5));
    assert!(matches!(&row.outcome, Outcome::Failed(_)));
}
