/* operation.c: see operation.h. */
#include "state/operation.h"

const char *async_kind_name(AsyncKind kind) {
  switch (kind) {
    case ASYNC_TENSOR_LOAD:
      return "tensor load";
    case ASYNC_BULK_LOAD:
      return "bulk load";
    case ASYNC_TENSOR_STORE:
      return "tensor store";
    case ASYNC_BULK_STORE:
      return "bulk store";
    case ASYNC_TENSOR_REDUCE:
      return "tensor reduce";
    case ASYNC_BULK_REDUCE:
      return "bulk reduce";
    case ASYNC_CTA_TO_CTA:
      return "block-to-block copy";
    case ASYNC_CP_ASYNC:
      return "cp.async";
    case ASYNC_ST_ASYNC:
      return "st.async";
    case ASYNC_RED_ASYNC:
      return "red.async";
    case ASYNC_WGMMA:
      return "wgmma";
  }
  return "operation";
}

const char *operation_name(const AsyncOperation *operation) {
  if (operation->arrives) return "arrival of cp.async.mbarrier.arrive";
  return async_kind_name((AsyncKind)operation->kind);
}
