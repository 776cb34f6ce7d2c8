# device_array.py: a NumPy array's copy on the device, as launchers want it that expect one of PyTorch's: with data_ptr(),
# dtype, shape and stride(). PyTorch's own kernels are machine code, which cannot be emulated.
import ctypes

import numpy

cuda = ctypes.CDLL("libcuda.so.1")


def check(result):
    assert result == 0, f"CUDA error {result}"


check(cuda.cuInit(0))
context = ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))


class DeviceArray:
    def __init__(self, values):
        self.shape, self.dtype, self.bytes = values.shape, values.dtype, values.nbytes
        self.strides_of_elements = [stride // values.itemsize for stride in values.strides]
        self.address = ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(self.bytes)))
        check(cuda.cuMemcpyHtoD_v2(self.address, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(self.bytes)))

    def data_ptr(self):
        return self.address.value

    def stride(self):
        return self.strides_of_elements

    def numpy(self):  # waits for the kernels that were launched before
        values = numpy.empty(self.shape, self.dtype)
        check(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.address, ctypes.c_size_t(self.bytes)))
        return values
