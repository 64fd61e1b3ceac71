// matmul: y[..., m, n] = sum_k a[..., m, k] * b[..., k, n], the leading dims broadcast.
//
// One-dimensional operands act as a row (a) or a column (b), and the result drops that dim again. An inner extent of 0
// gives zeros. Integers wrap around.
#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/linear/matmul_shape.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using Types = Concat<FloatTypes, TypeList<int32_t, int64_t, uint32_t, uint64_t>>;

void infer(InferContext& context) {
  context.set_output(0, context.dtype(0), infer_matmul_shape(context, context.shape(0), context.shape(1)));
}

void reference(const OpCall& call) {
  const TensorView a = call.input(0);
  const TensorView b = call.input(1);
  const MatmulWalk walk = walk_matmul(a, b);
  const int64_t rows = walk.size.rows;
  const int64_t inner = walk.size.inner;
  const int64_t columns = walk.size.columns;
  dispatch<Types>(a.dtype(), [&]<class T>(TypeTag<T>) {
    T* y = call.output(0).mutable_data<T>();
    for (size_t matrix = 0; matrix < walk.a_matrix.size(); ++matrix, y += rows * columns) {
      multiply(MatrixView<T>::dense(a.data<T>() + walk.a_matrix[matrix] * rows * inner, inner),
               MatrixView<T>::dense(b.data<T>() + walk.b_matrix[matrix] * inner * columns, columns), walk.size, y);
    }
  });
}

OpCost cost(const CostContext& context) { return matmul_cost(context); }

OpSample sample(Random& random) {
  const int64_t inner = draw(random, 1, 5);
  const Dims batch = draw_dims(random, 0, 2, 3);
  Dims a = batch;
  Dims b = draw_broadcastable(random, batch);
  if (!batch.empty() || draw_bool(random)) a.push_back(draw(random, 1, 5));
  a.push_back(inner);
  b.push_back(inner);
  if (b.size() > 1 || draw_bool(random)) b.push_back(draw(random, 1, 5));
  return {.inputs = {draw_tensor(random, DType::f32, a), draw_tensor(random, DType::f32, b)}};
}

// The gradient as a product of matrices: with the dim of 1 that a vector stood for.
Var as_matrices(const Var& gradient, bool a_is_vector, bool b_is_vector) {
  Var g = gradient;
  if (b_is_vector) g = unsqueeze(g, {-1});
  if (a_is_vector) g = unsqueeze(g, {-2});
  return g;
}

Var rows_of(const Var& x) {
  const Dim& last = x.shape()[x.rank() - 1];
  if (last.is_known() && last.value() != 0) return reshape(x, {-1, last.value()});
  return flatten(x, x.rank() - 1);
}

void vjp(VjpContext& c) {
  const Var a = c.in(0), b = c.in(1);
  if (!a.shape().has_rank() || !b.shape().has_rank()) c.unsupported("its rule needs known ranks");
  const bool a_is_vector = a.rank() == 1, b_is_vector = b.rank() == 1;
  const Var left = a_is_vector ? unsqueeze(a, {0}) : a;
  const Var right = b_is_vector ? unsqueeze(b, {-1}) : b;
  const Var g = as_matrices(c.gy(0), a_is_vector, b_is_vector);
  if (a.rank() == 2 && b.rank() == 2) {
    if (c.wants(0)) c.set(0, gemm(g, b, {}, {.transpose_b = true}));
    if (c.wants(1)) c.set(1, gemm(a, g, {}, {.transpose_a = true}));
    return;
  }
  if (c.wants(0)) {
    const Var of_left = matmul(g, swap_last_two(right));
    c.set(0, a_is_vector ? reshape_as(sum_to(of_left, left), a) : of_left);
  }
  if (!c.wants(1)) return;
  // One matrix for all: its gradient is one product over all rows.
  const bool is_shared = right.rank() == 2 && left.rank() > 2;
  const Var of_right =
      is_shared ? gemm(rows_of(left), rows_of(g), {}, {.transpose_a = true}) : matmul(swap_last_two(left), g);
  c.set(1, b_is_vector ? reshape_as(sum_to(of_right, right), b) : of_right);
}

}  // namespace

Var matmul(Var a, Var b) { return apply(matmul_def(), {a, b}); }

const OpDef& matmul_def() {
  static const OpDef def{
      .name = "matmul",
      .doc = "Matrix product over the last two dims: y = a b, the other dims broadcast.",
      .inputs = {{"a", "T", "[..., m, k], or [k] as one row."}, {"b", "T", "[..., k, n], or [k] as one column."}},
      .outputs = {{"y", "T", "[..., m, n], without m or n where the operand had one dim."}},
      .types = {{"T", dtypes::kFloat | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.anchor = true},
      .cost = cost,
      .onnx = {{.name = "MatMul", .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
