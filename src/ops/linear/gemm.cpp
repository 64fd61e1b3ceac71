// gemm: y = alpha * op(a) * op(b) + beta * c, where op transposes on request and c broadcasts to [m, n].
//
// c is not read when beta is 0 or c is missing. Integers are exact and wrap around while alpha and beta are 1; other
// factors are applied in f64 and truncate.
#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "ops/broadcast_offsets.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/linear/matmul_shape.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using Types = Concat<FloatTypes, TypeList<int32_t, int64_t, uint32_t, uint64_t>>;

void check_addend(const InferContext& context, const Dim& m, const Dim& n) {
  const Shape& c = context.shape(2);
  const Dim* expected[2] = {&m, &n};
  context.require<ShapeError>(c.rank() <= 2, "input 'c'", fmt::format("expected rank 2 or less, got {}", to_string(c)));
  for (int64_t axis = 0; axis < c.rank(); ++axis) {
    const Dim& extent = c[axis];
    const Dim& target = *expected[2 - c.rank() + axis];
    if (!extent.is_known() || !target.is_known() || extent.value() == 1 || extent.value() == target.value()) continue;
    context.fail<ShapeError>("input 'c'",
                             fmt::format("{} does not broadcast to [{},{}]", to_string(c), to_string(m), to_string(n)));
  }
}

void infer(InferContext& context) {
  context.require_rank(0, 2);
  context.require_rank(1, 2);
  const int64_t a_rows = context.attributes().flag("transA") ? 1 : 0;
  const int64_t b_rows = context.attributes().flag("transB") ? 1 : 0;
  const Shape& a = context.shape(0);
  const Shape& b = context.shape(1);
  if (a.has_rank() && b.has_rank()) same_extent(context, a[1 - a_rows], b[b_rows], "inner extent");
  const Dim m = a.has_rank() ? a[a_rows] : Dim::unknown();
  const Dim n = b.has_rank() ? b[1 - b_rows] : Dim::unknown();
  if (context.has_input(2) && context.shape(2).has_rank()) check_addend(context, m, n);
  context.set_output(0, context.dtype(0), Shape{m, n});
}

// alpha * sum + beta * addend, exactly where that is possible.
template <class T>
T combine(MatmulSum<T> sum, float alpha, float beta, const T* addend) {
  const bool add = addend && beta != 0;
  if constexpr (kIsFloat<T>) {
    const double scaled = double{alpha} * sum;
    return static_cast<T>(add ? scaled + double{beta} * static_cast<double>(*addend) : scaled);
  } else {
    if (alpha == 1 && (!add || beta == 1)) return static_cast<T>(add ? sum + static_cast<uint64_t>(*addend) : sum);
    const double scaled = double{alpha} * static_cast<double>(static_cast<T>(sum));
    return static_cast<T>(static_cast<int64_t>(add ? scaled + double{beta} * static_cast<double>(*addend) : scaled));
  }
}

void reference(const OpCall& call) {
  const TensorView a = call.input(0);
  const TensorView b = call.input(1);
  const TensorView c = call.input(2);
  const TensorView y = call.output(0);
  const float alpha = call.attributes.real("alpha");
  const float beta = call.attributes.real("beta");
  const bool transpose_a = call.attributes.flag("transA");
  const bool transpose_b = call.attributes.flag("transB");
  const MatmulSize size{y.dim(0), a.dim(transpose_a ? 0 : 1), y.dim(1)};
  const std::vector<int64_t> offsets = c.is_present() ? broadcast_offsets(c.dims(), y.dims()) : std::vector<int64_t>();
  dispatch<Types>(a.dtype(), [&]<class T>(TypeTag<T>) {
    const auto left = MatrixView<T>::dense(a.data<T>(), a.dim(1));
    const auto right = MatrixView<T>::dense(b.data<T>(), b.dim(1));
    T* out = y.mutable_data<T>();
    multiply_rows(transpose_a ? left.transposed() : left, transpose_b ? right.transposed() : right, size,
                  [&](int64_t row, auto sums) {
                    for (int64_t column = 0; column < size.columns; ++column) {
                      const int64_t i = row * size.columns + column;
                      const T* addend = c.is_present() ? c.data<T>() + offsets[static_cast<size_t>(i)] : nullptr;
                      out[i] = combine<T>(sums[static_cast<size_t>(column)], alpha, beta, addend);
                    }
                  });
  });
}

OpCost cost(const CostContext& context) {
  OpCost cost = matmul_cost(context);
  const Shape& y = context.outputs[0].shape();
  const double outputs = static_cast<double>(y.num_elements().value_or(0));
  const Shape& a = context.inputs[0].shape();
  cost.flops = 2.0 * outputs * static_cast<double>(a[context.attributes.flag("transA") ? 0 : 1].value());
  if (context.inputs.size() > 2) cost.flops += outputs;
  return cost;
}

OpSample sample(Random& random) {
  const int64_t m = draw(random, 1, 5), k = draw(random, 1, 5), n = draw(random, 1, 5);
  const bool transpose_a = draw_bool(random), transpose_b = draw_bool(random);
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, transpose_a ? Dims{k, m} : Dims{m, k}),
                   draw_tensor(random, DType::f32, transpose_b ? Dims{n, k} : Dims{k, n})};
  if (draw_bool(random))
    result.inputs.emplace_back(draw_tensor(random, DType::f32, draw_broadcastable(random, {m, n})));
  result.attributes = {{"transA", int64_t{transpose_a}},
                       {"transB", int64_t{transpose_b}},
                       {"alpha", draw_one_of(random, {1.0f, 0.5f})},
                       {"beta", draw_one_of(random, {1.0f, 0.25f, 0.0f})}};
  return result;
}

// With a' = op(a) and b' = op(b): the gradients of a' and b' are alpha g b'^T and alpha a'^T g.
void vjp(VjpContext& c) {
  const float alpha = c.attributes().real("alpha");
  const bool ta = c.attributes().flag("transA"), tb = c.attributes().flag("transB");
  const Var a = c.in(0), b = c.in(1), g = c.gy(0);
  const auto product = [alpha](const Var& x, const Var& y, bool tx, bool ty) {
    return gemm(x, y, {}, {.alpha = alpha, .transpose_a = tx, .transpose_b = ty});
  };
  if (c.wants(0)) c.set(0, ta ? product(b, g, tb, true) : product(g, b, false, !tb));
  if (c.wants(1)) c.set(1, tb ? product(g, a, true, ta) : product(a, g, !ta, false));
  if (!c.wants(2)) return;
  const float beta = c.attributes().real("beta");
  if (beta == 0) return c.set_none(2);
  c.set(2, beta == 1 ? g : g * beta);
}

}  // namespace

Var gemm(Var a, Var b, Var c, GemmOptions options) {
  return apply(gemm_def(), {a, b, c},
               {{"alpha", options.alpha},
                {"beta", options.beta},
                {"transA", int64_t{options.transpose_a}},
                {"transB", int64_t{options.transpose_b}}});
}

const OpDef& gemm_def() {
  static const OpDef def{
      .name = "gemm",
      .doc = "y = alpha * a b + beta * c for matrices, each of a and b transposed first on request.",
      .inputs = {{"a", "T", "[m, k], or [k, m] with transA."},
                 {"b", "T", "[k, n], or [n, k] with transB."},
                 {"c", "T", "Broadcasts to [m, n]; nothing is added when missing.", Arity::optional}},
      .outputs = {{"y", "T", "[m, n]."}},
      .types = {{"T", dtypes::kFloat | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}}},
      .attributes = {{"alpha", AttributeType::real, "Factor of the product.", 1.0f},
                     {"beta", AttributeType::real, "Factor of c.", 1.0f},
                     {"transA", AttributeType::integer, "1: a is given transposed.", int64_t{0}},
                     {"transB", AttributeType::integer, "1: b is given transposed.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.anchor = true},
      .cost = cost,
      .onnx = {{.name = "Gemm", .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
