# Spack recipe of ombx. Put this folder as packages/ombx into a repository of yours (`spack repo create`).
import os
import zipfile

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

# Bindings to MPI are generated with libclang. Its wheel has 24 MB; a build of LLVM takes an hour.
LIBCLANG = "https://files.pythonhosted.org/packages"


class Ombx(Package):
    """Trustworthy communication micro-benchmarks for clusters: MPI point-to-point, one-sided and collective, every link of a
    machine, and sockets. Every figure has an interval, and every payload is verified."""

    homepage = "https://ombx.invalid"
    # The archive that `cargo xtask dist` writes. It contains all dependencies and builds offline.
    url = "file:///path/of/ombx-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    # Add its checksum, sha256="..", which is in SHA256SUMS of the release.
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    # Any MPI: what ombx supports is in its README.
    depends_on("mpi")

    resource(
        name="libclang",
        when="target=x86_64:",
        url=LIBCLANG
        + "/1d/fc/716c1e62e512ef1c160e7984a73a5fc7df45166f2ff3f254e71c58076f7c"
        + "/libclang-18.1.1-py2.py3-none-manylinux2010_x86_64.whl",
        sha256="c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b",
        expand=False,
        placement="libclang",
    )
    resource(
        name="libclang",
        when="target=aarch64:",
        url=LIBCLANG
        + "/3c/3d/f0ac1150280d8d20d059608cf2d5ff61b7c3b7f7bcf9c0f425ab92df769a"
        + "/libclang-18.1.1-py2.py3-none-manylinux2014_aarch64.whl",
        sha256="54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592",
        expand=False,
        placement="libclang",
    )

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("MPICC", self.spec["mpi"].mpicc)
        env.set("CARGO_HOME", os.path.join(self.stage.path, "cargo"))

    def install(self, spec, prefix):
        (wheel,) = [name for name in os.listdir("libclang") if name.endswith(".whl")]
        with zipfile.ZipFile(os.path.join("libclang", wheel)) as files:
            (library,) = [name for name in files.namelist() if name.endswith("/libclang.so")]
            library = files.extract(library, "libclang")
        os.environ["LIBCLANG_PATH"] = os.path.abspath(os.path.dirname(library))
        # The wheel has no headers: those of the compiler serve.
        compiler = Executable("cc")
        headers = compiler("-print-file-name=include", output=str).strip()
        os.environ["BINDGEN_EXTRA_CLANG_ARGS"] = "-isystem " + headers
        cargo = Executable("cargo")
        cargo("install", "--locked", "--path", "crates/cli", "--features", "figures", "--root", prefix)

    def test_list(self):
        """the program starts and knows its benchmarks"""
        ombx = Executable(self.prefix.bin.ombx)
        assert "p2p.latency" in ombx("list", "p2p.latency", output=str)
