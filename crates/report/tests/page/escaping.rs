//! Text of result files on the page: it stays text, whatever it contains.

use std::collections::BTreeMap;

use ombx_compare::{Comparison, Settings, SideResults};
use ombx_record::{
    fact::{Fact, Facts, HostFacts},
    result::{Figure, Level, Mark, Outcome, Place},
};
use ombx_report::{Report, Source, page};

use crate::{file, links::links, row, run, sweep};

#[test]
fn text_of_files_is_escaped() {
    const EVIL: &str =
        "\"'><script>alert(1)</script><img src=x onerror=alert(1)></title></style><!--&\u{202e}";
    let evil = || EVIL.to_owned();
    let mut bad = run(&[EVIL, EVIL]);
    (bad.id, bad.started, bad.version, bad.profile) = (evil(), evil(), evil(), evil());
    (bad.fabric, bad.library, bad.argv) = (evil(), format!("{EVIL}\n{EVIL}"), vec![evil()]);
    (bad.clock.source, bad.plan, bad.env) =
        (evil(), BTreeMap::from([(evil(), evil())]), BTreeMap::from([(evil(), evil())]));
    bad.software =
        Facts::from([(evil(), Fact::Known(evil())), ("commit".into(), Fact::Unknown { reason: evil() })]);
    bad.hosts = vec![
        HostFacts { hosts: vec![evil()], facts: bad.software.clone() },
        HostFacts { hosts: vec![evil()], facts: Facts::from([("cpu".into(), Fact::Known(evil()))]) },
    ];
    bad.places[0] = Place { host: evil(), cpus: evil(), online: 1, governor: Some(evil()), quota: None };
    let notice = Mark::with_advice(EVIL, EVIL, EVIL).at(Level::Caution);
    let mut rows = sweep(EVIL, &[(EVIL, EVIL)]);
    rows.push(row(EVIL, &[("other", EVIL)], 8, 100.0));
    rows[0].trust = vec![notice.clone()];
    rows[1].outcome = Outcome::Failed(evil());
    rows[2].outcome = Outcome::Skipped(evil());
    rows[3].figures =
        BTreeMap::from([(evil(), Figure::Value(1.0)), (format!("{EVIL}2"), Figure::Unresolved(evil()))]);
    rows.extend(links(&[notice]).runs[0].rows.clone());
    let mut pipeline = row(
        "sockets.pipeline",
        &[("source", EVIL), ("sink", EVIL), ("nodes", EVIL), ("phases", EVIL)],
        8,
        1e9,
    );
    pipeline.figures.insert("node0_phase1_waited_for_data_ms".into(), Figure::Value(1.0));
    pipeline.figures.insert(format!("node0_{EVIL}"), Figure::Value(1.0));
    rows.push(pipeline);
    let (one, two) = (file(bad.clone(), rows.clone()), file(bad, rows));
    let mut sides = [(); 2].map(|()| SideResults::named(EVIL).labelled(Some(evil())));
    sides[0].run(&one.runs[0]);
    sides[1].run(&two.runs[0]);
    let mut comparison = Comparison::new(&sides[0], &sides[1], Settings::default());
    comparison.broken.push((evil(), evil()));
    let sources = [Source { name: EVIL, file: &one.into() }, Source { name: EVIL, file: &two.into() }];
    let html = page(&Report { sources: &sources, comparison: Some(&comparison), ..Report::default() });
    let scripts = html.matches("<script").count();
    assert_eq!((scripts, html.matches("</script").count()), (1, 1));
    for markup in ["<img", "<!--", "alert(1)</script", "\"'>"] {
        assert!(!html.contains(markup), "{markup}");
    }
    assert!(html.contains("&lt;img src=x"), "it is shown as text");
    // Every quotation mark of a file is escaped. Tags therefore have an even number.
    let outside = html.split("<style>").next().unwrap().to_owned()
        + html.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
    for tag in outside.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
}
