//! A row for every offered rate of a plan.

use super::schedule::{Rate, Schedule};
use crate::{
    benchmark::{Case, Context, Metric, Work},
    error::Result,
    measure::{
        opened::OpenKernel,
        row::{self, KernelFactory, KernelKind},
        session::Session,
    },
};

/// Opens the kernel of a case with a schedule.
pub(in crate::two_sided) type OpenScheduled<'k> =
    &'k dyn Fn(&Context<'_>, &Case, Schedule) -> Result<Box<dyn OpenKernel + 'k>>;

/// Measures every case at every rate of the plan.
pub(in crate::two_sided) fn at_each_rate(
    session: &mut Session<'_>,
    metric: Metric,
    open: OpenScheduled<'_>,
) -> Result<()> {
    let seed = session.plan.launch.map_or(0, |launch| launch.order);
    let open = |cx: &Context<'_>, case: &Case| {
        // A rate that is not possible is the reason of a skipped row.
        let rate = case.get::<Rate>().of_messages(case.bytes.0)?;
        open(cx, case, Schedule { rate, arrivals: case.get(), seed })
    };
    let kind = KernelKind::with_work(metric, |case| Work { bytes: case.bytes.0, ops: 1, legs: 1 });
    row::every_case(session, &KernelFactory::new(kind, &open))
}
