# launchers.py: what the launchers of other languages ask before they use the device, asked through ctypes as they ask.
# Prints one line for each part (launchers.bats). On an H200 management_library, pools, pointers and tensor_map answer
# the same, but that it knows its power.
import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def must(result):
    assert result == 0, f"answer {result}"


must(driver.cuInit(0))
context = pointer()
must(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(driver.cuCtxSetCurrent(context))


def management_library():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    must(nvml.nvmlInit_v2())
    count, device, again = ctypes.c_uint(), pointer(), pointer()
    must(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    driver_id, info = ctypes.create_string_buffer(32), ctypes.create_string_buffer(68)
    must(driver.cuDeviceGetPCIBusId(driver_id, 32, 0))
    must(nvml.nvmlDeviceGetPciInfo_v3(device, info))
    same_place = info.raw[:16].rstrip(b"\0") == driver_id.value
    must(nvml.nvmlDeviceGetHandleByPciBusId_v2(driver_id.value, ctypes.byref(again)))
    own, name = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    must(driver.cuDeviceGetName(own, 64, 0))
    must(nvml.nvmlDeviceGetName(device, name, 64))
    absent = nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:17:00.0", ctypes.byref(again))
    return (f"devices {count.value}, the driver's place {same_place}, its name {own.value == name.value}, "
            f"elsewhere {absent}, power {nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(count))}")


def old_names():
    other, stream, event = pointer(), pointer(), pointer()
    must(driver.cuCtxCreate_v2(ctypes.byref(other), 0, 0))
    must(driver.cuCtxPopCurrent(ctypes.byref(other)))
    must(driver.cuCtxPushCurrent(other))
    must(driver.cuCtxDestroy(other))
    must(driver.cuStreamCreate(ctypes.byref(stream), 0))
    must(driver.cuStreamBeginCapture(stream))
    graph, instance = pointer(), pointer()
    must(driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
    must(driver.cuGraphInstantiate(ctypes.byref(instance), graph, None, None, size(0)))
    must(driver.cuStreamDestroy(stream))
    must(driver.cuEventCreate(ctypes.byref(event), 0))
    must(driver.cuEventDestroy(event))
    return f"a destroyed event: {driver.cuEventDestroy(event)}"


def questions():
    answer = size()
    return " ".join(str(call(ctypes.byref(answer), None, 0)) for call in (
        driver.cuMemGetAllocationGranularity, driver.cuMulticastGetGranularity, driver.cuMemPoolCreate,
        runtime.cudaMemPoolCreate))


def pools():
    pool, default, memory, threshold = pointer(), pointer(), ctypes.c_uint64(), ctypes.c_uint64(1 << 40)
    must(driver.cuDeviceGetMemPool(ctypes.byref(pool), 0))
    must(driver.cuDeviceGetDefaultMemPool(ctypes.byref(default), 0))
    must(driver.cuDeviceSetMemPool(0, pool))
    must(driver.cuMemPoolSetAttribute(pool, 4, ctypes.byref(threshold)))
    threshold.value = 0
    must(driver.cuMemPoolGetAttribute(pool, 4, ctypes.byref(threshold)))
    device = (number * 3)(1, 0, 3)  # a device, number 0, read and write
    must(driver.cuMemPoolSetAccess(pool, device, size(1)))
    access = number()
    must(driver.cuMemPoolGetAccess(ctypes.byref(access), pool, device))
    must(driver.cuMemAllocFromPoolAsync(ctypes.byref(memory), size(64), pool, None))
    must(driver.cuMemFreeAsync(memory, None))
    must(driver.cuMemPoolTrimTo(pool, size(0)))
    other = (number * 3)(1, 1, 3)
    return (f"one pool {pool.value == default.value}, threshold {threshold.value >> 40} TiB, access {access.value}, "
            f"another device {driver.cuMemPoolSetAccess(pool, other, size(1))}, "
            f"no pool {driver.cuMemAllocFromPoolAsync(ctypes.byref(memory), size(64), None, None)}")


def pointers():
    memory, own = ctypes.c_uint64(), ctypes.create_string_buffer(8)
    must(driver.cuMemAlloc_v2(ctypes.byref(memory), size(64)))
    answers = []
    for address in (memory.value + 4, ctypes.addressof(own)):
        kind, device, start = number(7), number(7), ctypes.c_uint64(7)
        data = (pointer * 3)(*(ctypes.addressof(answer) for answer in (kind, device, start)))
        must(driver.cuPointerGetAttributes(3, (number * 3)(2, 9, 11), data, ctypes.c_uint64(address)))
        answers.append((kind.value, device.value, start.value == memory.value))
    return str(answers)


def cute_dsl():
    library = ctypes.CDLL("libcute_dsl_runtime.so")
    loads = []
    load_type = ctypes.CFUNCTYPE(number, ctypes.POINTER(pointer))
    set_up_type = ctypes.CFUNCTYPE(number, ctypes.POINTER(pointer), number)
    report_type = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)

    def load(kept):
        loads.append("load")
        kept[0] = 0x1000
        return 0

    arguments = (load_type(load), set_up_type(lambda kept, device: loads.append(device) or 0),
                 report_type(lambda kind, message: loads.append(message)))
    kept = pointer()
    for _ in range(2):
        must(library.cuda_dialect_init_library_once(ctypes.byref(kept), *arguments))
    failing = pointer()
    answer = library.cuda_dialect_init_library_once(
        ctypes.byref(failing), load_type(lambda kept: 2), *arguments[1:])
    memory = pointer()
    must(library._cudaMalloc(ctypes.byref(memory), size(64)))
    must(library._cudaMemset(memory, 1, size(64)))
    return f"{kept.value:#x} {loads} {answer} {failing.value}, freed twice: " + \
        f"{library._cudaFree(memory)} {library._cudaFree(memory)}"


def linker():
    text, linked, bytes_needed = b"// a text", pointer(), size()
    must(runtime.nvJitLinkCreate(ctypes.byref(linked), 0, None))
    empty = runtime.nvJitLinkComplete(linked)
    must(runtime.nvJitLinkAddData(linked, 2, text, size(len(text)), b"name"))
    must(runtime.nvJitLinkComplete(linked))
    must(runtime.nvJitLinkGetLinkedCubinSize(linked, ctypes.byref(bytes_needed)))
    cubin = ctypes.create_string_buffer(bytes_needed.value)
    must(runtime.nvJitLinkGetLinkedCubin(linked, cubin))
    answers = [runtime.nvJitLinkAddData(linked, kind, text, size(len(text)), b"name") for kind in (2, 3)]
    must(runtime.nvJitLinkGetErrorLogSize(linked, ctypes.byref(bytes_needed)))
    log = ctypes.create_string_buffer(bytes_needed.value)
    must(runtime.nvJitLinkGetErrorLog(linked, log))
    must(runtime.nvJitLinkDestroy(ctypes.byref(linked)))
    return f"{empty}, {cubin.value == text}, {answers}, {log.value.decode()}"


def load_image(file, kernel):
    with open(file, "rb") as image:
        data = image.read()
    module, function, memory, value = pointer(), pointer(), ctypes.c_uint64(), number()
    must(driver.cuModuleLoadData(ctypes.byref(module), data))
    must(driver.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()))
    must(driver.cuMemAlloc_v2(ctypes.byref(memory), size(4)))
    arguments = (pointer * 1)(ctypes.addressof(memory))
    must(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    must(driver.cuMemcpyDtoH_v2(ctypes.byref(value), memory, size(4)))
    return f"{kernel} wrote {value.value}"


# The map that code compiled by CuTe DSL makes: as the driver's, but bit 1 of word 1 is set, and the second half is not.
# An H200 (driver 580.159.04) takes it so, and with bit 2 or 3, too; with bit 0 it answers 715.
def tensor_map(file):
    with open(file, "rb") as text:
        data = text.read()
    module, function = pointer(), pointer()
    must(driver.cuModuleLoadData(ctypes.byref(module), data))
    must(driver.cuModuleGetFunction(ctypes.byref(function), module, b"last_of_tile"))
    matrix, answer, value = ctypes.c_uint64(), ctypes.c_uint64(), number()
    must(driver.cuMemAlloc_v2(ctypes.byref(matrix), size(256)))
    must(driver.cuMemAlloc_v2(ctypes.byref(answer), size(4)))
    must(driver.cuMemcpyHtoD_v2(matrix, (number * 64)(*range(64)), size(256)))
    space = ctypes.create_string_buffer(192)
    words = (ctypes.c_uint64 * 16).from_buffer(space, -ctypes.addressof(space) % 64)
    sides, strides = (ctypes.c_uint64 * 2)(8, 8), (ctypes.c_uint64 * 1)(32)
    must(driver.cuTensorMapEncodeTiled(words, 3, 2, matrix, sides, strides, (number * 2)(4, 4), (number * 2)(1, 1),
                                       0, 0, 0, 0))
    words[1] |= 2
    words[8:] = [0x1234567890] * 8
    arguments = (pointer * 2)(ctypes.addressof(words), ctypes.addressof(answer))
    must(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    must(driver.cuMemcpyDtoH_v2(ctypes.byref(value), answer, size(4)))
    return f"the tile ends with {value.value}"


def library(path):
    loaded = ctypes.CDLL(path)
    runtime.emulator_take_over_library(path.encode())
    return f"devices {loaded.count()}"


print(globals()[sys.argv[1]](*sys.argv[2:]))
