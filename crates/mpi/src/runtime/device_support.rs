//! Whether the MPI library takes addresses of device memory, as it says itself.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ffi::{CStr, c_int},
    sync::{Mutex, PoisonError},
};

use ombx_accelerator::device;
use ombx_core::{
    benchmark::{
        Context,
        memory::{Api, BufferMemory, Place, Staged},
    },
    error::{Error, Result},
    fact::{Fact, Facts},
    team::Team,
};
use ombx_host::environment::hostname;

use super::library;

/// Functions without arguments that return 1 if the library does. Not every library has them, and mpi.h declares them in some only.
const fn queries(api: Api) -> &'static [&'static CStr] {
    match api {
        Api::Cuda => &[c"MPIX_Query_cuda_support"],
        Api::Rocm => &[c"MPIX_Query_rocm_support", c"MPIX_Query_hip_support"],
    }
}

/// Value of the first argument of `MPIX_GPU_query_support` of MPICH and its derivatives.
const fn kind(api: Api) -> c_int {
    match api {
        Api::Cuda => 0,
        Api::Rocm => 2,
    }
}

const fn name(api: Api) -> &'static str {
    match api {
        Api::Cuda => "CUDA",
        Api::Rocm => "ROCm",
    }
}

/// Returns the function that answered and its answer; `None` if the library has none.
pub(crate) fn answer(api: Api) -> Option<(&'static str, bool)> {
    if let Some(query) = library::function(c"MPIX_GPU_query_support") {
        let mut able = 0;
        // SAFETY: this is the declaration of MPICH and its derivatives, the only libraries with a function of this name.
        let code = unsafe {
            let query: unsafe extern "C" fn(c_int, *mut c_int) -> c_int = std::mem::transmute(query);
            query(kind(api), &raw mut able)
        };
        if code == 0 {
            return Some(("MPIX_GPU_query_support", able != 0));
        }
    }
    let (name, query) = queries(api).iter().find_map(|name| Some((name, library::function(name)?)))?;
    // SAFETY: every library with a function of this name declares it so.
    let able = unsafe {
        let query: unsafe extern "C" fn() -> c_int = std::mem::transmute(query);
        query()
    };
    Some((name.to_str().unwrap_or_default(), able == 1))
}

/// Refuses a library that does not say that it takes addresses of device memory: it may end the job with a segmentation fault.
///
/// # Errors
/// [`Error::unsupported`] with its answer and what to do.
pub(crate) fn check(api: Api) -> Result<()> {
    let (version, name) = (library::library_name(), name(api));
    let instead = if version.starts_with("Intel") {
        "set I_MPI_OFFLOAD=1, or choose --staged"
    } else {
        "use an MPI that was built for it, or choose --staged"
    };
    match answer(api) {
        Some((_, true)) => match library::ucx_problem(api) {
            None => Ok(()),
            Some(why) => Err(Error::unsupported(format!(
                "{version} takes no memory of {name} devices, because {why}: mend this, or choose --staged"
            ))),
        },
        Some((function, false)) => Err(Error::unsupported(format!(
            "{version} takes no memory of {name} devices, says {function}: {instead}"
        ))),
        None => Err(Error::unsupported(format!(
            "{version} does not say whether it takes memory of {name} devices: {instead}"
        ))),
    }
}

/// Refuses calls that combine data in the memory of devices if the library does not copy the data for them: it would end the job with a
/// segmentation fault.
///
/// # Errors
/// The library is Open MPI, whose component for such memory has blocking reductions only, except two.
pub fn combining_works(cx: &Context<'_>, calls: &str) -> Result<()> {
    let (memory, staged): (BufferMemory, Staged) = (cx.get(), cx.get());
    let version = library::library_name();
    let is_of_host = memory.places().into_iter().all(Place::is_of_host);
    if is_of_host || staged == Staged::On || !version.starts_with("Open MPI") {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{version} takes no memory of devices in {calls}, only in MPI_Allreduce, MPI_Reduce, \
         MPI_Reduce_scatter_block, MPI_Scan and MPI_Exscan"
    )))
}

/// Facts about the devices of all ranks, on rank 0.
static DEVICES: Mutex<Facts> = Mutex::new(Facts::new());

/// Opens the device of every rank, and keeps on rank 0 what provenance says of them. Collective.
///
/// # Errors
/// Usage error of the lowest rank that has no driver or no device.
pub fn open_devices(team: &dyn Team, api: Api) -> Result<()> {
    let device = team.agree(device(api))?;
    let mut facts = device.facts();
    let place = format!("{} on {}", device.bus_id().unwrap_or_else(|| "a device".to_owned()), hostname());
    let Some(all) = team.gather(lines(&place, &facts).as_bytes())? else { return Ok(()) };
    let texts: Vec<_> = all.iter().map(|text| String::from_utf8_lossy(text)).collect();
    let of_rank =
        |(rank, text): (usize, &Cow<'_, str>)| format!("{rank}: {}", text.lines().next().unwrap_or_default());
    let list: Vec<String> = texts.iter().enumerate().map(of_rank).collect();
    facts.insert("accelerators_of_ranks".into(), Fact::Known(list.join(", ")));
    facts.insert("accelerators_that_differ".into(), Fact::Known(differences(&texts)));
    let able = match answer(api) {
        Some((function, able)) => Fact::Known(format!("{} ({function})", if able { "yes" } else { "no" })),
        None => Fact::Unknown { reason: "the MPI library has no function that says it".to_owned() },
    };
    facts.insert("mpi_takes_device_memory".into(), able);
    if let Some(why) = library::ucx_problem(api) {
        facts.insert("ucx_takes_device_memory".into(), Fact::Known(format!("no: {why}")));
    }
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).extend(facts);
    Ok(())
}

/// Facts that differ between the ranks of a host in any case, or from one moment to the next.
const OWN: [&str; 4] =
    ["accelerator_number", "accelerator_bus", "accelerator_peer_access", "accelerator_current_clocks"];

/// Returns the place of a device, and on a line each what its facts are.
fn lines(place: &str, facts: &Facts) -> String {
    let shared = facts.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let known = shared.filter_map(|(name, fact)| Some(format!("\n{name} = {}", fact.known()?)));
    [place.to_owned()].into_iter().chain(known).collect()
}

/// Returns the lines of ranks that the device of rank 0 does not have.
fn differences(texts: &[Cow<'_, str>]) -> String {
    let first: BTreeSet<&str> = texts.first().into_iter().flat_map(|text| text.lines()).collect();
    let of_rank = |(rank, text): (usize, &Cow<'_, str>)| {
        let other: Vec<&str> = text.lines().skip(1).filter(|line| !first.contains(line)).collect();
        (!other.is_empty()).then(|| format!("rank {rank}: {}", other.join(", ")))
    };
    let found: Vec<String> = texts.iter().enumerate().filter_map(of_rank).collect();
    if found.is_empty() { "none".to_owned() } else { found.join("; ") }
}

/// Returns what [`open_devices`] has kept.
pub(crate) fn facts() -> Facts {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_differ_from_the_first_are_named() {
        let facts = |link: &str| {
            let facts = [("accelerator_bus", link), ("accelerator_link", link), ("accelerator", "A")];
            facts.map(|(name, value)| (name.to_owned(), Fact::Known(value.to_owned()))).into_iter().collect()
        };
        let texts = ["x16", "x16", "x8"].map(|link| Cow::from(lines("bus on host", &facts(link))));
        assert_eq!(differences(&texts[..2]), "none");
        assert_eq!(differences(&texts), "rank 2: accelerator_link = x8");
    }
}
