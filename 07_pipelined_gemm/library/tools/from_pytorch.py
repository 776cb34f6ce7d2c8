#!/usr/bin/env python3
"""from_pytorch.py: the library and the attention kernel as PyTorch extensions, compared with PyTorch and timed beside it.

Copy the two texts below: tensors and the CUDA stream come from PyTorch, which also allocates the results and the
library's workspace. Where PyTorch, ninja, nvcc or an H100 or H200 is missing, it says so and ends with exit code 0."""
import os
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TAKEN = ROOT + "/build/from_pytorch"

GEMM = r"""
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>
#include <array>
#include <map>
#include "pipelined_gemm.cuh"

struct Plan {
  tma::PipelinedGemm gemm;
  at::Tensor workspace;  // PyTorch's memory, as long as the plan lives
};

static void check(tma::GemmStatus status) {
  char text[256];
  tma::pipelined_gemm_explain(status, text, sizeof text);
  TORCH_CHECK(status.error == tma::GEMM_OK, text);
}

// x * transpose(weight), as torch.nn.functional.linear. One plan for each shape, measured at its first use.
at::Tensor linear(at::Tensor x, at::Tensor weight) {
  for (const at::Tensor &t : {x, weight})
    TORCH_CHECK(t.is_cuda() && t.dim() == 2 && t.scalar_type() == at::kBFloat16 && t.stride(1) == 1, "linear takes bfloat16 rows");
  static std::map<std::array<int64_t, 5>, Plan> plans;
  cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  at::Tensor c = at::empty({x.size(0), weight.size(0)}, x.options());
  tma::GemmProblem problem = tma::gemm_problem(c.size(0), c.size(1), x.size(1), x.data_ptr(), weight.data_ptr(), c.data_ptr());
  problem.lda = x.stride(0), problem.ldb = weight.stride(0);
  problem.in_stream = 1, problem.stream = stream;
  std::array<int64_t, 5> key = {problem.m, problem.n, problem.k, problem.lda, problem.ldb};
  auto found = plans.find(key);
  if (found == plans.end()) {
    Plan plan;
    size_t bytes = 0;
    check(tma::pipelined_gemm_plan_measured<tma::GEMM_BF16>(&plan.gemm, &problem, stream));
    std::string name = tma::pipelined_gemm_name(&plan.gemm);
    tma::pipelined_gemm_end_in_stream(&plan.gemm, stream);
    check(tma::pipelined_gemm_workspace_bytes<tma::GEMM_BF16>(&problem, name.c_str(), &bytes));
    plan.workspace = at::empty({(int64_t)bytes + 256}, x.options().dtype(at::kByte));
    problem.workspace = (void *)(((uintptr_t)plan.workspace.data_ptr() + 255) / 256 * 256);
    problem.workspace_bytes = bytes;
    check(tma::pipelined_gemm_plan_named<tma::GEMM_BF16>(&plan.gemm, &problem, name.c_str()));
    found = plans.insert({key, plan}).first;
  }
  check(tma::pipelined_gemm_rebind(&found->second.gemm, &problem));
  C10_CUDA_CHECK(tma::pipelined_gemm_launch(&found->second.gemm, stream));
  return c;
}
"""

ATTENTION = r"""
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

#define main static unused_main  // the lesson's program, of which the kernel is used
#include "attention.cu"
#undef main
#include "tma_encode.h"

static CUtensorMap map_of(at::Tensor t, int rows) {  // [batch, heads, length, dim]
  uint64_t size[] = {(uint64_t)t.size(3), (uint64_t)t.size(2), (uint64_t)t.size(1), (uint64_t)t.size(0)};
  uint64_t strides[] = {(uint64_t)t.stride(2) * 2, (uint64_t)t.stride(1) * 2, (uint64_t)t.stride(0) * 2};
  uint32_t box[] = {BOX, (uint32_t)rows, 1, 1};
  TmaMapOptions options = {CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
  CUtensorMap map;
  C10_CUDA_CHECK(tma_encode_tiled_with(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, t.data_ptr(), size, strides, box, &options));
  return map;
}

template <int DIM>
static void run(at::Tensor q, at::Tensor k, at::Tensor v, at::Tensor out, AttentionShape shape) {
  int shared = (int)sizeof(Shared<DIM>) + 1024;  // space to align in
  dim3 grid((shape.length + ROWS - 1) / ROWS, shape.heads, shape.batch);
  cudaFuncSetAttribute(attention_kernel<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  attention_kernel<DIM><<<grid, THREADS, shared, c10::cuda::getCurrentCUDAStream()>>>(
      map_of(q, ROWS), map_of(k, KEYS), map_of(v, KEYS), map_of(out, OUT_ROWS), shape, attention_scale_log2(shape));
  C10_CUDA_CHECK(cudaGetLastError());
}

at::Tensor attention(at::Tensor q, at::Tensor k, at::Tensor v, bool causal) {
  TORCH_CHECK(q.scalar_type() == at::kBFloat16 && (q.size(3) == 64 || q.size(3) == 128), "attention takes bfloat16, heads of 64 or 128");
  at::Tensor out = at::empty(q.sizes(), q.options());
  AttentionShape shape = {(int)q.size(0), (int)q.size(1), (int)k.size(1), (int)q.size(2),
                          (int)k.size(2), (int)q.size(3), causal};
  shape.dim == 64 ? run<64>(q, k, v, out, shape) : run<128>(q, k, v, out, shape);
  return out;
}
"""


def main():
    try:
        import torch
        from torch.utils.cpp_extension import load_inline
    except ImportError:
        return print("from_pytorch: skipped: PyTorch is not installed")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0) or not shutil.which("ninja"):
        return print("from_pytorch: skipped: there is no H100 or H200, or no ninja")
    os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0a"
    subprocess.run([ROOT + "/common/exercises/take", "07"], env=dict(os.environ, TO=TAKEN), check=True)
    options = {"extra_include_paths": [TAKEN, ROOT + "/07_pipelined_gemm/attention", ROOT + "/common"], "extra_cuda_cflags": ["-O2"]}
    gemm = load_inline("tma_gemm", "at::Tensor linear(at::Tensor, at::Tensor);", GEMM, functions=["linear"], **options)
    attention = load_inline("tma_attention", "at::Tensor attention(at::Tensor, at::Tensor, at::Tensor, bool);", ATTENTION,
                            functions=["attention"], **options)

    def milliseconds(call):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for i in range(60):
            if i == 10:
                begin.record()
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 50

    wrong = 0

    def compare(name, ours, theirs):
        nonlocal wrong
        expected = theirs().float()
        error = (ours().float() - expected).abs().max().item() / expected.abs().max().item()
        wrong += not error < 0.01
        times = [[milliseconds(call) for call in (ours, theirs)] for _ in range(7)]
        mine, other = (statistics.median(column) for column in zip(*times))
        print(f"{name}: {mine:.3f} ms, PyTorch {other:.3f} ms, {other / mine:.3f}; largest difference {error:.4f}")

    for m, n, k in (4096, 4096, 4096), (8192, 4096, 1024), (1000, 3000, 5000), (16, 4096, 4096):
        x, w = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        compare(f"linear {m} x {n} x {k}", lambda: gemm.linear(x, w), lambda: torch.matmul(x, w.t()))
    for length, dim, causal in (2048, 128, False), (4096, 64, True):
        q, k, v = (torch.randn(4, 16, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        compare(f"attention {length} x {dim}{' causal' * causal}", lambda: attention.attention(q, k, v, causal),
                lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    sys.exit("FAIL from_pytorch" if wrong else print("PASS from_pytorch"))


main()
