//! Clocks. Only this module reads time: raw ticks for samples, and the resolution and cost of a reading.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ombx_record::result::ClockProperties;
use quanta::Mock;

/// Clock of a rank: the TSC if it is invariant, otherwise `CLOCK_MONOTONIC`. In tests a [`VirtualTime`] moves it.
///
/// A reading is a raw tick. [`Clock::nanos`] converts the difference of two readings to nanoseconds, outside timed regions.
#[derive(Debug, Clone)]
pub struct Clock {
    inner: quanta::Clock,
    facts: ClockProperties,
    /// Where the length of a tick is compared with the host's clock; `None` for a manual clock.
    start: Option<Comparison>,
}

impl Clock {
    /// Opens the best clock of this machine and measures its cost and resolution, which takes about 1 ms.
    pub fn measured() -> Clock {
        let inner = quanta::Clock::new();
        let facts = measure(&inner);
        let clock = Clock { inner, facts, start: None };
        Clock { start: Some(clock.both()), ..clock }
    }

    /// Returns a clock that does not advance until [`VirtualTime::advance`] moves it, with the given cost of a reading.
    pub fn manual(overhead_ns: u64) -> (Clock, VirtualTime) {
        Clock::skewed(overhead_ns, Skew::default())
    }

    /// Returns a clock like [`Clock::manual`] whose readings differ from virtual time by `skew`.
    pub fn skewed(overhead_ns: u64, skew: Skew) -> (Clock, VirtualTime) {
        let (inner, shown) = quanta::Clock::mock();
        shown.increment(skew.offset_ns);
        let facts = ClockProperties { source: "manual", resolution_ns: skew.step_ns.max(1), overhead_ns };
        (Clock { inner, facts, start: None }, VirtualTime { truth: Arc::default(), shown, skew })
    }

    /// Reads the clock in raw ticks, after all earlier instructions. A timed region does only this besides the work.
    #[inline(always)]
    pub fn raw(&self) -> u64 {
        reading(&self.inner)
    }

    /// Marks the current time, for code outside timed regions.
    pub fn mark(&self) -> Reading<'_> {
        Reading { clock: self, at: self.raw() }
    }

    /// Waits until the raw reading is at least `ticks`. Calls `linger` with the remaining ticks until then.
    #[inline(always)]
    pub fn wait_until(&self, ticks: u64, mut linger: impl FnMut(u64)) {
        loop {
            let now = self.raw();
            if now >= ticks {
                return;
            }
            linger(ticks - now);
        }
    }

    /// Returns the length of one raw tick in nanoseconds.
    pub fn tick_ns(&self) -> f64 {
        const MANY: u64 = 1 << 50;
        self.inner.delta_as_nanos(0, MANY) as f64 / MANY as f64
    }

    /// Returns the nanoseconds from one raw reading to a later one; 0 if the clock stepped back.
    pub fn nanos(&self, from: u64, to: u64) -> u64 {
        self.inner.delta_as_nanos(from, to.max(from))
    }

    /// Begins a comparison of the clock with that of the host; `None` for a manual clock.
    pub fn compare(&self) -> Option<Comparison> {
        self.start.map(|_| self.both())
    }

    /// Returns by which part of a time the clock differs from the clock of the host: since the comparison began, or since the clock was opened,
    /// whichever is more. A span of less than [`LEAST_SPAN`] tells nothing.
    pub fn error_since(&self, begun: Option<Comparison>) -> f64 {
        let Some(now) = self.compare() else { return 0.0 };
        let errors = begun.into_iter().chain(self.start).map(|since| self.error_between(since, now));
        errors.fold(0.0, f64::max)
    }

    /// Returns by which part of the time between two comparisons the clock differs from the clock of the host; 0 if that time is shorter
    /// than [`LEAST_SPAN`].
    fn error_between(&self, since: Comparison, now: Comparison) -> f64 {
        let host_ns = now.host_ns.saturating_sub(since.host_ns);
        let is_long = u128::from(host_ns) >= LEAST_SPAN.as_nanos();
        let apart_ns = self.nanos(since.ticks, now.ticks).abs_diff(host_ns);
        let certain_ns = apart_ns.saturating_sub(since.uncertain_ns).saturating_sub(now.uncertain_ns);
        if is_long { certain_ns as f64 / host_ns as f64 } else { 0.0 }
    }

    /// Reads this clock and that of the host at the same time. Of several attempts, the shortest counts.
    fn both(&self) -> Comparison {
        let attempt = |_| {
            let (before, host_ns, after) = (self.raw(), host_ns(), self.raw());
            Comparison { ticks: before, host_ns, uncertain_ns: self.nanos(before, after) }
        };
        (0..5).map(attempt).min_by_key(|one| one.uncertain_ns).unwrap_or_default()
    }

    /// Returns source, resolution and cost.
    pub fn facts(&self) -> ClockProperties {
        self.facts
    }
}

/// Shortest time over which two clocks are compared. Both are read within a microsecond.
pub const LEAST_SPAN: Duration = Duration::from_millis(20);

/// The same time on a clock and on the clock of its host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Comparison {
    ticks: u64,
    host_ns: u64,
    /// Time between both readings, at most.
    uncertain_ns: u64,
}

/// A point in time on a clock.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'c> {
    clock: &'c Clock,
    at: u64,
}

impl Reading<'_> {
    /// Returns the raw reading, for conversion to another rank's time.
    pub fn ticks(&self) -> u64 {
        self.at
    }

    /// Returns the nanoseconds since this mark.
    pub fn elapsed_ns(&self) -> u64 {
        self.clock.nanos(self.at, self.clock.raw())
    }
}

/// Error of a manual clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skew {
    /// Reading at virtual time 0, in nanoseconds.
    pub offset_ns: u64,
    /// Nanoseconds that the clock gains per second.
    pub drift_ppb: i64,
    /// Step of the readings in nanoseconds; 1 if 0.
    pub step_ns: u64,
}

/// Virtual time, which moves a manual clock.
#[derive(Debug, Clone)]
pub struct VirtualTime {
    truth: Arc<AtomicU64>,
    shown: Arc<Mock>,
    skew: Skew,
}

impl VirtualTime {
    /// Lets time pass.
    pub fn advance(&self, nanoseconds: u64) {
        let truth = self.truth.fetch_add(nanoseconds, Ordering::Relaxed) + nanoseconds;
        let gained = i128::from(truth) * i128::from(self.skew.drift_ppb) / 1_000_000_000;
        let shows = i128::from(self.skew.offset_ns) + i128::from(truth) + gained;
        let shows = u64::try_from(shows).unwrap_or(0);
        let stepped = shows - shows % self.skew.step_ns.max(1);
        self.shown.increment(stepped.saturating_sub(self.shown.value()));
    }

    /// Returns the nanoseconds that have passed. A clock without skew shows the same.
    pub fn now(&self) -> u64 {
        self.truth.load(Ordering::Relaxed)
    }
}

/// Reads `CLOCK_MONOTONIC` in nanoseconds. All processes of a host share it, so spans may end in another process.
#[expect(unsafe_code, reason = "the C library reads the clock under valgrind too, unlike rustix")]
pub fn host_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reads a clock after all earlier instructions.
#[inline(always)]
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
fn reading(clock: &quanta::Clock) -> u64 {
    complete();
    clock.raw()
}

/// Waits until all earlier instructions have completed. CPUs read their counters early: a sample would begin before the end of the
/// barrier that precedes it.
#[inline(always)]
#[allow(unsafe_code, reason = "the instruction has no safe function")]
fn complete() {
    // SAFETY: every CPU of this architecture has the instruction, which accesses no memory.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

fn measure(clock: &quanta::Clock) -> ClockProperties {
    const CALLS: u64 = 1000;
    let mut cheapest = u64::MAX;
    let mut differences = BTreeSet::new();
    for _ in 0..20 {
        let start = reading(clock);
        let mut last = start;
        for _ in 0..CALLS {
            last = std::hint::black_box(reading(clock));
        }
        cheapest = cheapest.min(clock.delta_as_nanos(start, last));
    }
    for _ in 0..CALLS {
        let start = reading(clock);
        let readings = [(); 16].map(|()| reading(clock));
        differences.extend(readings.map(|reading| reading.saturating_sub(start)));
    }
    // quanta uses the TSC only if it is invariant; its ticks are then not nanoseconds.
    let source = if clock.delta_as_nanos(0, 1 << 40) == 1 << 40 { "monotonic" } else { "tsc" };
    let ticks = |ns: u64| (1..).take_while(|ticks| clock.delta_as_nanos(0, *ticks) < ns).last().unwrap_or(0);
    // Nanoseconds of the system are rounded.
    let rounding = if source == "monotonic" { 2 } else { ticks(1) };
    let step = step_of(&differences, rounding, ticks(3)).min(1 << 40);
    // Never 0: the batch size is computed from the overhead.
    ClockProperties {
        source,
        resolution_ns: (clock.delta_as_nanos(0, step << 10) as f64 / 1024.0).round().max(1.0) as u64,
        overhead_ns: cheapest.div_ceil(CALLS).max(1),
    }
}

/// Returns the step of a clock from differences of its readings, which lie around multiples of the step if it has one.
///
/// Differences at most `rounding` apart are around the same multiple: a TSC that counts 26 at a time shows 1, 25 and 26, because
/// it never shows a value twice. If they fill more than `wide`, the clock shows any time, and the smallest distance counts.
fn step_of(differences: &BTreeSet<u64>, rounding: u64, wide: u64) -> u64 {
    let (mut last, mut around) = (0, 0);
    let mut multiples = vec![0];
    let mut smallest = u64::MAX;
    for &difference in differences.iter().filter(|difference| **difference > 0) {
        smallest = smallest.min(difference - last);
        if difference - last > rounding {
            multiples.push(difference);
            around = difference;
        } else if difference - around > wide {
            return smallest;
        }
        last = difference;
    }
    // A reading takes longer than a step of a fast clock, so the first difference may be several steps.
    multiples.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use ombx_host::since::Since;

    use super::*;

    #[test]
    fn a_manual_clock_moves_only_with_virtual_time() {
        let (clock, time) = Clock::manual(9);
        let start = clock.raw();
        assert_eq!(clock.nanos(start, clock.raw()), 0);
        time.advance(1234);
        assert_eq!(clock.nanos(start, clock.raw()), 1234);
        assert_eq!(clock.facts().overhead_ns, 9);
    }

    #[test]
    fn a_skewed_clock_has_offset_and_drift() {
        let (clock, time) = Clock::skewed(9, Skew { offset_ns: 5000, drift_ppb: -100_000, step_ns: 1 });
        let start = clock.raw();
        time.advance(1_000_000);
        time.advance(1_000_000);
        assert_eq!((start, clock.raw(), time.now()), (5000, 5000 + 2_000_000 - 200, 2_000_000));
        assert!((clock.tick_ns() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_stepped_clock_shows_whole_steps() {
        let (clock, time) = Clock::skewed(9, Skew { step_ns: 40, ..Skew::default() });
        let start = clock.raw();
        let shown = [39, 1, 79, 1].map(|ns| {
            time.advance(ns);
            clock.nanos(start, clock.raw())
        });
        assert_eq!((shown, clock.facts().resolution_ns), ([0, 40, 80, 120], 40));
    }

    #[test]
    fn the_step_of_a_clock_follows_from_differences() {
        let of = |differences: &[u64], rounding, wide| {
            step_of(&differences.iter().copied().collect(), rounding, wide)
        };
        // A TSC of 2.6 GHz. A reading takes 18 cycles or more, and always an even number of them.
        assert_eq!(of(&[18, 20, 22, 36, 38, 40, 42, 44, 46, 4000, 4018], 2, 7), 2);
        // It counts 36 or 26 at a time; 26 is rounded and never shown twice.
        assert_eq!(of(&[72, 108, 180, 36_000], 2, 7), 36);
        assert_eq!(of(&[1, 25, 26, 27, 51, 52, 77, 78, 79, 26_000], 2, 7), 25);
        // 25 MHz: readings repeat. 24 MHz: whole nanoseconds differ by 1. 54 MHz: a reading takes longer than a step.
        assert_eq!(of(&[0, 1, 2, 3], 0, 0), 1);
        assert_eq!(of(&[0, 40, 80], 2, 2), 40);
        assert_eq!(of(&[0, 41, 42, 83], 2, 2), 41);
        assert_eq!(of(&[37, 55, 56, 74], 2, 2), 18);
        assert_eq!((of(&[0], 2, 2), of(&[7], 0, 0), of(&[], 0, 0)), (1, 7, 1));
    }

    #[test]
    fn a_step_back_counts_as_0() {
        let (clock, _) = Clock::manual(1);
        assert_eq!(clock.nanos(10, 5), 0);
    }

    /// Returns two readings, and the nanoseconds between them by the system: at least and at most.
    fn between_readings(read: impl Fn() -> u64) -> ([u64; 2], [f64; 2]) {
        let (outer, first, inner) = (Since::now(), read(), Since::now());
        std::thread::sleep(Duration::from_millis(20));
        let (least, second, most) = (inner.elapsed(), read(), outer.elapsed());
        ([first, second], [least, most].map(|time| time.as_nanos() as f64))
    }

    #[test]
    fn the_host_clock_counts_nanoseconds() {
        let ([first, second], [least, most]) = between_readings(host_ns);
        let ours = (second - first) as f64;
        assert!(least <= ours && ours <= most, "{ours}, not {least} to {most}");
    }

    #[test]
    fn a_clock_with_a_wrong_factor_is_noticed() {
        let clock = Clock::measured();
        let begun = clock.compare().unwrap();
        std::thread::sleep(3 * LEAST_SPAN);
        let wrong = Comparison { ticks: begun.ticks - begun.ticks / 2, ..begun };
        assert!(clock.error_since(Some(wrong)) > 0.01 && clock.error_since(Some(begun)) < 0.4);
        let (manual, time) = Clock::manual(1);
        time.advance(1 << 40);
        assert!(manual.compare().is_none() && manual.error_since(Some(begun)) == 0.0);
        let fresh = Clock::measured();
        assert!(fresh.error_since(fresh.compare()) < 0.4, "a short time tells nothing");
    }

    #[test]
    fn the_real_clock_agrees_with_the_system() {
        let clock = Clock::measured();
        let facts = clock.facts();
        assert!(facts.overhead_ns >= 1 && facts.resolution_ns >= 1, "{facts:?}");
        assert!(["tsc", "monotonic"].contains(&facts.source));
        let ([first, second], [least, most]) = between_readings(|| clock.raw());
        let ours = clock.nanos(first, second) as f64;
        // The length of a tick is calibrated against the system.
        assert!(0.7 * least <= ours && ours <= 1.4 * most, "{ours}, not {least} to {most}");
    }
}
