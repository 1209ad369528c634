//! The benchmarks that patterns select, and what they need.

use ombx_core::{
    benchmark::{Choice, Initialization, Medium, Threading},
    measure::{
        plan::{Plan, Under},
        runner::Part,
        session::{selected, sizes_of},
    },
};
use ombx_record::{
    error::{Error, Result},
    order::{each_once, sort_by_number},
};

/// Returns parts and places of all benchmarks, in the order in which ranks of a user's launcher measure them: those of one medium after
/// those of another.
pub(crate) fn in_order(parts: &[Part]) -> Vec<(usize, usize)> {
    let medium = |(part, at): &(usize, usize)| parts[*part].choices[*at].bench.ranks.medium;
    let places = parts
        .iter()
        .enumerate()
        .flat_map(|(part, Part { choices, .. })| (0..choices.len()).map(move |at| (part, at)));
    let mut places: Vec<(usize, usize)> = places.collect();
    let media = each_once(places.iter().map(medium));
    sort_by_number(&mut places, |place| {
        media.iter().position(|one| *one == medium(place)).map_or(-1, |at| at as i64)
    });
    places
}

/// Returns the parts without the benchmarks before number `first`, from 1.
///
/// # Errors
/// Usage error: none is left.
pub fn from(parts: Vec<Part>, first: u32) -> Result<Vec<Part>> {
    let order = in_order(&parts);
    let kept = order.get(first as usize - 1..).filter(|kept| !kept.is_empty()).ok_or_else(|| {
        Error::usage(format!("--from {first}: the last benchmark is number {}", order.len()))
    })?;
    Ok(parts.into_iter().enumerate().filter_map(|(number, part)| reduced(number, part, kept)).collect())
}

/// Returns a part with its benchmarks that are kept; `None` if there is none. `kept` has numbers of parts and of benchmarks in them.
fn reduced(number: usize, Part { choices, plan }: Part, kept: &[(usize, usize)]) -> Option<Part> {
    let choices = choices.into_iter().enumerate().filter(|(at, _)| kept.contains(&(number, *at)));
    let choices: Vec<Choice> = choices.map(|(_, choice)| choice).collect();
    (!choices.is_empty()).then_some(Part { choices, plan })
}

/// Returns the benchmarks whose ranks are connected by sockets. Those that start their own processes are left out, with a notice.
///
/// # Errors
/// Usage error: a benchmark is over MPI, or none is left.
pub fn over_sockets(choices: Vec<Choice>) -> Result<Vec<Choice>> {
    let over = |medium| choices.iter().filter(move |choice| choice.bench.ranks.medium == medium);
    if let Some(mpi) = over(Medium::Mpi).next() {
        return Err(Error::usage(format!(
            "{} is over MPI: --connect is for benchmarks over sockets (ombx list sockets)",
            mpi.bench.name
        )));
    }
    let left: Vec<Choice> = over(Medium::Sockets).copied().collect();
    for own in over(Medium::Own) {
        let name = own.bench.name;
        if left.is_empty() {
            return Err(Error::usage(format!(
                "{name} starts its own processes by ssh: leave out --connect, or give another benchmark over sockets"
            )));
        }
        note_line!("ombx: {name} is left out: it starts its own processes by ssh, without --connect");
    }
    Ok(left)
}

/// Fails if the ranks that the user has chosen are too few for every benchmark. If some can run, the others are rows that say why
/// they are skipped. Fails also if parts initialise MPI in different ways, which happens once in a launch.
pub fn check_ranks(ranks: Option<u32>, parts: &[Part]) -> Result<()> {
    let differ = |of: fn(&Plan) -> (Initialization, Threading)| {
        parts.windows(2).any(|pair| of(&pair[0].plan) != of(&pair[1].plan))
    };
    if differ(|plan| (plan.chosen.get(), plan.chosen.get())) {
        return Err(Error::usage(
            "a job initialises MPI once: give --init and --threading for the whole suite, not for parts of it",
        ));
    }
    let Some(ranks) = ranks else { return Ok(()) };
    let choices = parts.iter().flat_map(|part| part.choices.iter().map(move |choice| (choice, &part.plan)));
    let mut missing = None;
    for (Choice { bench, .. }, plan) in choices {
        // Ranks that are kept for a load are not measured.
        let of_load = Under::least_ranks(&plan.under);
        let assigned = bench.ranks.layout.assign(ranks.saturating_sub(of_load), plan.pairs());
        let load = bench.ranks.layout.ranks_wanted(plan.pairs()).saturating_add(of_load);
        match assigned {
            Ok(_) => return Ok(()),
            Err(_) if of_load > 0 => {
                let why = format!(
                    "{} and its load need {load} ranks, has {ranks}; start it with -n {load}",
                    bench.name
                );
                missing = missing.or(Some(why));
            }
            Err(why) => missing = missing.or(Some(format!("{} {why}", bench.name))),
        }
    }
    missing.map_or(Ok(()), |why| Err(Error::usage(why)))
}

/// Returns the number of rows that a plan gives.
pub(crate) fn rows(plan: &Plan, choices: &[Choice]) -> Result<u64> {
    let mut rows = 0u64;
    for choice in choices {
        let values = |parameter| selected(parameter, *choice, plan).len().max(1);
        let of_size: usize = choice.bench.parameters().map(values).product();
        let of_size = (of_size * plan.under.len().max(1)) as u64;
        let sizes = sizes_of(choice.bench, plan)?.len();
        rows = rows.saturating_add((sizes as u64).saturating_mul(of_size));
    }
    Ok(rows)
}

/// Returns the highest level of thread support that one of the benchmarks needs.
pub(crate) fn threading(choices: &[Choice]) -> Threading {
    choices.iter().map(|choice| choice.bench.ranks.threading).max().unwrap_or(Threading::Single)
}
