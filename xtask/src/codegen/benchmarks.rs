//! docs/BENCHMARKS.md: every registered benchmark, from the JSON of `ombx list`.

use std::fmt::Write;

use serde_json::{Deserializer, Value};

use ombx_toolchain::failure::{Failure, Result};

/// Returns the entries of `ombx list --json`: an array, an object with an array, or an object per line.
pub(crate) fn entries(json: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for value in Deserializer::from_str(json).into_iter::<Value>() {
        let value = value.map_err(|source| Failure::Output { program: "ombx list --json", source })?;
        match value {
            Value::Array(entries) => found.extend(entries),
            Value::Object(ref object) if !object.contains_key("name") => {
                found.extend(object.values().filter_map(Value::as_array).flatten().cloned());
            }
            entry => found.push(entry),
        }
    }
    Ok(found)
}

/// Returns the page. Missing fields of an entry are left out.
pub(crate) fn page(entries: &[Value]) -> String {
    let mut page = String::from(
        "<!-- Written by `cargo xtask codegen` from `ombx list --json`. Edit the benchmarks' sources instead. -->\n\
         # Benchmarks\n\n\
         The letters in figures are those of [Benchmarks defined](reference/benchmarks-defined.md).\n\n\
         | name | what it measures | metric | OSU name |\n|---|---|---|---|\n",
    );
    for entry in entries {
        let cell = |key: &str| text_of(&entry[key]).replace('|', "\\|");
        let name = cell("name");
        let anchor: String = name.chars().filter(|c| c.is_alphanumeric() || *c == '_' || *c == '-').collect();
        let row =
            format!("| [`{name}`](#{anchor}) | {} | {} | {} |", cell("about"), cell("metric"), cell("osu"));
        page.push_str(&row);
        page.push('\n');
    }
    for entry in entries {
        section(&mut page, entry);
    }
    page
}

fn section(page: &mut String, entry: &Value) {
    let mut add = |text: &str| page.push_str(text);
    add(&format!("\n## {}\n", text_of(&entry["name"])));
    for key in ["about", "doc"] {
        let text = text_of(&entry[key]);
        if !text.is_empty() {
            add(&format!(
                "\n{}{}\n",
                text.trim(),
                if key == "about" && !text.ends_with('.') { "." } else { "" }
            ));
        }
    }
    let mut facts = String::new();
    for (key, label) in [
        ("metric", "Metric"),
        ("formula", "Figure"),
        ("ranks", "Ranks"),
        ("osu", "In OMB"),
        ("source", "Source"),
    ] {
        let text = if key == "source" { file_of(&text_of(&entry[key])) } else { text_of(&entry[key]) };
        if !text.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(facts, "- {label}: {text}");
        }
    }
    if !facts.is_empty() {
        add(&format!("\n{facts}"));
    }
    let axes = entry["axes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !axes.is_empty() {
        add("\n| axis | what it chooses | values | default |\n|---|---|---|---|\n");
    }
    for axis in axes {
        let cell = |key: &str| text_of(&axis[key]).replace('|', "\\|");
        let row = [cell("name"), cell("about"), cell("values"), cell("default")];
        add(&format!("| {} |\n", row.join(" | ")));
    }
}

/// Removes the line number, which changes with every edit above it.
fn file_of(source: &str) -> String {
    source.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':').to_owned()
}

/// Returns a value as text: lists are joined, null is empty.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| format!("{key} {}", text_of(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put() -> Value {
        json!({
            "name": "rma.put_bw", "about": "many puts, one completion", "doc": "What is timed: all of it.",
            "metric": "bandwidth", "ranks": 2, "osu": ["osu_put_bw"], "source": "crates/rma/src/op/put.rs:21",
            "axes": [{"name": "sync", "about": "how it completes", "values": ["fence", "lock"], "default": "fence"}],
        })
    }

    #[test]
    fn an_array_an_envelope_and_lines_are_the_same() {
        for json in
            [json!([put()]).to_string(), json!({"benchmarks": [put()]}).to_string(), format!("{}\n", put())]
        {
            assert_eq!(entries(&json).unwrap()[0]["name"], "rma.put_bw", "{json}");
        }
        assert!(entries("not json").is_err());
    }

    #[test]
    fn the_page_has_a_row_a_section_and_the_axes() {
        let page = page(&[put()]);
        for part in [
            "| [`rma.put_bw`](#rmaput_bw) | many puts, one completion | bandwidth | osu_put_bw |",
            "\n## rma.put_bw\n\nmany puts, one completion.\n\nWhat is timed: all of it.\n",
            "- Source: crates/rma/src/op/put.rs\n",
            "| sync | how it completes | fence, lock | fence |",
        ] {
            assert!(page.contains(part), "{part}\nin\n{page}");
        }
    }

    #[test]
    fn missing_fields_are_left_out() {
        let page = page(&[json!({"name": "p2p.latency"})]);
        assert!(page.contains("## p2p.latency"));
        assert!(!page.contains("Metric:") && !page.contains("axis"), "{page}");
    }
}
