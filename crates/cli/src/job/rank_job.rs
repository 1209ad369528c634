//! What the ranks of one start get of a job, as words of the command `ombx rank` or inside an invitation.

use std::{ffi::OsString, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ombx_core::{
    codec,
    error::{Error, Result},
    measure::plan::{Effort, KnownBatches, Launch, Plan, Rest},
};
use serde::{Deserialize, Serialize};

use crate::job::{RankKind, Work};

/// Maximum length of a word. Linux allows 128 KiB for an argument.
const LONGEST_WORD: usize = 96 << 10;
/// Length of all words above which batches are left out. Linux allows a quarter of the stack for all arguments.
const LONGEST: usize = 512 << 10;

/// The part of a job that ranks of one kind need. They read neither options nor files of the user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RankJob {
    pub(crate) kind: RankKind,
    /// Command line of the job, for result files.
    pub(crate) argv: Vec<String>,
    /// What ranks of this kind measure.
    pub(crate) work: Work,
    pub(crate) settings: LaunchSettings,
    /// Time limit of all rows.
    pub(crate) time: Duration,
    /// The user's limit for the whole job.
    pub(crate) timeout: Option<Duration>,
    /// Whether ranks over sockets bind themselves to cores.
    pub(crate) binds: bool,
}

impl RankJob {
    /// Returns the job as words whose letters launchers and shells pass on as they are. Batches for which they have no room are left out.
    pub(crate) fn words(mut self) -> Vec<OsString> {
        let mut text = self.text();
        if text.len() > LONGEST {
            self.settings.batches = KnownBatches::default();
            text = self.text();
        }
        text.as_bytes()
            .chunks(LONGEST_WORD)
            .map(|word| String::from_utf8_lossy(word).into_owned().into())
            .collect()
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(codec::encode(self))
    }

    /// Reads the words of another process.
    ///
    /// # Errors
    /// The words are no job of this build.
    pub(crate) fn from_words(words: &[OsString]) -> Result<RankJob> {
        let bytes = URL_SAFE_NO_PAD.decode(words.join("".as_ref()).as_encoded_bytes()).ok();
        bytes.and_then(|bytes| codec::decode(&bytes)).ok_or_else(|| {
            Error::fabric("only another ombx gives a rank its job: install the same build on every host")
        })
    }

    /// Returns the work under the settings of this launch.
    pub(crate) fn work(&self) -> Work {
        let mut work = self.work.clone();
        match &mut work {
            Work::Benchmarks(parts) => parts.iter_mut().for_each(|part| self.settings.apply(&mut part.plan)),
            Work::Links(task, plan) => {
                // Several launches are several random partitions of the pairs into rounds.
                plan.launch = self.settings.launch;
                task.seed = plan.launch.map(|launch| launch.order).or(task.seed);
            }
        }
        work
    }
}

/// What one launch takes from those before it. `ombx ab` gives it to other builds: a field that one does not know is ignored, and one that
/// it does not get has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LaunchSettings {
    /// Number and order of this launch among several.
    pub(crate) launch: Option<Launch>,
    /// Time of each row in this launch.
    pub(crate) row_time: Option<Duration>,
    /// Iterations per sample of each row in this launch.
    pub(crate) batches: KnownBatches,
    /// What is left to measure after cases that have ended their ranks.
    pub(crate) rest: Rest,
    /// Half the round trip of a cache line between two cores of the host.
    pub(crate) core_to_core_ns: Option<f64>,
}

impl LaunchSettings {
    /// Returns the settings as one word of a command line.
    pub(crate) fn word(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads the word of another process.
    pub(crate) fn parse(word: &str) -> Result<LaunchSettings> {
        let json = URL_SAFE_NO_PAD.decode(word).ok();
        let settings = json.and_then(|json| serde_json::from_slice(&json).ok());
        settings.ok_or_else(|| Error::usage("only ombx ab gives settings of a launch: leave them out"))
    }

    fn apply(&self, plan: &mut Plan) {
        plan.launch = self.launch;
        plan.known_batches = self.batches.clone();
        plan.rest = self.rest.clone();
        plan.core_to_core_ns = self.core_to_core_ns;
        if let (Some(time), Effort::Precision { .. }) = (self.row_time, plan.effort) {
            plan.effort = Effort::Time(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Medium, Registry, Threading},
        measure::{plan::RowName, runner::Part},
    };

    use super::*;

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
        let words = job().words();
        let read = RankJob::from_words(&words).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", job()));
        for wrong in [&[][..], &["".into()], &["ü".into()], &[words[0].clone(), "--no-verify".into()]] {
            assert!(RankJob::from_words(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn no_word_is_longer_than_an_argument_may_be() {
        let mut job = job();
        (0..20_000).for_each(|row| job.settings.batches.insert(&row.to_string(), 1000));
        let words = job.clone().words();
        assert!(words.len() > 1 && words.iter().all(|word| word.len() <= LONGEST_WORD));
        assert_eq!(RankJob::from_words(&words).unwrap().settings, job.settings);
        (0..200_000).for_each(|row| job.settings.batches.insert(&row.to_string(), 1000));
        let read = RankJob::from_words(&job.words()).unwrap();
        assert_eq!(read.settings.batches, KnownBatches::default());
    }

    #[test]
    fn another_build_may_have_other_settings() {
        assert_eq!(LaunchSettings::parse(&settings().word()).unwrap(), settings());
        let later = URL_SAFE_NO_PAD.encode(r#"{"row_time":null,"of_a_later_build":[1]}"#);
        assert_eq!(LaunchSettings::parse(&later).unwrap(), LaunchSettings::default());
        assert!(["", "x", "ü"].iter().all(|word| LaunchSettings::parse(word).is_err()));
    }
}
