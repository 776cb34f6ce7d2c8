// pipelined_gemm.cuh with operands in e4m3: what nobody plans for is not compiled, so the example does not try it.
#include "pipelined_gemm.cuh"

tma::GemmStatus plan_to_bf16(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem);
tma::GemmStatus plan_to_bf16(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem) {
#ifdef MN_MAJOR
  return tma::pipelined_gemm_plan<tma::GEMM_E4M3, tma::GEMM_MN_MAJOR>(gemm, problem);
#else
  return tma::pipelined_gemm_plan<tma::GEMM_E4M3>(gemm, problem);
#endif
}

tma::GemmStatus plan_to_fp16(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem);
tma::GemmStatus plan_to_fp16(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem) {
  return tma::pipelined_gemm_plan<tma::GEMM_E4M3_TO_FP16>(gemm, problem);
}
