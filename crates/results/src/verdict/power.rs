//! Power of a verdict: what would have been named if it were slow.

use super::{Hosts, MIN_UNITS, MISSED, plural};
use ombx_core::unit::Bytes;

/// Largest factor of a slow link that may go unnoticed in a run with the verdict that nothing is slow.
const MAX_NAMEABLE: f64 = 3.0;

/// Returns the clause on the smallest slow link and the smallest slow groups that would have been named. `of_groups` has a factor for
/// each level of groups; `None` if they cannot be compared.
pub(super) fn clause(
    power: &[(u64, Option<f64>)],
    of_groups: &[(u64, Vec<Option<f64>>)],
    hosts: &Hosts,
) -> Option<String> {
    let known: Vec<(u64, f64)> = power.iter().filter_map(|(bytes, x)| Some((*bytes, (*x)?))).collect();
    let links = (!known.is_empty()).then(|| {
        format!(
            "{} would have been named with a probability of {:.0} %",
            slower("link", &known),
            100.0 * (1.0 - MISSED)
        )
    });
    let groups = (0..hosts.levels()).map(|level| {
        let known: Vec<(u64, f64)> =
            of_groups.iter().filter_map(|(bytes, levels)| Some((*bytes, (*levels.get(level)?)?))).collect();
        match known.is_empty() {
            true => format!(
                "{} {} cannot be compared: at least {MIN_UNITS} are needed",
                hosts.unit_count(level + 1),
                plural(hosts.noun(level))
            ),
            false => format!("so would {}", slower(hosts.noun(level), &known)),
        }
    });
    let all: Vec<String> = links.into_iter().chain(groups).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns why links that scatter too much are no sign that nothing is slow.
pub(super) fn too_coarse(power: &[(u64, Option<f64>)]) -> Option<String> {
    if power.is_empty() {
        return Some("no link was measured".into());
    }
    if let Some((bytes, _)) = power.iter().find(|(_, nameable)| nameable.is_none()) {
        return Some(format!("single links cannot be compared (at {} bytes)", Bytes(*bytes)));
    }
    let (bytes, worst) = power
        .iter()
        .filter_map(|(bytes, x)| Some((*bytes, (*x)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, factor)| *factor > MAX_NAMEABLE)?;
    Some(format!(
        "the links differ too much among themselves: only one that is {worst:.1} times slower would be named (at {} bytes)",
        Bytes(bytes)
    ))
}

/// Returns which component would have been named, for each size or as a range.
fn slower(what: &str, known: &[(u64, f64)]) -> String {
    let one = |(bytes, factor): &(u64, f64)| format!("{factor:.2} times slower at {} bytes", Bytes(*bytes));
    if known.len() <= 3 {
        return format!("a {what} {}", known.iter().map(one).collect::<Vec<_>>().join(", or "));
    }
    let factors = known.iter().map(|(_, factor)| *factor);
    let (low, high) = factors.fold((f64::MAX, 0f64), |(low, high), x| (low.min(x), high.max(x)));
    format!("a {what} {low:.2} to {high:.2} times slower, depending on the size,")
}
