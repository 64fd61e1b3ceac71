// det: determinant of each square matrix of the last two dims, by elimination with row exchanges in f64. The
// determinant of a matrix without rows is 1.
#include <cmath>
#include <utility>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/gradients.h"
#include "ops/real_values.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  context.require<ShapeError>(x.rank() >= 2, "input 'x'", fmt::format("expected rank 2 or more, got {}", to_string(x)));
  same_extent(context, x[x.rank() - 2], x[x.rank() - 1], "rows and columns");
  context.set_output(0, context.dtype(0), Shape(std::vector<Dim>(x.dims().begin(), x.dims().end() - 2)));
}

double determinant(std::span<double> a, int64_t n) {
  const auto at = [&](int64_t row, int64_t column) -> double& { return a[static_cast<size_t>(row * n + column)]; };
  double product = 1;
  for (int64_t step = 0; step < n; ++step) {
    int64_t pivot = step;
    for (int64_t row = step + 1; row < n; ++row) {
      if (std::fabs(at(row, step)) > std::fabs(at(pivot, step))) pivot = row;
    }
    if (at(pivot, step) == 0) return 0;
    if (pivot != step) {
      product = -product;
      for (int64_t column = step; column < n; ++column) std::swap(at(pivot, column), at(step, column));
    }
    product *= at(step, step);
    for (int64_t row = step + 1; row < n; ++row) {
      const double factor = at(row, step) / at(step, step);
      for (int64_t column = step; column < n; ++column) at(row, column) -= factor * at(step, column);
    }
  }
  return product;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t n = x.dim(x.rank() - 1);
  std::vector<double> values = real_values(x);
  std::vector<double> results;
  for (int64_t i = 0; i < call.output(0).num_elements(); ++i) {
    results.push_back(
        determinant(std::span(values).subspan(static_cast<size_t>(i * n * n), static_cast<size_t>(n * n)), n));
  }
  store_reals(results, call.output(0));
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 0, 2);
  const int64_t n = draw(random, 1, 4);
  dims.insert(dims.end(), {n, n});
  return {.inputs = {draw_tensor(random, DType::f32, dims)}};
}

// The matrix of cofactors, each the determinant of the matrix without a row and a column: right for singular matrices,
// too, and quick enough for the small ones that determinants are taken of.
void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank() || !x.shape()[x.rank() - 1].is_known()) c.unsupported("its rule needs known extents");
  const int64_t n = x.dim(-1);
  const Var g = unsqueeze(c.gy(0), {-2, -1});
  if (n <= 1) return c.set(0, expand_as(g, x));
  std::vector<int64_t> minors;
  std::vector<double> signs;
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      signs.push_back((row + column) % 2 == 0 ? 1 : -1);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          if (i != row && j != column) minors.push_back(i * n + j);
        }
      }
    }
  }
  const Var indices = constant_like(c.in(0), Tensor::of<int64_t>({n, n, n - 1, n - 1}, minors));
  Dims flat(static_cast<size_t>(x.rank() - 2), 0);
  flat.push_back(n * n);
  const Var cofactors = det(gather(reshape(x, flat), indices, x.rank() - 2));
  const Var alternating = cast(constant_like(c.in(0), Tensor::of<double>({n, n}, signs)), x.dtype());
  c.set(0, g * cofactors * alternating);
}

}  // namespace

Var det(Var x) { return apply(det_def(), {x}); }

const OpDef& det_def() {
  static const OpDef def{
      .name = "det",
      .doc = "Determinant of each square matrix of the last two dims.",
      .inputs = {{"x", "T", "[..., n, n]."}},
      .outputs = {{"y", "T", "[...]."}},
      .types = {{"T", dtypes::kFloat}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "Det", .since = 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
