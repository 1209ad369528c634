//! The JSON Schema accepts all written records and equals the published one.

use std::path::Path;

use ombx_record::file;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{json, line, records::any_record};

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&file::schema()).unwrap()
}

#[test]
fn every_golden_line_is_valid() {
    let validator = validator();
    let golden = [
        include_str!("../../../record/tests/golden/one_launch.jsonl"),
        include_str!("../../../record/tests/golden/three_launches.jsonl"),
    ];
    for text in golden.into_iter().flat_map(str::lines) {
        let errors: Vec<String> = validator.iter_errors(&json(text)).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
    }
}

#[test]
fn every_written_line_is_valid() {
    let validator = validator();
    let mut runner = proptest::test_runner::TestRunner::new(ombx_testkit::seeded());
    let checked = runner.run(&any_record(), |record| {
        let value = json(std::str::from_utf8(&line(&record)).unwrap());
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        prop_assert!(errors.is_empty(), "{value}: {errors:?}");
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn the_schema_rejects_what_the_reader_rejects() {
    let validator = validator();
    let row = json(include_str!("../../../record/tests/golden/one_launch.jsonl").lines().nth(1).unwrap());
    for (pointer, value) in [
        ("kind", json!("unheard-of")),
        ("bench", Value::Null),
        ("ranks", json!(0)),
        ("work/legs", json!(0)),
        ("samples/0/batch", json!(0)),
        ("samples/0/elapsed_ns/0", json!(-1)),
        ("summary/n", json!(0)),
        ("summary/median_ns", json!(-1.0)),
        ("metric", json!("volume")),
    ] {
        let mut spoilt = row.clone();
        *spoilt.pointer_mut(&format!("/{pointer}")).unwrap() = value;
        assert!(!validator.is_valid(&spoilt), "{pointer}");
    }
}

/// Compares the document with the generated schema. With `OMBX_BLESS` set, the test writes the document instead.
#[test]
fn the_documented_schema_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&file::schema()).unwrap());
    if std::env::var_os("OMBX_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &generated).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        documented == generated,
        "docs/result.schema.json is not what the code says: run `OMBX_BLESS=1 cargo xtask test unit -- \
         the_documented_schema`"
    );
}

/// Names of fields anywhere in a schema.
fn fields(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Object(properties)) = parts.get("properties") {
                found.extend(properties.keys().cloned());
            }
            parts.values().for_each(|part| fields(part, found));
        }
        Value::Array(parts) => parts.iter().for_each(|part| fields(part, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let mut found = Vec::new();
    fields(&file::schema(), &mut found);
    assert!(found.len() > 60, "{found:?}");
    let document = include_str!("../../../../FORMAT.md");
    found.retain(|field| !document.contains(&format!("`{field}`")));
    assert!(found.is_empty(), "FORMAT.md does not say what these are: {found:?}");
}
