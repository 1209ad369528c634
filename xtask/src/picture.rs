//! `cargo xtask picture`: the picture of README, from a release build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use ombx_toolchain::{
    Failure, Mpi, Places, Result, Step, Which, Workspace, installed, output, output_and_failure, release,
};

use crate::{delegate::Program, package::Need, setup};

/// File that README shows.
const PICTURE: &str = "docs/report.png";
/// The page, beside the results.
const PAGE: &str = "report.html";
/// Width and height of the picture, in pixels.
const SIZE: &str = "885,2040";
/// Browsers that draw a page without a screen.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome"];
/// Hosts of the links, the slow one, and the sweep over them.
const HOSTS: [&str; 6] = ["--hosts", "6", "--rate", "300Mbit", "--host", "h4:rate=100Mbit"];
const LINKS: &str = "links --hosts h[1-6] --sizes 1M --bind none --interface eth0 --quiet --force -o";

/// Draw docs/report.png: the page of `ombx report`, with latencies of this machine and links of six emulated hosts
///
/// Measures with a release build. The emulated hosts need root; without it the page has latencies only. Run nothing else on the
/// machine meanwhile.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask picture --mpi mpich")]
pub(crate) struct Options {
    /// MPI to measure with [default: the first installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install Chromium without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    setup::ensure_tools(Need::Browser, options.yes)?;
    let browser = BROWSERS.iter().find_map(|name| Places::here().program(name));
    let browser = browser.ok_or_else(|| Failure::Missing("no Chromium is in the search path".into()))?;
    let workspace = Workspace::read()?;
    let mpi = installed(options.mpi)?.remove(0);
    let ombx = release::built(&mpi, &workspace, &workspace.target)?;
    let directory = workspace.target.join("picture");
    fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
    let measurement = Measurement { mpi: &mpi, ombx: &ombx, directory: &directory };

    let mut results = vec![measurement.latencies()?];
    match measurement.links() {
        Ok(links) => results.push(links),
        Err(why) => println!("without links: {why}"),
    }
    // The page names its files as the command does.
    let names = results.iter().filter_map(|file| file.file_name());
    let mut report = Command::new(&ombx);
    report.current_dir(&directory).args(["report", "--force"]).args(names).args(["-o", PAGE]);
    output(&mut report)?;
    draw(&browser, &directory.join(PAGE), &workspace.root.join(PICTURE))?;
    println!("Written: {PICTURE}");
    Ok(ExitCode::SUCCESS)
}

/// What measures, and where its results go.
struct Measurement<'a> {
    mpi: &'a Mpi,
    ombx: &'a Path,
    directory: &'a Path,
}

impl Measurement<'_> {
    /// Measures curves between two ranks of this machine, and returns their file.
    fn latencies(&self) -> Result<PathBuf> {
        let file = self.directory.join("p2p.jsonl");
        let mut run = Command::new(self.ombx);
        run.args(["run", "p2p.latency", "p2p.latency_persistent", "--quiet", "--force", "-o"]).arg(&file);
        self.mpi.launch_with(&mut run);
        Step::run("latencies", &mut run).built()?;
        Ok(file)
    }

    /// Measures the links between emulated hosts, and returns their file.
    fn links(&self) -> Result<PathBuf> {
        let file = self.directory.join("links.jsonl");
        Step::run("hosts", self.testbed("up").args(HOSTS)).built()?;
        let mut sweep = self.testbed("exec");
        sweep.args(["h1", "--"]).arg(self.ombx).args(LINKS.split(' ')).arg(&file);
        // A slow host is an exit code of its own.
        let swept = output_and_failure(&mut sweep);
        output(&mut self.testbed("down"))?;
        match swept? {
            (_, Some(why)) if !file.is_file() => Err(why),
            _ => Ok(file),
        }
    }

    fn testbed(&self, task: &str) -> Command {
        let mut command = Program::Testbed.run();
        command.arg("--dir").arg(self.directory.join("bed")).arg(task);
        command
    }
}

/// Draws a page into a PNG file.
fn draw(browser: &Path, page: &Path, picture: &Path) -> Result<()> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--window-size={SIZE}")).arg(format!("--screenshot={}", picture.display()));
    output(command.arg(format!("file://{}", page.display()))).map(drop)
}
