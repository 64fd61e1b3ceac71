#include "backends/cuda/cudnn_conv.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>

#include "autograph/error.h"
#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/libraries/workspace.h"
#include "backends/cuda/stream.h"
#include "backends/gpu/emit/text/index.h"
#include "base/check.h"
#include "ops/window/window_geometry.h"

namespace autograph::cuda {
namespace {

constexpr int kMostAlgorithms = 3;
// What an algorithm may ask for: some want more than the tensors.
constexpr size_t kMostWorkspace = size_t{64} << 20;
// In KernelVariant::tag, beside the algorithm: the bias is added by the convolution.
constexpr int kFused = 1 << 8;
// Of 16 bits tensor cores multiply so many times as much as what f32 is multiplied with, at least.
constexpr double kTensorCoreGain = 8;

// ---- The call ------------------------------------------------------------------------------------------------------

// All extents, with at least two spatial axes: the library has none with one.
struct ConvProblem {
  std::vector<int> x, w, y;
  std::vector<int> pads, strides, dilations;
  int groups = 1;
  bool has_bias = false;
  DType dtype = DType::f32;
  double flops = 0;
  std::string refusal;
};

ConvProblem refuse_problem(std::string reason) {
  ConvProblem problem;
  problem.refusal = std::move(reason);
  return problem;
}

std::vector<int> narrowed(const Dims& dims) { return {dims.begin(), dims.end()}; }

// A 1 in front of the spatial axes.
void widen(Dims& dims) { dims.insert(dims.begin() + 2, 1); }

// What the library calls a dtype; nothing where convolutions of it are none of its business.
std::optional<int> find_data_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f32: return CUDNN_DATA_FLOAT;
    default: return std::nullopt;
  }
}

bool has_16_bits(DType dtype) { return element_size(dtype) == 2; }

ConvProblem problem_of(const KernelCall& call) {
  if (!find_data_type(call.inputs[0].dtype())) return refuse_problem("only f16, bf16 and f32");
  Dims x = call.input_dims(0);
  Dims w = call.input_dims(1);
  Dims y = call.output_dims(0);
  for (const Dims& dims : {x, w, y}) {
    if (gpu::num_elements(dims) == 0) return refuse_problem("nothing to compute");
    if (gpu::num_elements(dims) > std::numeric_limits<int>::max()) return refuse_problem("sizes beyond 31 bits");
  }
  if (x.size() < 3 || x.size() > 5) return refuse_problem("only 1 to 3 spatial axes");
  std::vector<WindowAxis> axes = resolve_windows(window_spec(call.attributes, Dims(w.begin() + 2, w.end())),
                                                 std::span<const int64_t>(x).subspan(2));
  if (axes.size() == 1) {
    axes.insert(axes.begin(), WindowAxis{.in = 1, .out = 1});
    for (Dims* dims : {&x, &w, &y}) widen(*dims);
  }
  ConvProblem p;
  for (const WindowAxis& axis : axes) {
    // The end is padded as far as windows reach; more than that at the beginning cannot be said.
    const int64_t reach = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
    const int64_t out_if_even =
        (axis.in + 2 * axis.pad_begin - ((axis.kernel - 1) * axis.dilation + 1)) / axis.stride + 1;
    if (out_if_even != axis.out || reach > axis.in + 2 * axis.pad_begin) return refuse_problem("paddings differ");
    p.pads.push_back(static_cast<int>(axis.pad_begin));
    p.strides.push_back(static_cast<int>(axis.stride));
    p.dilations.push_back(static_cast<int>(axis.dilation));
  }
  p.x = narrowed(x);
  p.w = narrowed(w);
  p.y = narrowed(y);
  p.groups = static_cast<int>(call.attributes.integer("group"));
  p.has_bias = call.has_input(2);
  p.dtype = call.inputs[0].dtype();
  p.flops = 2.0 * static_cast<double>(gpu::num_elements(y)) * static_cast<double>(gpu::num_elements(w)) /
            static_cast<double>(w[0]);
  return p;
}

// ---- Descriptions for the library --------------------------------------------------------------------------------

template <class T, cudnnStatus_t (*Cudnn::*create)(T*), cudnnStatus_t (*Cudnn::*destroy)(T)>
class Descriptor {
 public:
  Descriptor() { cudnn().check((cudnn().*create)(&value_), "descriptor"); }
  ~Descriptor() { (cudnn().*destroy)(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  T get() const { return value_; }

 private:
  T value_ = nullptr;
};

class TensorDescriptor : public Descriptor<cudnnTensorDescriptor_t, &Cudnn::cudnnCreateTensorDescriptor,
                                           &Cudnn::cudnnDestroyTensorDescriptor> {
 public:
  TensorDescriptor(const std::vector<int>& dims, int type) {
    std::vector<int> strides(dims.size(), 1);
    for (size_t a = dims.size() - 1; a-- > 0;) strides[a] = strides[a + 1] * dims[a + 1];
    cudnn().check(
        cudnn().cudnnSetTensorNdDescriptor(get(), type, static_cast<int>(dims.size()), dims.data(), strides.data()),
        "cudnnSetTensorNdDescriptor");
  }
};
using Filter =
    Descriptor<cudnnFilterDescriptor_t, &Cudnn::cudnnCreateFilterDescriptor, &Cudnn::cudnnDestroyFilterDescriptor>;
using Windows = Descriptor<cudnnConvolutionDescriptor_t, &Cudnn::cudnnCreateConvolutionDescriptor,
                           &Cudnn::cudnnDestroyConvolutionDescriptor>;
using Activation = Descriptor<cudnnActivationDescriptor_t, &Cudnn::cudnnCreateActivationDescriptor,
                              &Cudnn::cudnnDestroyActivationDescriptor>;

std::vector<int> bias_dims(const ConvProblem& p) {
  std::vector<int> dims(p.y.size(), 1);
  dims[1] = p.y[1];
  return dims;
}

// By default f32 is multiplied as TF32 where that is faster. Products of 16 bits are exact, and added in f32: tensor
// cores change nothing but the order.
int math_of(DType dtype, Precision precision) {
  if (has_16_bits(dtype)) return CUDNN_TENSOR_OP_MATH;
  return precision == Precision::f32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

// Read by any number of threads once it is made.
struct Description {
  Description(const ConvProblem& p, Precision precision)
      : type(*find_data_type(p.dtype)), x(p.x, type), y(p.y, type), bias(bias_dims(p), type) {
    const Cudnn& dnn = cudnn();
    dnn.check(
        dnn.cudnnSetFilterNdDescriptor(w.get(), type, CUDNN_TENSOR_NCHW, static_cast<int>(p.w.size()), p.w.data()),
        "cudnnSetFilterNdDescriptor");
    dnn.check(dnn.cudnnSetConvolutionNdDescriptor(windows.get(), static_cast<int>(p.pads.size()), p.pads.data(),
                                                  p.strides.data(), p.dilations.data(), CUDNN_CROSS_CORRELATION,
                                                  CUDNN_DATA_FLOAT),
              "cudnnSetConvolutionNdDescriptor");
    dnn.check(dnn.cudnnSetConvolutionGroupCount(windows.get(), p.groups), "cudnnSetConvolutionGroupCount");
    set_math(math_of(p.dtype, precision));
    dnn.check(dnn.cudnnSetActivationDescriptor(none.get(), CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0),
              "cudnnSetActivationDescriptor");
  }

  void set_math(int math) {
    cudnn().check(cudnn().cudnnSetConvolutionMathType(windows.get(), math), "cudnnSetConvolutionMathType");
  }

  int type;
  TensorDescriptor x, y, bias;
  Filter w;
  Windows windows;
  Activation none;
};

// For questions; work has the handles of streams.
class QuestionHandle {
 public:
  explicit QuestionHandle(const Machine& machine) : lock_(mutex()) {
    static auto& handles = *new std::map<const Machine*, cudnnHandle_t>;  // kept: see Machine
    cudnnHandle_t& handle = handles[&machine];
    machine.make_current();
    if (!handle) handle = cudnn().new_handle(nullptr);
    handle_ = handle;
  }
  cudnnHandle_t get() const { return handle_; }

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> lock_;  // a handle is for one thread at a time
  cudnnHandle_t handle_ = nullptr;
};

// Those of Winograd and Fourier add in another order than the definition suggests, and round what they transform.
bool is_exact(int algorithm) { return algorithm <= 3; }

// Sums of 16 bits are rounded once, at the end.
std::vector<cudnnConvolutionFwdAlgoPerf_t> algorithms(const Machine& machine, const ConvProblem& p,
                                                      const Description& d, bool is_exact_call) {
  const bool exact = is_exact_call || has_16_bits(p.dtype);
  const QuestionHandle handle(machine);
  std::vector<cudnnConvolutionFwdAlgoPerf_t> found(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  int count = 0;
  const cudnnStatus_t code =
      cudnn().cudnnGetConvolutionForwardAlgorithm_v7(handle.get(), d.x.get(), d.w.get(), d.windows.get(), d.y.get(),
                                                     static_cast<int>(found.size()), &count, found.data());
  found.resize(code == CUDNN_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
  std::erase_if(found, [&](const cudnnConvolutionFwdAlgoPerf_t& result) {
    return result.status != CUDNN_STATUS_SUCCESS || result.memory > kMostWorkspace || (exact && !is_exact(result.algo));
  });
  return found;
}

// ---- The kernel ----------------------------------------------------------------------------------------------------

class DnnConv : public Kernel {
 public:
  DnnConv(std::string_view op, std::unique_ptr<Description> description, bool has_bias, int algorithm, bool is_fused,
          size_t workspace_bytes)
      : op_(op),
        description_(std::move(description)),
        has_bias_(has_bias),
        is_fused_(is_fused),
        algorithm_(algorithm),
        workspace_bytes_(workspace_bytes) {}

  void run(const KernelArgs& args) const override {
    auto& stream = static_cast<CudaStream&>(*args.stream);
    stream.machine().make_current();
    stream.note_op(op_);
    if (is_fused_) {
      run_fused(args, stream.dnn());
    } else {
      run_plain(args, stream.dnn());
    }
  }
  size_t scratch_bytes() const override { return scratch_for_workspace(workspace_bytes_); }

 private:
  void run_plain(const KernelArgs& args, cudnnHandle_t handle) const {
    const Description& d = *description_;
    constexpr float kOne = 1;
    constexpr float kZero = 0;
    cudnn().check(
        cudnn().cudnnConvolutionForward(handle, &kOne, d.x.get(), args.inputs[0].raw(), d.w.get(), args.inputs[1].raw(),
                                        d.windows.get(), algorithm_, workspace_in(args.scratch), workspace_bytes_,
                                        &kZero, d.y.get(), args.outputs[0].raw()),
        "cudnnConvolutionForward");
    if (!has_bias_) return;
    cudnn().check(cudnn().cudnnAddTensor(handle, &kOne, d.bias.get(), args.inputs[2].raw(), &kOne, d.y.get(),
                                         args.outputs[0].raw()),
                  "cudnnAddTensor");
  }

  void run_fused(const KernelArgs& args, cudnnHandle_t handle) const {
    const Description& d = *description_;
    constexpr float kOne = 1;
    constexpr float kZero = 0;
    void* y = args.outputs[0].raw();
    cudnn().check(cudnn().cudnnConvolutionBiasActivationForward(
                      handle, &kOne, d.x.get(), args.inputs[0].raw(), d.w.get(), args.inputs[1].raw(), d.windows.get(),
                      algorithm_, workspace_in(args.scratch), workspace_bytes_, &kZero, d.y.get(), y, d.bias.get(),
                      args.inputs[2].raw(), d.none.get(), d.y.get(), y),
                  "cudnnConvolutionBiasActivationForward");
  }

  std::string_view op_;
  std::unique_ptr<Description> description_;
  bool has_bias_;
  bool is_fused_;
  int algorithm_;
  size_t workspace_bytes_;
};

}  // namespace

std::string why_not_dnn_conv(const Machine& machine, const KernelCall& call) {
  static_cast<void>(machine);
  return find_cudnn() ? problem_of(call).refusal : why_no_cudnn();
}

std::vector<KernelVariant> dnn_conv_variants(const Machine& machine, const KernelCall& call, Precision precision) {
  constexpr double kShare = 0.5;
  constexpr double kLaunchUs = 2.5;
  // Channels and taps are walked by each group of threads alone, at so much a pair (measured on an H200).
  constexpr double kInnerUs = 0.0235;
  const ConvProblem problem = problem_of(call);
  const Description description(problem, precision);
  const double gain = has_16_bits(problem.dtype) ? kTensorCoreGain : 1;
  std::vector<KernelVariant> variants;
  const auto add = [&](std::string name, int tag) {
    KernelVariant& variant = variants.emplace_back();
    variant.name = std::move(name);
    variant.tag = tag;
    const double least_us =
        kInnerUs * std::accumulate(problem.w.begin() + 1, problem.w.end(), 1.0, std::multiplies<>());
    variant.cost_us = kLaunchUs + 0.1 * static_cast<double>(variants.size()) +
                      std::max(least_us, problem.flops / (kShare * machine.flops_per_us())) / gain;
  };
  bool has_precomputed = false;
  // Behind a convolution of 16 bits that is by itself a bias would be added to what has been rounded already.
  const bool adds_behind = !(problem.has_bias && has_16_bits(problem.dtype));
  for (const cudnnConvolutionFwdAlgoPerf_t& found : algorithms(machine, problem, description, call.exact)) {
    // An algorithm may come twice, with and without tensor cores.
    const bool is_new =
        std::none_of(variants.begin(), variants.end(), [&](const auto& v) { return v.tag == found.algo; });
    if (adds_behind && is_new && variants.size() < kMostAlgorithms) {
      add(fmt::format("algorithm{}", found.algo), found.algo);
    }
    has_precomputed = has_precomputed || found.algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  }
  // The only algorithm that adds a bias without an activation.
  if (problem.has_bias && has_precomputed) {
    add("with_bias", CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM | kFused);
  }
  return variants;
}

Prepared prepare_dnn_conv(const Machine& machine, const KernelCall& call, Precision precision) {
  const ConvProblem problem = problem_of(call);
  auto description = std::make_unique<Description>(problem, precision);
  const int tag = call.variant ? call.variant->tag : CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  const int algorithm = tag & ~kFused;
  const auto found = algorithms(machine, problem, *description, call.exact);
  const auto chosen = std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.algo == algorithm; });
  if (chosen == found.end()) return {nullptr, fmt::format("cuDNN does not offer algorithm {}", algorithm)};
  if (has_16_bits(problem.dtype)) description->set_math(chosen->mathType);
  return {std::make_unique<DnnConv>(call.op.name, std::move(description), problem.has_bias, algorithm,
                                    (tag & kFused) != 0, chosen->memory),
          ""};
}

}  // namespace autograph::cuda
