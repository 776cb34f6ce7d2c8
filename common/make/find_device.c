/* find_device.c: is there a GPU that the lessons can run on?
 *
 * Prints "gpu NAME" and exits 0 for a Hopper GPU, and exits 1 for everything else: "untested NAME AND CAPABILITY"
 * for a GPU after Hopper, on which the lessons run only when they are told to, or "emulator WHY". Opens the driver library at run
 * time, so that it builds and runs on machines without one. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

static int use_emulator(const char *format, const char *detail, int number, int minor) {
  printf("emulator ");
  printf(format, detail, number, minor);
  printf("\n");
  return 1;
}

int main(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return use_emulator("no NVIDIA driver is installed%s", "", 0, 0);
  CUresult (*initialise)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  CUresult (*count)(int *) = (CUresult(*)(int *))dlsym(driver, "cuDeviceGetCount");
  CUresult (*get_name)(char *, int, CUdevice) =
      (CUresult(*)(char *, int, CUdevice))dlsym(driver, "cuDeviceGetName");
  CUresult (*get_attribute)(int *, CUdevice_attribute, CUdevice) =
      (CUresult(*)(int *, CUdevice_attribute, CUdevice))dlsym(driver, "cuDeviceGetAttribute");
  if (!initialise || !count || !get_name || !get_attribute) {
    return use_emulator("libcuda.so.1 lacks cuInit or a similar function%s", "", 0, 0);
  }
  CUresult result = initialise(0);
  int devices = 0;
  if (result != CUDA_SUCCESS) return use_emulator("the driver%s answers error %d", "", result, 0);
  if (count(&devices) != CUDA_SUCCESS || devices == 0) {
    return use_emulator("the driver finds no GPU%s", "", 0, 0);
  }
  char name[256] = "unnamed";
  int major = 0, minor = 0;
  get_name(name, sizeof name, 0);
  get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  if (major > 9) {
    printf("untested %s has compute capability %d.%d\n", name, major, minor);
    return 1;
  }
  if (major != 9 || minor != 0) {
    return use_emulator("%s has compute capability %d.%d, and TMA lessons need 9.0", name, major,
                        minor);
  }
  printf("gpu %s\n", name);
  return fflush(stdout) == 0 ? 0 : 1;
}
