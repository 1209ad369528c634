//! Results over time as CSV: one line per change, and one per case without a change.

use std::io::{Result, Write};

use crate::{
    history::{Change, History, Series},
    render::csv::Lines,
};

/// Columns in order. New columns are added at the end only.
const COLUMNS: &str = "\
    key,fabric,ranks,hosts,from_host,to_host,unit,runs,first,last,level,level_low,level_high,judged,since,before,time_ratio,\
    time_ratio_low,time_ratio_high,differences,core_to_core_ns";

/// Writes a header line, then the lines. A value that does not exist is empty.
pub fn csv(out: &mut dyn Write, history: &History) -> Result<()> {
    let mut lines = Lines::default();
    for series in &history.series {
        if series.changes.is_empty() {
            lines.write(out, COLUMNS, &fields(history, series, None))?;
        }
        for change in &series.changes {
            lines.write(out, COLUMNS, &fields(history, series, Some(change)))?;
        }
    }
    out.flush()
}

fn fields(history: &History, series: &Series, change: Option<&Change>) -> Vec<String> {
    let (case, (level, ends)) = (&series.case, series.level());
    let text = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let [from, to] = case.ends.clone().unwrap_or_default();
    let [low, high] = ends.map_or([None; 2], |ends| ends.map(Some));
    let started = |at: usize| history.started(series, at).to_owned();
    let mut fields = vec![
        case.key.clone(),
        case.fabric.clone(),
        case.ranks.to_string(),
        case.hosts.clone().unwrap_or_default(),
        from,
        to,
        series.metric.unit().to_owned(),
        series.points.len().to_string(),
        started(0),
        started(series.points.len() - 1),
        level.to_string(),
        text(low),
        text(high),
        series.is_judged().to_string(),
    ];
    fields.extend(match change {
        None => vec![String::new(); 6],
        Some(change) => {
            let [low, high] = change.ci90.map_or([None; 2], |ends| ends.map(Some));
            let each = change.differences.iter().map(|d| format!("{}={}->{}", d.name, d.before, d.after));
            vec![
                started(change.at),
                started(change.at - 1),
                change.ratio.to_string(),
                text(low),
                text(high),
                each.collect::<Vec<_>>().join(";"),
            ]
        }
    });
    fields.push(case.core_to_core_ns.map(|ns| ns.to_string()).unwrap_or_default());
    fields
}
