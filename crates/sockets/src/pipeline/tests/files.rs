//! Files at the ends: of all nodes together, and of each node.

use std::{fs, path::PathBuf};

use super::*;

fn noise(length: usize) -> Vec<u8> {
    let mut state = 7u64;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

/// Returns the expected content of the sink's file, computed phase by phase: block j of node a becomes block a of node j.
fn passed_on(nodes: usize, phases: usize, buffers: usize, block: usize, source: &[u8]) -> Vec<u8> {
    let section = buffers * nodes * block;
    let mut now: Vec<Vec<Vec<u8>>> = (0..nodes)
        .map(|n| source[n * section..][..section].chunks(block).map(<[u8]>::to_vec).collect())
        .collect();
    for _ in 1..phases {
        let mut next = now.clone();
        for (buffer, (from, to)) in
            (0..buffers).flat_map(|i| (0..nodes).flat_map(move |a| (0..nodes).map(move |b| (i, (a, b)))))
        {
            next[to][buffer * nodes + from] = now[from][buffer * nodes + to].clone();
        }
        now = next;
    }
    now.concat().concat()
}

#[test]
fn a_file_arrives_transposed_as_documented() {
    let directory = Directory::new("files");
    for (nodes, phases, buffers, block) in
        [(1, 2, 3, 10), (2, 2, 4, 33), (3, 3, 2, 64), (3, 4, 5, 100), (4, 2, 1, 1)]
    {
        let bytes = noise((nodes * nodes * buffers * block) as usize);
        let source = directory.write("source", &bytes);
        let sink = directory.write("sink", b"");
        let shape = PipelineShape { nodes, phases, buffers, block: block.into() };
        let plan = planned(shape, WaitMode::Sleep, Storage::File(source), Storage::File(sink.clone()));
        let mut pipeline = started(&plan).unwrap();
        pipeline.run(Data::Repeated, |_, _| {}).unwrap();
        assert_eq!(pipeline.check(Data::Repeated).unwrap(), None);
        let sizes = [nodes, phases, buffers, block].map(|n| n as usize);
        let found = fs::read(sink).unwrap();
        assert!(found == passed_on(sizes[0], sizes[1], sizes[2], sizes[3], &bytes), "{shape:?}");
        assert_eq!(found == bytes, nodes == 1 || phases % 2 == 1, "{shape:?}");
    }
}

/// Returns the storage of a file for each node and the files of two nodes.
fn of_nodes(directory: &Directory, name: &str) -> (Storage, [PathBuf; 2]) {
    let storage = Storage::NodeFiles(format!("{}/{name}-{{node}}", directory.path().display()));
    let paths = [0, 1].map(|node| storage.path_of(node).unwrap());
    (storage, paths)
}

#[test]
fn files_of_each_node_are_made_and_arrive_transposed() {
    let directory = Directory::new("node-files");
    for phases in [2, 3] {
        let (source, sources) = of_nodes(&directory, &format!("in{phases}"));
        let (sink, sinks) = of_nodes(&directory, &format!("out{phases}"));
        let shape = PipelineShape { nodes: 2, phases, buffers: 5, block: 33 };
        // The first node has its file, the second one makes it.
        let own = noise(330);
        fs::write(&sources[0], &own).unwrap();
        let plan = planned(shape, WaitMode::Sleep, source, sink);
        let mut pipeline = started(&plan).unwrap();
        for _ in 0..2 {
            pipeline.run(Data::Repeated, |_, _| {}).unwrap();
            assert_eq!(pipeline.check(Data::Repeated).unwrap(), None);
        }
        let [sent, found] = [sources, sinks].map(|paths| paths.map(|path| fs::read(path).unwrap()).concat());
        assert!(sent.starts_with(&own) && sent.len() == 660 && sent[330..] != sent[..330]);
        assert!(found == passed_on(2, phases as usize, 5, 33, &sent), "{phases} phases");
    }
}

#[test]
fn a_changed_byte_in_the_sink_of_a_node_is_found() {
    let directory = Directory::new("node-changed");
    let (source, sources) = of_nodes(&directory, "in");
    let (sink, sinks) = of_nodes(&directory, "out");
    let shape = PipelineShape { nodes: 2, phases: 2, buffers: 3, block: 10 };
    let mut pipeline = started(&planned(shape, WaitMode::Sleep, source, sink)).unwrap();
    pipeline.run(Data::Fresh, |_, _| {}).unwrap();
    let mut bytes = fs::read(&sinks[1]).unwrap();
    bytes[20 + 10 + 3] ^= 1;
    fs::write(&sinks[1], &bytes).unwrap();
    let (node, Wrong { slot, byte, expected, actual }) = pipeline.check(Data::Fresh).unwrap().unwrap();
    assert_eq!((node, slot, byte), (1, 3, 3));
    // Block 1 of node 1 comes from block 1 of node 1.
    let sent = fs::read(&sources[1]).unwrap()[20 + 10 + 3];
    assert_eq!((expected, actual), (sent, sent ^ 1));
}

/// In memory, too, what arrives is compared with the files of other nodes, in every buffer.
#[test]
fn what_arrives_in_memory_is_compared_with_files() {
    let directory = Directory::new("file-to-memory");
    let (source, sources) = of_nodes(&directory, "in");
    let shape = PipelineShape { nodes: 2, phases: 2, buffers: 6, block: 100 };
    let mut pipeline = started(&planned(shape, WaitMode::Sleep, source, Storage::Memory)).unwrap();
    for data in [Data::Fresh, Data::Repeated] {
        pipeline.run(data, |_, _| {}).unwrap();
        assert_eq!(pipeline.check(data).unwrap(), None);
    }
    // The first buffer of node 0 is no longer what the other nodes expect.
    let mut bytes = fs::read(&sources[0]).unwrap();
    bytes[150] ^= 1;
    fs::write(&sources[0], &bytes).unwrap();
    pipeline.run(Data::Fresh, |_, _| {}).unwrap();
    bytes[150] ^= 1;
    fs::write(&sources[0], &bytes).unwrap();
    // Block 1 of node 0 arrives as block 0 of node 1.
    let (node, Wrong { slot, byte, expected, actual }) = pipeline.check(Data::Fresh).unwrap().unwrap();
    assert_eq!((node, slot, byte, expected ^ actual), (1, 0, 50, 1));
    bytes[150] ^= 1;
    fs::write(&sources[0], &bytes).unwrap();
    pipeline.run(Data::Fresh, |_, _| {}).unwrap();
    let error = pipeline.check(Data::Fresh).unwrap_err();
    assert!(error.to_string().contains("source file of node 0 changed"), "{error}");
}

#[test]
fn files_of_nodes_are_checked() {
    let directory = Directory::new("node-wrong");
    let (source, sources) = of_nodes(&directory, "in");
    let shape = PipelineShape { nodes: 2, phases: 2, buffers: 3, block: 10 };
    for (bytes, says) in [(40, "choose --buffer-count 2"), (41, "choose another --block")] {
        fs::write(&sources[1], vec![0; bytes]).unwrap();
        let error = started(&planned(shape, WaitMode::Sleep, source.clone(), Storage::Memory)).err().unwrap();
        assert!(error.kind() == Kind::Usage && error.to_string().contains(says), "{error}");
        let Storage::NodeFiles(path) = &source else { panic!("{source:?}") };
        let path = format!("file:{path}");
        let settings = [("nodes", "2"), ("phases", "2"), ("buffer-count", "3"), ("source", &*path)];
        let error = rejected(&[&settings[..], &[("block", "10")]].concat());
        assert!(error.kind() == Kind::Usage && error.to_string().contains("bytes, but 3 buffers"), "{error}");
    }
    fs::remove_file(&sources[1]).unwrap();
    let error = started(&planned(shape, WaitMode::Sleep, source.clone(), source)).err().unwrap();
    assert!(error.to_string().contains("source and sink are one file"), "{error}");
    let (nowhere, _) = of_nodes(&directory, "no/such");
    let error = started(&planned(shape, WaitMode::Sleep, Storage::Memory, nowhere)).err().unwrap();
    assert!(error.kind() == Kind::Storage && error.to_string().contains("No such file"), "{error}");
}

#[test]
fn a_changed_byte_in_the_sink_is_found() {
    let directory = Directory::new("changed");
    let shape = PipelineShape { nodes: 2, phases: 2, buffers: 3, block: 10 };
    let source = directory.write("source", noise(120));
    let sink = directory.write("sink", b"");
    let plan = planned(shape, WaitMode::Sleep, Storage::File(source), Storage::File(sink.clone()));
    let mut pipeline = started(&plan).unwrap();
    pipeline.run(Data::Repeated, |_, _| {}).unwrap();
    let mut bytes = fs::read(&sink).unwrap();
    bytes[60 + 20 + 10 + 3] ^= 1;
    fs::write(&sink, &bytes).unwrap();
    let (node, Wrong { slot, byte, .. }) = pipeline.check(Data::Repeated).unwrap().unwrap();
    assert_eq!((node, slot, byte), (1, 3, 3));
}
