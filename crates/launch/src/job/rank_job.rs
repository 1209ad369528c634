//! What the ranks of one start get of a job, as the word after `ombx rank` or inside an invitation.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::{
    Compression,
    read::{DeflateDecoder, DeflateEncoder},
};
use ombx_core::measure::plan::LaunchSettings;
use ombx_record::{
    codec,
    error::{Error, Result},
    result::KnownBatches,
};
use serde::{Deserialize, Serialize};

use crate::job::{RankKind, Work};

/// Maximum length of the word of a job. Linux allows 128 KiB for an argument, and for the variable in which Open MPI keeps all arguments.
const LONGEST: usize = 96 << 10;

/// The part of a job that ranks of one kind need. They read neither options nor files of the user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankJob {
    /// Kind of the ranks.
    pub kind: RankKind,
    /// Command line of the job, for result files.
    pub argv: Vec<String>,
    /// What ranks of this kind measure.
    pub work: Work,
    /// What differs between launches.
    pub settings: LaunchSettings,
    /// Time limit of all rows.
    pub time: Duration,
    /// The user's limit for the whole job.
    pub timeout: Option<Duration>,
    /// Whether ranks over sockets bind themselves to cores.
    pub binds: bool,
}

impl RankJob {
    /// Returns the job as one word whose letters launchers and shells pass on as they are. Batches for which it has no room are left out.
    ///
    /// # Errors
    /// Usage error: the word is longer than an argument may be.
    pub(crate) fn word(mut self) -> Result<OsString> {
        let mut word = self.text();
        if word.len() > LONGEST {
            self.settings.batches = KnownBatches::default();
            word = self.text();
        }
        if word.len() > LONGEST {
            return Err(Error::usage(format!(
                "the job is too long for an argument of its ranks, {} KiB of at most {}: measure its benchmarks in several jobs",
                word.len() >> 10,
                LONGEST >> 10
            )));
        }
        Ok(word.into())
    }

    fn text(&self) -> String {
        let mut bytes = Vec::new();
        // Reading from memory does not fail.
        let _ = DeflateEncoder::new(&*codec::encode(self), Compression::default()).read_to_end(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the word of another process.
    ///
    /// # Errors
    /// The word is no job of this build.
    pub(crate) fn parse(word: &OsStr) -> Result<RankJob> {
        let packed = URL_SAFE_NO_PAD.decode(word.as_encoded_bytes()).ok();
        let mut bytes = Vec::new();
        packed
            .and_then(|packed| DeflateDecoder::new(&*packed).read_to_end(&mut bytes).ok())
            .and_then(|_| codec::decode(&bytes))
            .ok_or_else(|| {
                Error::fabric("only another ombx gives a rank its job: install the same build on every host")
            })
    }

    /// Returns the work under the settings of this launch.
    pub(crate) fn work(&self) -> Work {
        let mut work = self.work.clone();
        match &mut work {
            Work::Benchmarks(parts) => {
                parts.iter_mut().for_each(|part| part.plan.set_launch(self.settings.clone()));
            }
            Work::Links(task, plan) => {
                // Several launches are several random partitions of the pairs into rounds.
                plan.settings.launch = self.settings.launch;
                task.seed = plan.settings.launch.map(|launch| launch.order).or(task.seed);
            }
        }
        work
    }
}

/// Returns the settings of a launch as one word of a command line.
pub fn settings_word(settings: &LaunchSettings) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_string(settings).unwrap_or_default())
}

/// Reads the settings of a launch from the word of another process.
///
/// # Errors
/// Usage error: the word holds no settings.
pub fn parse_settings(word: &str) -> Result<LaunchSettings> {
    let json = URL_SAFE_NO_PAD.decode(word).ok();
    let settings = json.and_then(|json| serde_json::from_slice(&json).ok());
    settings.ok_or_else(|| Error::usage("only ombx ab gives settings of a launch: leave them out"))
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Medium, Registry, Threading},
        measure::{
            plan::{Launch, Plan, Rest},
            runner::Part,
        },
    };
    use ombx_record::result::RowName;

    use crate::job::rank_job::*;

    fn settings() -> LaunchSettings {
        let mut batches = KnownBatches::default();
        batches.insert("p2p.latency/bytes=8", 25);
        LaunchSettings {
            launch: Some(Launch { number: 2, of: 5, order: 42 }),
            row_time: Some(Duration::from_micros(1500)),
            batches,
            rest: Rest {
                first: 3,
                after: Some(RowName::new("p2p.bw/bytes=8")),
                run: Some("a-1".into()),
                left_out: [RowName::new("p2p.latency/")].into(),
            },
            core_to_core_ns: Some(51.25),
        }
    }

    /// Returns a job of every benchmark, with the values that its names of OSU select.
    fn job() -> RankJob {
        let registry = Registry::load().unwrap();
        let choices = registry.all().iter().flat_map(|bench| {
            let presets = bench.osu_names().map(|osu| osu.axes).chain([&[][..]]);
            presets.map(|preset| ombx_core::benchmark::Choice { bench, preset })
        });
        let mut plan = Plan { under: vec!["p2p.bw:64K".parse().unwrap()], ..Plan::default() };
        for parameter in registry.parameters() {
            plan.chosen.set(parameter.name, parameter.default);
        }
        RankJob {
            kind: RankKind { medium: Medium::Mpi, threading: Threading::Multiple },
            argv: vec!["ombx".into(), "run".into(), "a b\n\"'".into()],
            work: Work::Benchmarks(vec![Part { choices: choices.collect(), plan }]),
            settings: settings(),
            time: Duration::from_secs(7),
            timeout: None,
            binds: true,
        }
    }

    #[test]
    fn a_job_is_read_as_it_was_written() {
        let word = job().word().unwrap();
        let read = RankJob::parse(&word).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", job()));
        let longer = format!("{}--no-verify", word.display());
        for wrong in ["", "x", "ü", &longer[..longer.len() - 20], "run"] {
            assert!(RankJob::parse(wrong.as_ref()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_word_is_no_longer_than_an_argument_may_be() {
        let mut job = job();
        (0..9000).for_each(|row| job.settings.batches.insert(&row.to_string(), 1000));
        let word = job.clone().word().unwrap();
        assert!(word.len() <= LONGEST);
        assert_eq!(RankJob::parse(&word).unwrap().settings, job.settings);
        (0..90_000).for_each(|row| job.settings.batches.insert(&row.to_string(), 1000));
        let read = RankJob::parse(&job.clone().word().unwrap()).unwrap();
        assert_eq!(read.settings.batches, KnownBatches::default());
        job.settings.rest.left_out = (0..90_000).map(|row| RowName::new(&row.to_string())).collect();
        assert!(job.word().unwrap_err().to_string().contains("several jobs"));
    }

    #[test]
    fn another_build_may_have_other_settings() {
        assert_eq!(parse_settings(&settings_word(&settings())).unwrap(), settings());
        let later = URL_SAFE_NO_PAD.encode(r#"{"row_time":null,"of_a_later_build":[1]}"#);
        assert_eq!(parse_settings(&later).unwrap(), LaunchSettings::default());
        assert!(["", "x", "ü"].iter().all(|word| parse_settings(word).is_err()));
    }
}
