//! A row for every offered rate of a plan.

use super::schedule::{RATE, Rate, Schedule, parse_rates};
use crate::{
    benchmark::{Benchmark, Case, Context, Metric, Work},
    error::Result,
    measure::{
        opened::OpenKernel,
        plan::Plan,
        row::{self, KernelFactory},
        session::Session,
    },
};

/// Returns the offered rates of a benchmark under a plan; none if it offers no rate.
///
/// # Errors
/// Usage error for malformed rates.
pub fn rates_of(bench: &Benchmark, plan: &Plan) -> Result<Vec<Rate>> {
    match bench.settings.iter().any(|setting| setting.name == RATE.name) {
        true => parse_rates(plan.setting(&RATE).unwrap_or_default()),
        false => Ok(Vec::new()),
    }
}

/// Opens the kernel of a case with a schedule.
pub(in crate::two_sided) type OpenScheduled<'k> =
    &'k dyn Fn(&Context<'_>, &Case, Schedule) -> Result<Box<dyn OpenKernel + 'k>>;

/// Measures every case at every rate of the plan.
pub(in crate::two_sided) fn at_each_rate(
    session: &mut Session<'_>,
    metric: Metric,
    open: OpenScheduled<'_>,
) -> Result<()> {
    let rates = rates_of(session.bench, session.plan)?;
    let rates = match session.plan.launch {
        Some(launch) => launch.arrange(rates),
        None => rates,
    };
    let seed = session.plan.launch.map_or(0, |launch| launch.order);
    for rate in rates {
        row::each_case(session, |session, case| {
            let offered = rate.of_messages(case.bytes.0);
            // A rate that is not possible is the reason of a skipped row.
            let label = offered.as_ref().map_or(rate.to_string(), u64::to_string);
            let open = |cx: &Context<'_>, case: &Case| {
                let schedule =
                    Schedule { rate: rate.of_messages(case.bytes.0)?, arrivals: case.choice(), seed };
                open(cx, case, schedule)
            };
            let factory = KernelFactory {
                metric,
                work: |case| Work { bytes: case.bytes.0, ops: 1, legs: 1 },
                bus_traffic: |_| None,
                iterations_per_check: |_| 1,
                open: &open,
                floor_ns: None,
                label: Some((RATE.name, label)),
                sharing: 1,
            };
            row::one_case(session, &factory, case)
        })?;
    }
    Ok(())
}
