"""Example of a site: checks of ombx_checks.py with references of one system. The numbers are examples."""

import reframe as rfm

import ombx_checks as ombx


@rfm.simple_test
class SiteLatency(ombx.OmbxLatency):
    modules = ['ombx']
    ombx_options = ['--budget=60s']
    reference = {
        'cluster:compute': {
            # The check fails if the whole interval is more than 10 % above the reference.
            'latency_8_low': (1.20, None, 0.10, 'us'),
        },
    }


@rfm.simple_test
class SiteBandwidth(ombx.OmbxBandwidth):
    modules = ['ombx']
    reference = {
        'cluster:compute': {
            # The check fails if the whole interval is more than 5 % below the reference.
            'bandwidth_1048576_high': (12000, -0.05, None, 'MB/s'),
        },
    }


@rfm.simple_test
class SiteLinks(ombx.OmbxLinks):
    modules = ['ombx']
    num_tasks = 16
    demands = ['latency<3us', 'bw>11GB/s']
