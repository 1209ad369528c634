"""Checks of ReFrame 4 with ombx: latency, bandwidth, links, two collectives and the programs of OMB.

Each check runs ombx once and reads the result file, not the printed table. ombx starts the ranks itself, several times, on the
hosts of the job. A check fails if ombx ends with an exit code other than 0, if data arrived wrong, or if a reference is missed.
"""

import csv
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.exceptions import PerformanceError

# `ombx help exit-codes` has the whole table.
EXIT_CODES = {
    2: 'the command line is wrong',
    4: 'a case failed or was skipped',
    5: 'data arrived wrong',
    6: 'the launcher, MPI or a connection failed, or a rank died',
    7: 'the result file could not be written or read',
    9: 'something is slow, or misses a demand',
    10: 'no verdict is possible',
    127: 'ombx is not in PATH: set ombx_binary or modules',
}


class OmbxCheck(rfm.RunOnlyRegressionTest):
    """Base of all checks: runs ombx, verifies that it succeeded, and makes a performance variable of each row."""

    #: Program to run.
    ombx_binary = variable(str, value='ombx')
    #: Further options of ombx, such as --budget=60s or --fabric=tcp.
    ombx_options = variable(typ.List[str], value=[])
    #: Message sizes, as `ombx run --sizes` takes them.
    sizes = variable(str, value='8,1M')
    #: Whether rows with a mark of the level `invalid` may be compared with references. ombx says: no verdict may rest on them.
    accept_invalid = variable(typ.Bool, value=False)

    valid_systems = ['*']
    valid_prog_environs = ['*']
    num_tasks = 2
    # Other jobs on the same hosts would spoil the figures. The local scheduler needs --exec-policy=serial for that.
    exclusive_access = True
    tags = {'ombx'}
    #: Raw samples of the run. `ombx compare` and `ombx report` read this file.
    keep_files = ['result.jsonl', 'result.csv']

    def command(self):
        """Returns the subcommand of ombx with its arguments."""
        raise NotImplementedError

    @run_before('run')
    def compose(self):
        # One process of ombx starts all ranks: by srun inside an allocation of Slurm, else by mpiexec.
        self.job.launcher = getlauncher('local')()
        self.executable = self.ombx_binary
        ranks = ['-n', str(self.num_tasks), '-o', 'result.jsonl']
        self.executable_opts = self.command() + ranks + self.ombx_options
        self.postrun_cmds = [
            'echo $? >ombx.exit',
            f'test ! -s result.jsonl || {self.ombx_binary} show result.jsonl --format csv >result.csv',
        ]

    def read(self, name):
        with open(os.path.join(self.stagedir, name), encoding='utf-8', newline='') as file:
            return file.read()

    def rows(self):
        """Returns the rows of the result as dictionaries. Rows of a verdict have no outcome and are left out."""
        table = csv.DictReader(self.read('result.csv').splitlines())
        return [row for row in table if row['outcome']]

    @sanity_function
    def succeeded(self):
        code = int(self.read('ombx.exit'))
        if code != 0:
            lines = [line for line in self.read(str(self.stderr)).splitlines() if line.startswith('ombx: ')]
            reason = EXIT_CODES.get(code, 'see `ombx help exit-codes`')
            said = f': {lines[-1]}' if lines else ''
            return sn.assert_true(False, f'ombx ended with code {code}, {reason}{said}')
        rows = self.rows()
        sn.evaluate(sn.assert_true(rows, 'the result has no row'))
        for row in rows:
            case = row.get('key') or f"{row['from']} to {row['to']}, {row['bytes']} bytes"
            # `--no-verify` in ombx_options makes the check `off`, which is refused too.
            sn.evaluate(sn.assert_eq(row['outcome'], 'ok', f'{case}: the case did not run'))
            sn.evaluate(sn.assert_eq(row['check'], 'passed', f'{case}: the data was not verified'))
            marks = zip(row['trust'].split(';'), row['levels'].split(';'))
            invalid = [mark for mark, level in marks if level == 'invalid']
            sn.evaluate(sn.assert_true(
                self.accept_invalid or not invalid,
                f'{case} is marked {", ".join(invalid)}: see `ombx help marks`, or set accept_invalid'))
        return True

    def figures(self):
        """Returns pairs of the name of a performance variable and its value with its unit."""
        for row in self.rows():
            size = row['bytes']
            if row['metric'] == 'bandwidth':
                name, unit = f'bandwidth_{size}', 'MB/s'
                values = [row['mb_per_s'], row['mb_per_s_low'], row['mb_per_s_high']]
            else:
                name, unit = f'latency_{size}', 'us'
                times = [row['median_ns'], row['ci95_low_ns'], row['ci95_high_ns']]
                values = [float(time) / 1000 if time else '' for time in times]
            # A row without an interval has the mark `no interval`.
            for ending, value in zip(['', '_low', '_high'], values):
                if value != '':
                    yield name + ending, (float(value), unit)

    @run_before('performance')
    def collect(self):
        figures = list(self.figures())
        names = [name for name, _ in figures]
        for name in names:
            if names.count(name) > 1:
                raise PerformanceError(
                    f'two rows are called {name}: choose one value of each axis in ombx_options')
        for name, (value, unit) in figures:
            self.perf_variables[name] = sn.make_performance_function(sn.defer(value), unit)
        # ReFrame ignores a reference whose variable does not exist. A misspelt name would never fail.
        scope = getattr(self.reference, 'scope', lambda _: {})
        for name in scope(self.current_partition.fullname):
            if name not in names:
                raise PerformanceError(
                    f'no variable has the name of the reference {name}; there are {", ".join(names)} '
                    '(a row without an interval has no _low and _high)')


class OmbxRun(OmbxCheck):
    """Base of checks with one benchmark of `ombx run`."""

    #: Name of the benchmark, as `ombx list` shows it.
    benchmark = variable(str)

    def command(self):
        return ['run', self.benchmark, '--sizes', self.sizes]


@rfm.simple_test
class OmbxLatency(OmbxRun):
    descr = 'Latency between two ranks'
    benchmark = 'p2p.latency'
    num_tasks_per_node = 1


@rfm.simple_test
class OmbxBandwidth(OmbxRun):
    descr = 'Bandwidth between two ranks'
    benchmark = 'p2p.bw'
    num_tasks_per_node = 1


@rfm.simple_test
class OmbxCollective(OmbxRun):
    descr = 'Collective operation over all ranks'
    operation = parameter(['allreduce', 'alltoall'])

    @run_after('init')
    def choose(self):
        self.benchmark = f'collective.{self.operation}'


@rfm.simple_test
class OmbxOsu(OmbxCheck):
    """A program of OMB by its name, with OMB's options. The figures are medians with intervals, not OMB's means."""

    descr = 'Program of OMB'
    program = parameter(['osu_latency', 'osu_bw', 'osu_allreduce', 'osu_alltoall'])
    #: Smallest and largest message size, as OMB's option -m takes them.
    sizes = '8:8'

    def command(self):
        return ['osu', self.program, '-m', self.sizes]


@rfm.simple_test
class OmbxLinks(OmbxCheck):
    """Every link between the hosts of the job. ombx itself fails if one is slow, and if there are too few links for a verdict."""

    descr = 'Every link between the hosts'
    num_tasks = 4
    num_tasks_per_node = 1
    #: Limits that every link must keep, such as 'latency<2us' and 'bw>11GB/s'.
    demands = variable(typ.List[str], value=[])
    keep_files = ['result.jsonl', 'result.csv', 'links.json']

    def command(self):
        demands = [f"--expect='{demand}'" for demand in self.demands]
        return ['links', '--sizes', self.sizes, '--format', 'json', '>links.json'] + demands

    def figures(self):
        # A figure over several links has no interval: the fastest and the slowest link are its range.
        for size in json.loads(self.read('links.json'))['sizes']:
            for which in ['fastest', 'median', 'slowest']:
                yield f"{which}_latency_{size['bytes']}", (size[which]['us'], 'us')
                yield f"{which}_bandwidth_{size['bytes']}", (size[which]['mb_per_s'], 'MB/s')
