//! Charts in the terminal.

use ombx_tests::{
    Files, Job,
    results::{GOLDEN, links, reordered},
};

/// Writes a file with a sweep over sizes.
fn sweep(files: &Files) -> std::path::PathBuf {
    let mut lines: Vec<String> = GOLDEN.lines().take(1).map(str::to_owned).collect();
    let row = GOLDEN.lines().nth(1).unwrap();
    lines.extend([8u64, 64, 4096].map(|size| {
        row.replace("bytes=8\"", &format!("bytes={size}\""))
            .replace("\"bytes\":8,", &format!("\"bytes\":{size},"))
    }));
    files.write("sweep.jsonl", lines.join("\n") + "\n")
}

#[test]
fn a_sweep_has_a_chart_as_wide_as_the_screen() {
    let files = Files::default();
    let path = sweep(&files);
    let plain = Job::ombx("show").arg(&path).run().expect(0);
    for columns in ["50", "70"] {
        let done = Job::ombx("show --plot").arg(&path).env("COLUMNS", columns).run().expect(0);
        assert!(done.stdout.contains("us by bytes") && !plain.stdout.contains("us by bytes"), "{done}");
        let chart = done
            .stdout
            .lines()
            .skip_while(|line| !line.contains("us by bytes"))
            .take_while(|line| !line.is_empty());
        let widest = chart.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap() && widest > 30, "{done}");
    }
}

#[test]
fn other_formats_and_links_have_no_charts() {
    let files = Files::default();
    let path = sweep(&files);
    for format in ["csv", "jsonl", "osu"] {
        let done = Job::ombx("show --plot --format").arg(format).arg(&path).run().expect(2);
        assert!(done.sentence().contains("--plot") && done.stdout.is_empty(), "{done}");
        let done = Job::ombx("run p2p.latency --plot --format").arg(format).run().expect(2);
        assert!(done.sentence().contains("--plot"), "{done}");
    }
    let done = Job::ombx("links -n 2 --plot").run().expect(2);
    assert!(done.sentence().contains("--plot"), "{done}");
}

/// Draws a figure of a sweep and returns the file.
fn figure(files: &Files, options: &str, name: &str) -> Vec<u8> {
    let (path, out) = (sweep(files), files.path(name));
    Job::ombx(&format!("plot --force {options} -o")).arg(&out).arg(&path).run().expect(0);
    std::fs::read(&out).unwrap()
}

#[test]
fn every_kind_of_figure_is_drawn_in_every_format() {
    let files = Files::default();
    for kind in ["curve", "cdf", "histogram", "violin", "samples"] {
        let options = format!("--rows p2p.latency --kind {kind}");
        let pdf = figure(&files, &options, "figure.pdf");
        assert!(pdf.starts_with(b"%PDF") && pdf.windows(9).any(|part| part == b"/FontFile"), "{kind}");
        let svg = String::from_utf8(figure(&files, &options, "figure.svg")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("240.9pt") && !svg.contains("<text"), "{kind}");
        let png = figure(&files, &format!("{options} --width two-columns"), "figure.png");
        assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{kind}");
    }
    let links = files.write("links.jsonl", links());
    let out = files.path("links.svg");
    Job::ombx("plot").arg(&links).arg("-o").arg(&out).run().expect(0);
    let svg = std::fs::read_to_string(&out).unwrap();
    // The link between ranks 1 and 3 takes twice as long as others: two cells, and its shade in the legend.
    assert_eq!(svg.to_lowercase().matches("fill=\"#7a2a04\"").count(), 3, "{svg}");
}

#[test]
fn a_figure_shows_the_chosen_rows_of_several_files() {
    let files = Files::default();
    let (one, out) = (sweep(&files), files.path("both.svg"));
    let other = reordered(&std::fs::read_to_string(&one).unwrap(), 1);
    let other = files.write("other.jsonl", other);
    let plot =
        |options: &str| Job::ombx(&format!("plot --force {options} -o")).arg(&out).args([&one, &other]);
    plot("--label MPICH --label Other").run().expect(0);
    let drawn = || std::fs::read_to_string(&out).unwrap().to_lowercase();
    let two = drawn();
    assert!(two.contains("#0072b2") && two.contains("#d55e00"), "two series");
    plot("--label same --label same").run().expect(0);
    assert!(!drawn().contains("#d55e00"), "launches of one result");
    let done = plot("--rows rma.*").run().expect(2);
    assert!(done.sentence().contains("p2p.latency"), "{done}");
    let done = plot("--label a --label b --label c").run().expect(2);
    assert!(done.sentence().contains("do not fit 2 series"), "{done}");
}

#[test]
fn mistakes_in_figures_name_what_to_do() {
    let files = Files::default();
    let path = sweep(&files);
    for (options, hint) in [
        ("-o figure.gif", ".svg, .pdf or .png"),
        ("--kind heatmap -o x.svg", "ombx links"),
        ("--kind launches -o x.svg", "more launches"),
        ("--sizes 8 -o x.svg", "violin"),
        ("--kind cdf --y-axis log -o x.svg", "no --y-axis"),
    ] {
        let done = Job::ombx(&format!("plot {options}")).arg(&path).run().expect(2);
        assert!(done.sentence().contains(hint), "{options}: {done}");
    }
    let golden = files.write("golden.jsonl", GOLDEN);
    let done = Job::ombx("plot -o x.svg").arg(&golden).run().expect(2);
    assert!(done.sentence().contains("--rows p2p.latency"), "{done}");
    let done = Job::ombx("plot").arg(&path).arg("-o").arg(&path).run().expect(2);
    assert!(done.sentence().contains("-o"), "{done}");
}

#[test]
fn a_figure_is_not_replaced_unasked_and_may_be_printed() {
    let files = Files::default();
    let (path, out) = (sweep(&files), files.write("figure.svg", "old"));
    let plot = |options: &str| {
        Job::ombx(&format!("plot --rows p2p.latency {options}")).arg(&path).directory(files.root()).run()
    };
    assert!(plot("-o figure.svg").expect(2).sentence().contains("--force"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
    plot("-o figure.svg --force").expect(0);
    let printed = plot("--output - --format svg").expect(0).stdout;
    assert_eq!(std::fs::read_to_string(&out).unwrap(), printed);
    assert!(plot("-o -").expect(2).sentence().contains("--format"));
}

#[test]
fn samples_are_drawn_in_the_characters_and_the_width_of_the_terminal() {
    let files = Files::default();
    let path = sweep(&files);
    for (locale, columns) in [("C.UTF-8", "60"), ("C", "80"), ("C", "120")] {
        let job = Job::ombx("show --samples --sizes 64").arg(&path);
        let done = job.env("LC_ALL", locale).env("COLUMNS", columns).run().expect(0);
        assert!(done.stdout.contains("p2p.latency") && done.stdout.contains("histogram"), "{done}");
        assert_eq!(done.stdout.is_ascii(), locale == "C", "{done}");
        let widest = done.stdout.lines().map(|line| line.chars().count()).max().unwrap();
        let columns: usize = columns.parse().unwrap();
        assert!(widest <= columns && widest * 2 > columns, "{done}");
        assert_eq!(done.stdout.matches("samples in the order measured").count(), 1, "{done}");
    }
    let done = Job::ombx("show --sizes 64 --format jsonl").arg(&path).run().expect(2);
    assert!(done.sentence().contains("leave out --rows and --sizes"), "{done}");
}

#[test]
fn tables_for_documents_have_the_numbers_of_the_text_table() {
    let files = Files::default();
    let path = sweep(&files);
    let text = Job::ombx("show").arg(&path).run().expect(0).stdout;
    let row = text.lines().find(|line| line.trim_start().starts_with("4K ")).unwrap();
    let median = row.split_whitespace().nth(1).unwrap();
    let markdown = Job::ombx("show --format markdown").arg(&path).run().expect(0).stdout;
    assert!(markdown.contains(&format!("| 4K | {median} |")), "{markdown}");
    let latex = Job::ombx("show --format latex").arg(&path).run().expect(0).stdout;
    assert!(latex.contains(&format!("4K & {median} & ")) && latex.contains("\\bottomrule"), "{latex}");
}

#[test]
fn the_commands_of_the_document_run() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/GUIDE.md")).unwrap();
    let (_, section) = guide.split_once("\n## Figures and tables\n").unwrap();
    let section = section.split("\n## ").next().unwrap_or_default();
    let commands: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("$ ombx ")).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let files = Files::default();
    let sweep = std::fs::read_to_string(sweep(&files)).unwrap();
    let run = |id: u32| sweep.replace("-n01-4242", &format!("-n01-{id}"));
    files.write("p2p.jsonl", [1, 2, 3].map(run).concat());
    files.write("mpich.jsonl", run(4));
    files.write("openmpi.jsonl", run(5));
    let links = files.write("links.jsonl", links());
    for command in commands {
        let line = format!("\"$OMBX\" {command}");
        Job::new("sh")
            .args(["-c", &line])
            .env("OMBX", ombx_tests::mpi::ombx())
            .directory(links.parent().unwrap())
            .run()
            .expect(0);
    }
    for (name, start) in
        [("latency.pdf", "%PDF"), ("tail.pdf", "%PDF"), ("sizes.pdf", "%PDF"), ("latency.svg", "<svg")]
    {
        assert!(std::fs::read(files.path(name)).unwrap().starts_with(start.as_bytes()), "{name}");
    }
    for name in ["launches.png", "links.png"] {
        assert!(std::fs::read(files.path(name)).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
}
