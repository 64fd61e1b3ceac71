// What src/backends/cuda/libraries/abi.h declares, beside NVIDIA's headers where these are found when tests are built.
// All of it is checked by the compiler; the test says whether it was.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>) && __has_include(<cublasLt.h>) && __has_include(<cudnn.h>)
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>
#define AG_HAS_CUDA_HEADERS 1
#else
#define AG_HAS_CUDA_HEADERS 0
#endif

#include <array>

#include "backends/cuda/libraries/abi.h"

namespace autograph {
namespace {

#if AG_HAS_CUDA_HEADERS

// How a value is passed: pointers alike, numbers by kind and size.
template <class T>
constexpr int passed_as() {
  if (std::is_void_v<T>) return 0;
  if (std::is_pointer_v<T>) return 1;
  if (std::is_floating_point_v<T>) return 100 + static_cast<int>(sizeof(std::conditional_t<std::is_void_v<T>, int, T>));
  return 200 + static_cast<int>(sizeof(std::conditional_t<std::is_void_v<T>, int, T>));
}

template <class Function>
struct Signature;
template <class Result, class... Parameters>
struct Signature<Result(Parameters...)> {
  static constexpr std::array<int, 1 + sizeof...(Parameters)> kinds{passed_as<Result>(), passed_as<Parameters>()...};
};

#define AG_SAME_SIGNATURE(name, result, parameters)                                                                \
  static_assert(Signature<std::remove_pointer_t<decltype(&::name)>>::kinds == Signature<result parameters>::kinds, \
                #name);
#define AG_SAME_VALUE(name) static_assert(static_cast<long long>(::name) == static_cast<long long>(cuda::name), #name);

}  // namespace

namespace cuda {
namespace {
AG_CUDA_FUNCTIONS(AG_SAME_SIGNATURE)
AG_NVRTC_FUNCTIONS(AG_SAME_SIGNATURE)
AG_CUBLASLT_FUNCTIONS(AG_SAME_SIGNATURE)
AG_CUDNN_FUNCTIONS(AG_SAME_SIGNATURE)
}  // namespace
}  // namespace cuda

namespace {
AG_SAME_VALUE(CUDA_SUCCESS)
AG_SAME_VALUE(CUDA_ERROR_INVALID_VALUE)
AG_SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY)
AG_SAME_VALUE(CUDA_ERROR_NOT_INITIALIZED)
AG_SAME_VALUE(CUDA_ERROR_NO_DEVICE)
AG_SAME_VALUE(CUDA_ERROR_INVALID_DEVICE)
AG_SAME_VALUE(CUDA_ERROR_INVALID_IMAGE)
AG_SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT)
AG_SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU)
AG_SAME_VALUE(CUDA_ERROR_INVALID_HANDLE)
AG_SAME_VALUE(CUDA_ERROR_NOT_FOUND)
AG_SAME_VALUE(CUDA_ERROR_NOT_READY)
AG_SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS)
AG_SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
AG_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
AG_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
AG_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
AG_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
AG_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
AG_SAME_VALUE(CUDA_ERROR_CAPTURED_EVENT)
AG_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
AG_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
AG_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
AG_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
AG_SAME_VALUE(CU_STREAM_NON_BLOCKING)
AG_SAME_VALUE(CU_EVENT_DEFAULT)
AG_SAME_VALUE(CU_EVENT_DISABLE_TIMING)
AG_SAME_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
AG_SAME_VALUE(NVRTC_SUCCESS)
AG_SAME_VALUE(NVRTC_ERROR_COMPILATION)
AG_SAME_VALUE(CUBLAS_STATUS_SUCCESS)
AG_SAME_VALUE(CUBLAS_STATUS_INVALID_VALUE)
AG_SAME_VALUE(CUBLAS_STATUS_NOT_SUPPORTED)
AG_SAME_VALUE(CUDA_R_32F)
AG_SAME_VALUE(CUDA_R_64F)
AG_SAME_VALUE(CUDA_R_16F)
AG_SAME_VALUE(CUDA_R_16BF)
AG_SAME_VALUE(CUBLAS_COMPUTE_32F)
AG_SAME_VALUE(CUBLAS_COMPUTE_64F)
AG_SAME_VALUE(CUBLAS_COMPUTE_32F_FAST_16BF)
AG_SAME_VALUE(CUBLAS_OP_N)
AG_SAME_VALUE(CUBLAS_OP_T)
AG_SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSA)
AG_SAME_VALUE(CUBLASLT_MATMUL_DESC_TRANSB)
AG_SAME_VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE)
AG_SAME_VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_DEFAULT)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_RELU)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_BIAS)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_RELU_BIAS)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_GELU)
AG_SAME_VALUE(CUBLASLT_EPILOGUE_GELU_BIAS)
AG_SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
AG_SAME_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
AG_SAME_VALUE(CUBLASLT_REDUCTION_SCHEME_INPLACE)
AG_SAME_VALUE(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
AG_SAME_VALUE(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
AG_SAME_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
AG_SAME_VALUE(CUDNN_STATUS_SUCCESS)
AG_SAME_VALUE(CUDNN_DATA_FLOAT)
AG_SAME_VALUE(CUDNN_DATA_HALF)
AG_SAME_VALUE(CUDNN_DATA_BFLOAT16)
AG_SAME_VALUE(CUDNN_TENSOR_NCHW)
AG_SAME_VALUE(CUDNN_CROSS_CORRELATION)
AG_SAME_VALUE(CUDNN_DEFAULT_MATH)
AG_SAME_VALUE(CUDNN_TENSOR_OP_MATH)
AG_SAME_VALUE(CUDNN_FMA_MATH)
AG_SAME_VALUE(CUDNN_PROPAGATE_NAN)
AG_SAME_VALUE(CUDNN_ACTIVATION_IDENTITY)
AG_SAME_VALUE(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
AG_SAME_VALUE(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD)
AG_SAME_VALUE(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED)
AG_SAME_VALUE(CUDNN_CONVOLUTION_FWD_ALGO_COUNT)

template <class Theirs, class Ours>
constexpr bool kHasSameSize = sizeof(Theirs) == sizeof(Ours) && alignof(Theirs) == alignof(Ours);
static_assert(kHasSameSize<::cublasLtMatmulAlgo_t, cuda::cublasLtMatmulAlgo_t>);
static_assert(kHasSameSize<::cublasLtMatmulHeuristicResult_t, cuda::cublasLtMatmulHeuristicResult_t>);
static_assert(kHasSameSize<::cudnnConvolutionFwdAlgoPerf_t, cuda::cudnnConvolutionFwdAlgoPerf_t>);
#define AG_SAME_PLACE(type, member) static_assert(offsetof(::type, member) == offsetof(cuda::type, member));
AG_SAME_PLACE(cublasLtMatmulHeuristicResult_t, workspaceSize)
AG_SAME_PLACE(cublasLtMatmulHeuristicResult_t, state)
AG_SAME_PLACE(cudnnConvolutionFwdAlgoPerf_t, algo)
AG_SAME_PLACE(cudnnConvolutionFwdAlgoPerf_t, status)
AG_SAME_PLACE(cudnnConvolutionFwdAlgoPerf_t, memory)

#endif

TEST(CudaAbi, IsThatOfTheHeaders) {
  if (!AG_HAS_CUDA_HEADERS) GTEST_SKIP() << "built without NVIDIA's headers";
  // That this was compiled is the test.
}

}  // namespace
}  // namespace autograph
