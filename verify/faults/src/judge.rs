//! Verdict on a case: all checks of the ended job.

use std::fmt;

use ombx_record::result;

use super::{
    case::{Case, Expect},
    run::{self, Done},
    stage::Stage,
};

/// Verdict on a case.
pub(crate) enum Verdict {
    /// The job ended as required; a remark for the table.
    Right(String),
    Wrong(Vec<String>),
    Skipped(String),
}

impl Case {
    /// Runs the job, unless another case has run it, and judges its end.
    pub(crate) fn verdict(&self, stage: &Stage, verbose: bool) -> Verdict {
        if let Some(why) = &self.skip {
            return Verdict::Skipped(why.clone());
        }
        let done = match self.job.done.get_or_init(|| run::run(&self.job, stage)) {
            Ok(done) => done,
            Err(why) => return Verdict::Wrong(vec![why.clone()]),
        };
        let (mut wrong, remark) = judge(&self.expect, done);
        let idle = (0..self.job.rules.len()).find(|rule| !done.acted.iter().any(|(acted, _)| acted == rule));
        if let Some(rule) = idle.filter(|_| self.job.all_act) {
            wrong.push(format!("this rule never acted: {}", self.job.rules[rule]));
        }
        if wrong.is_empty() {
            return Verdict::Right(remark);
        }
        if verbose {
            println!("   ombx {}\n   {}\n{done}", self.job.arguments, self.job.rules.join(";"));
        }
        Verdict::Wrong(wrong)
    }
}

/// Returns what is wrong, and a remark for the table.
fn judge(expect: &Expect, done: &Done) -> (Vec<String>, String) {
    let mut wrong: Vec<String> = done.action_error.iter().cloned().collect();
    match done.code {
        None => wrong.push(format!("not ended after {:.0?}", done.took)),
        Some(code) if !expect.codes.contains(&code) => wrong.push(format!("exit code {code}")),
        Some(_) => {}
    }
    let reasons = reasons(done);
    let says = |words: &str| done.stderr.contains(words) || reasons.contains(words);
    for words in &expect.messages {
        // If a rank dies of SIGKILL, Hydra sometimes names an earlier rank, which it has killed itself.
        let is_named = words.starts_with("rank ") && says(" (or a later rank there) died of SIGKILL");
        if !says(words) && !is_named {
            wrong.push(format!("does not say {words:?}"));
        }
    }
    for word in ["stack backtrace", "PANIC", "AddressSanitizer"] {
        if done.stderr.contains(word) {
            wrong.push(format!("shows {word:?}"));
        }
    }
    match &done.out {
        Some(Err(why)) => wrong.push(format!("result file: {why}")),
        None if expect.rows > 0 => wrong.push("no result file".into()),
        Some(Ok(file)) => {
            let rows: usize = file.runs.iter().map(|run| run.rows.len()).sum();
            if rows < expect.rows {
                wrong.push(format!("{rows} rows are kept of {}", expect.rows));
            }
        }
        None => {}
    }
    wrong.extend(done.left.iter().map(|what| format!("left behind: {what}")));
    let looked = expect.look.as_ref().map(|look| look(done)).transpose();
    let remark = looked.unwrap_or_else(|why| {
        wrong.push(why);
        None
    });
    let code = done.code.map_or(String::new(), |code| format!("exit {code}"));
    let time = format!("{:.1} s", done.took.as_secs_f64());
    (wrong, [Some(code), Some(time), remark].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Returns the reasons of failed and skipped rows.
fn reasons(done: &Done) -> String {
    let Some(Ok(file)) = &done.out else { return String::new() };
    let rows = file.runs.iter().flat_map(|run| &run.rows);
    let reason = |row: &result::Measurement| match &row.outcome {
        result::Outcome::Failed(why) | result::Outcome::Skipped(why) => Some(format!("{}: {why}", row.key)),
        _ => None,
    };
    rows.filter_map(reason).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(remark) => write!(f, "right: {remark}"),
            Self::Wrong(why) => write!(f, "WRONG: {}", why.join("; ")),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            writeln!(f, "   {name}:")?;
            text.lines().take(60).try_for_each(|line| writeln!(f, "      {line}"))?;
        }
        Ok(())
    }
}
