"""Loads the Spack recipe with the names of Spack's package API in place, and runs its steps. Prints what it did as JSON.

Usage: recipes.py RECIPE DIRECTORY (which becomes the directory of the sources)
"""
import importlib.util
import json
import os
import sys
import types
import zipfile

recipe, directory = sys.argv[1:]
done = {"versions": [], "depends_on": [], "resources": [], "commands": [], "set": {}}


class Package:
    pass


class Executable:
    def __init__(self, name):
        self.name = str(name)

    def __call__(self, *words, **options):
        done["commands"].append([self.name, *map(str, words)])
        return "p2p.latency\n"


class Path(str):
    """A prefix of Spack: attributes are names below it."""

    def __getattr__(self, name):
        return Path(f"{self}/{name}")


api = {
    "license": lambda text, **options: None,
    "version": lambda text, **options: done["versions"].append(text),
    "depends_on": lambda text, **options: done["depends_on"].append(text),
    "resource": lambda **options: done["resources"].append(options),
    "Executable": Executable,
    "EnvironmentModifications": object,
}
modules = ["spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]
for name in [*modules, "spack_repo.builtin.build_systems.generic", "spack", "spack.package"]:
    sys.modules[name] = types.ModuleType(name)
sys.modules["spack_repo.builtin.build_systems.generic"].Package = Package
sys.modules["spack.package"].__dict__.update(api, __all__=list(api))

spec = importlib.util.spec_from_file_location("ombx_recipe", recipe)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

os.chdir(directory)
os.mkdir("libclang")
with zipfile.ZipFile("libclang/libclang-0-none-any.whl", "w") as files:
    files.writestr("libclang-0.data/platlib/clang/native/libclang.so", "")
package = module.Ombx()
package.spec = {"mpi": types.SimpleNamespace(mpicc="/mpi/bin/mpicc")}
package.stage = types.SimpleNamespace(path="/stage")
package.prefix = Path("/prefix")
package.setup_build_environment(types.SimpleNamespace(set=done["set"].__setitem__))
package.install(None, package.prefix)
package.test_list()
done["homepage"] = package.homepage
done["libclang"] = os.listdir(os.environ["LIBCLANG_PATH"])
print(json.dumps(done))
