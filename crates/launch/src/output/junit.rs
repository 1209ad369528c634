//! JUnit reports, which CI systems show.

use ombx_record::{
    result::Tally,
    verdict::{Conclusion, SlowPart, Verdict},
};

/// One case of a report.
pub struct TestCase {
    /// Group of the test.
    pub class: String,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What is known of the case.
    pub text: String,
}

/// How a case ended, with a reason.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, with the reason.
    Failed(String),
    /// Something prevented a result.
    Broken(String),
    /// It did not run, with the reason.
    Skipped(String),
}

/// Returns the report of a command about something.
///
/// It is written here, because a library for these few elements brings ten packages.
pub fn report(command: &str, about: &str, cases: impl IntoIterator<Item = TestCase>) -> String {
    let cases: Vec<TestCase> = cases.into_iter().collect();
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let (tests, skipped) = (cases.len(), count(|outcome| matches!(outcome, Outcome::Skipped(_))));
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let errors = count(|outcome| matches!(outcome, Outcome::Broken(_)));
    let elements: String = cases.iter().map(TestCase::element).collect();
    let suite = format!(
        "    <testsuite name=\"{}\" tests=\"{tests}\" skipped=\"{skipped}\" errors=\"{errors}\" failures=\"{failures}\"",
        escaped(about)
    );
    let suite =
        if elements.is_empty() { suite + "/>\n" } else { suite + ">\n" + &elements + "    </testsuite>\n" };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"{}\" tests=\"{tests}\" skipped=\"{skipped}\" failures=\"{failures}\" errors=\"{errors}\">\n\
         {suite}</testsuites>\n",
        escaped(command)
    )
}

impl TestCase {
    /// Returns the case as an element.
    fn element(&self) -> String {
        let (name, class) = (escaped(&self.name), escaped(&self.class));
        let mut inside = match &self.outcome {
            Outcome::Passed => String::new(),
            Outcome::Failed(why) => message("failure", why),
            Outcome::Broken(why) => message("error", why),
            Outcome::Skipped(why) => message("skipped", why),
        };
        if !self.text.is_empty() {
            inside += &format!("            <system-out>{}</system-out>\n", escaped(&self.text));
        }
        let start = format!("        <testcase name=\"{name}\" classname=\"{class}\"");
        if inside.is_empty() { start + "/>\n" } else { start + ">\n" + &inside + "        </testcase>\n" }
    }
}

/// Returns an empty element with a message.
fn message(element: &str, why: &str) -> String {
    format!("            <{element} message=\"{}\"/>\n", escaped(why))
}

/// Returns a text for XML: without control characters, which XML 1.0 does not allow, and with references for its own characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '\'' => escaped += "&apos;",
            '"' => escaped += "&quot;",
            '\t' | '\n' | '\r' => escaped.push(c),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns the report of a sweep over links.
pub(crate) fn links(verdict: &Verdict, rows: Tally) -> String {
    report("ombx links", "links", of_links(verdict, rows))
}

/// Returns the conclusion, each slow part, and what kept rows from being measured, as cases.
fn of_links(verdict: &Verdict, rows: Tally) -> Vec<TestCase> {
    let case = |name: String, outcome, text| TestCase { class: "links".into(), name, outcome, text };
    let sentences: Vec<&str> = verdict.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    let sentences = sentences.join("\n");
    let outcome = match verdict.conclusion {
        Conclusion::Clear => Outcome::Passed,
        Conclusion::Slow | Conclusion::Errors | Conclusion::Unsteady | Conclusion::Shared => {
            Outcome::Failed(sentences.clone())
        }
        Conclusion::None => Outcome::Skipped(sentences.clone()),
    };
    let mut cases = vec![case("verdict".into(), outcome, sentences)];
    for SlowPart { part, hosts, ranks, factor, bytes, .. } in &verdict.slow {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        let name = format!("{part} {} ranks {}", hosts.join(" "), ranks.join(" "));
        let why = format!("{factor:.2} times as slow as ordinary, at {bytes} bytes");
        cases.push(case(name, Outcome::Failed(why), String::new()));
    }
    for (name, count, outcome) in [
        ("failed", rows.failed, Outcome::Broken as fn(String) -> Outcome),
        ("corrupt", rows.corrupt, Outcome::Failed),
        ("skipped", rows.skipped, Outcome::Skipped),
    ] {
        if count > 0 {
            let why = format!("{count} of {} rows", rows.cases);
            cases.push(case(format!("{name} rows"), outcome(why), String::new()));
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::output::junit::*;

    #[test]
    fn links_have_a_case_for_the_verdict_and_for_each_slow_part() {
        let verdict = json!({
            "conclusion": "slow",
            "sentences": [{"conclusion": "slow", "text": "n02 is slow"}],
            "slow": [{
                "part": "host", "hosts": ["n02"], "ranks": [1], "factor": 1.5, "bytes": 8, "component": {"host_between": 1},
                "evidence": {
                    "factor": 1.5, "links": [], "count": 0, "typical": [], "ordinary": 0, "ordinary_ns": 1.0, "measured_again": false,
                },
            }],
        });
        let rows = Tally { cases: 12, skipped: 1, ..Tally::default() };
        let cases = of_links(&serde_json::from_value(verdict).unwrap(), rows);
        let named: Vec<(&str, &Outcome)> =
            cases.iter().map(|case| (case.name.as_str(), &case.outcome)).collect();
        assert_eq!(
            named,
            [
                ("verdict", &Outcome::Failed("n02 is slow".into())),
                ("host n02 ranks 1", &Outcome::Failed("1.50 times as slow as ordinary, at 8 bytes".into())),
                ("skipped rows", &Outcome::Skipped("1 of 12 rows".into())),
            ]
        );
        let text = report("ombx links", "links", cases);
        assert!(text.contains("failures=\"2\"") && text.contains("<skipped message=\"1 of 12"), "{text}");
    }

    #[test]
    fn a_report_is_xml_whatever_texts_contain() {
        let case = |outcome, text: &str| TestCase {
            class: "a".into(),
            name: "<b>".into(),
            outcome,
            text: text.to_owned(),
        };
        let cases =
            [case(Outcome::Broken("\"x\" & 'y'\u{1b}[0m".into()), "1\n2\0"), case(Outcome::Passed, "")];
        assert_eq!(
            report("c", "d", cases),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="c" tests="2" skipped="0" failures="0" errors="1">
    <testsuite name="d" tests="2" skipped="0" errors="1" failures="0">
        <testcase name="&lt;b&gt;" classname="a">
            <error message="&quot;x&quot; &amp; &apos;y&apos;[0m"/>
            <system-out>1
2</system-out>
        </testcase>
        <testcase name="&lt;b&gt;" classname="a"/>
    </testsuite>
</testsuites>
"#
        );
        assert!(report("c", "d", []).contains("failures=\"0\"/>\n</testsuites>\n"));
    }
}
