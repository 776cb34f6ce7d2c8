// no_lines.cu: a pitfall built without -lineinfo, so that only its PTX can be shown.
// build: -O3 -cudart shared -gencode arch=compute_90a,code=compute_90a
#include "../../../03_tma_store/pitfalls/missing_proxy_fence.cu"
