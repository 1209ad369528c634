//! Tests of mistakes on the command line: exit code 2 and one error line, before anything starts.

mod imb;

use crate::{StartRecorder, at_once};

/// Command lines, each with a word that the error must contain.
const MISTAKES: &[(&str, &str)] = &[
    ("run", "ombx list"),
    ("run nothing", "nothing"),
    ("run suite:smok", "suite:smoke?"),
    ("run suite:", "smoke"),
    ("run suite:smoke p2p.latency", "stands alone"),
    ("run suite:smoke --pattern all", "option --pattern"),
    ("run suite:smoke --sizes 4M..1", "1..4M"),
    ("run /nonexistent/suite.toml", "cannot read"),
    ("list suite:smok", "suite:smoke?"),
    ("doctor -n 0", "0"),
    ("doctor --frobnicate", "--frobnicate"),
    ("run rma.putbw", "rma.put_bw"),
    ("run osu_put_bww", "osu_put_bw?"),
    ("run p2p.latency nothing", "nothing"),
    ("run p2p.[", "p2p.["),
    ("run p2p.latency --frobnicate", "--frobnicate"),
    ("run p2p.latency --size 8", "--sizes"),
    ("run p2p.latency --sizes", "--sizes"),
    ("run p2p.latency --sizes 1Q", "1Q"),
    ("run p2p.latency --sizes 4M..1", "1..4M"),
    ("run p2p.latency --sizes 1..8:x1", "x1"),
    ("run p2p.latency --sizes 8,,16", "size"),
    ("run p2p.latency --sizes -1", "-1"),
    ("run p2p.latency --sizes 99999999999999999999", "99999999999999999999"),
    ("run rma.put_bw --sync spinlock", "spinlock"),
    ("run rma.put_bw --sync lock,spinlock", "spinlock"),
    ("run rma.put_bw --win paper", "paper"),
    ("run p2p.latency --sync lock", "--sync"),
    ("run p2p.latency --win all", "--win"),
    ("run p2p.latency -n 0", "0"),
    ("run p2p.latency -n +2", "+2"),
    ("run p2p.latency -n 1", "p2p.latency needs 2 ranks, has 1"),
    ("run rma.* p2p.bw --sync lock -n 1", "needs 2 ranks, has 1"),
    ("run p2p.latency --under p2p.bv", "did you mean p2p.bw"),
    ("run p2p.latency --under p2p.*", "--under takes the name of a benchmark"),
    ("run p2p.latency --under p2p.bw:x", "size"),
    ("run p2p.latency --under p2p.latency_mt", "several threads"),
    ("run p2p.latency --under sockets.bw", "sockets.bw cannot be a load"),
    ("run p2p.latency --under collective.init", "it happens once in a launch"),
    ("run collective.init --under p2p.bw", "cannot be measured under load"),
    ("run sockets.latency --under p2p.bw", "--under needs ranks over MPI"),
    ("run p2p.latency --under nothing,nothing,nothing", "more than twice"),
    ("run p2p.latency --under p2p.bw -n 3", "p2p.latency and its load need 4 ranks, has 3"),
    ("osu osu_latency -n 1", "needs 2 ranks, has 1"),
    ("ab --b ombx p2p.latency -n 1", "needs 2 ranks, has 1"),
    ("run p2p.latency -n two", "two"),
    ("run p2p.latency -n -1", "-1"),
    ("run rma.put_bw -n 2 --pairs 2", "--pairs 2"),
    ("run p2p.mbw_mr -n 4 --pairs 9", "--pairs 9"),
    ("run p2p.latency_mt --threads 0:2", "0:2"),
    ("run p2p.bw_mt --threads 2:4", "p2p.bw_mt has as many threads on every rank"),
    ("run p2p.link --pattern sideways", "sideways"),
    ("run rma.put_bw --pairs 0", "0"),
    ("run p2p.latency --pairs 2", "p2p.latency has no option --pairs"),
    ("run rma.put_bw --target sleeping", "sleeping"),
    ("run p2p.latency --window 0", "0"),
    ("run p2p.latency --window=+1", "+1"),
    ("run p2p.latency --batch +1", "+1"),
    ("osu osu_latency -i +5", "+5"),
    ("osu osu_latency -no-hints", "osu_latency has no option -no-hints"),
    ("run p2p.latency --window 99999999", "99999999"),
    ("run p2p.bw --window 1..K", "such as 1,4,16"),
    ("run p2p.bw --window 64..1", "such as 1,4,16"),
    ("run p2p.latency --cache-size 1M", "--cache-size needs --cache cold"),
    ("run collective.barrier --cache cold", "collective.barrier has no option --cache"),
    ("run p2p.latency --init both", "give world or session"),
    ("run sockets.latency --init session", "sockets.latency has no option --init"),
    ("run p2p.bibw --send ready", "choose --send standard, synchronous or buffered"),
    ("run sockets.bw --window 1..8 --streams 4", "which has 1"),
    ("run p2p.latency --window 4", "p2p.latency has no option --window"),
    ("run p2p.link --window 4", "--window needs --pattern unidirectional"),
    ("links --window 4", "--window needs --pattern unidirectional"),
    ("links --all-to-all --fabric tcp", "--all-to-all needs --fabric mpi"),
    ("links --halves --bisection", "--bisection"),
    ("links --halves --serial", "--serial"),
    ("links --rounds 2 --bisection", "--bisection"),
    ("links --rounds 0", "--rounds"),
    ("links --launches 0", "0"),
    ("links --min-time 0s", "0s"),
    ("run p2p.latency --force", "--out"),
    ("run p2p.latency --append", "--out"),
    ("run p2p.latency -o x --force --append", "--append"),
    ("run p2p.latency -o - --append", "--append"),
    ("run p2p.latency -o - --format csv", "-o -"),
    ("links -o - --format csv", "-o -"),
    ("osu osu_latency -o -", "-o -"),
    ("ab --b ombx p2p.latency -o -", "-o ab.jsonl"),
    ("run p2p.latency --launcher none -n 2", "leave out -n"),
    ("run p2p.latency --launcher none --bind core", "leave out --bind"),
    ("run p2p.latency --launcher none --interface eth0", "leave out --interface"),
    ("run p2p.latency --precision 0.05", "5%"),
    ("compare a b --fail-on 0.05", "5%"),
    ("run p2p.latency --launches 6 --seed +1", "--seed"),
    ("run collective.barrier --sizes 8", "collective.barrier has no option --sizes"),
    ("run p2p.latency --launches 6 --precision 1%", "--precision"),
    ("run p2p.latency --quick --iterations 10 --precision 1%", "--precision"),
    ("run p2p.latency --unit s", "ns, us, ms"),
    ("run p2p.latency --unit ns,us", "at most one unit of times"),
    ("run p2p.latency --unit ns --format osu", "--unit is for tables and CSV"),
    ("run p2p.latency --percentiles 99 --format jsonl", "--percentiles is for tables and CSV"),
    ("run p2p.latency --percentiles 0", "--percentiles"),
    ("run p2p.latency --percentiles 99%", "99%"),
    ("show x --unit ns --format openmetrics", "--unit is for tables and CSV"),
    ("links --unit ns", "ombx links has no option --unit"),
    ("links --percentiles 99", "ombx links has no option --percentiles"),
    ("ab --b ombx p2p.latency --unit ns", "ombx ab has no option --unit"),
    ("links --retest +1", "+1"),
    ("ab --b ombx p2p.latency --precision 1%", "ombx ab has no option --precision"),
    ("show --matrix x.npy --format csv y", "--format"),
    ("run p2p.latency --precision 0", "0"),
    ("run p2p.latency --precision 101%", "101%"),
    ("run p2p.latency --precision nan", "nan"),
    ("run p2p.latency --max-time 0s", "0s"),
    ("run p2p.latency --max-time -1s", "-1"),
    ("run p2p.latency --max-time soon", "soon"),
    ("run p2p.latency --iterations 0", "0"),
    ("run p2p.latency --iterations 10 --max-time 1s", "--max-time"),
    ("run p2p.latency --warmup 10", "--iterations"),
    ("run p2p.latency --batch 0", "0"),
    ("run p2p.latency --batch many", "many"),
    ("run p2p.latency --format xml", "xml"),
    ("run p2p.latency --color pink", "pink"),
    ("run p2p.latency -q -v", "--verbose"),
    ("run p2p.latency --launcher rsh", "rsh"),
    ("run p2p.latency --hosts a;b", "a;b"),
    ("run p2p.latency --hosts -x", "-x"),
    ("run p2p.latency --hosts a --hostfile f", "--hostfile"),
    ("run p2p.latency --timeout 0", "0"),
    ("links -n 1", "two ranks"),
    ("links --serial --bisection", "--bisection"),
    ("links --sizes 4M..1", "1..4M"),
    ("links --pattern sideways", "sideways"),
    ("links --randomize dice", "dice"),
    ("links --retest -1", "-1"),
    ("links --format osu", "osu"),
    ("links --expect latency>2us", "latency<2us"),
    ("links --expect latency<2", "latency<2us"),
    ("links --expect latency<2us --pattern unidirectional", "no latency"),
    ("links --sizes 0 --expect bw>1GB/s", "no bandwidth"),
    ("links --reference /nonexistent", "/nonexistent"),
    ("links --reference /dev/null", "no complete run of ombx links"),
    ("links --fail-on everything", "everything"),
    ("links p2p.latency", "p2p.latency"),
    ("osu osu_latencyy", "osu_latency?"),
    ("run io.write", "io.write writes files: give a directory"),
    ("run io.*", "io.iread writes files: give a directory"),
    ("run io.write --directory", "--directory"),
    ("run io.write --directory=", "path of a directory"),
    ("run io.write --directory /nonexistent", "give a directory that exists"),
    ("run io.write --directory /etc/passwd", "it is not a directory"),
    ("run io.write --directory /proc", "cannot create a file"),
    ("run io.write --directory /tmp --sizes 128T", "MiB are free"),
    ("run io.write --directory /tmp --files own --access collective", "--access independent"),
    ("run io.write --directory /tmp --files own --pointer shared", "choose --files one"),
    ("run io.write --directory /tmp --access split", "is for io.iwrite and io.iread"),
    ("run io.iwrite --directory /tmp --access collective --pointer shared", "choose --access split"),
    ("run io.iread --directory /tmp --access split --tests 1", "leave out --tests"),
    ("run io.iwrite --directory /tmp --file-sync end", "choose --file-sync each or never"),
    ("run io.write --directory /tmp --window 4", "--file-sync end"),
    ("run io.read --directory /tmp --window 4", "io.read has no option --window"),
    ("run io.read --directory /tmp --file-sync end", "io.read has no option --file-sync"),
    ("run io.write --directory /tmp --batch 2", "leave out --batch"),
    ("run p2p.latency --directory /tmp", "p2p.latency has no option --directory"),
    ("osu osu_latency -m 8:4", "8:4"),
    ("osu osu_latency -m x", "x"),
    ("osu osu_latency -m :", "size"),
    ("osu osu_latency -m -1", "-1"),
    ("osu osu_latency -i 0", "0"),
    ("osu osu_latency -i many", "many"),
    ("osu osu_latency -x -1", "-1"),
    ("osu osu_latency -W 4", "osu_latency has no option -W"),
    ("osu osu_bw -W 0", "0"),
    ("osu osu_bw -b two", "two"),
    ("osu osu_latency -b multiple", "-b multiple"),
    ("osu osu_latency -f", "-f"),
    ("osu osu_latency -M 1G", "-M"),
    ("osu osu_latency -R 0", "-R"),
    ("osu osu_mbw_mr -R 2", "2"),
    ("osu osu_bw -V", "osu_bw has no option -V"),
    ("osu osu_mbw_mr -p 0", "0"),
    ("osu osu_latency -p 2", "-p"),
    ("osu osu_latency -s lock", "-s"),
    ("osu osu_put_bw -s spinlock", "spinlock"),
    ("osu osu_put_bw -w paper", "paper"),
    ("osu osu_latency -k 1", "-k"),
    ("osu osu_bcast -k fixed:9 -n 2", "-n 2 gives ranks 0 to 1"),
    ("osu osu_bcast -k 9 -n 2", "-n 2 gives ranks 0 to 1"),
    ("osu osu_latency -l", "-l"),
    ("osu osu_latency -N cart:1:1", "-N"),
    ("osu osu_latency -t 2", "-t"),
    ("osu osu_latency_mt -t 0:1", "-t: threads \"0:1\""),
    ("osu osu_latency_mp -t 4", "one child"),
    ("osu osu_latency -T mpi_double", "osu_latency supports mpi_char, mpi_int, mpi_float"),
    ("osu osu_barrier -T mpi_int", "osu_barrier supports mpi_char"),
    ("osu osu_latency -T mpi_int -D vect:16:8", "blocks of -D are of bytes"),
    ("run p2p.latency --type double --datatype struct", "members have types of their own"),
    (
        "run p2p.latency --type double --datatype vector --block-length 12 --stride 24",
        "no whole elements of --type double",
    ),
    ("osu osu_cas_latency -T mpi_float", "osu_cas_latency supports mpi_char, mpi_int"),
    ("osu osu_get_acc_latency -T mpi_int", "osu_get_acc_latency supports mpi_char"),
    ("osu osu_allreduce -T mpi_double", "mpi_char, mpi_int, mpi_float"),
    ("run collective.allreduce --op band", "--op band does not accept --type float"),
    ("run collective.reduce --type float,int32 --op lxor", "--op lxor does not accept --type float"),
    (
        "run collective.iscan --type double-complex --op sum,max",
        "--op max does not accept --type double-complex",
    ),
    ("run p2p.latency --groups 2", "p2p.latency has no option --groups"),
    ("run collective.bcast_window --groups 2", "collective.bcast_window has no option --groups"),
    ("run collective.bcast --groups 0", "not a number of groups from 1"),
    ("run collective.gather --imbalance 50", "collective.gather has no option --imbalance"),
    ("run collective.gatherv --imbalance 101", "no whole number of percent from 0 to 100"),
    ("run collective.gatherv --imbalance 0.5", "no whole number of percent from 0 to 100"),
    (
        "run collective.bcast --groups 2 -n 5",
        "--groups 2 needs 4 ranks or a larger multiple of 2, but -n gives 5",
    ),
    ("run collective.bcast --groups 2 -n 2", "--groups 2 needs 4 ranks"),
    ("run collective.bcast --groups 2 -n 4 --root 2", "-n 4 gives ranks 0 to 1 in each of 2 groups"),
    ("run collective.bcast --groups 2 --under p2p.bw", "leave out --groups"),
    ("run collective.bcast --groups 2 --by linear", "choose --by library"),
    ("run p2p.bw --datatype vector --block-length 24", "--sizes 24,48"),
    ("run p2p.bw --datatype vector --block-length 1G --sizes 1G", "choose a shorter --block-length"),
    ("osu osu_allreduce -D vect:2:1", "contiguous"),
    ("run collective.barrier --type double", "has no option --type"),
    ("run collective.bcast --type double --by linear", "--type is for broadcasts of the library"),
    ("run collective.allreduce --op replace", "--op replace does not exist in reductions"),
    ("run rma.acc_latency --op user", "MPI allows no user-defined operation in accumulates: use --op sum"),
    ("run rma.acc_bw --op sum,no_op", "--op no_op needs an accumulate that fetches: use rma.get_acc_latency"),
    ("run rma.fop_latency --type float --op lxor", "--op lxor does not accept --type float"),
    ("run rma.cas_latency --type double", "MPI_Compare_and_swap does not accept --type double: use integers"),
    ("run rma.cas_latency --op max", "has no option --op"),
    ("run p2p.request --type int32", "has no option --type"),
    ("run p2p.latency --datatype vectors", "vectors"),
    ("run p2p.latency --block-length 8", "add --datatype vector, indexed or struct"),
    ("run p2p.latency --datatype vector --stride 32", "--stride 32 is shorter than a block of 64 bytes"),
    ("run p2p.bw --datatype struct --block-length 8", "choose --block-length 13 or more"),
    ("run p2p.bw --datatype struct --stride 81", "multiples of 8 bytes apart; choose --stride 88"),
    ("run p2p.bibw --datatype indexed --block-length 0", "at least 1"),
    (
        "run p2p.latency --datatype vector --sizes 64,4G",
        "--sizes 4G: messages of a derived datatype have less than 2 GiB",
    ),
    ("run p2p.latency_partitioned --datatype vector", "has no option --datatype"),
    ("run p2p.latency --datatype vector --blocks 0:8", "add --datatype indexed"),
    ("run p2p.latency --datatype indexed --blocks 0:8,4:8", "overlaps"),
    ("run p2p.latency --datatype indexed --blocks @/nowhere", "cannot read /nowhere"),
    (
        "run p2p.latency --datatype indexed --blocks 0:24",
        "--blocks: no default size is a multiple of 24 bytes",
    ),
    ("run p2p.latency --datatype indexed --blocks 0:8 --stride 4", "choose --stride 8 or more"),
    ("run rma.acc_latency --datatype struct", "choose --datatype vector or indexed"),
    (
        "run rma.acc_latency --datatype vector --type double --block-length 4",
        "no whole elements of --type double",
    ),
    ("run rma.fop_latency --datatype vector", "has no option --datatype"),
    ("run collective.neighbor_alltoall --topology edges", "add --neighbours"),
    ("run collective.neighbor_alltoall --neighbours 0:1", "add --topology edges"),
    ("run collective.allreduce --datatype vector", "has no option --datatype"),
    ("run collective.gather --datatype vector --in-place", "choose --datatype contiguous, or --in-place off"),
    ("run collective.alltoallv --datatype struct --imbalance 50", "leave out --imbalance"),
    ("run collective.bcast --datatype indexed --by binomial", "choose --by library, or leave out --datatype"),
    ("osu osu_latency -z50,101", "50,101"),
    ("osu osu_latency -clog", "directory"),
    ("osu osu_latency -d cuda", "host memory"),
    ("osu osu_bw -D vect:8:16", "larger number first"),
    ("osu osu_bw -D vect:16", "-D vect:16:8"),
    ("osu osu_bw -D indx:/nowhere", "cannot read /nowhere"),
    ("osu osu_bw -D blob", "give cont, vect:STRIDE:BLOCK_LENGTH or indx:FILE"),
    ("osu osu_bw -D vect:16:8 -m 8", "no message is as long as the stride"),
    ("osu osu_latency_mt -D vect:16:8", "sends contiguous messages only"),
    ("osu osu_neighbor_alltoall -N cart:0:1", "1 to 4 dimensions"),
    ("osu osu_neighbor_alltoall -N graph:/nowhere", "cannot read /nowhere"),
    ("osu osu_neighbor_alltoall -N ring", "give cart:DIMENSIONS:RADIUS or graph:FILE"),
    ("osu osu_latency -G svg", "tty, png, pdf"),
    ("osu osu_latency -G png, -m 8", "tty, png, pdf"),
    ("osu osu_latency -G", "tty, png, pdf"),
    ("osu osu_hello -G png", "osu_hello has no option -G"),
    ("osu osu_mbw_mr -V -G tty", "leave out -V"),
    ("osu osu_latency -G png -o osu_latency.png", "the file of -G"),
    ("osu osu_latency -P X", "-P"),
    ("osu osu_latency H X", "X"),
    ("osu osu_latency H H H", "at most two"),
    ("osu osu_latency --frobnicate", "--frobnicate"),
    ("frobnicate", "frobnicate"),
    ("list --frobnicate", "--frobnicate"),
    ("list rma.putbw", "rma.put_bw"),
    ("list --json --long", "--long"),
    ("show", "FILES"),
    ("show file --format xml", "xml"),
    ("completions", "SHELL"),
    ("completions cmd", "cmd"),
];

#[test]
fn every_mistake_gives_one_error_line_and_starts_nothing() {
    let recorder = StartRecorder::new();
    let mut wrong = Vec::new();
    for (line, word) in MISTAKES.iter().chain(imb::MISTAKES) {
        let done = recorder.run(&line.split_whitespace().collect::<Vec<_>>());
        let one = done.stderr.lines().count() == 1 && done.stderr.starts_with("ombx: ");
        let silent = done.stdout.is_empty();
        let has_word = done.stderr.contains(word);
        if !(done.code == Some(2) && one && silent && has_word) || recorder.started() {
            wrong.push(format!("`ombx {line}` should say {word:?}: {done}"));
        }
    }
    assert!(wrong.is_empty(), "{} mistakes have wrong errors:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_misspelt_name_gets_a_suggestion_within_a_second() {
    let recorder = StartRecorder::new();
    let done = at_once(|| recorder.run(&["run", "rma.putbw"]).expect(2));
    assert!(done.sentence().contains("did you mean rma.put_bw?"), "{done}");
    assert!(!recorder.started(), "{done}");
}

#[test]
fn run_without_a_pattern_prints_advice() {
    let done = StartRecorder::new().run(&["run"]).expect(2);
    for word in ["give a benchmark", "p2p.latency", "osu_put_bw", "suite:smoke", "ombx list"] {
        assert!(done.sentence().contains(word), "{word}\n{done}");
    }
    assert!(done.sentence().len() < 200, "{done}");
}

#[test]
fn no_command_is_an_error() {
    let done = StartRecorder::new().run(&[]).expect(2);
    done.complains(&["ombx: give a command: ", "run", "list"]);
    assert!(done.stdout.is_empty(), "{done}");
}

/// Two rounds of a comparison, each with ranks of its own, would wait for each other.
#[test]
fn a_comparison_refuses_a_launcher() {
    let done = ombx_tests::Job::mpiexec(2, "ab --env-b X=1 p2p.latency --sizes 8").run();
    let lines = done.stderr.lines().filter(|line| line.contains("ombx ab starts its own ranks")).count();
    assert_eq!((done.code, lines), (Some(2), 1), "{done}");
    done.leaves_nothing();
}

#[test]
fn under_a_launcher_only_rank_0_prints_the_error() {
    let done = ombx_tests::Job::mpiexec(2, "run rma.putbw").run();
    let lines = done.stderr.lines().filter(|line| line.contains("did you mean rma.put_bw?")).count();
    assert_eq!((done.code, lines), (Some(2), 1), "{done}");
}

/// Options of a start have no effect on ranks that a launcher has started.
#[test]
fn options_of_a_start_are_refused_under_a_launcher() {
    for (options, word) in [
        ("run p2p.latency -n 2", "leave out -n"),
        ("run p2p.latency --bind core", "leave out --bind"),
        ("run p2p.latency --budget 9s", "leave out --budget"),
        ("run p2p.latency --seed 9", "leave out --seed"),
        ("run p2p.latency --iterations 9 --precision 9%", "which --iterations fixes"),
        ("run p2p.latency --rendezvous x", "--rendezvous is for benchmarks over sockets"),
        ("links --launcher-arg=-v", "leave out --launcher-arg"),
        ("osu osu_latency -n 2", "leave out -n"),
    ] {
        let done = ombx_tests::Job::mpiexec(2, options).run();
        let lines = done.stderr.lines().filter(|line| line.contains(word)).count();
        assert_eq!((done.code, lines), (Some(2), 1), "{done}");
    }
    // What a suite says about starting ranks is for ombx.
    let files = ombx_tests::Files::default();
    let suite =
        "[defaults]\nranks = 4\nbind = 'core'\n[[entry]]\nrun = 'p2p.latency'\nsizes = 8\niterations = 9\n";
    let suite = files.write("s.toml", suite);
    ombx_tests::Job::mpiexec(2, "run").arg(&suite).run().expect(0);
}
