//! The storage of a source or a sink: memory or files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ombx_core::{
    error::{Error, Result},
    unit::Bytes,
};
use serde::{Deserialize, Serialize};

use crate::pipeline::shape::PipelineShape;

/// Placeholder for the number of a node in a path.
const NODE: &str = "{node}";

/// The storage of a source or a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Storage {
    /// Written `memory`.
    Memory,
    /// One file with the sections of all nodes, on a file system that they share. Written `file:PATH`.
    File(PathBuf),
    /// A file of each node, with its own section. Written `file:PATH` with `{node}` in the path.
    NodeFiles(String),
}

impl Storage {
    pub(super) fn parse(text: &str) -> Result<Storage> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Storage::Memory),
            Some(("file", path)) if path.contains(NODE) => Ok(Storage::NodeFiles(path.into())),
            Some(("file", path)) if !path.is_empty() => Ok(Storage::File(path.into())),
            _ => Err(Error::usage(format!("{text:?} is neither memory nor file:PATH"))),
        }
    }

    /// Returns the value in a row, without the path.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::File(_) => "file",
            Storage::NodeFiles(_) => "node-files",
        }
    }

    /// Returns the file of all nodes, if there is one.
    pub(super) fn shared(&self) -> Option<&Path> {
        match self {
            Storage::File(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the file that a node uses; `None` for memory.
    pub(super) fn path_of(&self, node: u32) -> Option<PathBuf> {
        match self {
            Storage::Memory => None,
            Storage::File(path) => Some(path.clone()),
            Storage::NodeFiles(path) => Some(path.replace(NODE, &node.to_string()).into()),
        }
    }

    pub(super) fn is_memory(&self) -> bool {
        *self == Storage::Memory
    }

    /// Returns whether each node has its own file.
    pub(super) fn is_of_node(&self) -> bool {
        matches!(self, Storage::NodeFiles(_))
    }

    /// Returns the position of a node's section in the file that it uses.
    pub(super) fn section_of(&self, node: u32) -> u32 {
        if self.is_of_node() { 0 } else { node }
    }

    /// Fails if a node has a source file of its own whose size is not that of its section. A missing file is no error.
    pub(super) fn check_size(&self, shape: &PipelineShape, node: u32) -> Result<()> {
        let Some(path) = self.path_of(node).filter(|_| self.is_of_node()) else { return Ok(()) };
        let Ok(found) = fs::metadata(&path).map(|facts| facts.len()) else { return Ok(()) };
        if found == shape.section() {
            return Ok(());
        }
        let PipelineShape { nodes, buffers, block, .. } = *shape;
        let buffer = shape.buffer();
        let advice = match found % buffer {
            0 if found > 0 => format!("choose --buffer-count {}", found / buffer),
            _ => "choose another --block, or remove the file to let the node make it".into(),
        };
        Err(Error::usage(format!(
            "source file {} has {found} bytes, but {buffers} buffers of {nodes} blocks of {} are {}; {advice}",
            path.display(),
            Bytes(block),
            shape.section()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_placeholder_names_a_file_of_each_node() {
        let own = Storage::parse("file:/tmp/{node}/in-{node}").unwrap();
        assert_eq!((own.name(), own.section_of(2), own.shared()), ("node-files", 0, None));
        assert_eq!(own.path_of(2).unwrap(), Path::new("/tmp/2/in-2"));
        assert_eq!(ombx_core::codec::decode(&ombx_core::codec::encode(&own)).as_ref(), Some(&own));
        let shared = Storage::parse("file:/tmp/in").unwrap();
        assert_eq!((shared.name(), shared.section_of(2)), ("file", 2));
        assert_eq!(shared.path_of(2).as_deref(), shared.shared());
        assert_eq!(Storage::parse("memory").unwrap().path_of(0), None);
        for text in ["file:", "memory:x", "x", "ftp:{node}"] {
            assert!(Storage::parse(text).is_err(), "{text}");
        }
    }
}
