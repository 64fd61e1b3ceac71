// The stand-in of libcudnn: convolutions by plain loops.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "autograph/small_float.h"
#include "cuda/standin/standin.h"

namespace autograph::cuda {

struct cudnnContext {
  CUstream stream = nullptr;
};
struct cudnnTensorStruct {
  int type = 0;
  std::vector<int> dims, strides;
  size_t elements() const {
    size_t last = 1;
    for (size_t a = 0; a < dims.size(); ++a) last += static_cast<size_t>(dims[a] - 1) * static_cast<size_t>(strides[a]);
    return last;
  }
};
struct cudnnFilterStruct {
  int type = 0;
  std::vector<int> dims;
};
struct cudnnConvolutionStruct {
  std::vector<int> pads, strides, dilations;
  int groups = 1, math = 0;
};
struct cudnnActivationStruct {
  int mode = 0;
};

namespace {

constexpr cudnnStatus_t kBadParameter = 2000;
constexpr size_t kWorkspace = 512;  // of the algorithm that asks for some

bool is_known(int type) { return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16; }

// Calls `work` with a value of the elements' type.
template <class Work>
void with_elements(int type, Work&& work) {
  if (type == CUDNN_DATA_FLOAT) work(float());
  if (type == CUDNN_DATA_HALF) work(Half());
  if (type == CUDNN_DATA_BFLOAT16) work(BFloat16());
}

// Advances a position in `extents`, the last axis first; false after the last one.
bool advance(std::vector<int>& at, const std::vector<int>& extents) {
  for (size_t a = extents.size(); a-- > 0;) {
    if (++at[a] < extents[a]) return true;
    at[a] = 0;
  }
  return false;
}

struct Convolution {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct windows;

  bool fits() const {
    const size_t spatial = windows.pads.size();
    if (x.dims.size() != spatial + 2 || w.dims.size() != spatial + 2 || y.dims.size() != spatial + 2) return false;
    for (size_t a = 0; a < spatial; ++a) {
      const int span = (w.dims[a + 2] - 1) * windows.dilations[a] + 1;
      if ((x.dims[a + 2] + 2 * windows.pads[a] - span) / windows.strides[a] + 1 != y.dims[a + 2]) return false;
    }
    if (x.type != y.type || x.type != w.type) return false;
    // No tensor cores for f32, and none where they may not be used.
    const int math = x.type == CUDNN_DATA_FLOAT ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
    if (windows.math == math) return false;
    return x.dims[1] == w.dims[1] * windows.groups && y.dims[1] == w.dims[0] && x.dims[0] == y.dims[0];
  }

  template <class T>
  void run(const void* x_address, const void* w_address, const void* bias_address, void* y_address) const {
    size_t weights = 1;
    for (const int extent : w.dims) weights *= static_cast<size_t>(extent);
    const auto* in = static_cast<const T*>(standin::at(x_address, x.elements() * sizeof(T)));
    const auto* filter = static_cast<const T*>(standin::at(w_address, weights * sizeof(T)));
    auto* out = static_cast<T*>(standin::at(y_address, y.elements() * sizeof(T)));
    const T* bias = nullptr;
    if (bias_address) {
      bias = static_cast<const T*>(standin::at(bias_address, static_cast<size_t>(y.dims[1]) * sizeof(T)));
    }
    if (!in || !filter || !out || (bias_address && !bias)) return;
    std::vector<int> at(y.dims.size(), 0);
    do {
      const double added = bias ? static_cast<double>(bias[at[1]]) : 0;
      out[offset(y.strides, at)] = static_cast<T>(static_cast<float>(sum(in, filter, at) + added));
    } while (advance(at, y.dims));
  }

 private:
  static size_t offset(const std::vector<int>& strides, const std::vector<int>& at) {
    size_t offset = 0;
    for (size_t a = 0; a < at.size(); ++a) offset += static_cast<size_t>(strides[a]) * static_cast<size_t>(at[a]);
    return offset;
  }

  template <class T>
  double sum(const T* in, const T* filter, const std::vector<int>& at) const {
    const int out_of_group = w.dims[0] / windows.groups;
    const std::vector<int> extents(w.dims.begin() + 1, w.dims.end());
    std::vector<int> tap(extents.size(), 0);
    size_t k = static_cast<size_t>(at[1]);
    for (const int extent : extents) k *= static_cast<size_t>(extent);
    double total = 0;
    do {
      std::vector<int> from{at[0], at[1] / out_of_group * w.dims[1] + tap[0]};
      bool is_inside = true;
      for (size_t a = 0; a < windows.pads.size(); ++a) {
        const int position = at[a + 2] * windows.strides[a] - windows.pads[a] + tap[a + 1] * windows.dilations[a];
        is_inside = is_inside && position >= 0 && position < x.dims[a + 2];
        from.push_back(position);
      }
      if (is_inside) total += static_cast<double>(in[offset(x.strides, from)]) * static_cast<double>(filter[k]);
      ++k;
    } while (advance(tap, extents));
    return total;
  }
};

cudnnStatus_t start(cudnnHandle_t handle, const Convolution& conv, const void* x, const void* w, const void* bias,
                    void* y, int algorithm, void* workspace, size_t bytes) {
  const bool needs = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  if (!conv.fits() || (needs && (bytes < kWorkspace || !workspace))) return kBadParameter;
  const auto work = [=] {
    if (needs && !standin::at(workspace, kWorkspace)) return;
    with_elements(conv.x.type, [&]<class T>(T) { conv.run<T>(x, w, bias, y); });
  };
  return standin::enqueue(handle->stream, work) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : kBadParameter;
}

}  // namespace

#define AG_EXPORT extern "C" AG_STANDIN

AG_EXPORT size_t cudnnGetVersion() { return 91900; }
AG_EXPORT size_t cudnnGetCudartVersion() { return 13000; }
AG_EXPORT const char* cudnnGetErrorString(cudnnStatus_t code) {
  return code == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}
AG_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

#define AG_OBJECT(Kind, Handle, Struct)                       \
  AG_EXPORT cudnnStatus_t cudnnCreate##Kind(Handle* object) { \
    *object = new Struct;                                     \
    return CUDNN_STATUS_SUCCESS;                              \
  }                                                           \
  AG_EXPORT cudnnStatus_t cudnnDestroy##Kind(Handle object) { \
    delete object;                                            \
    return CUDNN_STATUS_SUCCESS;                              \
  }
AG_OBJECT(TensorDescriptor, cudnnTensorDescriptor_t, cudnnTensorStruct)
AG_OBJECT(FilterDescriptor, cudnnFilterDescriptor_t, cudnnFilterStruct)
AG_OBJECT(ConvolutionDescriptor, cudnnConvolutionDescriptor_t, cudnnConvolutionStruct)
AG_OBJECT(ActivationDescriptor, cudnnActivationDescriptor_t, cudnnActivationStruct)

AG_EXPORT cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int type, int rank, const int* dims,
                                                   const int* strides) {
  if (!is_known(type) || rank < 4) return kBadParameter;  // the library has none of fewer axes either
  tensor->type = type;
  tensor->dims.assign(dims, dims + rank);
  tensor->strides.assign(strides, strides + rank);
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, int type, int format, int rank,
                                                   const int* dims) {
  if (!is_known(type) || format != CUDNN_TENSOR_NCHW || rank < 4) return kBadParameter;
  filter->type = type;
  filter->dims.assign(dims, dims + rank);
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t windows, int rank, const int* pads,
                                                        const int* strides, const int* dilations, int mode, int type) {
  if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) return kBadParameter;
  windows->pads.assign(pads, pads + rank);
  windows->strides.assign(strides, strides + rank);
  windows->dilations.assign(dilations, dilations + rank);
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t windows, int groups) {
  windows->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t windows, int math) {
  windows->math = math;
  return CUDNN_STATUS_SUCCESS;
}
AG_EXPORT cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, int mode, int, double) {
  activation->mode = mode;
  return CUDNN_STATUS_SUCCESS;
}

AG_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                               cudnnFilterDescriptor_t w,
                                                               cudnnConvolutionDescriptor_t windows,
                                                               cudnnTensorDescriptor_t y, int wanted, int* count,
                                                               cudnnConvolutionFwdAlgoPerf_t* results) {
  *count = 0;
  if (!Convolution{*x, *y, *w, *windows}.fits()) return kBadParameter;
  // Of 16 bits one of them twice, with and without tensor cores.
  const int once_more = x->type == CUDNN_DATA_FLOAT ? -1 : CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  for (const int algorithm : {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, 0, 1, once_more}) {
    if (*count == wanted || algorithm < 0) break;
    cudnnConvolutionFwdAlgoPerf_t& result = results[(*count)++];
    result = {};
    result.algo = algorithm;
    result.mathType = *count > 3 ? CUDNN_DEFAULT_MATH : windows->math;
    result.memory = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ? kWorkspace : 0;
  }
  return CUDNN_STATUS_SUCCESS;
}

AG_EXPORT cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                                const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                                cudnnConvolutionDescriptor_t windows, int algorithm, void* workspace,
                                                size_t bytes, const void* beta, cudnnTensorDescriptor_t y,
                                                void* y_data) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) return kBadParameter;
  return start(handle, {*x, *y, *w, *windows}, x_data, w_data, nullptr, y_data, algorithm, workspace, bytes);
}

AG_EXPORT cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t a,
                                       const void* a_data, const void* beta, cudnnTensorDescriptor_t c, void* c_data) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 1) return kBadParameter;
  if (a->dims[1] != c->dims[1] || a->type != c->type) return kBadParameter;
  const auto work = [=, tensor = *c] {
    with_elements(tensor.type, [&]<class T>(T) {
      auto* data = static_cast<T*>(standin::at(c_data, tensor.elements() * sizeof(T)));
      const auto* bias = static_cast<const T*>(standin::at(a_data, static_cast<size_t>(tensor.dims[1]) * sizeof(T)));
      if (!data || !bias) return;
      const auto stride = static_cast<size_t>(tensor.strides[1]);
      for (size_t i = 0; i < tensor.elements(); ++i) {
        const T added = bias[i / stride % static_cast<size_t>(tensor.dims[1])];
        data[i] = static_cast<T>(static_cast<float>(data[i]) + static_cast<float>(added));
      }
    });
  };
  return standin::enqueue(handle->stream, work) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : kBadParameter;
}

AG_EXPORT cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x, const void* x_data, cudnnFilterDescriptor_t w,
    const void* w_data, cudnnConvolutionDescriptor_t windows, int algorithm, void* workspace, size_t bytes,
    const void* alpha2, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void* bias,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y, void* y_data) {
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(alpha2) != 0) return kBadParameter;
  const bool may =
      activation->mode != CUDNN_ACTIVATION_IDENTITY || algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  if (!may) return kBadParameter;  // as cudnn_cnn.h has it
  return start(handle, {*x, *y, *w, *windows}, x_data, w_data, bias, y_data, algorithm, workspace, bytes);
}

#define AG_SAME(name, result, parameters) static_assert(std::is_same_v<decltype(&name), result(*) parameters>);
AG_CUDNN_FUNCTIONS(AG_SAME)

}  // namespace autograph::cuda
