/* operation.c: see operation.h. */
#include "state/operation.h"

const char *async_kind_name(AsyncKind kind) {
  static const char *const names[] = {
      [ASYNC_TENSOR_LOAD] = "tensor load",
      [ASYNC_BULK_LOAD] = "bulk load",
      [ASYNC_TENSOR_STORE] = "tensor store",
      [ASYNC_BULK_STORE] = "bulk store",
      [ASYNC_TENSOR_REDUCE] = "tensor reduce",
      [ASYNC_BULK_REDUCE] = "bulk reduce",
      [ASYNC_CTA_TO_CTA] = "block-to-block copy",
      [ASYNC_CP_ASYNC] = "cp.async",
      [ASYNC_ST_ASYNC] = "st.async",
      [ASYNC_RED_ASYNC] = "red.async",
      [ASYNC_WGMMA] = "wgmma",
  };
  return names[kind];
}

const char *operation_name(const AsyncOperation *operation) {
  if (operation->arrives) return "arrival of cp.async.mbarrier.arrive";
  return async_kind_name((AsyncKind)operation->kind);
}
