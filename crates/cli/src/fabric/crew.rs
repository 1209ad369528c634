//! Who the ranks of a job are: which processes, and whether they are the same program with the same command line.

use std::{
    collections::hash_map::DefaultHasher,
    fs::File,
    hash::{Hash, Hasher},
    io::{Read, Write},
};

use ombx_core::{
    error::{Error, Result},
    system::environment,
    team::Team,
};
use rustix::process::getpid;
use serde_json::{Value, json};

use crate::{argv, output::CREW};

/// The head of a program says which build it is.
const HEAD: usize = 4096;

/// Every rank calls it. Fails on all of them if one does not fit the first; tells the starting process, if this is rank 0 and there
/// is one, who they are.
pub(super) fn meet(team: &dyn Team, to: Option<&mut File>) -> Result<()> {
    let (build, words) = (hash_of(&build()), hash_of(&argv::words()[1..]));
    let same = [(build, "program"), (words, "command line")]
        .map(|(mine, what)| team.broadcast_value(mine).map(|first| (first != mine).then_some(what)));
    let [build, words] = same;
    let other = build?.or(words?);
    team.agree(other.map_or(Ok(()), |what| {
        let host = environment::hostname();
        Err(Error::fabric(format!(
            "{host} runs another {what} than rank 0: start the same ombx, with the same words, on every rank"
        )))
    }))?;
    let mine = json!([getpid().as_raw_nonzero().get(), environment::hostname()]).to_string();
    let crew = team.gather(mine.as_bytes())?;
    if let Some((to, crew)) = to.zip(crew) {
        let crew: Vec<Value> =
            crew.iter().map(|rank| serde_json::from_slice(rank).unwrap_or_default()).collect();
        let line = json!({"kind": CREW, "ranks": crew});
        to.write_all(format!("{line}\n").as_bytes())
            .map_err(|e| Error::fabric(format!("the process that started this job is gone: {e}")))?;
    }
    Ok(())
}

/// Length and head of this program.
fn build() -> (u64, Vec<u8>) {
    let mut head = Vec::new();
    let length = File::open("/proc/self/exe").and_then(|file| {
        let length = file.metadata()?.len();
        file.take(HEAD as u64).read_to_end(&mut head)?;
        Ok(length)
    });
    (length.unwrap_or(0), head)
}

fn hash_of(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
