/* runtime.h: the state behind the runtime's and the driver's calls. */
#ifndef EMULATOR_RUNTIME_H
#define EMULATOR_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "module.h"

/* The one lock: calls may come from several host threads. Recursive, because calls use calls. */
extern pthread_mutex_t runtime_lock;

/* A fat binary, or a module that the driver API loaded. */
typedef struct Image {
  struct Image *next;
  const void *container; /* NULL: text was given as such */
  size_t container_bytes;
  char *ptx;
  Module *module; /* loaded when it is first needed */
  bool linked;    /* by nvcc -rdc=true */
  char name[64];
} Image;

/* A kernel as the host knows it: the address of its stub, or a driver handle. */
typedef struct Kernel {
  struct Kernel *next;
  Image *image;
  const void *host_function;
  const char *device_name;
  const Function *entry; /* found when it is first needed */
  int dynamic_shared_limit;
  bool non_portable_cluster;
  int preferred_carveout;
} Kernel;

/* Every call returns through this: it keeps the last error, as the real runtime does. */
cudaError_t runtime_answer(cudaError_t error);
/* A call that waits for the device: prints the device's output and returns the sticky error. */
cudaError_t runtime_synchronise(void);
/* What a call that does not wait returns when a fault is already known: that fault. */
cudaError_t runtime_known_fault(void);

Image *runtime_add_image(const void *container, size_t bytes, char *ptx);
/* Loads the image's module; on failure says why on stderr and ends the program (exit 1). */
Module *runtime_module(Image *image);
const Function *runtime_entry(Kernel *kernel);
Kernel *runtime_find_kernel(const void *function_or_handle);
Kernel *runtime_add_kernel(Image *image, const void *host_function, const char *device_name);

typedef struct {
  Index3 grid, block, cluster; /* cluster {0,0,0}: none asked for */
  size_t dynamic_shared_bytes;
  bool cooperative;
} LaunchShape;
/* arguments: one pointer per parameter, or NULL when `packed` holds them all. */
cudaError_t runtime_launch(Kernel *kernel, LaunchShape shape, void **arguments, const void *packed,
                           size_t packed_bytes);
/* How many CTAs of this shape fit on one multiprocessor. */
int runtime_occupancy(const Kernel *kernel, const Function *entry, int threads,
                      size_t dynamic_shared_bytes);

/* device_attributes.c */
bool device_attribute(int attribute, int *value);

/* printf.c: what kernels printed is kept until the host synchronises, as on the real device. */
void device_output_flush(void);

#endif
