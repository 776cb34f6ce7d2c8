/* fatbin.c: reads nvcc's fat binary: a header and entries, each PTX or machine code.
 *
 * Everything comes from a file that may be damaged: each offset and size is checked before use. */
#include "runtime/fatbin.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  WRAPPER_MAGIC = 0x466243b1,
  WRAPPER_LINKED = 2,
  HEADER_BYTES = 16,
  ENTRY_LEAST_BYTES = 64,
  KIND_PTX = 1,
  KIND_CUBIN = 2,
  ARCHITECTURE = 90,
  FLAG_LZ4 = 0x2000,
  FLAG_ZSTD = 0x8000,
  FLAG_ARCHITECTURE_SPECIFIC = 0x100000
};
#define CONTAINER_MAGIC 0xba55ed50u
static const size_t PTX_MOST_BYTES = (size_t)1 << 30;

typedef struct {
  uint32_t magic, version;
  const void *container;
  const void *const *linked; /* version 2: the containers of the files that nvlink has linked */
} FatbinWrapper;

/* The part of an entry's header that we need; offsets as laid out by nvcc 12 and 13. */
typedef struct {
  uint16_t kind;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes; /* 0: plain */
  uint32_t architecture;
  uint64_t flags;
  uint64_t plain_bytes;
  const unsigned char *payload;
} FatbinEntry;

static uint64_t read_little_endian(const unsigned char *at, size_t bytes) {
  uint64_t number = 0;
  memcpy(&number, at, bytes);
  return number;
}

static FatbinEntry read_entry(const unsigned char *at) {
  return (FatbinEntry){
      .kind = (uint16_t)read_little_endian(at, 2),
      .header_bytes = (uint32_t)read_little_endian(at + 4, 4),
      .payload_bytes = read_little_endian(at + 8, 8),
      .compressed_bytes = (uint32_t)read_little_endian(at + 16, 4),
      .architecture = (uint32_t)read_little_endian(at + 28, 4),
      .flags = read_little_endian(at + 40, 8),
      .plain_bytes = read_little_endian(at + 56, 8),
  };
}

/* Through the entries of a container. */
typedef struct {
  const unsigned char *start;
  size_t at, end;
  bool overrun; /* the entry at `at` is larger than what is left */
} FatbinWalk;

/* False: it is no container. */
static bool walk_begin(FatbinWalk *walk, const void *container, size_t limit) {
  *walk = (FatbinWalk){.start = container};
  if (limit < HEADER_BYTES || read_little_endian(walk->start, 4) != CONTAINER_MAGIC) return false;
  walk->at = read_little_endian(walk->start + 6, 2);
  const uint64_t body = read_little_endian(walk->start + 8, 8);
  walk->end = body > limit - walk->at || walk->at > limit ? limit : walk->at + body;
  return true;
}

static bool walk_next(FatbinWalk *walk, FatbinEntry *entry) {
  if (walk->at >= walk->end || walk->end - walk->at < ENTRY_LEAST_BYTES) return false;
  const size_t left = walk->end - walk->at;
  *entry = read_entry(walk->start + walk->at);
  walk->overrun = entry->header_bytes < ENTRY_LEAST_BYTES || entry->header_bytes > left ||
                  entry->payload_bytes > left - entry->header_bytes;
  if (walk->overrun) return false;
  entry->payload = walk->start + walk->at + entry->header_bytes;
  walk->at += entry->header_bytes + entry->payload_bytes;
  return true;
}

const void *const *fatbin_linked(const void *wrapper) {
  const FatbinWrapper *fields = wrapper;
  bool linked = fields && fields->magic == WRAPPER_MAGIC && fields->version == WRAPPER_LINKED;
  return linked ? fields->linked : NULL;
}

bool fatbin_size(const void *container, size_t *bytes) {
  const unsigned char *at = container;
  if (read_little_endian(at, 4) != CONTAINER_MAGIC) return false;
  *bytes = read_little_endian(at + 6, 2) + read_little_endian(at + 8, 8);
  return true;
}

bool fatbin_unwrap(const void *wrapper, const void **container, size_t *bytes) {
  const FatbinWrapper *fields = wrapper;
  if (!fields || fields->magic != WRAPPER_MAGIC || !fields->container) return false;
  *container = fields->container;
  return fatbin_size(fields->container, bytes);
}

/* Lengths above 15 continue in further bytes, the last of which is below 255. */
static bool lz4_length(const unsigned char **in, const unsigned char *end, size_t *length) {
  if (*length != 15) return true;
  unsigned char more;
  do {
    if (*in == end) return false;
    more = *(*in)++;
    *length += more;
  } while (more == 255);
  return true;
}

bool lz4_decompress(const unsigned char *input, size_t input_bytes, unsigned char *output,
                    size_t output_bytes) {
  const unsigned char *in = input, *end = input + input_bytes;
  size_t made = 0;
  while (in < end) {
    unsigned token = *in++;
    size_t literals = token >> 4;
    if (!lz4_length(&in, end, &literals)) return false;
    if (literals > (size_t)(end - in) || literals > output_bytes - made) return false;
    memcpy(output + made, in, literals);
    in += literals;
    made += literals;
    if (in == end) break; /* the last sequence has literals only */
    if (end - in < 2) return false;
    size_t distance = read_little_endian(in, 2);
    in += 2;
    size_t match = token & 15;
    if (!lz4_length(&in, end, &match)) return false;
    match += 4;
    if (distance == 0 || distance > made || match > output_bytes - made) return false;
    /* Byte by byte: a match may overlap what it produces. */
    for (size_t i = 0; i < match; i++, made++) output[made] = output[made - distance];
  }
  return made == output_bytes;
}

static bool zstd_decompress(const unsigned char *input, size_t input_bytes, unsigned char *output,
                            size_t output_bytes, char *error, size_t error_bytes) {
  void *library = dlopen("libzstd.so.1", RTLD_NOW);
  size_t (*decompress)(void *, size_t, const void *, size_t) =
      library ? (size_t(*)(void *, size_t, const void *, size_t))dlsym(library, "ZSTD_decompress")
              : NULL;
  if (!decompress) {
    snprintf(error, error_bytes,
             "its PTX is compressed with zstd, and libzstd.so.1 is not installed here.\n"
             "Build with nvcc --no-compress, or install libzstd");
    return false;
  }
  if (decompress(output, output_bytes, input, input_bytes) == output_bytes) return true;
  snprintf(error, error_bytes, "its zstd-compressed PTX is damaged");
  return false;
}

static bool extract(const FatbinEntry *entry, char **text, size_t *bytes, char *error,
                    size_t error_bytes) {
  const unsigned char *payload = entry->payload;
  bool compressed = entry->compressed_bytes != 0;
  size_t plain_bytes = compressed ? entry->plain_bytes : entry->payload_bytes;
  if (plain_bytes > PTX_MOST_BYTES || entry->compressed_bytes > entry->payload_bytes) {
    snprintf(error, error_bytes, "its PTX entry states an impossible size (%zu bytes)",
             plain_bytes);
    return false;
  }
  unsigned char *plain = calloc(plain_bytes + 1, 1);
  if (!plain) {
    snprintf(error, error_bytes, "no memory for %zu bytes of PTX", plain_bytes);
    return false;
  }
  bool good = true;
  if (!compressed) {
    memcpy(plain, payload, plain_bytes);
  } else if (entry->flags & FLAG_ZSTD) {
    good =
        zstd_decompress(payload, entry->compressed_bytes, plain, plain_bytes, error, error_bytes);
  } else if (entry->flags & FLAG_LZ4) {
    good = lz4_decompress(payload, entry->compressed_bytes, plain, plain_bytes);
    if (!good) snprintf(error, error_bytes, "its LZ4-compressed PTX is damaged");
  } else {
    snprintf(error, error_bytes,
             "its PTX is compressed in a way that is unknown here (flags 0x%llx).\n"
             "Build with nvcc --no-compress",
             (unsigned long long)entry->flags);
    good = false;
  }
  if (!good) {
    free(plain);
    return false;
  }
  *text = (char *)plain;
  *bytes = plain_bytes;
  return true;
}

bool fatbin_find_ptx(const void *container, size_t limit, char **text, size_t *bytes, char *error,
                     size_t error_bytes) {
  FatbinWalk walk;
  FatbinEntry entry, best = {0};
  bool machine_code_seen = false, other_ptx_seen = false;
  if (!walk_begin(&walk, container, limit)) {
    snprintf(error, error_bytes, "its device code is not a fat binary, or is damaged");
    return false;
  }
  while (walk_next(&walk, &entry)) {
    machine_code_seen |= entry.kind == KIND_CUBIN;
    if (entry.kind == KIND_PTX && entry.architecture <= ARCHITECTURE) {
      bool specific = entry.flags & FLAG_ARCHITECTURE_SPECIFIC;
      bool best_specific = best.flags & FLAG_ARCHITECTURE_SPECIFIC;
      /* Architecture-specific text runs on that architecture only. sm_90a exists, sm_80a does
       * not. */
      bool usable = !specific || entry.architecture == ARCHITECTURE;
      if (usable && (!best.payload || (specific && !best_specific) ||
                     (specific == best_specific && entry.architecture > best.architecture)))
        best = entry;
    } else if (entry.kind == KIND_PTX) {
      other_ptx_seen = true;
    }
  }
  if (walk.overrun) {
    snprintf(error, error_bytes, "its fat binary is damaged: an entry at offset %zu overruns it",
             walk.at);
    return false;
  }
  if (best.payload) {
    if (!extract(&best, text, bytes, error, error_bytes)) return false;
    *bytes = strlen(*text); /* the payload is padded with zeros */
    return true;
  }
  snprintf(error, error_bytes,
           "it holds %s.\nBuild it with PTX for sm_90a in it:\n"
           "  nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]'",
           other_ptx_seen      ? "PTX for newer architectures only"
           : machine_code_seen ? "machine code only, and no PTX that could be emulated"
                               : "no device code");
  return false;
}

bool fatbin_find_cubin(const void *container, size_t limit, char **cubin, size_t *bytes) {
  FatbinWalk walk;
  FatbinEntry entry;
  char error[256];
  if (!walk_begin(&walk, container, limit)) return false;
  while (walk_next(&walk, &entry))
    if (entry.kind == KIND_CUBIN && entry.architecture == ARCHITECTURE)
      return extract(&entry, cubin, bytes, error, sizeof error);
  return false;
}
