// textures.cu: arrays, textures and surfaces, by both APIs, held against the formulas of the CUDA
// Programming Guide ("Texture Fetching") worked out on the host.
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/check.h"

enum { WIDTH = 16, HEIGHT = 8, DEPTH = 4, POINTS = 4096 };

// The chip rounds the weights of several axes to multiples of 1/256; texels are -50 to 50.
static const double WEIGHTS_ROUNDED = 2.0;

static float volume[DEPTH][HEIGHT][WIDTH];
static float *device_results;
static float results[POINTS];

// Coordinates that both sides work out: multiples of 1/256 from far left to far right, which a
// filter with 8 bits behind the point weighs exactly.
__host__ __device__ static float coordinate(int point, int axis, int size) {
  uint32_t h = (uint32_t)(point * 3 + axis) * 2654435761u >> 8;
  return (float)(int)(h % (uint32_t)(512 * size)) / 256.f - (float)size / 2.f;
}

__global__ void sample(cudaTextureObject_t texture, int dimensions, int layered, bool normalised,
                       float *out) {
  int point = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  float x = coordinate(point, 0, WIDTH), y = coordinate(point, 1, HEIGHT);
  float z = coordinate(point, 2, DEPTH);
  if (normalised) x /= WIDTH, y /= HEIGHT, z /= DEPTH;
  float value;
  if (layered && dimensions == 1)
    value = tex1DLayered<float>(texture, x, point % DEPTH);
  else if (layered)
    value = tex2DLayered<float>(texture, x, y, point % DEPTH);
  else if (dimensions == 1)
    value = tex1D<float>(texture, x);
  else if (dimensions == 2)
    value = point % 2 ? tex2D<float>(texture, x, y) : tex2DLod<float>(texture, x, y, 0.f);
  else
    value = tex3D<float>(texture, x, y, z);
  out[point] = value;
}

// ---- The same on the host ----

static int addressed(int mode, bool normalised, int index, int size) {
  if (!normalised && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror))
    mode = cudaAddressModeClamp;
  if (mode == cudaAddressModeWrap) return ((index % size) + size) % size;
  if (mode == cudaAddressModeMirror) {
    int place = ((index % (2 * size)) + 2 * size) % (2 * size);
    return place < size ? place : 2 * size - 1 - place;
  }
  if (mode == cudaAddressModeClamp) return index < 0 ? 0 : index < size ? index : size - 1;
  return index < 0 || index >= size ? -1 : index;
}

static double expected(int point, int dimensions, int layered, int mode, bool linear,
                       bool normalised) {
  const int size[3] = {WIDTH, HEIGHT, DEPTH};
  int first[3] = {0, 0, 0};
  double part[3] = {0, 0, 0};
  for (int axis = 0; axis < dimensions; axis++) {
    double at = coordinate(point, axis, size[axis]) - (linear ? 0.5 : 0.0);
    first[axis] = (int)floor(at);
    part[axis] = linear ? at - floor(at) : 0;
  }
  double sum = 0;
  for (int corner = 0; corner < 8; corner++) {
    double share = 1;
    int at[3] = {0, 0, 0};
    for (int axis = 0; axis < 3; axis++) {
      bool second = (corner >> axis) & 1;
      share *= second ? part[axis] : 1 - part[axis];
      if (axis < dimensions)
        at[axis] = addressed(mode, normalised, first[axis] + second, size[axis]);
    }
    if (layered) at[2] = point % DEPTH;
    if (share == 0 || at[0] < 0 || at[1] < 0 || at[2] < 0) continue;
    sum += share * volume[at[2]][at[1]][at[0]];
  }
  return sum;
}

static cudaArray_t make_array(int dimensions, int layered) {
  cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  size_t rows = dimensions > 1 ? HEIGHT : 1, slices = dimensions > 2 || layered ? DEPTH : 1;
  if (slices == 1) {
    CUDA_CHECK(cudaMallocArray(&array, &channels, WIDTH, dimensions > 1 ? HEIGHT : 0, 0));
    CUDA_CHECK(cudaMemcpy2DToArray(array, 0, 0, volume, WIDTH * 4, WIDTH * 4, rows,
                                   cudaMemcpyHostToDevice));
    return array;
  }
  CUDA_CHECK(cudaMalloc3DArray(&array, &channels,
                               make_cudaExtent(WIDTH, dimensions > 1 ? HEIGHT : 0, DEPTH),
                               layered ? cudaArrayLayered : 0));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(volume, WIDTH * 4, WIDTH, HEIGHT);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(WIDTH, rows, DEPTH);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA_CHECK(cudaMemcpy3D(&copy));
  return array;
}

static void sampling(int dimensions, int layered) {
  cudaArray_t array = make_array(dimensions, layered);
  for (int mode = cudaAddressModeWrap; mode <= cudaAddressModeBorder; mode++)
    for (int linear = 0; linear < 2; linear++)
      for (int normalised = 0; normalised < 2; normalised++) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        cudaTextureDesc how = {};
        for (int i = 0; i < 3; i++)
          how.addressMode[i] = i < dimensions ? (cudaTextureAddressMode)mode : cudaAddressModeClamp;
        how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        how.normalizedCoords = normalised;
        cudaTextureObject_t texture;
        CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
        sample<<<POINTS / 128, 128>>>(texture, dimensions, layered, normalised, device_results);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
        int wrong = 0;
        for (int i = 0; i < POINTS; i++)
          wrong += fabs(results[i] - expected(i, dimensions, layered, mode, linear, normalised)) >
                   (linear ? WEIGHTS_ROUNDED : 0);
        check_that(wrong == 0, "%dD%s, address mode %d, %s%s: %d values are wrong", dimensions,
                   layered ? " layered" : "", mode, linear ? "linear" : "point",
                   normalised ? ", normalised" : "", wrong);
        CUDA_CHECK(cudaDestroyTextureObject(texture));
      }
  CUDA_CHECK(cudaFreeArray(array));
}

// ---- Memory, conversions, gather ----

__global__ void convert(cudaTextureObject_t bytes, cudaTextureObject_t shorts,
                        cudaTextureObject_t whole, cudaTextureObject_t plane, float *out) {
  out[0] = tex1D<float>(bytes, 1.5f);         // 51 of 255
  out[1] = tex1D<float2>(shorts, 0.5f).x;     // -32768: -1
  out[2] = tex1D<float2>(shorts, 1.5f).y;     // 32767: 1
  out[3] = (float)tex1Dfetch<int>(whole, 7);  // 700
  out[4] = (float)tex1Dfetch<int>(whole, 8);  // past the end: 0
  float4 four = tex2Dgather<float4>(plane, 2.f, 3.f, 0);
  out[5] = four.x, out[6] = four.y, out[7] = four.z, out[8] = four.w;
  out[9] = tex1D<float4>(bytes, 1.5f).w;  // a channel that the format lacks
}

static cudaTextureObject_t texture_of(cudaResourceDesc resource, cudaTextureReadMode mode) {
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.readMode = mode;
  cudaTextureObject_t texture;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
  return texture;
}
static cudaTextureObject_t line_texture(cudaChannelFormatDesc channels, const void *texels,
                                        size_t count, size_t bytes) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  CUDA_CHECK(cudaMallocArray(&resource.res.array.array, &channels, count));
  CUDA_CHECK(cudaMemcpy2DToArray(resource.res.array.array, 0, 0, texels, bytes, bytes, 1,
                                 cudaMemcpyHostToDevice));
  return texture_of(resource, cudaReadModeNormalizedFloat);
}

static void conversions(void) {
  const uint8_t bytes[4] = {0, 51, 255, 7};
  const int16_t shorts[2][2] = {{-32768, 3}, {4, 32767}};
  int whole[8];
  for (int i = 0; i < 8; i++) whole[i] = 100 * i;
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypeLinear;
  memory.res.linear.desc = cudaCreateChannelDesc<int>();
  memory.res.linear.sizeInBytes = sizeof whole;
  CUDA_CHECK(cudaMalloc(&memory.res.linear.devPtr, sizeof whole));
  CUDA_CHECK(cudaMemcpy(memory.res.linear.devPtr, whole, sizeof whole, cudaMemcpyHostToDevice));
  cudaResourceDesc plane = {};
  plane.resType = cudaResourceTypePitch2D;
  plane.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  plane.res.pitch2D.width = WIDTH;
  plane.res.pitch2D.height = HEIGHT;
  CUDA_CHECK(cudaMallocPitch(&plane.res.pitch2D.devPtr, &plane.res.pitch2D.pitchInBytes, WIDTH * 4,
                             HEIGHT));
  CUDA_CHECK(cudaMemcpy2D(plane.res.pitch2D.devPtr, plane.res.pitch2D.pitchInBytes, volume,
                          WIDTH * 4, WIDTH * 4, HEIGHT, cudaMemcpyHostToDevice));
  convert<<<1, 1>>>(line_texture(cudaCreateChannelDesc<unsigned char>(), bytes, 4, 4),
                    line_texture(cudaCreateChannelDesc<short2>(), shorts, 2, 8),
                    texture_of(memory, cudaReadModeElementType),
                    texture_of(plane, cudaReadModeElementType), device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, 40, cudaMemcpyDeviceToHost));
  const float wanted[10] = {
      51 / 255.f,      -1, 1, 700, 0, volume[0][3][1], volume[0][3][2], volume[0][2][2],
      volume[0][2][1], 0};
  for (int i = 0; i < 10; i++)
    check_that(results[i] == wanted[i], "conversion %d: %g, expected %g", i, (double)results[i],
               (double)wanted[i]);
}

// ---- Surfaces; copies from arrays to arrays and back; the driver's calls ----

__global__ void add_one(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  int x = (int)threadIdx.x, y = (int)blockIdx.x;
  float value = surf2Dread<float>(from, x * 4, y);
  surf2Dwrite(value + 1, to, x * 4, y);
  // Neither of these lies inside: one reads 0, one is dropped.
  float outside = surf2Dread<float>(from, 4 * WIDTH, y, cudaBoundaryModeZero);
  surf2Dwrite(outside + 77, to, x * 4, HEIGHT + y, cudaBoundaryModeZero);
}

static void surfaces(void) {
  cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
  cudaArray_t array[3];
  cudaSurfaceObject_t surface[2];
  for (int i = 0; i < 3; i++) {
    CUDA_CHECK(cudaMallocArray(&array[i], &channels, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array[i];
    if (i < 2) CUDA_CHECK(cudaCreateSurfaceObject(&surface[i], &resource));
  }
  CUDA_CHECK(cudaMemcpy2DToArray(array[0], 0, 0, volume, WIDTH * 4, WIDTH * 4, HEIGHT,
                                 cudaMemcpyHostToDevice));
  add_one<<<HEIGHT, WIDTH>>>(surface[0], surface[1]);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy2DArrayToArray(array[2], 0, 0, array[1], 0, 0, WIDTH * 4, HEIGHT));
  // The lower right quarter of it, moved to the upper left.
  CUDA_CHECK(cudaMemcpy2DArrayToArray(array[2], 0, 0, array[1], WIDTH * 2, HEIGHT / 2, WIDTH * 2,
                                      HEIGHT / 2));
  float back[HEIGHT][WIDTH];
  CUDA_CHECK(cudaMemcpy2DFromArray(back, WIDTH * 4, array[2], 0, 0, WIDTH * 4, HEIGHT,
                                   cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      bool moved = x < WIDTH / 2 && y < HEIGHT / 2;
      float wanted = moved ? volume[0][y + HEIGHT / 2][x + WIDTH / 2] : volume[0][y][x];
      wrong += back[y][x] != wanted + 1;
    }
  check_that(wrong == 0, "surfaces: %d values are wrong", wrong);
  CUDA_CHECK(cudaDestroySurfaceObject(surface[0]));
  CUDA_CHECK(cudaFreeArray(array[0]));
}

static void *driver_entry(const char *name) {
  void *entry = NULL;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, &found));
  check_that(entry != NULL, "the driver has no %s", name);
  return entry;
}
#define DRIVER(name) ((decltype(&name))driver_entry(#name))

static void driver_calls(void) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR wanted = {WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_FLOAT, 1, 0}, found;
  CU_CHECK(DRIVER(cuArray3DCreate)(&array, &wanted));
  CU_CHECK(DRIVER(cuArray3DGetDescriptor)(&found, array));
  check_that(found.Width == WIDTH && found.Depth == DEPTH && found.Format == CU_AD_FORMAT_FLOAT,
             "cuArray3DGetDescriptor: not what was asked for");
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = volume;
  copy.srcPitch = WIDTH * 4;
  copy.srcHeight = HEIGHT;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = WIDTH * 4;
  copy.Height = HEIGHT;
  copy.Depth = DEPTH;
  CU_CHECK(DRIVER(cuMemcpy3D)(&copy));
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC how = {};
  for (int i = 0; i < 3; i++) how.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject texture;
  CU_CHECK(DRIVER(cuTexObjectCreate)(&texture, &resource, &how, NULL));
  sample<<<POINTS / 128, 128>>>(texture, 3, 0, false, device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < POINTS; i++)
    wrong +=
        fabs(results[i] - expected(i, 3, 0, cudaAddressModeClamp, true, false)) > WEIGHTS_ROUNDED;
  check_that(wrong == 0, "the driver's texture: %d values are wrong", wrong);
  CU_CHECK(DRIVER(cuTexObjectDestroy)(texture));
  CU_CHECK(DRIVER(cuArrayDestroy)(array));
}

static void refusals(void) {
  cudaChannelFormatDesc three = {8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  cudaChannelFormatDesc one = cudaCreateChannelDesc<int>();
  cudaArray_t array;
  check_that(cudaMallocArray(&array, &three, 4, 4) == cudaErrorInvalidChannelDescriptor,
             "three channels were accepted");
  check_that(cudaMallocArray(&array, &one, 1 << 20, 1 << 20) == cudaErrorInvalidValue,
             "an array that is too large was accepted");
  CUDA_CHECK(cudaMallocArray(&array, &one, 4, 4));
  int texels[16];
  check_that(cudaMemcpy2DToArray(array, 4, 0, texels, 16, 16, 1, cudaMemcpyHostToDevice) ==
                 cudaErrorInvalidValue,
             "a copy past an array's row was accepted");
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  check_that(cudaCreateSurfaceObject(&surface, &resource) == cudaSuccess,
             "an array without cudaArraySurfaceLoadStore was refused, which an H200 takes");
  CUDA_CHECK(cudaDestroySurfaceObject(surface));
  cudaGetLastError(); /* of the refusals above */
}

int main(int argc, char **argv) {
  program_begin("textures", argc, argv, NULL, 0);
  for (int z = 0; z < DEPTH; z++)
    for (int y = 0; y < HEIGHT; y++)
      for (int x = 0; x < WIDTH; x++)
        volume[z][y][x] = (float)((z * 131 + y * 37 + x * 17) % 101) - 50.f;
  CUDA_CHECK(cudaMalloc(&device_results, sizeof results));
  for (int dimensions = 1; dimensions <= 3; dimensions++) sampling(dimensions, 0);
  for (int dimensions = 1; dimensions <= 2; dimensions++) sampling(dimensions, 1);
  conversions();
  surfaces();
  driver_calls();
  refusals();
  return program_end("textures, surfaces and arrays");
}
