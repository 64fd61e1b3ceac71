#include "random_graph/idioms/idiom_graph.h"

#include <algorithm>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "ops/real_values.h"

namespace autograph {

IdiomGraph::IdiomGraph(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15ULL + 1) {
  const int64_t kind = between(0, 99);
  if (kind < 8) dtype_ = DType::f16;
  if (kind >= 94) dtype_ = DType::f64;
  is_dynamic_ = chance(15);
  batch_ = one_of<int64_t>({1, 1, 1, 2, 3});
  const int64_t look = between(0, 19);
  if (look < 6) look_ = static_cast<Look>(look + 1);
  // In half precision they would soon be infinite, or nothing.
  if (dtype_ == DType::f16 && (look_ == Look::large || look_ == Look::tiny)) look_ = Look::plain;
}

double IdiomGraph::real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

int64_t IdiomGraph::channels() { return one_of<int64_t>({1, 2, 3, 4, 5, 8, 8, 12, 15, 16, 16, 17, 20, 24, 32, 33}); }

Tensor IdiomGraph::elements(DType dtype, const Dims& dims, double low, double high) {
  Tensor tensor = draw_tensor(random_, dtype, dims, low, high);
  if (look_ == Look::plain || !dtypes::kFloat.contains(dtype)) return tensor;
  std::vector<double> values = tensor.to_f64();
  const double same = real(low, high);
  for (double& value : values) {
    switch (look_) {
      case Look::large: value *= 1e3; break;
      case Look::tiny: value *= 1e-4; break;
      case Look::equal: value = same; break;
      case Look::zero: value = 0; break;
      case Look::sparse: value = between(0, 2) > 0 ? 0 : value; break;
      default: value = static_cast<double>(static_cast<int64_t>(value * 2)) / 2; break;
    }
  }
  store_reals(values, tensor.view());
  return tensor;
}

Var IdiomGraph::input(DType dtype, Dims dims, double low, double high) {
  Shape shape;
  for (int64_t& extent : dims) {
    const int64_t symbol = extent;
    if (symbol == -1) extent = batch_;
    if (symbol == -2) extent = one_of<int64_t>({1, 2, 3, 5, 7, 8, 9, 12, 14});
    if (symbol == -3) extent = one_of<int64_t>({1, 3, 4, 6, 7, 8, 11, 13});
    const bool is_symbol = is_dynamic_ && symbol < 0 && (symbol == -1 || chance(50));
    const std::string name =
        symbol == -1 ? "batch" : "n" + std::to_string(result_.inputs.size()) + std::to_string(-symbol);
    shape.dims().push_back(is_symbol ? Dim::symbol(name) : Dim(extent));
  }
  result_.inputs.emplace_back(elements(dtype, dims, low, high));
  return autograph::input(graph(), dtype, shape, "x" + std::to_string(result_.inputs.size()));
}

Var IdiomGraph::weight(Dims dims, double low, double high) {
  return constant(draw_tensor(random_, dtype_, std::move(dims), low, high));
}

Var IdiomGraph::weight_like(Var like, Dims dims, double low, double high) {
  return constant(draw_tensor(random_, like.dtype(), std::move(dims), low, high));
}

Var IdiomGraph::number(Var like, double value) {
  const Var scalar = scalar_like(like, value);
  const int64_t rank = chance(50) || !like.shape().has_rank() ? 0 : between(0, like.rank());
  if (rank == 0) return scalar;
  return constant(graph().value(scalar.id()).constant().reshaped(Dims(static_cast<size_t>(rank), 1)));
}

Var IdiomGraph::per_channel(Var like, int64_t axis, double low, double high) {
  if (axis < 0) axis += like.rank();
  Dims dims(static_cast<size_t>(like.rank() - axis), 1);
  dims[0] = like.dim(axis);
  while (std::ssize(dims) < like.rank() && chance(40)) dims.insert(dims.begin(), 1);
  return constant(draw_tensor(random_, like.dtype(), std::move(dims), low, high));
}

// The value an earlier block left, as one of this rank, the way models lead there.
Var IdiomGraph::led_to(int64_t rank) {
  std::vector<Var> fitting;
  for (const Var& v : left_) {
    const bool has_width = v.shape()[v.rank() == 4 ? 1 : v.rank() - 1].is_known();
    if (v.dtype() == dtype_ && has_width) fitting.push_back(v);
  }
  if (fitting.empty()) return {};
  const Var v = chance(70) ? fitting.back() : one_of(fitting);
  if (v.rank() == rank) return v;
  if (v.rank() == 4 && rank == 3) {
    return transpose(reshape(v, std::vector<int64_t>{0, v.dim(1), -1}), {0, 2, 1});
  }
  if (v.rank() == 4) return chance(50) ? flatten(global_average_pool(v)) : reduce_mean(v, {2, 3}, false);
  if (v.rank() == 3 && rank == 4) return unsqueeze(transpose(v, {0, 2, 1}), {3});
  if (v.rank() == 3)
    return chance(50) ? reduce_mean(v, {1}, false) : gather(v, constant(Tensor::scalar<int64_t>(0)), 1);
  return rank == 3 ? unsqueeze(v, {1}) : unsqueeze(v, {2, 3});
}

Var IdiomGraph::image() {
  const Var v = chance(85) ? led_to(4) : Var();
  return v.is_valid() ? v : input(dtype_, {-1, channels(), -2, -3});
}

Var IdiomGraph::sequence() {
  const Var v = chance(85) ? led_to(3) : Var();
  return v.is_valid() ? v : input(dtype_, {-1, -2, one_of<int64_t>({4, 6, 8, 12, 16, 24})});
}

Var IdiomGraph::row() {
  const Var v = chance(85) ? led_to(2) : Var();
  return v.is_valid() ? v : input(dtype_, {-1, channels()});
}

Var IdiomGraph::earlier(const Type& type) {
  std::vector<Var> fitting;
  for (const Var& v : left_) {
    if (v.type() == type) fitting.push_back(v);
  }
  return fitting.empty() ? Var() : one_of(fitting);
}

void IdiomGraph::leave(Var v) {
  const Shape& shape = v.shape();
  if (!shape.has_rank() || shape.rank() < 2 || shape.rank() > 4) return;
  left_.push_back(v);
  if (chance(8)) output(v);
}

TestGraph IdiomGraph::finish() {
  for (const NodeId node : graph().nodes()) {
    for (const ValueId v : graph().node(node).outputs()) {
      if (graph().value(v).uses().empty() && graph().num_output_uses(v) == 0) graph().add_output(v);
    }
  }
  return std::move(result_);
}

}  // namespace autograph
