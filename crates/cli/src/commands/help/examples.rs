//! Examples of each command, for its help and its manual page.

use ombx_results::render::wrapped;

/// Example of a file of `ombx check`.
pub(super) const NODE_CHECK: &str = include_str!("../../../suites/node-check.toml");
/// Example of a file of `ombx run`.
pub(super) const SUITE: &str = include_str!("../../../suites/smoke.toml");

/// Examples of a command: what each does, and its command line.
pub(super) struct Examples {
    command: &'static str,
    examples: &'static [(&'static str, &'static str)],
    /// Options that `-h` shows; all if there are none.
    pub(super) common: &'static [&'static str],
    /// Pages of `ombx help` that explain the output of the command.
    pub(super) pages: &'static [&'static str],
}

const ALL: [Examples; 20] = [
    Examples {
        command: "list",
        common: &[],
        examples: &[
            ("Every benchmark, by family", "ombx list"),
            ("One family", "ombx list p2p"),
            ("What is timed, the calls, the formula, parameters and sizes", "ombx list 'rma.put*' --long"),
            ("The benchmarks of a suite", "ombx list suite:smoke"),
        ],
        pages: &[],
    },
    Examples {
        command: "run",
        common: &[
            "ranks",
            "hosts",
            "sizes",
            "quick",
            "budget",
            "timeout",
            "precision",
            "percentiles",
            "format",
            "output",
            "like",
        ],
        examples: &[
            ("Latency between two ranks of this host", "ombx run p2p.latency"),
            ("A first look at a family: one launch", "ombx run 'rma.*' --quick"),
            (
                "Bandwidth between two hosts, kept with all samples in a file",
                "ombx run p2p.bw --hosts n01,n02 --sizes 64K,4M -o bw.jsonl",
            ),
            (
                "One-sided bandwidth with another synchronisation and another window",
                "ombx run rma.put_bw --sync lock --win create --sizes 1..1M",
            ),
            ("As ranks of your own launcher: a single launch", "mpiexec -n 2 ombx run 'p2p.*'"),
            ("The same run again, with other sizes", "ombx run --like bw.jsonl --sizes 1M"),
            (
                "With `ombx sockets serve` on n02, without ssh",
                "ombx run sockets.latency sockets.bw --connect n02 --token-file token",
            ),
        ],
        pages: &["marks", "suites", "exit-codes"],
    },
    Examples {
        command: "congestion",
        common: &["ranks", "hosts", "sizes", "under", "quick", "format", "output"],
        examples: &[
            (
                "All benchmarks of the suite, alone and under each load, on eight ranks",
                "ombx congestion -n 8",
            ),
            (
                "Four hosts with two ranks each, kept with all samples",
                "ombx congestion -n 8 --hosts n01,n02,n03,n04 -o congestion.jsonl",
            ),
            (
                "One benchmark under one load, with the impact factor",
                "ombx congestion p2p.bw --sizes 1M --under nothing,p2p.bw:1M,nothing -n 4",
            ),
        ],
        pages: &["marks", "exit-codes"],
    },
    Examples {
        command: "links",
        common: &[
            "ranks",
            "hosts",
            "fabric",
            "sizes",
            "expect",
            "reference",
            "groups",
            "launches",
            "follow",
            "format",
            "output",
        ],
        examples: &[
            ("Every pair of four ranks of this host", "ombx links -n 4"),
            (
                "Which host or link of five hosts is slow",
                "ombx links --hosts n01,n02,n03,n04,n05 --sizes 8,1M -o links.jsonl",
            ),
            (
                "Demand a latency and a bandwidth of every link",
                "ombx links --hosts n01,n02 --expect 'latency<2us' --expect 'bw>11GB/s'",
            ),
            (
                "What is slower than in an earlier result",
                "ombx links --hosts n01,n02 --reference links.jsonl",
            ),
            (
                "Five sweeps, each with other pairs at the same time",
                "ombx links --hosts n01,n02,n03,n04 --launches 5 --all-to-all -o links.jsonl",
            ),
            ("The map while it fills", "ombx links --hosts 'n[01-64]' --follow"),
            (
                "As a plugin of Nagios or Icinga",
                "ombx links --hosts 'n[01-05]' --expect 'latency<2us' --format nagios",
            ),
            ("As ranks of Slurm, in CSV", "srun -n 256 ombx links --randomize 7 --format csv > links.csv"),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "cluster",
        common: &["inventory", "hosts", "launcher", "dry-run", "resume", "remove-copies"],
        examples: &[
            (
                "What would be measured: the plan and every script",
                "ombx cluster --inventory cluster.toml --dry-run",
            ),
            ("Every link, by jobs of Slurm", "ombx cluster --inventory cluster.toml --launcher slurm"),
            (
                "Go on after an interruption",
                "ombx cluster --inventory cluster.toml --launcher slurm --resume",
            ),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "doctor",
        common: &["ranks", "hosts", "format", "junit"],
        examples: &[
            ("Is this host ready to measure?", "ombx doctor"),
            ("Two hosts, for a program", "ombx doctor -n 8 --hosts n01,n02 --format json"),
            ("As a plugin of Nagios or Icinga", "ombx doctor --format nagios"),
            ("Inside a job of Slurm", "srun -n 64 ombx doctor"),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "check",
        common: &["learn", "store", "format", "output", "junit"],
        examples: &[
            ("A file to edit", "ombx help expectations > my.toml && ombx check my.toml"),
            ("Is this node as good as it was?", "ombx check node-check.toml"),
            ("Learn a good day", "ombx check node-check.toml --learn"),
            (
                "As a plugin of Nagios or Icinga, with a history",
                "ombx check node-check.toml --format nagios --store /var/lib/ombx/days",
            ),
            ("For Prometheus", "ombx check node-check.toml --openmetrics /var/lib/metrics/ombx-check.prom"),
        ],
        pages: &["expectations", "exit-codes"],
    },
    Examples {
        command: "osu",
        common: &[
            "message-size",
            "iterations",
            "warmup",
            "window-size",
            "validation",
            "tail-lat",
            "full",
            "ranks",
            "hosts",
            "output",
            "omb-title",
            "install-links",
        ],
        examples: &[
            ("The programs that this build replaces", "ombx osu"),
            ("One program with OMB's options", "ombx osu osu_latency -m 8:8 -i 1000 -x 10"),
            (
                "Links with OMB's names, for existing scripts",
                "ombx osu --install-links bin && mpiexec -n 2 bin/osu_bw",
            ),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "imb",
        common: &["list", "npmin", "iter", "msglog", "msglen", "ranks", "hosts", "output", "install-links"],
        examples: &[
            ("The programs of IMB, and how much of each ombx has", "ombx imb"),
            (
                "Some benchmarks with IMB's options",
                "ombx imb IMB-MPI1 PingPong Allreduce -iter 100 -msglog 3:16",
            ),
            (
                "Links with IMB's names, for existing scripts",
                "ombx imb --install-links bin && mpiexec -n 4 bin/IMB-MPI1 -npmin 4 Alltoall",
            ),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "show",
        common: &["format", "samples", "provenance", "matrix", "against", "rows"],
        examples: &[
            ("The table again, with a chart", "ombx show before.jsonl --plot"),
            ("Launches of two files as one result, in CSV", "ombx show a.jsonl b.jsonl --format csv"),
            ("The times of all links, for NumPy", "ombx show links.jsonl --matrix links.npy"),
        ],
        pages: &["marks"],
    },
    Examples {
        command: "compare",
        common: &["margin", "fail-on", "format", "junit", "markdown", "names"],
        examples: &[
            ("Two results of several runs each", "ombx compare before.jsonl after.jsonl"),
            (
                "A gate in CI: no case may be slower by more than 5 % (four runs a side)",
                "ombx compare --base old/*.jsonl --new new/*.jsonl --fail-on 5%",
            ),
            ("Many files, and a report for CI", "ombx compare 'nightly/*.jsonl' today/ --junit report.xml"),
        ],
        pages: &["verdict", "exit-codes"],
    },
    Examples {
        command: "ab",
        common: &[
            "a", "b", "env-a", "env-b", "ranks", "hosts", "sizes", "budget", "fail-on", "format", "output",
        ],
        examples: &[
            (
                "Two MPI libraries: a build of ombx with each",
                "ombx ab --a ./ombx-mpich --b ./ombx-openmpi --names MPICH,OpenMPI p2p.latency",
            ),
            (
                "Two versions of a library with one ABI, by one build of ombx",
                "ombx ab --env-a LD_LIBRARY_PATH=/a/lib --env-b LD_LIBRARY_PATH=/b/lib p2p.bw",
            ),
            (
                "A gate; launches go to ab-a.jsonl and ab-b.jsonl",
                "ombx ab --a ./old --b ./new 'p2p.*' --fail-on 5% -o ab.jsonl",
            ),
            (
                "Two values of a variable",
                "ombx ab --env-a UCX_TLS=sm --env-b UCX_TLS=tcp --names sm,tcp p2p.latency",
            ),
        ],
        pages: &["verdict", "exit-codes"],
    },
    Examples {
        command: "history",
        common: &[],
        examples: &[
            ("What changed in a directory of dated results", "ombx history nightly/"),
            (
                "Latencies since March, on whichever hosts",
                "ombx history nightly/ --bench 'p2p.latency*' --since 2026-03-01 --any-hosts",
            ),
            (
                "A gate: a case became slower within its last seven runs",
                "ombx history nightly/ --fail-on-last 7",
            ),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "model",
        common: &[],
        examples: &[
            ("Two ranks of this host, measured now", "ombx model"),
            ("Two hosts, measured now and kept", "ombx model -o model.jsonl -- --hosts n01,n02"),
            ("Two hosts over TCP, without MPI", "ombx model --fabric sockets -- --hosts n01,n02"),
            ("From results, as JSON", "ombx model r.jsonl --format json"),
            (
                "The model, and a figure of its lines over the measurements",
                "ombx model r.jsonl && ombx plot r.jsonl --kind model -o model.pdf",
            ),
        ],
        pages: &[],
    },
    Examples {
        command: "plot",
        common: &["output", "kind", "rows", "sizes", "label", "format", "force"],
        examples: &[
            ("Latency over sizes, for a paper", "ombx plot p2p.jsonl --rows p2p.latency -o latency.pdf"),
            (
                "Two results in one figure",
                "ombx plot old.jsonl new.jsonl --label MPICH --label OpenMPI -o latency.pdf",
            ),
            (
                "Distribution of the samples of two sizes",
                "ombx plot p2p.jsonl --kind cdf --rows p2p.latency --sizes 8,64K -o tail.pdf",
            ),
            ("Map of links, over two columns", "ombx plot links.jsonl --width two-columns -o links.png"),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "export",
        common: &[],
        examples: &[
            ("The results that a daily check stores", "ombx export /var/lib/ombx/days"),
            ("For a Prometheus on another host", "ombx export /var/lib/ombx/days --listen 10.1.0.7:9777"),
        ],
        pages: &[],
    },
    Examples {
        command: "report",
        common: &[],
        examples: &[
            ("Several results on one page", "ombx report p2p.jsonl links.jsonl -o report.html"),
            ("With a comparison", "ombx report before.jsonl --against after.jsonl -o report.html"),
        ],
        pages: &[],
    },
    Examples {
        command: "sockets",
        common: &[],
        examples: &[
            (
                "On the host n02, where there is no ssh: prints the command of the other side",
                "ombx sockets serve",
            ),
            (
                "For jobs: the token is in a file, which both hosts have",
                "ombx sockets serve --token-file token --timeout 1h",
            ),
        ],
        pages: &["exit-codes"],
    },
    Examples {
        command: "completions",
        common: &[],
        examples: &[
            ("In ~/.bashrc", "source <(ombx completions bash)"),
            ("In ~/.zshrc, after compinit", "source <(ombx completions zsh)"),
            ("In ~/.config/fish/config.fish", "ombx completions fish | source"),
        ],
        pages: &[],
    },
    Examples {
        command: "help",
        common: &[],
        examples: &[
            ("Every option of a command", "ombx help run"),
            ("What an option or one of its values means", "ombx help --sync"),
            ("A benchmark, or all of a kind", "ombx help allreduce"),
            ("How to write a file of limits for ombx check", "ombx help expectations"),
            ("What a mark in the column trust means", "ombx help oversubscribed"),
            ("What an exit code means", "ombx help 9"),
        ],
        pages: &[],
    },
];

/// Returns the examples of a command.
pub(super) fn of(command: &str) -> Option<&'static Examples> {
    ALL.iter().find(|examples| examples.command == command)
}

impl Examples {
    /// Returns what each example does, and its command line.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.examples.iter().copied()
    }

    /// Returns the lines of the first examples.
    pub(super) fn lines(&self, most: usize, columns: usize) -> String {
        let about = |text| wrapped(text, columns.saturating_sub("  # ".len())).join("\n  # ");
        self.all().take(most).map(|(text, line)| format!("  # {}\n  {line}\n", about(text))).collect()
    }
}
