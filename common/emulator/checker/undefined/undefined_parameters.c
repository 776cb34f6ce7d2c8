/* undefined_parameters.c: bytes of a kernel's parameters that the host has not passed: in gaps
 * between parameters, where a kernel gets by an index beyond the end of a parameter, and beyond the
 * end of a packed buffer that was too short. */
#include "checker/undefined/marks.h"

static bool passed(const Launch *launch, uint64_t byte) {
  const FunctionTraits *traits = launch->traits;
  if (byte >= launch->parameter_bytes - launch->parameters_missing) return false;
  for (uint32_t i = 0; i < traits->parameter_count; i++)
    if (byte - traits->parameter_offsets[i] < traits->parameter_sizes[i]) return true;
  return false;
}

void check_parameters(Warp *warp, uint64_t first, uint64_t last) {
  const Launch *launch = warp->cta->cluster->launch;
  if (!launch->traits->parameter_gaps && !launch->parameters_missing) return;
  for (uint64_t byte = first; byte <= last; byte++)
    if (!passed(launch, byte)) warp->watched |= WATCH_UNDEFINED;
}

OriginNumber undefined_parameter(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                                 uint32_t bytes, uint8_t *bits) {
  const Launch *launch = warp->cta->cluster->launch;
  OriginNumber origin = 0;
  if (at < launch->parameters || at >= launch->parameters + launch->parameter_bytes) return 0;
  uint64_t first = (uint64_t)(at - launch->parameters);
  if (!launch->traits->parameter_gaps && !launch->parameters_missing) return 0;
  for (uint32_t i = 0; i < bytes; i++) {
    if (passed(launch, first + i)) continue;
    OriginPlace place = {.part = PART_PARAMETER, .offset = (uint32_t)first + i};
    if (!origin) origin = undefined_origin(check_of(warp), warp, in, lane, place);
    bits[i] = 0xff;
  }
  return origin;
}
