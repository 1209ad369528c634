#%Module1.0
# Module file of ombx for Lmod and environment-modules. It finds the prefix from its own place, so the prefix can be moved.

set prefix [file normalize $ModulesCurrentModulefile/../../../..]

proc ModulesHelp { } {
    puts stderr "ombx @VERSION@: trustworthy communication benchmarks for clusters"
    puts stderr "It takes the MPI whose mpiexec is first in PATH; `ombx --mpi NAME` chooses another."
    puts stderr "Try: ombx run p2p.latency, ombx doctor, man ombx"
}
module-whatis "ombx @VERSION@: trustworthy communication benchmarks for clusters"

conflict ombx
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
# An empty element keeps the manual pages of the system.
append-path MANPATH {}
