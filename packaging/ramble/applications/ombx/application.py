"""Application of Ramble: benchmarks of ombx, with a figure of merit for each row."""

from ramble.appkit import *


class Ombx(ExecutableApplication):
    """Communication benchmarks by ombx, which starts its ranks itself, in several launches."""

    name = 'ombx'

    tags('synthetic-benchmarks', 'mpi', 'network')

    software_spec('ombx', pkg_spec='ombx', package_manager='spack*')

    # Benchmarks of each workload, by name or pattern.
    benchmarks = {
        'latency': 'p2p.latency',
        'bandwidth': 'p2p.bw p2p.bibw',
        'one-sided': 'rma.put_latency rma.get_latency rma.put_bw rma.get_bw',
        'collectives': 'collective.allreduce collective.alltoall collective.bcast collective.barrier',
        'sockets': 'sockets.latency sockets.bw',
    }

    for workload_name, names in benchmarks.items():
        # One process of ombx starts all ranks, so that Ramble needs no launcher of MPI.
        executable(
            f'run-{workload_name}',
            '{ombx} run {benchmarks} -n {n_ranks} --sizes {sizes} --format openmetrics -q {additional_args}',
            use_mpi=False,
        )
        workload(workload_name, executable=f'run-{workload_name}')
        workload_variable('benchmarks', default=names, description='Benchmarks, by name or pattern', workloads=[workload_name])

    executable(
        'run-links',
        '{ombx} links -n {n_ranks} --sizes {sizes} --format openmetrics -q {additional_args}',
        use_mpi=False,
    )
    workload('links', executable='run-links')

    all_workloads = [*benchmarks, 'links']
    workload_variable('ombx', default='ombx', description='Path of ombx', workloads=all_workloads)
    workload_variable('sizes', default='8,1M', description='Message sizes', workloads=all_workloads)
    workload_variable('additional_args', default='', description='Further options of ombx', workloads=all_workloads)

    # Benchmarks have a key, links have two ranks.
    figure_of_merit_context(
        'case',
        regex=r'ombx_\w+\{bench="(?P<bench>[^"]*)",key="(?P<key>[^"]+)"',
        output_format='{key}',
    )
    figure_of_merit_context(
        'link',
        regex=r'ombx_\w+\{bench="links",.*bytes="(?P<bytes>\d+)",from_host="(?P<from>[^"]*)",from_local_rank="(?P<from_rank>\d+)",'
        r'to_host="(?P<to>[^"]*)",to_local_rank="(?P<to_rank>\d+)"',
        output_format='{from} {from_rank} to {to} {to_rank}, {bytes} bytes',
    )
    figures = {
        'latency': ('ombx_latency_seconds', 's'),
        'latency, low end of the interval': ('ombx_latency_low_seconds', 's'),
        'latency, high end of the interval': ('ombx_latency_high_seconds', 's'),
        'bandwidth': ('ombx_bandwidth_bytes_per_second', 'B/s'),
        'message rate': ('ombx_rate_messages_per_second', '1/s'),
        'bus bandwidth': ('ombx_bus_bandwidth_bytes_per_second', 'B/s'),
    }
    # A figure that matches a line of another context would belong to no context: links have names of their own.
    for title, (metric, unit) in figures.items():
        for name, labels, context in [(title, r'\{bench="[^"]*",key=', 'case'), (f'{title} of a link', r'\{bench="links",fabric=', 'link')]:
            figure_of_merit(
                name,
                fom_regex=metric + labels + r'.*\} (?P<value>\S+)$',
                group_name='value',
                units=unit,
                contexts=[context],
            )
    figure_of_merit('slow parts', fom_regex=r'ombx_slow_parts\{.*\} (?P<value>\d+)', group_name='value', units='')

    # Figures are printed too if the run broke.
    success_criteria('complete', mode='string', match=r'^ombx_complete\{.*\} 1$', file='{log_file}')
