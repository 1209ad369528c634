//! Checksums of lines, as FORMAT.md describes them.

use std::{fs, process::Command};

use ombx_record::file::{self, Records};

const GOLDEN: &str = include_str!("../../../record/tests/golden/three_launches.jsonl");

/// Returns the golden file with checksums.
fn written() -> String {
    let mut bytes = Vec::new();
    for record in Records::new(GOLDEN.as_bytes()) {
        file::write(&mut bytes, &record.unwrap()).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns lines with the digits of their checksums in upper case.
fn in_upper_case(text: &str) -> String {
    let line = |line: &str| {
        let (content, end) = line.rsplit_once(",\"checksum\":").unwrap();
        format!("{content},\"checksum\":{}\n", end.to_uppercase())
    };
    text.lines().map(line).collect()
}

#[test]
fn a_checksum_is_the_crc_32_of_the_bytes_before_it() {
    // The check value of CRC-32 (ISO-HDLC): that of the digits 1 to 9.
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    for line in written().lines() {
        let (content, end) = line.rsplit_once(",\"checksum\":").unwrap();
        assert_eq!(end, format!("\"{:08x}\"}}", crc32fast::hash(content.as_bytes())), "{line}");
    }
}

#[test]
fn the_example_in_python_finds_a_changed_line() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let document = include_str!("../../../../FORMAT.md");
    let example = document.rsplit("```python\n").next().unwrap().split("```").next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let printed = |text: &str| {
        fs::write(directory.path().join("results.jsonl"), text).unwrap();
        let done = Command::new("python3").args(["-c", example]).current_dir(&directory).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let text = written();
    assert_eq!(printed(&text), "");
    assert_eq!(printed(&text.replacen("\"n\":12,", "\"n\":13,", 1)), "line 2 was changed\n");
    assert_eq!(printed(GOLDEN), "", "lines of other programs have no checksum");
    assert_eq!(printed(&in_upper_case(&text)), "", "digits may be in upper case");
    for digits in ["12g45678", "", "123456789"] {
        let line = format!("{{\"kind\":\"end\",\"checksum\":\"{digits}\"}}\n");
        assert_eq!(printed(&line), "line 1 was changed\n", "{line}");
    }
    let of_other = r#"{"copied":{"file":"a","checksum":"0"},"kind":"note"}"#;
    assert_eq!(printed(of_other), "", "an object inside the line has this checksum");
}
