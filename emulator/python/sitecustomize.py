# sitecustomize.py: Python runs this when it starts, as emulate puts its folder on PYTHONPATH. Packages bring copies of
# CUDA's runtime in their modules, and load NVRTC and nvJitLink in ways of their own. As each is imported, its
# functions are made to jump to the emulator's (runtime/static_runtime.c).
import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import sys

# The modules whose functions only pass on what they are given, each under the name of CUDA's with an underscore.
BINDINGS = {"cuda.bindings._internal." + name for name in ("runtime", "nvrtc", "nvjitlink")}
PACKAGES_WITH_RUNTIME = {"cupy", "cupy_backends"}


def take_over(module):
    emulator = ctypes.CDLL("libcudart.so.13")
    address_of = ctypes.pythonapi.PyCapsule_GetPointer
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    type_of = ctypes.pythonapi.PyCapsule_GetName
    type_of.restype, type_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for name, capsule in getattr(module, "__pyx_capi__", {}).items():
        if name.startswith(("_cuda", "_nvrtcGetCUBIN", "_nvJitLink")):
            function = address_of(capsule, type_of(capsule))
            emulator.emulator_take_over(ctypes.c_void_p(function), name[1:].encode())


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        package = name.partition(".")[0]
        if name not in BINDINGS and package not in PACKAGES_WITH_RUNTIME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if not spec or not isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
            return spec
        if name in BINDINGS:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), take_over(module))
        else:
            try:
                ctypes.CDLL(spec.origin)
            except OSError:  # it needs a library that is not here: the import says so
                return spec
            ctypes.CDLL("libcudart.so.13").emulator_take_over_library(spec.origin.encode())
        return spec


sys.meta_path.insert(0, Finder())

# The one that this file stands in front of, if there is one.
folder = __file__.rpartition("/")[0]
sys.path = [entry for entry in sys.path if entry != folder]
other = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if other:
    other.loader.exec_module(importlib.util.module_from_spec(other))
