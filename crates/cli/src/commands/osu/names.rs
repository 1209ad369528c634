//! Names of the OSU programs of OMB 3.x and 7.4, and links for those of this build.

use std::{fs, os::unix::fs::symlink, path::Path};

use ombx_core::{
    benchmark::{Benchmark, Osu, Registry},
    error::{Error, Result},
};

use crate::{arguments::argv, commands::imb::suites, job::lookup};

/// Beginning of the names of programs.
const PREFIX: &str = "osu_";
/// Longest name for which a similar one is searched.
const LONGEST_NAME: usize = 64;

/// Every MPI program of OMB 3.x and 7.4.
const OMB: &str = "
    osu_latency osu_latency_mt osu_latency_mp osu_multi_lat osu_latency_persistent
    osu_bw osu_bibw osu_mbw_mr osu_bw_persistent osu_bibw_persistent osu_bw_fan_in osu_bw_fan_out
    osu_put_latency osu_get_latency osu_acc_latency osu_get_acc_latency osu_cas_latency osu_fop_latency
    osu_put_bw osu_get_bw osu_put_bibw osu_get_mbw osu_get_multi_lat
    osu_passive_put_latency osu_passive_get_latency osu_passive_acc_latency osu_passive_put_bw osu_passive_get_bw
    osu_allgather osu_allgatherv osu_allreduce osu_alltoall osu_alltoallv osu_alltoallw osu_barrier osu_bcast
    osu_gather osu_gatherv osu_reduce osu_reduce_scatter osu_reduce_scatter_block osu_scatter osu_scatterv
    osu_iallgather osu_iallgatherv osu_iallreduce osu_ialltoall osu_ialltoallv osu_ialltoallw osu_ibarrier osu_ibcast
    osu_igather osu_igatherv osu_ireduce osu_ireduce_scatter osu_ireduce_scatter_block osu_iscatter osu_iscatterv
    osu_allgather_persistent osu_allgatherv_persistent osu_allreduce_persistent osu_alltoall_persistent
    osu_alltoallv_persistent osu_alltoallw_persistent osu_barrier_persistent osu_bcast_persistent
    osu_gather_persistent osu_gatherv_persistent osu_reduce_persistent osu_reduce_scatter_persistent
    osu_scatter_persistent osu_scatterv_persistent
    osu_neighbor_allgather osu_neighbor_allgatherv osu_neighbor_alltoall osu_neighbor_alltoallv osu_neighbor_alltoallw
    osu_ineighbor_allgather osu_ineighbor_allgatherv osu_ineighbor_alltoall osu_ineighbor_alltoallv
    osu_ineighbor_alltoallw
    osu_init osu_hello";

pub(super) fn all() -> impl Iterator<Item = &'static str> {
    OMB.split_whitespace()
}

/// Returns the programs of this build in OMB's order, then those that OMB does not have.
pub(super) fn covered(registry: &Registry) -> Vec<(&'static Osu, &'static Benchmark)> {
    let mut names: Vec<(&Osu, &Benchmark)> =
        registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (osu, *bench))).collect();
    names.sort_by_key(|(osu, _)| all().position(|name| name == osu.name).unwrap_or(usize::MAX));
    names
}

/// Returns why this build has no such OSU program; `None` if OMB has no such program either.
pub(super) fn uncovered(name: &str) -> Option<&'static str> {
    match name {
        "osu_get_mbw" => Some("use osu_get_bw -p with the number of pairs"),
        "osu_get_multi_lat" => Some("use osu_get_latency -s pscw -p with the number of pairs"),
        _ if name.starts_with("osu_nccl_") || name.starts_with("osu_xccl_") => Some(
            "NCCL and RCCL are not measured; ombx osu osu_allreduce -d cuda measures MPI with memory of devices",
        ),
        _ if ["osu_oshm_", "osu_upc_", "osu_upcxx_"].iter().any(|start| name.starts_with(start)) => {
            Some("OpenSHMEM, UPC and UPC++ are not measured; ombx osu osu_put_latency measures one-sided MPI")
        }
        _ => all().any(|known| known == name).then_some("this build has no such benchmark"),
    }
}

/// Returns the error about a name that is no program.
pub(super) fn unknown(registry: &Registry, name: &str) -> Error {
    let full = if name.starts_with(PREFIX) { name.to_owned() } else { format!("{PREFIX}{name}") };
    if let Some(why) = uncovered(&full) {
        return Error::usage(format!("{full} is not supported: {why}"));
    }
    let instead = if suites::find(name).is_ok() {
        format!("it is a program of IMB: ombx imb {name}")
    } else if lookup::find(registry, name).is_ok() {
        format!("ombx run {name} measures it")
    } else if let Some(known) = nearest(registry, &full) {
        format!("did you mean {known}?")
    } else {
        "ombx osu lists them".to_owned()
    };
    Error::usage(format!("{name:?} is no OSU program; {instead}"))
}

/// Returns the program with the fewest typing errors, at most a third of the name without `osu_`.
fn nearest(registry: &Registry, wrong: &str) -> Option<&'static str> {
    let allowed = ((wrong.len() - PREFIX.len()) / 3).max(1);
    let programs = covered(registry).into_iter().filter(|_| wrong.len() <= LONGEST_NAME);
    let scored = programs.map(|(osu, _)| (strsim::damerau_levenshtein(osu.name, wrong), osu.name));
    scored.min().filter(|(errors, _)| *errors <= allowed).map(|(_, name)| name)
}

/// Returns the text that `ombx osu` without a name prints.
pub(super) fn list(registry: &Registry) -> String {
    let mut text = String::new();
    let covered = covered(registry);
    let width = covered.iter().map(|(osu, _)| osu.name.len()).max().unwrap_or_default();
    for (osu, bench) in &covered {
        text += &format!("{:<width$}  {}{}\n", osu.name, bench.name, options(osu));
    }
    let missing: Vec<&str> = all().filter(|name| covered.iter().all(|(osu, _)| osu.name != *name)).collect();
    if !missing.is_empty() {
        text += &format!("\nnot supported: {}\n", missing.join(" "));
    }
    text
}

/// Returns the options of `ombx run` that a program selects by its name, each after a space.
fn options(osu: &Osu) -> String {
    osu.axes.iter().map(|(axis, value)| format!(" --{axis} {value}")).collect()
}

/// Creates a link to ombx for each OSU program of this build. Replaces links, but no other files.
pub(super) fn install(registry: &Registry, directory: &Path) -> Result<String> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| Error::storage(format!("{}: {e}", path.display()));
    let program = argv::executable()?;
    fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    let covered = covered(registry);
    for (osu, _) in &covered {
        let link = directory.join(osu.name);
        match fs::symlink_metadata(&link) {
            Ok(found) if found.is_symlink() => fs::remove_file(&link).map_err(|e| failed(&link, &e))?,
            Ok(_) => {
                return Err(failed(
                    &link,
                    &"the file exists and is not a link: remove it or choose another directory",
                ));
            }
            Err(_) => {}
        }
        symlink(&program, &link).map_err(|e| failed(&link, &e))?;
    }
    Ok(format!("{} links to {} in {}\n", covered.len(), program.display(), directory.display()))
}
