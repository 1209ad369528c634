//! How job scripts, tutorials and tests in public repositories call OMB and IMB, and how they read the output. Only the words of the
//! commands and the forms of the readers are theirs.

/// One command line on two ranks, and what reads its output.
pub struct OldScript {
    /// Program and options, with fewer iterations and sizes than usual.
    pub command: &'static str,
    /// Readers of the standard output.
    pub readers: &'static [Reader],
}

/// A program that reads the output.
pub struct Reader {
    /// Command of a shell.
    pub shell: &'static str,
    /// Regular expression for all that it prints. `N` is a number with decimals.
    pub prints: &'static str,
}

const fn by(shell: &'static str, prints: &'static str) -> Reader {
    Reader { shell, prints }
}

const fn script(command: &'static str, readers: &'static [Reader]) -> OldScript {
    OldScript { command, readers }
}

/// Prints the columns of all rows, as a Python script does that splits each line and takes what begins with a digit.
const SPLIT: &str = r#"python3 -c '
import sys
rows = [line.split() for line in sys.stdin if line[:1].isdigit()]
print(*[int(row[0]) for row in rows], sum(float(figure) for row in rows for figure in row[1:]) > 0)'"#;

/// Reads all lines that are no comments, as `loadtxt` of NumPy and `read.table` of R do.
const LOADTXT: &str = r##"python3 -c '
import sys
lines = (line.split("#")[0].split() for line in sys.stdin)
rows = [list(map(float, words)) for words in lines if words]
print(len(rows), len({len(row) for row in rows}))'"##;

/// Reads tables of IMB: a line `# Benchmarking `, one with `#processes`, comments, titles, and rows to an empty line.
const IMB_TABLES: &str = r##"python3 -c '
import sys
kinds = {"uniband": (int, int, float, int), "biband": (int, int, float, int), "pingpong": (int, int, float, float),
         "alltoall": (int, int, float, float, float)}
lines = iter(sys.stdin)
for line in lines:
    if not line.startswith("# Benchmarking "):
        continue
    name = line.split()[-1].lower()
    line = next(lines)
    assert line.startswith("# #processes = "), line
    processes = int(line.split("=")[-1])
    while line.startswith("#"):
        line = next(lines)
    titles, rows = line.split(), []
    for line in lines:
        if not line.strip():
            break
        rows.append([kind(word) for kind, word in zip(kinds[name], line.split(), strict=True)])
    assert len(titles) == len(kinds[name])
    print(name, processes, [row[0] for row in rows])'"##;

/// All scripts.
pub const SCRIPTS: &[OldScript] = &[
    script(
        "osu_latency -m 1:64 -x 2 -i 20",
        &[
            by("grep -v '^#' | awk '{print $2}'", "\n(N\n){7}"),
            by("tail -n 1 | awk '{print $2}'", "N\n"),
            by("awk '$1 ~ /^[0-9]+$/ {print $1 \",\" $2}'", "(\\d+,N\n){7}"),
            by("sed -n 's/^8  *\\([0-9.]*\\)$/\\1/p'", "N\n"),
            by("egrep '^[0-9]' | wc -l", "7\n"),
            by("grep '^64 ' | tr -s ' ' | cut -d ' ' -f 2", "N\n"),
            by("awk '/^#/ {next} NF == 2 {n++; s += $2} END {print n, (s > 0)}'", "7 1\n"),
            by("perl -ne 'print \"$1;$2\\n\" if /^\\s*(\\d+)\\s+(\\d+\\.\\d+)\\s*$/'", "(\\d+;N\n){7}"),
            by("grep -c 'OSU MPI Latency Test v[0-9]'", "1\n"),
            by("awk 'BEGIN {m = 1e9} /^[0-9]/ && $2 < m {m = $2} END {print m}'", "[0-9.]+\n"),
            by("tail -n +5 | head -n 2 | awk '{print $1}'", "1\n2\n"),
            by(SPLIT, "1 2 4 8 16 32 64 True\n"),
            by(LOADTXT, "7 1\n"),
        ],
    ),
    script(
        "osu_bw -x 1 -i 2 -m 4194304:4194304",
        &[
            by("grep 4194304 | awk '{print $2}'", "N\n"),
            by("grep -E '^[0-9]' | awk '{print $2}' | sort -n | tail -1", "N\n"),
            by("awk '/^4194304/ {print int($2)}'", "\\d+\n"),
            by("perl -lane 'print $F[1] if $F[0] eq \"4194304\"'", "N\n"),
            by("grep -o 'Bandwidth (MB/s)'", "Bandwidth \\(MB/s\\)\n"),
        ],
    ),
    script(
        "osu_latency -m 8:8 -x 0 -i 20 D D",
        &[by("grep -E '^8[[:space:]]+' | tail -1 | awk '{printf \"%.2f\", $2}'", "N")],
    ),
    script("osu_bibw -b multiple -m 8:8 -i 10 H H", &[by("awk '/^8/ {print $2}'", "N\n")]),
    script("osu_bibw --validation -m 8:64 -i 10", &[by("grep -c 'Pass$'", "4\n")]),
    script("osu_mbw_mr -m :64 -x 1 -i 10", &[by("awk '$1 == 64 {print $3}'", "N\n"), by(LOADTXT, "7 1\n")]),
    script("osu_mbw_mr -m 2097152:2097152 -x 1 -i 2", &[by("grep -v '#' | awk '{print $2}'", "N\n")]),
    script(
        "osu_mbw_mr -V -m 8:8 -x 1 -i 2",
        &[by("awk '/^8 / {print NF}'", "9\n9\n"), by("grep -c 'Message Rate Profile'", "1\n")],
    ),
    script("osu_multi_lat -m 8:64 -i 20", &[by("tail -n 1 | awk '{print $1}'", "64\n")]),
    script("osu_latency_mt -t 2:2 -m 8:8 -i 20", &[by("grep -v '^#' | grep . | awk '{print $2}'", "N\n")]),
    script(
        "osu_barrier -x 10 -i 20 -f -z",
        &[by("tail -n 1 | awk '{printf \"linear,%s,%s\\n\", $1, NF}'", "linear,N,7\n")],
    ),
    script("osu_barrier -x 10 -i 40", &[by("tail -n 1 | tr -d ' '", "N\n")]),
    script(
        "osu_bcast -x 10 -i 20 -m 1:1 -f",
        &[by("tail -n 1 | awk '{gsub(/ +/, \",\"); print}' | cut -d , -f 2-4", "N,N,N\n")],
    ),
    script(
        "osu_allreduce -m 16 -x 5 -i 5",
        &[
            by("tail -n 1 | awk '{print $2}'", "N\n"),
            by("sed '/^#/d;/^$/d' | awk 'END {print NR}'", "(3|5)\n"),
            by("awk 'NR > 4 {print $1}' | paste -sd ,", "(1,2,)?4,8,16\n"),
        ],
    ),
    script(
        "osu_allreduce -m 8:64 -T mpi_float -i 10 -f",
        &[by("awk '/^[0-9]/ && NF == 5 && $3 <= $2 && $2 <= $4 {n++} END {print n}'", "4\n")],
    ),
    script(
        "osu_allgather -m 1:4 -x 2 -i 10",
        &[by(
            "python3 -c '
import sys
for line in sys.stdin:
    if \"MPI_CHAR\" in line:
        next(sys.stdin)
        print([int(float(row.split()[0])) for row in sys.stdin if len(row.split()) == 2])'",
            "\\[1, 2, 4\\]\n",
        )],
    ),
    script("osu_alltoall -m 8 -x 2 -i 20", &[by("grep -E '^8\\s+\\S+$' | wc -l", "1\n")]),
    script(
        "osu_ibarrier -x 2 -i 10",
        &[by("awk '!/^#/ && NF == 4 {print $4}'", "N\n"), by("grep -c 'Overlap(%)'", "1\n")],
    ),
    script(
        "osu_put_latency -s lock -m 8:64 -i 10",
        &[by("awk '/Synchronization/ {print $3}'", "\\S+lock\\S*\n")],
    ),
    script(
        "osu_get_bw -w create -s FLUSH -m 8:64 -i 10",
        &[by("grep -A 9 'Bandwidth' | grep -c '^[0-9]'", "4\n")],
    ),
    script("osu_hello", &[by("grep -o 'with [0-9]* processes'", "with 2 processes\n")]),
    script(
        "osu_init",
        &[
            by("sed 's/,//g' | awk '/nprocs/ {print $2, $5, $8, $11}'", "2 ms ms ms\n"),
            by("grep -c avg:", "1\n"),
        ],
    ),
    script("mpitests-osu_latency -m 8:8 -i 20", &[by("grep -c ^8", "1\n")]),
    script("mpitests-IMB-MPI1 pingpong -iter 5 -msglog 3", &[by("grep -c 'Benchmarking PingPong'", "1\n")]),
    script(
        "IMB-MPI1 pingpong -iter 5 -msglog 9:10",
        &[
            by("grep -A1 repetitions | tail -n 1 | awk '{print $3}'", "N\n"),
            by("awk '$1 == 1024 {print $4}'", "N\n"),
            by("grep '^ *1024 ' | tr -s ' ' | cut -d ' ' -f 4", "N\n"),
            by("sed -n '/#bytes/,/^$/p' | tail -n +2 | grep . | wc -l", "3\n"),
            by("grep -c 'All processes entering MPI_Finalize'", "1\n"),
            by(
                "perl -ne '$n++ if /^\\s*\\d+\\s+\\d+\\s+[0-9]*\\.?[0-9]+\\s+[0-9]*\\.?[0-9]+\\s*$/; END {print $n}'",
                "3",
            ),
            by("grep -c '^# Benchmarking PingPong $'", "1\n"),
            by(IMB_TABLES, "pingpong 2 \\[0, 512, 1024\\]\n"),
        ],
    ),
    script(
        "IMB-MPI1 Allreduce -npmin 2 -iter 5 -msglog 3:4 -time 1000000",
        &[
            by("grep -A6 'Benchmarking Allreduce' | tail -n 2 | awk '{print $1, $5}'", "8 N\n16 N\n"),
            by(
                "awk '/t_min/ {on = 1; next} on && NF == 5 && /^ / {print ($3 <= $5 && $5 <= $4)}' | sort -u",
                "1\n",
            ),
        ],
    ),
    script(
        "IMB-MPI1 uniband biband alltoall -iter 5 -msglog 2:3",
        &[by(IMB_TABLES, "uniband 2 .*\nbiband 2 .*\nalltoall 2 \\[0, 4, 8\\]\n")],
    ),
    script(
        "IMB-MPI1 -msglog 0:2 -mem 2.3G -off_cache 1,64 -npmin 2 allgather -iter 5",
        &[by("awk '/#bytes/ {print NF}'", "5\n")],
    ),
    script(
        "IMB-MPI1 -npmin 2 -iter 1 barrier",
        &[by("grep -A1 '#repetitions' | tail -n 1 | awk '{print $4}'", "N\n")],
    ),
    script("IMB-MPI1 -iter 1,1,1 -time 0.001 pingping -msglog 2", &[by("awk '$1 == 4 {print $3}'", "N\n")]),
    script(
        "IMB-P2P -npmin 2 -time 2 -mem 2 -msglog 2:4 -iter 50 corandom",
        &[by("awk '/#bytes/ {print $NF}'", "Msg/sec\n")],
    ),
    script(
        "IMB-RMA -npmin 2 -time 2 -mem 2 -msglog 2:4 -iter 5 bidir_get",
        &[by("grep -ci 'benchmarking bidir_get'", "2\n")],
    ),
    script("IMB-EXT accumulate -iter 5 -msglog 2:4", &[by("grep -c 'MODE: *AGGREGATE'", "1\n")]),
    script("IMB-NBC iallgather_pure -iter 5 -msglog 2:4", &[by("awk '/^ *4 / {print NF}'", "5\n")]),
    script("IMB-IO S_Read_indv -iter 5 -msglog 2:3", &[by("awk '/^ *8 / {print NF}' | sort -u", "4\n")]),
    script(
        "IMB-MT PingPongMT -thread_level multiple -count 1,2 -repeat 10",
        &[by("awk '/#bytes/ {print $3, $5}'", "t_min\\[usec\\] t_avg\\[usec\\]\n")],
    ),
];
