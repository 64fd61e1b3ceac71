#include "backends/cuda/lt_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "autograph/graph.h"
#include "backends/cuda/libraries/abi.h"
#include "backends/gpu/emit/text/epilogue.h"
#include "backends/gpu/emit/text/index.h"
#include "ops/defs.h"

namespace autograph::cuda {
namespace {

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

// Nothing where products of a dtype are none of the library's business.
std::optional<int> find_data_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f32: return CUDA_R_32F;
    case DType::f64: return CUDA_R_64F;
    default: return std::nullopt;
  }
}

// What follows a product in a fused body, node by node.
class EpilogueReader {
 public:
  EpilogueReader(const KernelCall& call, LtProblem& problem)
      : call_(call), body_(*call.attributes.get<GraphRef>("body")), problem_(problem) {}

  std::string read(const OpDef& producer) {
    for (const NodeId id : body_.topological_order()) {
      const Node& node = body_.node(id);
      const bool is_producer = &node.op() == &producer && !value_.is_valid();
      const std::string reason = is_producer ? "" : read_node(node);
      if (!reason.empty()) return reason;
      value_ = node.output(0);
    }
    return body_.outputs()[0] == value_ ? "" : "an output in the middle of the body";
  }

 private:
  std::string read_node(const Node& node) {
    if (problem_.activation != LtProblem::Activation::none) return "a body that goes on behind the activation";
    if (&node.op() == &add_def()) return read_row(node);
    if (node.inputs()[0] != value_) return "a body that is no chain";
    if (&node.op() == &relu_def()) {
      problem_.activation = LtProblem::Activation::relu;
      return "";
    }
    if (&node.op() != &gelu_def()) return fmt::format("cuBLASLt has no epilogue for {}", node.op().name);
    if (node.attributes().text("approximate") != "tanh") return "cuBLASLt has gelu in the tanh form alone";
    // How well it knows tanh is not documented.
    if (call_.exact) return "an exact gelu";
    if (problem_.has_16_bits()) return "gelu of what has been rounded to 16 bits";
    problem_.activation = LtProblem::Activation::tanh_gelu;
    return "";
  }

  std::string read_row(const Node& node) {
    const ValueId other = node.inputs()[0] == value_ ? node.inputs()[1] : node.inputs()[0];
    const auto at = std::find(body_.inputs().begin(), body_.inputs().end(), other);
    if ((node.inputs()[0] != value_ && node.inputs()[1] != value_) || at == body_.inputs().end()) {
      return "a body that is no chain";
    }
    if (problem_.addend != LtProblem::Addend::none) return "two addends";
    // The sum would be rounded once, where the graph rounds the product, too.
    if (problem_.has_16_bits()) return "a row behind what has been rounded to 16 bits";
    const auto slot = static_cast<size_t>(at - body_.inputs().begin());
    const Dims dims = call_.input_dims(slot);
    const Dims y = call_.output_dims(0);
    const bool is_row = !dims.empty() && gpu::num_elements(dims) == problem_.columns &&
                        dims.back() == problem_.columns && y.back() == problem_.columns;
    if (!is_row) return "an addend that is no row";
    problem_.addend = LtProblem::Addend::row;
    problem_.slots[2] = slot;
    return "";
  }

  const KernelCall& call_;
  const Graph& body_;
  LtProblem& problem_;
  ValueId value_;  // what the nodes read so far make
};

}  // namespace

double LtProblem::flops() const {
  return 2.0 * static_cast<double>(batches) * static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(inner);
}

int lt_data_type(DType dtype) { return *find_data_type(dtype); }

LtProblem lt_problem(const KernelCall& call) {
  const DType dtype = call.outputs[0].dtype();
  if (!find_data_type(dtype)) return refuse_problem("only f16, bf16, f32 and f64");
  LtProblem p = &call.op == &matmul_def() ? matmul_problem(call) : gemm_problem(call);
  p.dtype = dtype;
  const bool is_empty = p.batches == 0 || p.rows == 0 || p.columns == 0 || p.inner == 0;
  if (p.refusal.empty() && is_empty) return refuse_problem("nothing to multiply");
  if (std::max({p.batches, p.rows, p.columns, p.inner}) > INT32_MAX) return refuse_problem("sizes beyond 31 bits");
  return p;
}

LtProblem lt_epilogue_problem(const KernelCall& call, const OpDef& producer) {
  const gpu::Epilogue epilogue(call, producer);
  if (!epilogue.refusal().empty()) return refuse_problem(epilogue.refusal());
  LtProblem p = lt_problem(epilogue.producer());
  for (size_t k = 0; k < epilogue.slots().size(); ++k) p.slots[k] = epilogue.slots()[k];
  if (p.refusal.empty()) p.refusal = EpilogueReader(call, p).read(producer);
  return p;
}

}  // namespace autograph::cuda
