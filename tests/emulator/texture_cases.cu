// texture_cases.cu: what textures and surfaces return: formats, geometries, filters, address modes,
// read modes, at coordinates in the middle of texels, on their edges, between them, far outside.
//
//   texture_cases            one line a case: its results, or their digest
//   texture_cases --full 1   all results
//   texture_cases --cube-edges 1   also linear filters over the edges of cubes, of which no
//                            document says what they give; the emulator refuses them
//   texture_cases --fault N  a fault of its own: 0 a surface read outside, 1 a surface write
//                            outside, 2 a texture that was destroyed, 3 an invalid handle,
//                            4 a surface object read as a texture, 5 a surface read at an odd
//                            byte, 6 linear memory read like an array, 7 an array that was freed
//
// Results are bits in hexadecimal. Those of an H200 belong in recorded/texture_cases.txt.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/check.h"

enum { POINTS = 96, WIDTH = 8, HEIGHT = 4, DEPTH = 3, LAYERS = 3 };

typedef enum {
  FROM_LINEAR,
  FROM_PITCH,
  ONE_D,
  TWO_D,
  THREE_D,
  ONE_D_LAYERED,
  TWO_D_LAYERED,
  CUBE
} Geometry;
static const char *const GEOMETRY_NAMES[] = {"linear", "pitch",      "1d",         "2d",
                                             "3d",     "1d layered", "2d layered", "cube"};

typedef struct {
  float x, y, z;
  int layer;
} Point;

#define FETCH(shape, list)                                               \
  asm volatile("tex." shape ".v4.f32.f32 {%0,%1,%2,%3}, [%4, " list "];" \
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)              \
               : "l"(texture), "f"(p.x), "f"(p.y), "f"(p.z), "r"(p.layer))
#define GATHER(part)                                                       \
  asm volatile("tld4." part ".2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}];" \
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)                \
               : "l"(texture), "f"(p.x), "f"(p.y))

// Geometries from 100 on: other instructions for a texture of two dimensions.
static __device__ uint4 fetch_otherwise(cudaTextureObject_t texture, int way, const Point &p) {
  uint4 r = {0, 0, 0, 0};
  switch (way) {
    case 100:
      GATHER("r");
      break;
    case 101:
      GATHER("g");
      break;
    case 102:
      GATHER("a");
      break;
    case 103:  // a level of detail where there are no levels
      asm volatile("tex.level.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], %7;"
                   : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                   : "l"(texture), "f"(p.x), "f"(p.y), "f"(p.z));
      break;
    case 104:
      asm volatile("tex.grad.2d.v4.f32.f32 {%0,%1,%2,%3}, [%4, {%5,%6}], {%7,%5}, {%6,%7};"
                   : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                   : "l"(texture), "f"(p.x), "f"(p.y), "f"(p.z));
      break;
    case 105:  // whole numbers
      asm volatile("tex.2d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5,%6}];"
                   : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                   : "l"(texture), "r"(p.layer), "r"(p.layer / 2));
      break;
    case 106:
      asm volatile(
          "txq.width.b32 %0, [%4];\n\ttxq.height.b32 %1, [%4];\n\t"
          "mov.u32 %2, 0;\n\tmov.u32 %3, 0;"
          : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
          : "l"(texture));
      break;
  }
  return r;
}

__global__ void fetch(cudaTextureObject_t texture, int geometry, const Point *points, uint4 *out) {
  const Point p = points[threadIdx.x];
  uint4 r = {0, 0, 0, 0};
  switch (geometry) {
    case FROM_LINEAR:
      asm volatile("tex.1d.v4.f32.s32 {%0,%1,%2,%3}, [%4, {%5}];"
                   : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                   : "l"(texture), "r"(p.layer));
      break;
    case ONE_D:
      FETCH("1d", "{%5}");
      break;
    case FROM_PITCH:
    case TWO_D:
      FETCH("2d", "{%5,%6}");
      break;
    case THREE_D:
      FETCH("3d", "{%5,%6,%7,%7}");
      break;
    case ONE_D_LAYERED:
      FETCH("a1d", "{%8,%5}");
      break;
    case TWO_D_LAYERED:
      FETCH("a2d", "{%8,%5,%6,%6}");
      break;
    case CUBE:
      FETCH("cube", "{%5,%6,%7,%7}");
      break;
    default:
      r = fetch_otherwise(texture, geometry, p);
      break;
  }
  out[threadIdx.x] = r;
}

// Whole texels: bytes from the left edge, rows, layers.
__global__ void surface(cudaSurfaceObject_t object, int how, const Point *points, uint4 *out) {
  const int x = points[threadIdx.x].layer, y = x / 3 - 2, z = x % 5 - 1;
  uint4 r = {0, 0, 0, 0};
  switch (how) {
    case 0:
      r.x = surf2Dread<uint32_t>(object, x, y, cudaBoundaryModeZero);
      break;
    case 1:
      r.x = surf2Dread<uint32_t>(object, x * 4, y, cudaBoundaryModeClamp);
      break;
    case 2:
      r.x = surf2Dread<uint32_t>(object, x * 4, y, cudaBoundaryModeZero);
      break;
    case 3:
      r.x = surf2Dread<uint8_t>(object, x, y, cudaBoundaryModeClamp);
      break;
    case 4:
      r.x = surf2Dread<uint16_t>(object, x * 2, y, cudaBoundaryModeClamp);
      break;
    case 5:
      r = surf2Dread<uint4>(object, x * 16, y, cudaBoundaryModeZero);
      break;
    case 6:
      r.x = surf2DLayeredread<uint32_t>(object, x * 4, y, z, cudaBoundaryModeClamp);
      break;
    case 7:
      r.x = surf3Dread<uint32_t>(object, x * 4, y, z, cudaBoundaryModeClamp);
      break;
    case 8:
      r.x = surf3Dread<uint32_t>(object, x * 4, y, z, cudaBoundaryModeZero);
      break;
    case 9:
      surf2Dwrite<uint32_t>(0x1000u + threadIdx.x, object, x * 4, y, cudaBoundaryModeZero);
      break;
    case 10:
      if (threadIdx.x == 0) surf2Dwrite<uint32_t>(0x2000u, object, 400, 50, cudaBoundaryModeClamp);
      break;
    case 11:
      r.x = surf2Dread<uint32_t>(object, 4 * 4 * WIDTH, 0, cudaBoundaryModeTrap);
      break;
    case 12:
      surf2Dwrite<uint32_t>(1u, object, 0, HEIGHT, cudaBoundaryModeTrap);
      break;
    case 13:
      asm volatile(
          "suq.width.b32 %0, [%4];\n\tsuq.height.b32 %1, [%4];\n\t"
          "mov.u32 %2, 0;\n\tmov.u32 %3, 0;"
          : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
          : "l"(object));
      break;
  }
  out[threadIdx.x] = r;
}

// ---- Coordinates ----

static uint32_t hash(uint32_t x) {
  x = (x ^ 61) ^ (x >> 16);
  x *= 9;
  x ^= x >> 4;
  x *= 0x27d4eb2d;
  return x ^ x >> 15;
}

// In texels; `scale` brings them to what the texture wants.
static float coordinate(int i, int axis, float size) {
  static const float ODD[] = {
      0.f,          -0.f,     0.5f,     1.f,          1.5f,          -0.5f,          -1.f,
      2.001953125f, 2.f / 3., 1e-30f,   1e-40f,       -1e-30f,       1e9f,           -1e9f,
      3e38f,        -3e38f,   INFINITY, -INFINITY,    NAN,           7.998046875f,   7.99999f,
      8.f,          8.5f,     9.f,      0.501953125f, 0.5009765625f, 0.50146484375f, 1.49951171875f,
      1.498046875f};
  enum { ODDS = sizeof ODD / sizeof *ODD };
  if (i < ODDS && axis == 0) return ODD[i];
  if (i < ODDS) return ODD[(i * 7 + axis * 3) % ODDS];
  uint32_t h = hash((uint32_t)(i * 4 + axis));
  if (i < 48) return (float)(h % 1024) / 1024.f + (float)((h >> 10) % 8);  // fractions
  if (i < 64) return (float)(int)(h % 33) / 2.f - 4.f;                     // halves
  return ((float)(h >> 8) / 16777216.f * 3.f - 1.f) * size;
}

static void make_points(Point *points, Geometry geometry, bool normalised) {
  for (int i = 0; i < POINTS; i++) {
    const float size[3] = {WIDTH, HEIGHT, DEPTH};
    float at[3];
    for (int axis = 0; axis < 3; axis++) {
      at[axis] = coordinate(i, axis, size[axis]);
      if (normalised) at[axis] /= size[axis];
      if (geometry == CUBE && i >= 29) at[axis] = coordinate(i, axis, 1.f) - (i < 64 ? 2.f : 0.f);
    }
    points[i] = (Point){at[0], at[1], at[2], i % 24 - 8};
  }
}

// ---- Formats ----

typedef struct {
  const char *name;
  int bits, channels;
  enum cudaChannelFormatKind kind;
} Format;
static const Format FORMATS[] = {
    {"f32x1", 32, 1, cudaChannelFormatKindFloat},    {"f32x4", 32, 4, cudaChannelFormatKindFloat},
    {"f16x2", 16, 2, cudaChannelFormatKindFloat},    {"u8x1", 8, 1, cudaChannelFormatKindUnsigned},
    {"u8x4", 8, 4, cudaChannelFormatKindUnsigned},   {"s8x2", 8, 2, cudaChannelFormatKindSigned},
    {"u16x1", 16, 1, cudaChannelFormatKindUnsigned}, {"s16x4", 16, 4, cudaChannelFormatKindSigned},
    {"u32x2", 32, 2, cudaChannelFormatKindUnsigned}, {"s32x1", 32, 1, cudaChannelFormatKindSigned},
};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };

static struct cudaChannelFormatDesc description(const Format *format) {
  int b = format->bits, c = format->channels;
  return cudaCreateChannelDesc(b, c > 1 ? b : 0, c > 2 ? b : 0, c > 2 ? b : 0, format->kind);
}

static void fill(const Format *format, void *to, size_t elements) {
  for (size_t i = 0; i < elements * (size_t)format->channels; i++) {
    uint32_t h = hash((uint32_t)i + 77u);
    if (format->kind == cudaChannelFormatKindFloat && format->bits == 32)
      ((float *)to)[i] = (float)(int)(h % 20001) / 64.f - 150.f;
    else if (format->kind == cudaChannelFormatKindFloat)
      ((__half *)to)[i] = __float2half((float)(int)(h % 2001) / 64.f - 15.f);
    else if (format->bits == 8)
      ((uint8_t *)to)[i] = (uint8_t)h;
    else if (format->bits == 16)
      ((uint16_t *)to)[i] = (uint16_t)h;
    else
      ((uint32_t *)to)[i] = h;
  }
}

typedef struct {
  cudaArray_t array;
  void *memory;
  cudaResourceDesc resource;
} Source;

static Source make_source(Geometry geometry, const Format *format, bool gather) {
  Source source = {};
  size_t texel = (size_t)(format->bits / 8 * format->channels);
  size_t height =
      geometry == FROM_LINEAR || geometry == ONE_D || geometry == ONE_D_LAYERED ? 1 : HEIGHT;
  size_t width = geometry == CUBE ? HEIGHT : WIDTH;
  size_t depth = geometry == THREE_D         ? DEPTH
                 : geometry == CUBE          ? 6
                 : geometry >= ONE_D_LAYERED ? LAYERS
                                             : 1;
  void *host = malloc(texel * width * height * depth);
  fill(format, host, width * height * depth);
  struct cudaChannelFormatDesc channels = description(format);
  if (geometry == FROM_LINEAR) {
    CUDA_CHECK(cudaMalloc(&source.memory, texel * width));
    CUDA_CHECK(cudaMemcpy(source.memory, host, texel * width, cudaMemcpyHostToDevice));
    source.resource.resType = cudaResourceTypeLinear;
    source.resource.res.linear.devPtr = source.memory;
    source.resource.res.linear.desc = channels;
    source.resource.res.linear.sizeInBytes = texel * width;
  } else if (geometry == FROM_PITCH) {
    size_t pitch = 0;
    CUDA_CHECK(cudaMallocPitch(&source.memory, &pitch, texel * width, height));
    CUDA_CHECK(cudaMemcpy2D(source.memory, pitch, host, texel * width, texel * width, height,
                            cudaMemcpyHostToDevice));
    source.resource.resType = cudaResourceTypePitch2D;
    source.resource.res.pitch2D.devPtr = source.memory;
    source.resource.res.pitch2D.desc = channels;
    source.resource.res.pitch2D.width = width;
    source.resource.res.pitch2D.height = height;
    source.resource.res.pitch2D.pitchInBytes = pitch;
  } else {
    struct cudaExtent extent = {width, height == 1 ? 0 : height,
                                geometry == THREE_D || geometry >= ONE_D_LAYERED ? depth : 0};
    unsigned flags = geometry == CUBE            ? cudaArrayCubemap
                     : geometry >= ONE_D_LAYERED ? cudaArrayLayered
                                                 : 0;
    if (gather) flags |= cudaArrayTextureGather;
    CUDA_CHECK(cudaMalloc3DArray(&source.array, &channels, extent, flags));
    struct cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host, texel * width, width, height);
    copy.dstArray = source.array;
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA_CHECK(cudaMemcpy3D(&copy));
    source.resource.resType = cudaResourceTypeArray;
    source.resource.res.array.array = source.array;
  }
  free(host);
  return source;
}

static void free_source(Source *source) {
  if (source->array) CUDA_CHECK(cudaFreeArray(source->array));
  CUDA_CHECK(cudaFree(source->memory));
}

// ---- Cases ----

static long full, cube_edges, only_fault = -1;
static Point *device_points;
static uint4 *device_results;

static void show(const char *title, int channels, bool wide) {
  uint4 results[POINTS];
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
  printf("%s:", title);
  uint64_t digest = 1469598103934665603u;
  for (int i = 0; i < POINTS; i++) {
    const uint32_t parts[4] = {results[i].x, results[i].y, results[i].z, results[i].w};
    for (int c = 0; c < 4; c++) digest = (digest ^ parts[c]) * 1099511628211u;
    if (!wide && !full) continue;
    printf(" ");
    for (int c = 0; c < channels; c++) printf("%s%x", c ? "," : "", parts[c]);
  }
  printf("%s%016llx\n", wide || full ? " digest " : " ", (unsigned long long)digest);
}

static void run(cudaTextureObject_t texture, int how, const Point *points) {
  CUDA_CHECK(cudaMemcpy(device_points, points, POINTS * sizeof(Point), cudaMemcpyHostToDevice));
  fetch<<<1, POINTS>>>(texture, how, device_points, device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

static void texture_case(Geometry geometry, const Format *format, bool linear, int address,
                         bool normalised, bool as_float, bool border) {
  static const char *const ADDRESS[] = {"wrap", "clamp", "mirror", "border"};
  Source source = make_source(geometry, format, false);
  struct cudaTextureDesc how = {};
  for (int i = 0; i < 3; i++) how.addressMode[i] = (enum cudaTextureAddressMode)address;
  how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  how.readMode = as_float ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  how.normalizedCoords = normalised;
  for (int i = 0; i < 4 && border; i++) how.borderColor[i] = 0.25f * (float)(i + 1);
  char title[200];
  snprintf(title, sizeof title, "%s %s %s %s%s%s%s", GEOMETRY_NAMES[geometry], format->name,
           linear ? "linear" : "point", ADDRESS[address], normalised ? " normalised" : "",
           as_float ? " as-float" : "", border ? " colour" : "");
  cudaTextureObject_t texture = 0;
  cudaError_t error = cudaCreateTextureObject(&texture, &source.resource, &how, NULL);
  if (error != cudaSuccess) {
    printf("%s: %s\n", title, cudaGetErrorName(cudaGetLastError()));
  } else {
    Point points[POINTS];
    make_points(points, geometry, normalised);
    run(texture, geometry, points);
    show(title, format->channels, geometry == TWO_D && format == &FORMATS[0]);
    CUDA_CHECK(cudaDestroyTextureObject(texture));
  }
  free_source(&source);
}

static void texture_cases(void) {
  for (int geometry = FROM_LINEAR; geometry <= CUBE; geometry++)
    for (int f = 0; f < FORMAT_COUNT; f++)
      for (int linear = 0; linear < 2; linear++)
        for (int address = 0; address < 4; address++)
          for (int normalised = 0; normalised < 2; normalised++)
            for (int as_float = 0; as_float < 2; as_float++) {
              bool plain = geometry == TWO_D || f == 0 || (address == 1 && normalised);
              if (!plain || (geometry == FROM_LINEAR && (address != 1 || linear))) continue;
              if (geometry == CUBE && (!normalised || address != 1 || (linear && !cube_edges)))
                continue;
              texture_case((Geometry)geometry, &FORMATS[f], linear, address, normalised, as_float,
                           false);
              if (geometry == TWO_D && address == 3)
                texture_case((Geometry)geometry, &FORMATS[f], linear, address, normalised, as_float,
                             true);
            }
}

// The weights of linear filtering: between a texel of 0 and one of 1, in steps of 1/8192.
static void weights(void) {
  const Format *format = &FORMATS[0];
  Source source = make_source(ONE_D, format, false);
  float texels[WIDTH] = {0, 1, 0, 0, 1, 3, -1, 1e10f};
  CUDA_CHECK(cudaMemcpy2DToArray(source.array, 0, 0, texels, sizeof texels, sizeof texels, 1,
                                 cudaMemcpyHostToDevice));
  struct cudaTextureDesc how = {};
  how.filterMode = cudaFilterModeLinear;
  how.addressMode[0] = cudaAddressModeClamp;
  for (int normalised = 0; normalised < 2; normalised++) {
    how.normalizedCoords = normalised;
    cudaTextureObject_t texture;
    CUDA_CHECK(cudaCreateTextureObject(&texture, &source.resource, &how, NULL));
    for (int base = 0; base < 8192; base += POINTS) {
      Point points[POINTS];
      for (int i = 0; i < POINTS; i++) {
        float x = (base < 4096 ? 0.5f : 4.5f) + (float)(base + i) / 4096.f;
        points[i] = (Point){normalised ? x / WIDTH : x, 0, 0, 0};
      }
      run(texture, ONE_D, points);
      char title[64];
      snprintf(title, sizeof title, "weights from %d%s", base, normalised ? " normalised" : "");
      show(title, 1, base < 300 || (base > 4096 && base < 4300));
    }
    CUDA_CHECK(cudaDestroyTextureObject(texture));
  }
  free_source(&source);
}

// What else there is to ask of a texture.
static void special_cases(void) {
  static const char *const NAMES[] = {"gather red", "gather green",  "gather alpha", "level",
                                      "gradients",  "whole numbers", "questions"};
  for (int f = 0; f < FORMAT_COUNT; f++)
    for (int linear = 0; linear < 2; linear++)
      for (int what = 0; what < 7; what++) {
        Source source = make_source(TWO_D, &FORMATS[f], what < 3);
        struct cudaTextureDesc how = {};
        for (int i = 0; i < 3; i++)
          how.addressMode[i] = what == 5 ? cudaAddressModeBorder : cudaAddressModeClamp;
        bool as_float = FORMATS[f].bits < 32 && FORMATS[f].kind != cudaChannelFormatKindFloat;
        how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        how.readMode = as_float && linear ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
        char title[100];
        snprintf(title, sizeof title, "%s %s %s", NAMES[what], FORMATS[f].name,
                 linear ? "linear" : "point");
        cudaTextureObject_t texture = 0;
        cudaError_t error = cudaCreateTextureObject(&texture, &source.resource, &how, NULL);
        if (error != cudaSuccess) {
          printf("%s: %s\n", title, cudaGetErrorName(cudaGetLastError()));
        } else {
          Point points[POINTS];
          make_points(points, TWO_D, false);
          run(texture, 100 + what, points);
          show(title, 4, what == 6 || f == 0);
          CUDA_CHECK(cudaDestroyTextureObject(texture));
        }
        free_source(&source);
      }
}

static cudaArray_t surface_array(int geometry) {
  struct cudaChannelFormatDesc channels =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindUnsigned);
  struct cudaExtent extent = make_cudaExtent(WIDTH, HEIGHT, geometry ? LAYERS : 0);
  cudaArray_t array;
  CUDA_CHECK(cudaMalloc3DArray(&array, &channels, extent,
                               cudaArraySurfaceLoadStore | (geometry == 1 ? cudaArrayLayered : 0)));
  uint32_t texels[WIDTH * HEIGHT * LAYERS];
  for (uint32_t i = 0; i < WIDTH * HEIGHT * LAYERS; i++) texels[i] = hash(i);
  struct cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(texels, WIDTH * 4, WIDTH, HEIGHT);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(WIDTH, HEIGHT, geometry ? LAYERS : 1);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA_CHECK(cudaMemcpy3D(&copy));
  return array;
}

static void surface_case(int how) {
  cudaArray_t array = surface_array(how == 6 ? 1 : how == 7 || how == 8 ? 2 : 0);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t object;
  CUDA_CHECK(cudaCreateSurfaceObject(&object, &resource));
  Point points[POINTS];
  make_points(points, TWO_D, false);
  CUDA_CHECK(cudaMemcpy(device_points, points, sizeof points, cudaMemcpyHostToDevice));
  surface<<<1, POINTS>>>(object, how, device_points, device_results);
  CUDA_CHECK(cudaGetLastError());
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    printf("surface %d: %s\n", how, cudaGetErrorName(error));
    return;
  }
  char title[40];
  snprintf(title, sizeof title, "surface %d", how);
  show(title, 4, true);
  uint32_t texels[WIDTH * HEIGHT];
  if (how == 9 || how == 10) {
    CUDA_CHECK(cudaMemcpy2DFromArray(texels, WIDTH * 4, array, 0, 0, WIDTH * 4, HEIGHT,
                                     cudaMemcpyDeviceToHost));
    printf("surface %d holds:", how);
    for (int i = 0; i < WIDTH * HEIGHT; i++) printf(" %x", texels[i]);
    printf("\n");
  }
  CUDA_CHECK(cudaDestroySurfaceObject(object));
  CUDA_CHECK(cudaFreeArray(array));
}

static void fault_case(void) {
  if (only_fault < 2 || only_fault == 5) {
    surface_case(only_fault == 5 ? 0 : only_fault == 0 ? 11 : 12);
    return;
  }
  Source source = make_source(only_fault == 6 ? FROM_LINEAR : TWO_D, &FORMATS[0], false);
  struct cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &source.resource, &how, NULL));
  if (only_fault == 2) CUDA_CHECK(cudaDestroyTextureObject(texture));
  if (only_fault == 3) texture = 0x123456789ull;
  if (only_fault == 7) CUDA_CHECK(cudaFreeArray(source.resource.res.array.array));
  if (only_fault == 4) {
    cudaArray_t array = surface_array(0);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    CUDA_CHECK(cudaCreateSurfaceObject(&texture, &resource));
  }
  Point points[POINTS];
  make_points(points, TWO_D, false);
  CUDA_CHECK(cudaMemcpy(device_points, points, sizeof points, cudaMemcpyHostToDevice));
  fetch<<<1, POINTS>>>(texture, TWO_D, device_points, device_results);
  printf("fault %ld: %s\n", only_fault, cudaGetErrorName(cudaDeviceSynchronize()));
}

int main(int argc, char **argv) {
  const Option options[] = {{"--full", "print every result", &full, 0, 1},
                            {"--cube-edges", "linear filters on cubes too", &cube_edges, 0, 1},
                            {"--fault", "which fault", &only_fault, 0, 7}};
  program_begin("texture_cases", argc, argv, options, 3);
  CUDA_CHECK(cudaMalloc(&device_points, POINTS * sizeof(Point)));
  CUDA_CHECK(cudaMalloc(&device_results, POINTS * sizeof(uint4)));
  if (only_fault >= 0) {
    fault_case();
    return 0;
  }
  weights();
  texture_cases();
  special_cases();
  for (int how = 1; how < 14; how++)
    if (how != 11 && how != 12) surface_case(how);
  return program_end("every case ran");
}
