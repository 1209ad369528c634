//! `ombx doctor`: what could spoil a measurement here, before one is made, and what to do about it.

mod probe;

use std::io::{self, Write};

use clap::Args;
use ombx_core::{
    benchmark::threads::Threading,
    error::{Error, Result},
    result::Notice,
    system::{clock::Clock, host::Host},
    team::Place,
    trust,
};
use serde_json::{Value, json};

use crate::{
    args::{Launcher, StartArgs},
    launch::{self, detect, mpiexec},
    start,
};
use probe::Rank;

/// A job is looked at with so many ranks, if nobody says otherwise.
const RANKS: u32 = 2;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombx doctor\n  ombx doctor -n 8 --hosts n01,n02 --json\n  srun -n 64 ombx doctor\n\nExit code 0: nothing was found; 4: something was."
)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) start: StartArgs,
    /// One JSON object instead of sentences
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Say where this process runs, for the doctor that started it
    #[arg(long, hide = true)]
    pub(crate) probe: bool,
}

/// What was looked at, and what was found.
#[derive(Default)]
struct Examined {
    launcher: Option<String>,
    ranks: Vec<Place>,
    /// Ranks on this host.
    here: u32,
    findings: Vec<Notice>,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8> {
    if args.probe {
        return print(&probe::words());
    }
    let started = detect::launcher().filter(|_| args.start.launcher == Launcher::Auto);
    if started.as_ref().is_some_and(|s| s.rank > 0) {
        return Ok(0);
    }
    let clock = Clock::measured();
    let mut examined = match &started {
        Some(started) => within(started),
        None => {
            if args.start.rendezvous.is_some() {
                return Err(Error::usage(
                    "--rendezvous is for ombx run and ombx links; the doctor needs no meeting",
                ));
            }
            start::check(&args.start, ranks(args))?;
            outside(args)
        }
    };
    let debug = cfg!(debug_assertions);
    let standing = trust::standing(&examined.ranks, clock.facts(), debug);
    examined.findings.extend(standing.into_iter().filter(|n| n.code != "shared_cpu" || started.is_none()));
    examined.findings.extend(Host::here(shared_memory()).problems(examined.here));
    let facts = clock.facts();
    let text = if args.json {
        format!("{:#}\n", examined.json(json!({"source": facts.source, "resolution_ns": facts.resolution_ns, "overhead_ns": facts.overhead_ns})))
    } else {
        examined.sentences(&format!("{} clock, {} ns a reading", facts.source, facts.overhead_ns))
    };
    print(&text)?;
    Ok(if examined.findings.is_empty() { 0 } else { 4 })
}

/// One rank of a launcher: it sees its own place, and what the launcher says.
fn within(started: &detect::Started) -> Examined {
    let place = Place::here();
    let here = detect::ranks_here().or(started.of).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let mut findings = Vec::from_iter(foreign(started.by));
    if here > place.online {
        findings.push(oversubscribed(here, &place));
    }
    Examined { launcher: Some(started.by.to_owned()), ranks: vec![place], here, findings }
}

/// No launcher: ranks are started as a run would start them, and say where they are.
fn outside(args: &DoctorArgs) -> Examined {
    let ranks = ranks(args);
    let mut examined = Examined::default();
    examined.findings.extend(mpiexec::foreign_in_path().map(|path| {
        Notice::new(
            "path_launcher",
            format!("{path} is of another MPI"),
            "it starts ranks that do not know each other: let ombx run start them, or give the full path of this MPI's mpiexec",
        )
    }));
    match start(args, ranks) {
        Ok((program, seen)) => {
            examined.launcher = Some(program);
            let by = seen.iter().find_map(|rank| rank.by.as_deref());
            examined.findings.extend(by.and_then(foreign));
            examined.ranks = seen.into_iter().map(|rank| rank.place).collect();
        }
        Err(e) => {
            let code = if mpiexec::is_foreign(&e) { "wrong_launcher" } else { "launcher" };
            examined.findings.push(Notice::new(code, "ranks cannot be started", e.to_string()));
        }
    }
    let host = Place::here();
    if examined.ranks.is_empty() {
        // Nobody could say where ranks would be.
        if args.start.hosts.is_empty() && args.start.hostfile.is_none() && ranks > host.online {
            examined.findings.push(oversubscribed(ranks, &host));
        }
        examined.here = ranks;
    } else {
        examined.here = examined.ranks.iter().filter(|place| place.host == host.host).count() as u32;
    }
    examined
}

/// As many as the user says, or one for each host.
fn ranks(args: &DoctorArgs) -> u32 {
    let hosts = || u32::try_from(args.start.hosts.len()).unwrap_or(RANKS).max(RANKS);
    args.start.ranks.unwrap_or_else(hosts)
}

/// Starts ranks as `ombx run` does; each says where it is. Returns the launcher too.
fn start(args: &DoctorArgs, ranks: u32) -> Result<(String, Vec<Rank>)> {
    let program = launch::this_program()?;
    let words = vec![program.into(), "doctor".into(), "--probe".into()];
    let launcher = launch::chosen(args.start.launcher);
    let command = mpiexec::command(&args.start, launcher, ranks, Threading::Single, words)?;
    let name = command.get_program().to_string_lossy().into_owned();
    Ok((name, probe::ask(command, ranks, args.start.timeout)?))
}

/// The notice that a launcher is of another MPI than this program.
fn foreign(by: &str) -> Option<Notice> {
    let ours = mpiexec::speaks_to(by)?;
    (!ours).then(|| {
        Notice::new(
            "wrong_launcher",
            format!("{by} starts the ranks"),
            "this program was built with another MPI, so that each rank is rank 0 of 1: use that MPI's mpiexec, or let ombx run start its ranks",
        )
    })
}

fn oversubscribed(ranks: u32, place: &Place) -> Notice {
    trust::oversubscribed(&place.host, ranks as usize, place.online)
}

/// Bytes free in `/dev/shm`.
fn shared_memory() -> Option<u64> {
    rustix::fs::statvfs("/dev/shm").ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

impl Examined {
    fn json(&self, clock: Value) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|n| json!({"code": n.code, "what": n.short, "advice": n.advice}))
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
        for Notice { code, short, advice } in &self.findings {
            text += &format!("\n{code}: {short}\n  {advice}\n");
        }
        if self.findings.is_empty() {
            text += "\nnothing stands against measuring here\n";
        }
        text
    }
}

fn print(text: &str) -> Result<u8> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::storage(format!("standard output: {e}")))
        }
        _ => Ok(0),
    }
}
