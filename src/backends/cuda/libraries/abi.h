// What this backend calls of NVIDIA's libraries, declared here so that no headers of theirs are needed to build: names,
// values and signatures are those of cuda.h, nvrtc.h, cublasLt.h and cudnn.h, whose C interfaces stay as they are
// within the versions that the lists of driver.h, nvrtc.h and libraries.cpp ask for. Where the headers are there, a
// test compares every line (tests/cuda/abi_test.cpp). Enumerations are passed as the int that they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace autograph::cuda {

// ---- The driver: libcuda.so.1, of CUDA 12.0 and later ------------------------------------------------------------

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
inline constexpr CUresult CUDA_ERROR_INVALID_IMAGE = 200;
inline constexpr CUresult CUDA_ERROR_INVALID_CONTEXT = 201;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
inline constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;
inline constexpr CUresult CUDA_ERROR_NOT_READY = 600;
inline constexpr CUresult CUDA_ERROR_ILLEGAL_ADDRESS = 700;
inline constexpr CUresult CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904;
inline constexpr CUresult CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905;
inline constexpr CUresult CUDA_ERROR_CAPTURED_EVENT = 907;

inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8;
inline constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr int CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;

/// Functions of the driver, by the names that the library exports, as NAME(result, parameters).
#define AG_CUDA_FUNCTIONS(X)                                                            \
  X(cuGetErrorName, CUresult, (CUresult, const char**))                                 \
  X(cuGetErrorString, CUresult, (CUresult, const char**))                               \
  X(cuInit, CUresult, (unsigned))                                                       \
  X(cuDriverGetVersion, CUresult, (int*))                                               \
  X(cuDeviceGetCount, CUresult, (int*))                                                 \
  X(cuDeviceGet, CUresult, (CUdevice*, int))                                            \
  X(cuDeviceGetName, CUresult, (char*, int, CUdevice))                                  \
  X(cuDeviceGetAttribute, CUresult, (int*, int, CUdevice))                              \
  X(cuDevicePrimaryCtxRetain, CUresult, (CUcontext*, CUdevice))                         \
  X(cuCtxSetCurrent, CUresult, (CUcontext))                                             \
  X(cuMemGetInfo_v2, CUresult, (size_t*, size_t*))                                      \
  X(cuMemAlloc_v2, CUresult, (CUdeviceptr*, size_t))                                    \
  X(cuMemFree_v2, CUresult, (CUdeviceptr))                                              \
  X(cuMemHostAlloc, CUresult, (void**, size_t, unsigned))                               \
  X(cuMemFreeHost, CUresult, (void*))                                                   \
  X(cuMemcpyHtoDAsync_v2, CUresult, (CUdeviceptr, const void*, size_t, CUstream))       \
  X(cuMemcpyDtoHAsync_v2, CUresult, (void*, CUdeviceptr, size_t, CUstream))             \
  X(cuMemcpyDtoDAsync_v2, CUresult, (CUdeviceptr, CUdeviceptr, size_t, CUstream))       \
  X(cuStreamCreate, CUresult, (CUstream*, unsigned))                                    \
  X(cuStreamDestroy_v2, CUresult, (CUstream))                                           \
  X(cuStreamSynchronize, CUresult, (CUstream))                                          \
  X(cuStreamWaitEvent, CUresult, (CUstream, CUevent, unsigned))                         \
  X(cuStreamBeginCapture_v2, CUresult, (CUstream, int))                                 \
  X(cuStreamEndCapture, CUresult, (CUstream, CUgraph*))                                 \
  X(cuEventCreate, CUresult, (CUevent*, unsigned))                                      \
  X(cuEventDestroy_v2, CUresult, (CUevent))                                             \
  X(cuEventRecord, CUresult, (CUevent, CUstream))                                       \
  X(cuEventElapsedTime, CUresult, (float*, CUevent, CUevent))                           \
  X(cuGraphInstantiateWithFlags, CUresult, (CUgraphExec*, CUgraph, unsigned long long)) \
  X(cuGraphLaunch, CUresult, (CUgraphExec, CUstream))                                   \
  X(cuGraphExecDestroy, CUresult, (CUgraphExec))                                        \
  X(cuGraphDestroy, CUresult, (CUgraph))                                                \
  X(cuModuleLoadData, CUresult, (CUmodule*, const void*))                               \
  X(cuModuleUnload, CUresult, (CUmodule))                                               \
  X(cuModuleGetFunction, CUresult, (CUfunction*, CUmodule, const char*))                \
  X(cuLaunchKernel, CUresult,                                                           \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))

// ---- The compiler: libnvrtc.so.12 and .13 ------------------------------------------------------------------------

using nvrtcResult = int;
using nvrtcProgram = struct _nvrtcProgram*;

inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

#define AG_NVRTC_FUNCTIONS(X)                                                               \
  X(nvrtcGetErrorString, const char*, (nvrtcResult))                                        \
  X(nvrtcVersion, nvrtcResult, (int*, int*))                                                \
  X(nvrtcGetNumSupportedArchs, nvrtcResult, (int*))                                         \
  X(nvrtcGetSupportedArchs, nvrtcResult, (int*))                                            \
  X(nvrtcCreateProgram, nvrtcResult,                                                        \
    (nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram*))                                      \
  X(nvrtcCompileProgram, nvrtcResult, (nvrtcProgram, int, const char* const*))              \
  X(nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram, size_t*))                                \
  X(nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram, char*))                                      \
  X(nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram, size_t*))                           \
  X(nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram, char*))

// ---- Matrix products: libcublasLt.so.12 and .13 ------------------------------------------------------------------

using cublasStatus_t = int;
using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct LtOperationData*;
using cublasLtMatrixLayout_t = struct LtLayoutData*;
using cublasLtMatmulPreference_t = struct LtPreferenceData*;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

inline constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;
inline constexpr cublasStatus_t CUBLAS_STATUS_INVALID_VALUE = 7;
inline constexpr cublasStatus_t CUBLAS_STATUS_NOT_SUPPORTED = 15;
inline constexpr int CUDA_R_32F = 0;
inline constexpr int CUDA_R_64F = 1;
inline constexpr int CUDA_R_16F = 2;
inline constexpr int CUDA_R_16BF = 14;
inline constexpr int CUBLAS_COMPUTE_32F = 68;
inline constexpr int CUBLAS_COMPUTE_64F = 70;
inline constexpr int CUBLAS_COMPUTE_32F_FAST_16BF = 75;
inline constexpr int32_t CUBLAS_OP_N = 0;
inline constexpr int32_t CUBLAS_OP_T = 1;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;
inline constexpr int32_t CUBLASLT_EPILOGUE_DEFAULT = 1;
inline constexpr int32_t CUBLASLT_EPILOGUE_RELU = 2;
inline constexpr int32_t CUBLASLT_EPILOGUE_BIAS = 4;
inline constexpr int32_t CUBLASLT_EPILOGUE_RELU_BIAS = 6;
inline constexpr int32_t CUBLASLT_EPILOGUE_GELU = 32;  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
inline constexpr int32_t CUBLASLT_EPILOGUE_GELU_BIAS = 36;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr int CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3;
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_INPLACE = 1;
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;

#define AG_CUBLASLT_FUNCTIONS(X)                                                                                     \
  X(cublasLtGetStatusName, const char*, (cublasStatus_t))                                                            \
  X(cublasLtGetVersion, size_t, ())                                                                                  \
  X(cublasLtCreate, cublasStatus_t, (cublasLtHandle_t*))                                                             \
  X(cublasLtMatmulDescCreate, cublasStatus_t, (cublasLtMatmulDesc_t*, int, int))                                     \
  X(cublasLtMatmulDescDestroy, cublasStatus_t, (cublasLtMatmulDesc_t))                                               \
  X(cublasLtMatmulDescSetAttribute, cublasStatus_t, (cublasLtMatmulDesc_t, int, const void*, size_t))                \
  X(cublasLtMatrixLayoutCreate, cublasStatus_t, (cublasLtMatrixLayout_t*, int, uint64_t, uint64_t, int64_t))         \
  X(cublasLtMatrixLayoutDestroy, cublasStatus_t, (cublasLtMatrixLayout_t))                                           \
  X(cublasLtMatrixLayoutSetAttribute, cublasStatus_t, (cublasLtMatrixLayout_t, int, const void*, size_t))            \
  X(cublasLtMatmulPreferenceCreate, cublasStatus_t, (cublasLtMatmulPreference_t*))                                   \
  X(cublasLtMatmulPreferenceDestroy, cublasStatus_t, (cublasLtMatmulPreference_t))                                   \
  X(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t, (cublasLtMatmulPreference_t, int, const void*, size_t))    \
  X(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t,                                                                  \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, \
     cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t*, int*))               \
  X(cublasLtMatmul, cublasStatus_t,                                                                                  \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t, const void*,          \
     cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,        \
     const cublasLtMatmulAlgo_t*, void*, size_t, CUstream))

// ---- Convolutions: libcudnn.so.8 and .9 --------------------------------------------------------------------------

using cudnnStatus_t = int;
using cudnnHandle_t = struct cudnnContext*;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct*;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct*;
using cudnnActivationDescriptor_t = struct cudnnActivationStruct*;

struct cudnnConvolutionFwdAlgoPerf_t {
  int algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  int determinism;
  int mathType;
  int reserved[3];
};

inline constexpr cudnnStatus_t CUDNN_STATUS_SUCCESS = 0;
inline constexpr int CUDNN_DATA_FLOAT = 0;
inline constexpr int CUDNN_DATA_HALF = 2;
inline constexpr int CUDNN_DATA_BFLOAT16 = 9;
inline constexpr int CUDNN_TENSOR_NCHW = 0;
inline constexpr int CUDNN_CROSS_CORRELATION = 1;
inline constexpr int CUDNN_DEFAULT_MATH = 0;
inline constexpr int CUDNN_TENSOR_OP_MATH = 1;
inline constexpr int CUDNN_FMA_MATH = 3;
inline constexpr int CUDNN_PROPAGATE_NAN = 1;
inline constexpr int CUDNN_ACTIVATION_IDENTITY = 5;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8;

#define AG_CUDNN_FUNCTIONS(X)                                                                                        \
  X(cudnnGetVersion, size_t, ())                                                                                     \
  X(cudnnGetCudartVersion, size_t, ())                                                                               \
  X(cudnnGetErrorString, const char*, (cudnnStatus_t))                                                               \
  X(cudnnCreate, cudnnStatus_t, (cudnnHandle_t*))                                                                    \
  X(cudnnDestroy, cudnnStatus_t, (cudnnHandle_t))                                                                    \
  X(cudnnSetStream, cudnnStatus_t, (cudnnHandle_t, CUstream))                                                        \
  X(cudnnCreateTensorDescriptor, cudnnStatus_t, (cudnnTensorDescriptor_t*))                                          \
  X(cudnnSetTensorNdDescriptor, cudnnStatus_t, (cudnnTensorDescriptor_t, int, int, const int*, const int*))          \
  X(cudnnDestroyTensorDescriptor, cudnnStatus_t, (cudnnTensorDescriptor_t))                                          \
  X(cudnnCreateFilterDescriptor, cudnnStatus_t, (cudnnFilterDescriptor_t*))                                          \
  X(cudnnSetFilterNdDescriptor, cudnnStatus_t, (cudnnFilterDescriptor_t, int, int, int, const int*))                 \
  X(cudnnDestroyFilterDescriptor, cudnnStatus_t, (cudnnFilterDescriptor_t))                                          \
  X(cudnnCreateConvolutionDescriptor, cudnnStatus_t, (cudnnConvolutionDescriptor_t*))                                \
  X(cudnnSetConvolutionNdDescriptor, cudnnStatus_t,                                                                  \
    (cudnnConvolutionDescriptor_t, int, const int*, const int*, const int*, int, int))                               \
  X(cudnnSetConvolutionGroupCount, cudnnStatus_t, (cudnnConvolutionDescriptor_t, int))                               \
  X(cudnnSetConvolutionMathType, cudnnStatus_t, (cudnnConvolutionDescriptor_t, int))                                 \
  X(cudnnDestroyConvolutionDescriptor, cudnnStatus_t, (cudnnConvolutionDescriptor_t))                                \
  X(cudnnCreateActivationDescriptor, cudnnStatus_t, (cudnnActivationDescriptor_t*))                                  \
  X(cudnnSetActivationDescriptor, cudnnStatus_t, (cudnnActivationDescriptor_t, int, int, double))                    \
  X(cudnnDestroyActivationDescriptor, cudnnStatus_t, (cudnnActivationDescriptor_t))                                  \
  X(cudnnGetConvolutionForwardAlgorithm_v7, cudnnStatus_t,                                                           \
    (cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,                  \
     cudnnTensorDescriptor_t, int, int*, cudnnConvolutionFwdAlgoPerf_t*))                                            \
  X(cudnnConvolutionForward, cudnnStatus_t,                                                                          \
    (cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, const void*,         \
     cudnnConvolutionDescriptor_t, int, void*, size_t, const void*, cudnnTensorDescriptor_t, void*))                 \
  X(cudnnAddTensor, cudnnStatus_t,                                                                                   \
    (cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, const void*, cudnnTensorDescriptor_t, void*)) \
  X(cudnnConvolutionBiasActivationForward, cudnnStatus_t,                                                            \
    (cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, const void*,         \
     cudnnConvolutionDescriptor_t, int, void*, size_t, const void*, cudnnTensorDescriptor_t, const void*,            \
     cudnnTensorDescriptor_t, const void*, cudnnActivationDescriptor_t, cudnnTensorDescriptor_t, void*))

/// The functions of a list, as a library gives them; null until it is loaded.
// NOLINTNEXTLINE(bugprone-macro-parentheses): types and names
#define AG_CUDA_MEMBER(name, result, parameters) result(*name) parameters = nullptr;

}  // namespace autograph::cuda
