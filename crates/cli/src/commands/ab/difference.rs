//! Whether the sides differ: in what the user gave them, and in the files that their ranks loaded.

use std::{collections::BTreeSet, env, fs, path::Path};

use ombx_compare::has_same_options;
use ombx_host::loaded::{self, MPI_LIBRARIES, PRELOAD, is_one_of};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    result::{LoadedFile, LoadedFiles, Run},
};

use super::{
    LABELS,
    side::{SideCommand, Variable},
};

/// Variables that only choose which files the loader loads (ld.so(8)). One that changes no file changes nothing.
const OF_LOADER: [&str; 3] = ["LD_LIBRARY_PATH", PRELOAD, "LD_AUDIT"];

/// What differs between the sides as the user gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Nothing.
    Nothing,
    /// Paths at which the same or other files may lie.
    Paths,
    /// Words of the commands, or scripts.
    Commands,
    /// Variables that act by themselves.
    Settings,
}

impl Given {
    /// Compares the commands and variables of both sides.
    pub(super) fn new([a, b]: &[SideCommand; 2]) -> Given {
        let names: BTreeSet<&str> =
            [a, b].iter().flat_map(|side| side.variables.iter()).map(Variable::name).collect();
        let changed: Vec<&str> = names.into_iter().filter(|name| value(a, name) != value(b, name)).collect();
        match () {
            () if changed.iter().any(|name| !OF_LOADER.contains(name)) => Given::Settings,
            () if a.arguments != b.arguments || !have_same_contents(&a.program, &b.program) => {
                Given::Commands
            }
            () if !changed.is_empty()
                || fs::canonicalize(&a.program).ok() != fs::canonicalize(&b.program).ok() =>
            {
                Given::Paths
            }
            () => Given::Nothing,
        }
    }

    /// Refuses sides that the user gave as different and that loaded the same files, unless something else differs. Returns a remark where
    /// only their commands differ. Records are those of the first launch of each side; what they do not say may differ.
    ///
    /// # Errors
    /// The sides are equal.
    pub(super) fn check(
        self,
        commands: &[SideCommand; 2],
        records: [&[Event<'static>]; 2],
    ) -> Result<Option<String>> {
        let [a, b] = records.map(|records| records.iter().filter_map(run).collect::<Vec<&Run>>());
        let are_same = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| are_equal(a, b));
        let Some(files) = b.first().and_then(|run| run.loaded.as_ref()).filter(|_| are_same) else {
            return Ok(None);
        };
        let files = named(files);
        match self {
            Given::Settings => Ok(None),
            Given::Commands => {
                Ok(Some(format!("both sides loaded the same files ({files}): only their commands differ")))
            }
            Given::Nothing | Given::Paths => Err(Error::usage(format!(
                "nothing differs: both sides loaded the same files, {files}{}; correct the path, or give --allow-equal to see by how much \
                 equal sides differ",
                without_effect(commands)
            ))),
        }
    }
}

/// Returns the value of a variable for the ranks of a side.
fn value(side: &SideCommand, name: &str) -> Option<String> {
    let given = side.variables.iter().rfind(|variable| variable.name() == name);
    given.map_or_else(|| env::var(name).ok(), |variable| Some(variable.value().to_owned()))
}

fn have_same_contents(one: &Path, other: &Path) -> bool {
    let contents = [one, other].map(|path| loaded::contents(path).ok());
    one == other || contents[0].is_some() && contents[0] == contents[1]
}

fn run<'r>(record: &'r Event<'static>) -> Option<&'r Run> {
    let Event::Run(run) = record else { return None };
    Some(run)
}

/// Returns whether two launches have loaded the same files and have the same ranks, options and variables.
fn are_equal(a: &Run, b: &Run) -> bool {
    let are_same_files = a.loaded.as_ref().zip(b.loaded.as_ref()).is_some_and(|(a, b)| a.are_equal(b));
    let variables = |run: &Run| {
        let mut variables = run.env.clone();
        OF_LOADER.iter().for_each(|name| drop(variables.remove(*name)));
        variables
    };
    are_same_files && a.places == b.places && variables(a) == variables(b) && has_same_options(a, b)
}

/// Names program, MPI library and preloads.
fn named(files: &LoadedFiles) -> String {
    let mpi = files.libraries.iter().filter(|file| is_one_of(&file.path, &MPI_LIBRARIES));
    let all: Vec<String> =
        [&files.program].into_iter().chain(mpi).chain(&files.preloads).map(LoadedFile::to_string).collect();
    all.join(", ")
}

/// Names the variables of the loader that had no effect.
fn without_effect(commands: &[SideCommand; 2]) -> String {
    let given = LABELS.iter().zip(commands).flat_map(|(side, command)| {
        let of_loader = command.variables.iter().filter(|variable| OF_LOADER.contains(&variable.name()));
        of_loader.map(move |variable| format!("{variable} of side {side}"))
    });
    let given: Vec<String> = given.collect();
    if given.is_empty() { String::new() } else { format!("; {} changed none of them", given.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Contents, OtherFiles};
    use ombx_testkit::golden;

    use super::*;

    fn side(command: Option<&str>, variables: &[&str]) -> SideCommand {
        let variables = variables.iter().map(|text| Variable::parse(text).unwrap()).collect();
        SideCommand::find(command, variables).unwrap()
    }

    fn loaded(library: &str) -> LoadedFiles {
        let file = |path: &str, contents: &str| LoadedFile {
            path: path.into(),
            build_id: None,
            contents: Some(Contents { bytes: 8, crc32: contents.into() }),
        };
        LoadedFiles {
            program: file("/ombx", "1"),
            libraries: vec![file(&format!("/{library}/libmpi.so"), library)],
            preloads: Vec::new(),
            others: OtherFiles::default(),
        }
    }

    fn record(change: impl FnOnce(&mut Run)) -> Vec<Event<'static>> {
        let mut run = golden().run;
        run.loaded = Some(loaded("old"));
        change(&mut run);
        vec![Event::Run(std::borrow::Cow::Owned(run))]
    }

    #[test]
    fn a_path_is_no_difference_and_a_setting_is_one() {
        let base = || side(None, &["X=1"]);
        for (other, expected) in [
            (side(None, &["X=2", "X=1"]), Given::Nothing),
            (side(None, &["X=1", "LD_LIBRARY_PATH=/absent"]), Given::Paths),
            (side(None, &["X=1", "LD_PRELOAD=absent.so"]), Given::Paths),
            (side(None, &["X=2"]), Given::Settings),
            (side(None, &[]), Given::Settings),
            (side(Some("sh"), &["X=1"]), Given::Commands),
            (side(Some("sh -c x"), &["X=2"]), Given::Settings),
        ] {
            assert_eq!(Given::new(&[base(), other]), expected);
        }
        let sh = || side(Some("sh"), &[]);
        assert_eq!(Given::new(&[sh(), side(Some("sh -e"), &[])]), Given::Commands);
        assert_eq!(Given::new(&[sh(), sh()]), Given::Nothing);
        // The same contents under another name.
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("sh");
        fs::copy(&sh().program, &copy).unwrap();
        assert_eq!(Given::new(&[sh(), side(copy.to_str(), &[])]), Given::Paths);
    }

    #[test]
    fn sides_that_loaded_the_same_files_are_refused() {
        let commands = [side(None, &[]), side(None, &["LD_LIBRARY_PATH=/absent"])];
        let check = |given: Given, a: &[Event<'static>], b: &[Event<'static>]| given.check(&commands, [a, b]);
        let base = record(|_| {});
        let error = check(Given::Paths, &base, &base).unwrap_err().to_string();
        for part in
            ["/ombx (CRC-32 1), /old/libmpi.so", "LD_LIBRARY_PATH=/absent of side B changed none of them"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert!(check(Given::Settings, &base, &base).unwrap().is_none());
        assert!(
            check(Given::Commands, &base, &base).unwrap().unwrap().contains("only their commands differ")
        );
        for other in [
            record(|run| run.loaded = Some(loaded("new"))),
            record(|run| run.loaded = None),
            record(|run| drop(run.env.insert("UCX_TLS".into(), "tcp".into()))),
            record(|run| drop(run.plan.insert("window".into(), "7".into()))),
            record(|run| run.places[0].cpus = "7".into()),
        ] {
            assert!(check(Given::Paths, &base, &other).unwrap().is_none(), "{other:?}");
        }
        // A preload is known by the files that are loaded, not by its variable.
        let preload = record(|run| drop(run.env.insert(PRELOAD.into(), "/absent.so".into())));
        assert!(check(Given::Paths, &base, &preload).is_err());
    }
}
