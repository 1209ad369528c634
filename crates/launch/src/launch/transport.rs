//! The transports between MPI ranks, as the library itself reports them. Ranks of a start of their own exchange a few messages with the
//! library's messages switched on, so that those do not disturb a measurement.

use std::{collections::BTreeSet, time::Duration};

use ombx_core::{benchmark::Medium, team::Team};
use ombx_mpi::{Family, Mpi};
use ombx_record::{
    error::{Error, Result},
    fact::Fact,
};

use crate::{
    job::Job,
    launch::{finite_run, mpiexec, orphans},
    output::destination::Format,
    this_process,
};

/// Name of the subcommand that ranks of the probe run.
pub(crate) const SUBCOMMAND: &str = "transport-probe";
/// Variables that let a library report its transports, and their values.
const VARIABLES: [(&str, &str); 7] = [
    ("UCX_LOG_LEVEL", "info"),
    ("OMPI_MCA_pml_base_verbose", "10"),
    ("OMPI_MCA_mtl_base_verbose", "10"),
    ("OMPI_MCA_btl_base_verbose", "20"),
    ("MPIR_CVAR_DEBUG_SUMMARY", "1"),
    ("MPIR_CVAR_CH4_OFI_CAPABILITY_SETS_DEBUG", "1"),
    ("I_MPI_DEBUG", "4"),
];
/// Time limit of the start.
const LIMIT: Duration = Duration::from_secs(20);
/// Sizes of the messages, which libraries send over different transports.
const SIZES: [usize; 3] = [8, 64 << 10, 1 << 20];
const NO_REPORT: &str = "the library reports none that ombx can read";
const ONE_LAUNCH: &str = "ombx asks the library only in jobs of several launches";

/// Asks the library for its transports, if the results of the job are kept and are worth it.
pub(crate) fn ask(job: &Job, limit: Option<Duration>, interrupted: impl Fn() -> bool) -> Fact {
    let is_kept = job.output.file.is_some() || job.output.screen.format() == Some(Format::Jsonl);
    if !is_kept || job.launches.is_one() || !job.work.kinds().iter().any(|kind| kind.medium == Medium::Mpi) {
        return Fact::Unknown { reason: ONE_LAUNCH.into() };
    }
    let limit = limit.map_or(LIMIT, |limit| limit.min(LIMIT));
    match report(job, limit, interrupted) {
        Ok(text) => Fact::new(transports(&text), NO_REPORT),
        Err(error) => Fact::Unknown { reason: format!("asking the library failed: {error}") },
    }
}

/// Starts the ranks of the probe where those of the job will be, and returns what they and their launcher print.
fn report(job: &Job, limit: Duration, interrupted: impl Fn() -> bool) -> Result<String> {
    orphans::adopt();
    let mut start = job.start.clone();
    if ombx_mpi::family() == Family::OpenMpi && !mpiexec::uses_srun(&start) {
        // mpirun itself passes only variables of Open MPI to other hosts.
        start.launcher_arg.extend(["-x".to_owned(), "UCX_LOG_LEVEL".to_owned()]);
    }
    let threading = job.work.over(Medium::Mpi).threading();
    let words = vec![this_process::executable()?.into(), SUBCOMMAND.into()];
    let mut command = mpiexec::command(&start, job.extent.ranks, threading, words)?;
    command.envs(VARIABLES);
    Ok(finite_run::texts_of_launcher(command, limit, interrupted)?.concat())
}

/// Exchanges messages as a rank of the probe.
pub(crate) fn exchange() -> Result<u8> {
    Mpi::abort_on_panic();
    let mpi = Mpi::start(ombx_core::benchmark::Threading::Single)?;
    let comm = mpi.team().comm();
    // Neighbours are mostly on one host, opposite ranks mostly on different hosts.
    let opposite = mpi.team().size() / 2;
    let exchanged = [1, opposite.max(1)]
        .iter()
        .try_for_each(|distance| SIZES.iter().try_for_each(|bytes| comm.exchange(*distance, *bytes)));
    let end = |error: Error| -> Result<u8> { Mpi::abort(error.kind().exit_code()) };
    exchanged.map(|()| 0).or_else(end)
}

/// Finds the transports in the messages of libraries; `None` if there are none.
pub(crate) fn transports(text: &str) -> Option<String> {
    let mut versions = BTreeSet::new();
    let (mut ucx, mut components, mut inside, mut between, mut providers) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in text.lines().map(str::trim) {
        if let Some((_, message)) = line.split_once("UCX  INFO ") {
            let version =
                message.trim().strip_prefix("Version ").and_then(|rest| rest.split_whitespace().next());
            versions.extend(version.map(str::to_owned));
            ucx.extend(ucx_endpoint(message));
        } else if let Some((_, provider)) = line.split_once("libfabric provider: ") {
            providers.insert(provider.trim().to_owned());
        } else if let Some((_, message)) = line.split_once("select: component ") {
            components.extend(message.strip_suffix(" selected").map(str::to_owned));
        } else if let Some((rank, message)) = line.split_once("mca: bml: Using ") {
            // [n01:4711] mca: bml: Using tcp btl for send to [[26878,1],0] on node n02
            let Some((btl, to)) = message.split_once(" btl for send to ") else { continue };
            let host = rank.split_once('[').and_then(|(_, rank)| Some(rank.rsplit_once(':')?.0));
            let same = host.zip(to.rsplit_once(" on node ")).is_some_and(|(host, (_, node))| host == node);
            match (btl, same) {
                ("self", _) => false,
                (_, true) => inside.insert(btl.to_owned()),
                (_, false) => between.insert(btl.to_owned()),
            };
        }
    }
    let joined = |values: BTreeSet<String>, between: &str| Vec::from_iter(values).join(between);
    let named = |before: &str, values: BTreeSet<String>, after: &str| {
        (!values.is_empty()).then(|| format!("{before}{}{after}", joined(values, ", ")))
    };
    let version = named(" ", versions, "").unwrap_or_default();
    let ucx = (!ucx.is_empty()).then(|| format!("UCX{version}: {}", joined(ucx, "; ")));
    let parts = [
        named("Open MPI components ", components, ""),
        named("BTL ", inside, " inside a host"),
        named("BTL ", between, " between hosts"),
        named("libfabric provider ", providers, ""),
        ucx,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Reads `ep_cfg[0]: tag(sysv/memory cma/memory)`, or `inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)` of later versions. Returns nothing
/// for the connection of a rank to itself.
fn ucx_endpoint(message: &str) -> Option<String> {
    let message = message.trim();
    let (before, lanes) = match message.strip_prefix("ep_cfg[") {
        Some(rest) => ("", rest.split_once("]: ")?.1),
        None => {
            let (before, rest) = message.split_once("cfg#")?;
            (before.trim().rsplit(' ').next().unwrap_or_default(), rest.split_once(' ')?.1)
        }
    };
    let to_itself = before == "self" || lanes.split('(').nth(1).is_some_and(|lane| lane.starts_with("self/"));
    let lanes = lanes.trim();
    (!to_itself).then(|| if before.is_empty() { lanes.to_owned() } else { format!("{before} {lanes}") })
}

#[cfg(test)]
mod tests {
    use crate::launch::transport::*;

    #[test]
    fn lanes_of_ucx_are_reported_without_those_to_the_rank_itself() {
        let text = "\
            [1795.4] [n01:833  :0]  ucp_context.c:1849 UCX  INFO  Version 1.13.1 (loaded from /lib/libucp.so.0)\n\
            [1795.4] [n01:833  :0]  parser.c:1916 UCX  INFO  UCX_* env variable: UCX_LOG_LEVEL=info\n\
            [1795.4] [n01:833  :0]  ucp_worker.c:1763 UCX  INFO    ep_cfg[0]: tag(sysv/memory cma/memory) rma(sysv/memory)\n\
            [1795.4] [n01:833  :0]  ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(self/memory0 cma/memory) rma(self/memory0)\n\
            [1795.4] [n02:834  :0]  ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(sysv/memory cma/memory) rma(sysv/memory)\n";
        let expected = "UCX 1.13.1: tag(sysv/memory cma/memory) rma(sysv/memory)";
        assert_eq!(transports(text).as_deref(), Some(expected));
        let later = "[x] ucp_worker.c:1888 UCX  INFO  ucp_context_0 inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)\n\
                     [x] ucp_worker.c:1888 UCX  INFO  ucp_context_0 self cfg#0 tag(self/memory)\n";
        assert_eq!(transports(later).as_deref(), Some("UCX: inter-node tag(rc_mlx5/mlx5_0:1)"));
    }

    #[test]
    fn components_of_open_mpi_are_grouped_by_host() {
        let text = "[n01:1030] select: component v not in the include list\n\
                    [n01:1030] select: component ob1 selected\n\
                    [n01:1030] mca: bml: Using vader btl for send to [[26878,1],0] on node n01\n\
                    [n01:1030] mca: bml: Using self btl for send to [[26878,1],1] on node n01\n\
                    [n01:1030] mca: bml: Using tcp btl for send to [[26878,1],1] on node n02\n";
        let expected = "Open MPI components ob1; BTL vader inside a host; BTL tcp between hosts";
        assert_eq!(transports(text).as_deref(), Some(expected));
    }

    #[test]
    fn the_provider_of_libfabric_is_reported_and_other_text_is_not() {
        let text = "[0] MPI startup(): libfabric provider: psm3\nRunning on ranks\n";
        assert_eq!(transports(text).as_deref(), Some("libfabric provider psm3"));
        assert_eq!(transports("==== UCX netmod Capability ====\nnum_vnis: 1\n"), None);
    }
}
