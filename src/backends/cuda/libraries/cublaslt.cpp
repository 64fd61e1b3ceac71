#include "backends/cuda/libraries/cublaslt.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "autograph/error.h"
#include "backends/cuda/libraries/libraries.h"
#include "backends/cuda/libraries/workspace.h"
#include "backends/cuda/stream.h"
#include "backends/gpu/emit/text/index.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
// What an algorithm may ask for.
constexpr size_t kMostWorkspace = size_t{8} << 20;
// Algorithms that are worth measuring: the first one is the best in most cases.
constexpr int kMostAlgorithms = 3;
// Where tensors begin, unless a caller gives others.
constexpr uint32_t kUsualAlignment = 16;

// ---- The library ---------------------------------------------------------------------------------------------------

struct CublasLt {
  AG_CUBLASLT_FUNCTIONS(AG_CUDA_MEMBER)

  void check(cublasStatus_t code, std::string_view what) const {
    if (code != CUBLAS_STATUS_SUCCESS) {
      throw DeviceError(fmt::format("[cuda] {}: {} ({})", what, cublasLtGetStatusName(code), code));
    }
  }
};

std::string load(void* handle, CublasLt& table) {
  std::string missing;
  AG_CUBLASLT_FUNCTIONS(AG_CUDA_LOAD)
  if (!missing.empty()) return missing;
  const auto major = static_cast<int>(table.cublasLtGetVersion() / 10000);
  if (major <= driver().version / 1000) return "";
  return fmt::format("is for CUDA {}, the driver for {}", major, version_text(driver().version));
}

struct LoadedCublasLt {
  LoadedCublasLt() {
    const Library library = open_library(kLibraries, [&](void* handle) {
      lt = {};
      return load(handle, lt);
    });
    is_there = static_cast<bool>(library);
    if (!is_there) why_not = "cuBLASLt was not found (looked for " + library.looked_for + ")";
  }
  CublasLt lt;
  std::string why_not;
  bool is_there = false;
};

const LoadedCublasLt& loaded() {
  static const LoadedCublasLt kLoaded;
  return kLoaded;
}

const CublasLt& lt() { return loaded().lt; }

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

// ---- The product ---------------------------------------------------------------------------------------------------

// y[b] = alpha * left[b] * right[b] + beta * c, with matrices as they lie in memory, row by row; a step of 0 takes the
// same matrix for all.
struct LtProblem {
  enum class Addend : uint8_t { none, matrix, row };
  int64_t batches = 1, rows = 0, inner = 0, columns = 0;
  int64_t left_step = 0, right_step = 0;
  bool transposes_left = false, transposes_right = false;
  double alpha = 1, beta = 0;
  Addend addend = Addend::none;
  DType dtype = DType::f32;
  std::string refusal;
};

LtProblem refuse_problem(std::string reason) {
  LtProblem problem;
  problem.refusal = std::move(reason);
  return problem;
}

// The step from matrix to matrix of an operand; nothing where it broadcasts otherwise than as a whole.
std::optional<int64_t> batch_step(const Dims& leading, int64_t batches, int64_t matrix) {
  const int64_t count = gpu::num_elements(leading);
  if (count == batches) return matrix;
  return count == 1 ? std::optional<int64_t>(0) : std::nullopt;
}

LtProblem matmul_problem(const KernelCall& call) {
  Dims a = call.input_dims(0);
  Dims b = call.input_dims(1);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  LtProblem p;
  p.rows = a[a.size() - 2];
  p.inner = a.back();
  p.columns = b.back();
  const Dims a_leading(a.begin(), a.end() - 2);
  const Dims b_leading(b.begin(), b.end() - 2);
  const int64_t outputs = gpu::num_elements(call.output_dims(0));
  p.batches = p.rows * p.columns > 0 ? outputs / (p.rows * p.columns) : 0;
  // One matrix on the right: the rows of all batches are those of one large matrix.
  if (gpu::num_elements(b_leading) == 1 && gpu::num_elements(a_leading) == p.batches) {
    p.rows *= p.batches;
    p.batches = 1;
    return p;
  }
  const auto left = batch_step(a_leading, p.batches, p.rows * p.inner);
  const auto right = batch_step(b_leading, p.batches, p.inner * p.columns);
  if (!left || !right) return refuse_problem("matrices broadcast along some axes only");
  p.left_step = *left;
  p.right_step = *right;
  return p;
}

LtProblem gemm_problem(const KernelCall& call) {
  const Dims y = call.output_dims(0);
  LtProblem p;
  p.transposes_left = call.attributes.flag("transA");
  p.transposes_right = call.attributes.flag("transB");
  p.rows = y[0];
  p.columns = y[1];
  p.inner = call.input_dims(0)[p.transposes_left ? 0 : 1];
  p.alpha = static_cast<double>(call.attributes.real("alpha"));
  const auto beta = static_cast<double>(call.attributes.real("beta"));
  if (!call.has_input(2) || beta == 0) return p;
  const Dims c = call.input_dims(2);
  const bool is_row = gpu::num_elements(c) == p.columns && !c.empty() && c.back() == p.columns;
  if (c == y) {
    p.addend = LtProblem::Addend::matrix;
    p.beta = beta;
  } else if (is_row && beta == 1) {
    p.addend = LtProblem::Addend::row;
  } else {
    return refuse_problem("the addend is neither a matrix nor a row that is added as it is");
  }
  return p;
}

LtProblem problem_of(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype();
  if (dtype != DType::f32 && dtype != DType::f64) return refuse_problem("only f32 and f64");
  LtProblem p = &call.op == &matmul_def() ? matmul_problem(call) : gemm_problem(call);
  p.dtype = dtype;
  const bool is_empty = p.batches == 0 || p.rows == 0 || p.columns == 0 || p.inner == 0;
  if (p.refusal.empty() && is_empty) return refuse_problem("nothing to multiply");
  if (std::max({p.batches, p.rows, p.columns, p.inner}) > INT32_MAX) return refuse_problem("sizes beyond 31 bits");
  return p;
}

int compute_type(DType dtype, Precision precision) {
  if (dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return precision == Precision::bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
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
    const int type = p.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
    make(right_, type, p.transposes_right ? p.columns : p.inner, p.transposes_right ? p.inner : p.columns,
         p.right_step);
    make(left_, type, p.transposes_left ? p.inner : p.rows, p.transposes_left ? p.rows : p.inner, p.left_step);
    make(result_, type, p.rows, p.columns, p.rows * p.columns);
  }

  // Every run context has one of its own: the address of a bias is part of it.
  std::unique_ptr<Operation> new_operation() const {
    const int type = p_.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
    auto operation = std::make_unique<Operation>();
    lt().check(lt().cublasLtMatmulDescCreate(operation->out(), compute_type(p_.dtype, precision_), type),
               "cublasLtMatmulDescCreate");
    set(*operation, CUBLASLT_MATMUL_DESC_TRANSA, p_.transposes_right ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(*operation, CUBLASLT_MATMUL_DESC_TRANSB, p_.transposes_left ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (p_.addend == LtProblem::Addend::row) {
      set(*operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // Its alignment is looked at when algorithms are chosen.
      set(*operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(size_t{kUsualAlignment}));
    }
    return operation;
  }

  // For operands that begin at multiples of `alignment` bytes.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(cublasLtHandle_t handle, uint32_t alignment) const {
    Preference preference;
    lt().check(lt().cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostWorkspace});
    for (const int which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(preference, which, alignment);
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    const cublasStatus_t code =
        lt().cublasLtMatmulAlgoGetHeuristic(handle, new_operation()->get(), right_.get(), left_.get(), result_.get(),
                                            result_.get(), preference.get(), kMostAlgorithms, found.data(), &count);
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
    const void* left = args.inputs[0].raw();
    const void* right = args.inputs[1].raw();
    void* y = args.outputs[0].raw();
    const void* c = p.addend == LtProblem::Addend::matrix ? args.inputs[2].raw() : y;
    bool is_aligned = is_usual(left) && is_usual(right) && is_usual(y) && is_usual(c);
    if (p.addend == LtProblem::Addend::row) {
      const void* bias = args.inputs[2].raw();
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
    state->operation = description_->new_operation();
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

}  // namespace

std::string cublaslt_version_text() {
  if (!loaded().is_there) return "no cublasLt";
  const size_t version = lt().cublasLtGetVersion();
  return fmt::format("cublasLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string why_not_lt_product(const Machine& machine, const KernelCall& call) {
  static_cast<void>(machine);
  return loaded().is_there ? problem_of(call).refusal : loaded().why_not;
}

std::vector<KernelVariant> lt_product_variants(const Machine& machine, const KernelCall& call, Precision precision) {
  // Of what the device can do, measured on an H200; tiles that are not full are not counted.
  constexpr double kShare = 0.77;
  constexpr double kLaunchUs = 2.5;
  const LtProblem problem = problem_of(call);
  const Description description(problem, precision);
  const double flops = 2.0 * static_cast<double>(problem.batches) * static_cast<double>(problem.rows) *
                       static_cast<double>(problem.columns) * static_cast<double>(problem.inner);
  std::vector<KernelVariant> variants;
  const size_t count = description.algorithms(handle_for(machine), kUsualAlignment).size();
  for (size_t k = 0; k < count; ++k) {
    KernelVariant& variant = variants.emplace_back();
    variant.name = fmt::format("algorithm{}", k);
    variant.cost_us = kLaunchUs + 0.1 * static_cast<double>(k) + flops / (kShare * machine.flops_per_us());
    variant.tag = static_cast<int>(k);
  }
  return variants;
}

Prepared prepare_lt_product(const Machine& machine, const KernelCall& call, Precision precision) {
  const LtProblem problem = problem_of(call);
  auto description = std::make_unique<Description>(problem, precision);
  const auto usual = description->algorithms(handle_for(machine), kUsualAlignment);
  const auto unaligned =
      description->algorithms(handle_for(machine), static_cast<uint32_t>(element_size(problem.dtype)));
  const auto number = static_cast<size_t>(call.variant ? call.variant->tag : 0);
  if (number >= usual.size() || unaligned.empty()) return {nullptr, "cuBLASLt has no algorithm"};
  return {std::make_unique<LtProduct>(machine, call.op.name, std::move(description), usual[number], unaligned[0]), ""};
}

}  // namespace autograph::cuda
