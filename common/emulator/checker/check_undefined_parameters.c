/* check_undefined_parameters.c: bytes between the parameters of a kernel, which the host never
 * passes. A kernel gets there by an index beyond the end of a parameter. */
#include "checker/check_undefined.h"

static bool belongs(const FunctionTraits *traits, uint64_t byte) {
  for (uint32_t i = 0; i < traits->parameter_count; i++)
    if (byte - traits->parameter_offsets[i] < traits->parameter_sizes[i]) return true;
  return false;
}

void check_parameters(Warp *warp, uint64_t first, uint64_t last) {
  const FunctionTraits *traits = warp->cta->cluster->launch->traits;
  if (!traits->parameter_gaps) return;
  for (uint64_t byte = first; byte <= last; byte++)
    if (!belongs(traits, byte)) warp->watched |= WATCH_UNDEFINED;
}

OriginNumber undefined_parameter(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                                 uint32_t bytes, uint8_t *bits) {
  const Launch *launch = warp->cta->cluster->launch;
  OriginNumber origin = 0;
  if (at < launch->parameters || at >= launch->parameters + launch->parameter_bytes) return 0;
  uint64_t first = (uint64_t)(at - launch->parameters);
  for (uint32_t i = 0; i < bytes && launch->traits->parameter_gaps; i++) {
    if (belongs(launch->traits, first + i)) continue;
    OriginPlace place = {.part = PART_PARAMETER, .offset = (uint32_t)first + i};
    if (!origin) origin = undefined_origin(check_of(warp), warp, in, lane, place);
    bits[i] = 0xff;
  }
  return origin;
}
