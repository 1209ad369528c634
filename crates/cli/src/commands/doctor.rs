//! `ombx doctor`: checks the system for causes of wrong measurements before anything is measured.

mod probe;

use clap::Args;
use ombx_core::{
    benchmark::{Medium, Threading},
    error::{Error, Result},
    result::Mark,
    system::{clock::Clock, host::Host},
    team::Place,
    trust,
};
use serde_json::{Value, json};

use crate::{
    arguments::{
        argv,
        start::{Launcher, StartArgs},
    },
    launch::{detection, mpiexec, preflight},
    output::stdout,
};

/// Default number of ranks to check.
const RANKS: u32 = 2;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    start: StartArgs,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Print where this process runs, for the doctor that started it
    #[arg(long, hide = true)]
    probe: bool,
}

/// What was examination, and the findings.
#[derive(Default)]
struct Examination {
    launcher: Option<String>,
    ranks: Vec<Place>,
    /// Number of ranks on this host.
    ranks_here: u32,
    findings: Vec<Mark>,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8> {
    if args.probe {
        return stdout::print(probe::line());
    }
    let started = detection::launcher().filter(|_| args.start.launcher == Launcher::Auto);
    if started.as_ref().is_some_and(|s| s.rank > 0) {
        return Ok(0);
    }
    let shared_memory = rustix::fs::statvfs("/dev/shm").ok();
    let free_shared_memory = shared_memory.map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let clock = Clock::measured();
    let mut examination = match &started {
        Some(started) => within(started),
        None => {
            if args.start.rendezvous.is_some() {
                return Err(Error::usage("ombx doctor has no option --rendezvous: it measures nothing"));
            }
            preflight::check(&args.start, ranks(args), Medium::Mpi)?;
            outside(args)
        }
    };
    let debug = cfg!(debug_assertions);
    let standing = trust::standing(&examination.ranks, clock.facts(), debug);
    examination.findings.extend(standing.into_iter().filter(|n| n.code != "shared_cpu" || started.is_none()));
    examination.findings.extend(Host::here(free_shared_memory).problems(examination.ranks_here));
    let facts = clock.facts();
    let text = if args.json {
        format!("{:#}\n", examination.json(json!({"source": facts.source, "resolution_ns": facts.resolution_ns, "overhead_ns": facts.overhead_ns})))
    } else {
        examination.sentences(&format!("{} clock, {} ns per reading", facts.source, facts.overhead_ns))
    };
    stdout::print(text)?;
    Ok(if examination.findings.is_empty() { 0 } else { 4 })
}

/// Examines the job of a launcher as one of its ranks, from this rank's place and the launcher's environment.
fn within(started: &detection::StartedBy) -> Examination {
    let place = Place::here();
    let here = detection::ranks_here().or(started.ranks).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let mut findings = Vec::from_iter(wrong_launcher(started.launcher));
    if here > place.online {
        findings.push(oversubscribed(here, &place));
    }
    Examination {
        launcher: Some(started.launcher.to_owned()),
        ranks: vec![place],
        ranks_here: here,
        findings,
    }
}

/// Starts ranks as a run would and examines where they are.
fn outside(args: &DoctorArgs) -> Examination {
    let ranks = ranks(args);
    let mut examination = Examination::default();
    examination.findings.extend(mpiexec::of_another_mpi_in_path().map(|path| {
        Mark::caution(
            "path_launcher",
            format!("{path} belongs to another MPI"),
            "its ranks cannot communicate with each other: let ombx run start the ranks, or give the full path of this MPI's mpiexec",
        )
    }));
    match start(args, ranks) {
        Ok((program, seen)) => {
            examination.launcher = Some(program);
            let by = seen.iter().find_map(|rank| rank.launcher.as_deref());
            examination.findings.extend(by.and_then(wrong_launcher));
            examination.ranks = seen.into_iter().map(|rank| rank.place).collect();
        }
        Err(e) => {
            let code = if mpiexec::is_of_another_mpi(&e) { "wrong_launcher" } else { "launcher" };
            examination.findings.push(Mark::invalid(code, "cannot start ranks", e.to_string()));
        }
    }
    let host = Place::here();
    if examination.ranks.is_empty() {
        if args.start.hosts.is_empty() && args.start.hostfile.is_none() && ranks > host.online {
            examination.findings.push(oversubscribed(ranks, &host));
        }
        examination.ranks_here = ranks;
    } else {
        examination.ranks_here =
            examination.ranks.iter().filter(|place| place.host == host.host).count() as u32;
    }
    examination
}

/// Returns the number of ranks: the user's, or one for each host.
fn ranks(args: &DoctorArgs) -> u32 {
    let hosts = || u32::try_from(args.start.hosts.len()).unwrap_or(RANKS).max(RANKS);
    args.start.ranks.unwrap_or_else(hosts)
}

/// Starts ranks as `ombx run` does and returns the launcher and where each rank is.
fn start(args: &DoctorArgs, ranks: u32) -> Result<(String, Vec<probe::Rank>)> {
    preflight::reach_all(&args.start, mpiexec::remote_shell(&args.start), Medium::Mpi)?;
    let words = vec![argv::executable()?.into(), "doctor".into(), "--probe".into()];
    let command = mpiexec::command(&args.start, ranks, Threading::Single, words)?;
    let name = command.get_program().to_string_lossy().into_owned();
    Ok((name, probe::run(command, ranks, args.start.timeout)?))
}

/// Returns the finding that a launcher belongs to another MPI than this program.
fn wrong_launcher(by: &str) -> Option<Mark> {
    let ours = mpiexec::is_of_this_mpi(by)?;
    (!ours).then(|| {
        Mark::invalid(
            "wrong_launcher",
            format!("{by} starts the ranks"),
            "ombx was built with another MPI, so each process is rank 0 of 1: use the mpiexec of that MPI, or let ombx run start the ranks",
        )
    })
}

fn oversubscribed(ranks: u32, place: &Place) -> Mark {
    trust::oversubscribed(&place.host, ranks as usize, place.online)
}

impl Examination {
    fn json(&self, clock: Value) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|n| json!({"code": n.code, "level": n.level.name(), "what": n.short, "advice": n.advice}))
            .collect();
        json!({
            "mpi": mpiexec::library(),
            "launcher": self.launcher,
            "ranks": self.ranks,
            "clock": clock,
            "findings": findings,
        })
    }

    fn sentences(&self, clock: &str) -> String {
        let launcher = self.launcher.as_deref().unwrap_or("no launcher");
        let places: Vec<String> =
            self.ranks.iter().map(|place| format!("{}:{}", place.host, place.cpus)).collect();
        let ranks =
            if places.is_empty() { String::new() } else { format!(" · ranks on {}", places.join(" ")) };
        let mut text = format!("{} · {launcher}{ranks} · {clock}\n", mpiexec::library());
        for Mark { code, short, advice, .. } in &self.findings {
            text += &format!("\n{code}: {short}\n  {advice}\n");
        }
        if self.findings.is_empty() {
            text += "\nno findings: this system is ready to measure\n";
        }
        text
    }
}
