#include "backends/cuda/lt_product.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/libraries/workspace.h"
#include "backends/cuda/lt_problem.h"
#include "backends/cuda/stream.h"

namespace autograph::cuda {
namespace {

// What an algorithm may ask for.
constexpr size_t kMostWorkspace = size_t{8} << 20;
// Algorithms that are worth measuring: the first one is the best in most cases.
constexpr int kMostAlgorithms = 3;
// Where tensors begin, unless a caller gives others.
constexpr uint32_t kUsualAlignment = 16;
// Of 16 bits tensor cores multiply so many times as much as what f32 is multiplied with, at least: 16 times on sm_80
// and sm_90, 8 times on sm_75.
constexpr double kTensorCoreGain = 8;
// In KernelVariant::tag, beside the number of the algorithm: what follows the product is an epilogue of the library.
constexpr int kOwnEpilogue = 1 << 8;

const CublasLt& lt() { return cublaslt(); }

// Any number of threads may use it at once.
cublasLtHandle_t handle_for(const Machine& machine) {
  static std::mutex mutex;
  static auto& handles = *new std::map<const Machine*, cublasLtHandle_t>;  // kept: see Machine
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[&machine];
  machine.make_current();
  if (!handle) lt().check(lt().cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

// Products of 16 bits are exact in f32, whatever the precision.
int compute_type(DType dtype, Precision precision) {
  if (dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  const bool is_narrowed = dtype == DType::f32 && precision == Precision::bf16;
  return is_narrowed ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
}

// Of alpha and beta.
int scale_type(DType dtype) { return dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F; }

int32_t epilogue_of(const LtProblem& p) {
  const bool has_row = p.addend == LtProblem::Addend::row;
  switch (p.activation) {
    case LtProblem::Activation::none: break;
    case LtProblem::Activation::relu: return has_row ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case LtProblem::Activation::tanh_gelu: return has_row ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return has_row ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// ---- Descriptions for the library --------------------------------------------------------------------------------

template <class T, cublasStatus_t (*CublasLt::*destroy)(T)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (value_) (lt().*destroy)(value_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T get() const { return value_; }
  T* out() { return &value_; }

 private:
  T value_ = nullptr;
};
using MatrixLayout = Owned<cublasLtMatrixLayout_t, &CublasLt::cublasLtMatrixLayoutDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, &CublasLt::cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &CublasLt::cublasLtMatmulPreferenceDestroy>;

template <class T>
void set(const Operation& operation, int attribute, T value) {
  lt().check(lt().cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)),
             "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(const Preference& preference, int attribute, T value) {
  lt().check(lt().cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
             "cublasLtMatmulPreferenceSetAttribute");
}

// The library counts columns first: a matrix that lies row by row is for it the transposed one. So it is asked for
// y^T = right^T * left^T, whose first operand is `right`, with nothing to transpose where the op transposes nothing.
class Description {
 public:
  Description(const LtProblem& p, Precision precision) : p_(p), precision_(precision) {
    const int type = lt_data_type(p.dtype);
    make(right_, type, p.transposes_right ? p.columns : p.inner, p.transposes_right ? p.inner : p.columns,
         p.right_step);
    make(left_, type, p.transposes_left ? p.inner : p.rows, p.transposes_left ? p.rows : p.inner, p.left_step);
    make(result_, type, p.rows, p.columns, p.rows * p.columns);
  }

  // Every run context has one of its own: the address of a bias is part of it. Until that is known it begins at a
  // multiple of `alignment`, which is looked at when algorithms are chosen.
  std::unique_ptr<Operation> new_operation(uint32_t alignment) const {
    auto operation = std::make_unique<Operation>();
    const int compute = compute_type(p_.dtype, precision_);
    lt().check(lt().cublasLtMatmulDescCreate(operation->out(), compute, scale_type(p_.dtype)),
               "cublasLtMatmulDescCreate");
    set(*operation, CUBLASLT_MATMUL_DESC_TRANSA, p_.transposes_right ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(*operation, CUBLASLT_MATMUL_DESC_TRANSB, p_.transposes_left ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(*operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p_));
    if (p_.addend == LtProblem::Addend::row) {
      set(*operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(size_t{alignment}));
    }
    return operation;
  }

  // For operands that begin at multiples of `alignment` bytes.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(cublasLtHandle_t handle, uint32_t alignment) const {
    Preference preference;
    lt().check(lt().cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostWorkspace});
    // Sums of 16 bits are rounded once, at the end: where k is cut into parts, these are added up in f32.
    if (p_.has_16_bits()) {
      set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    }
    for (const int which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(preference, which, alignment);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    const cublasStatus_t code = lt().cublasLtMatmulAlgoGetHeuristic(
        handle, new_operation(alignment)->get(), right_.get(), left_.get(), result_.get(), result_.get(),
        preference.get(), kMostAlgorithms, found.data(), &count);
    found.resize(code == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(count) : 0);
    std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  const LtProblem& problem() const { return p_; }
  cublasLtMatrixLayout_t right() const { return right_.get(); }
  cublasLtMatrixLayout_t left() const { return left_.get(); }
  cublasLtMatrixLayout_t result() const { return result_.get(); }

 private:
  // Of `rows` x `columns` elements that lie row by row.
  void make(MatrixLayout& layout, int type, int64_t rows, int64_t columns, int64_t step) {
    lt().check(lt().cublasLtMatrixLayoutCreate(layout.out(), type, static_cast<uint64_t>(columns),
                                               static_cast<uint64_t>(rows), columns),
               "cublasLtMatrixLayoutCreate");
    if (p_.batches == 1) return;
    const auto count = static_cast<int32_t>(p_.batches);
    lt().check(
        lt().cublasLtMatrixLayoutSetAttribute(layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
        "cublasLtMatrixLayoutSetAttribute");
    lt().check(lt().cublasLtMatrixLayoutSetAttribute(layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                                     sizeof(step)),
               "cublasLtMatrixLayoutSetAttribute");
  }

  LtProblem p_;
  Precision precision_;
  MatrixLayout right_, left_, result_;
};

// ---- The kernel ----------------------------------------------------------------------------------------------------

struct LtState : KernelState {
  std::unique_ptr<Operation> operation;
};

class LtProduct : public Kernel {
 public:
  LtProduct(const Machine& machine, std::string_view op, std::unique_ptr<Description> description,
            cublasLtMatmulHeuristicResult_t usual, cublasLtMatmulHeuristicResult_t unaligned)
      : op_(op),
        handle_(handle_for(machine)),
        description_(std::move(description)),
        usual_(usual),
        unaligned_(unaligned) {}

  void run(const KernelArgs& args) const override {
    auto& stream = static_cast<CudaStream&>(*args.stream);
    stream.machine().make_current();
    stream.note_op(op_);
    const LtProblem& p = description_->problem();
    const Operation& operation = *static_cast<LtState*>(args.state)->operation;
    const void* left = args.inputs[p.slots[0]].raw();
    const void* right = args.inputs[p.slots[1]].raw();
    void* y = args.outputs[0].raw();
    const void* c = p.addend == LtProblem::Addend::matrix ? args.inputs[p.slots[2]].raw() : y;
    bool is_aligned = is_usual(left) && is_usual(right) && is_usual(y) && is_usual(c);
    if (p.addend == LtProblem::Addend::row) {
      const void* bias = args.inputs[p.slots[2]].raw();
      is_aligned = is_aligned && is_usual(bias);
      set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    const cublasLtMatmulHeuristicResult_t& chosen = is_aligned ? usual_ : unaligned_;
    const auto alpha32 = static_cast<float>(p.alpha);
    const auto beta32 = static_cast<float>(p.beta);
    const bool is_f64 = p.dtype == DType::f64;
    const void* alpha = is_f64 ? static_cast<const void*>(&p.alpha) : &alpha32;
    const void* beta = is_f64 ? static_cast<const void*>(&p.beta) : &beta32;
    lt().check(lt().cublasLtMatmul(handle_, operation.get(), alpha, right, description_->right(), left,
                                   description_->left(), beta, c, description_->result(), y, description_->result(),
                                   &chosen.algo, workspace_in(args.scratch), chosen.workspaceSize, stream.get()),
               "cublasLtMatmul");
  }

  size_t scratch_bytes() const override {
    return scratch_for_workspace(std::max(usual_.workspaceSize, unaligned_.workspaceSize));
  }

  std::unique_ptr<KernelState> new_state() const override {
    auto state = std::make_unique<LtState>();
    state->operation = description_->new_operation(kUsualAlignment);
    return state;
  }

 private:
  static bool is_usual(const void* address) { return reinterpret_cast<uintptr_t>(address) % kUsualAlignment == 0; }

  std::string_view op_;
  cublasLtHandle_t handle_;
  std::unique_ptr<Description> description_;
  cublasLtMatmulHeuristicResult_t usual_;
  cublasLtMatmulHeuristicResult_t unaligned_;  // for addresses that are multiples of an element's size alone
};

// `more_us`: beside the product; `tag` goes with the number of the algorithm.
std::vector<KernelVariant> variants_of(const Machine& machine, const LtProblem& problem, Precision precision,
                                       std::string_view name, double more_us, int tag) {
  // Of what the device can do, measured on an H200; tiles that are not full are not counted.
  constexpr double kShare = 0.77;
  constexpr double kLaunchUs = 2.5;
  const Description description(problem, precision);
  const double flops_per_us = machine.flops_per_us() * (problem.has_16_bits() ? kTensorCoreGain : 1);
  std::vector<KernelVariant> variants;
  const size_t count = description.algorithms(handle_for(machine), kUsualAlignment).size();
  for (size_t k = 0; k < count; ++k) {
    KernelVariant& variant = variants.emplace_back();
    variant.name = fmt::format("{}{}", name, k);
    variant.cost_us = kLaunchUs + more_us + 0.1 * static_cast<double>(k) + problem.flops() / (kShare * flops_per_us);
    variant.tag = static_cast<int>(k) | tag;
  }
  return variants;
}

Prepared prepare(const Machine& machine, const KernelCall& call, const LtProblem& problem, Precision precision) {
  auto description = std::make_unique<Description>(problem, precision);
  const auto usual = description->algorithms(handle_for(machine), kUsualAlignment);
  const auto unaligned =
      description->algorithms(handle_for(machine), static_cast<uint32_t>(element_size(problem.dtype)));
  const auto number = static_cast<size_t>(call.variant ? call.variant->tag & ~kOwnEpilogue : 0);
  if (number >= usual.size() || unaligned.empty()) return {nullptr, "cuBLASLt has no algorithm"};
  return {std::make_unique<LtProduct>(machine, call.op.name, std::move(description), usual[number], unaligned[0]), ""};
}

}  // namespace

std::string why_not_lt_product(const KernelCall& call) {
  return find_cublaslt() ? lt_problem(call).refusal : why_no_cublaslt();
}

std::vector<KernelVariant> lt_product_variants(const Machine& machine, const KernelCall& call, Precision precision) {
  return variants_of(machine, lt_problem(call), precision, "algorithm", 0, 0);
}

Prepared prepare_lt_product(const Machine& machine, const KernelCall& call, Precision precision) {
  return prepare(machine, call, lt_problem(call), precision);
}

std::vector<KernelVariant> lt_epilogue_variants(const Machine& machine, const KernelCall& call, const OpDef& producer,
                                                Precision precision) {
  // What an epilogue takes beside the product.
  constexpr double kEpilogueUs = 0.3;
  // How well the library knows tanh is not documented: without a measurement two kernels come first.
  constexpr double kGeluUs = 4;
  const LtProblem problem = lt_epilogue_problem(call, producer);
  if (!problem.refusal.empty()) return {};
  const double more_us = problem.activation == LtProblem::Activation::tanh_gelu ? kGeluUs : kEpilogueUs;
  return variants_of(machine, problem, precision, "epilogue", more_us, kOwnEpilogue);
}

bool is_lt_epilogue(const KernelVariant* variant) { return variant && (variant->tag & kOwnEpilogue) != 0; }

Prepared prepare_lt_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                             Precision precision) {
  return prepare(machine, call, lt_epilogue_problem(call, producer), precision);
}

}  // namespace autograph::cuda
