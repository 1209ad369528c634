# Spack recipe of ombx (untested). Put this folder into packages/ombx of a repository of yours (`spack repo create`).
from spack.package import *


class Ombx(Package):
    """Trustworthy communication micro-benchmarks for clusters: MPI point-to-point, one-sided and collective, every link of a
    machine, and sockets. Every figure has an interval, and every payload is verified."""

    homepage = "https://ombx.invalid"
    # The archive that `cargo xtask dist` writes. It contains all dependencies and builds offline.
    url = "file:///path/of/ombx-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    # version("0.1.0", sha256="from SHA256SUMS of the release")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("llvm+clang", type="build")
    depends_on("mpi")

    requires("^[virtuals=mpi] mpich", "^[virtuals=mpi] openmpi", policy="one_of", msg="ombx supports MPICH and Open MPI")

    def setup_build_environment(self, env):
        env.set("MPICC", self.spec["mpi"].prefix.bin.mpicc)
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec, prefix):
        Executable("cargo")("xtask", "install", "--mpi", spec["mpi"].name, "--prefix", prefix)
