// max, min, sum and mean over any number of tensors >= 1, with broadcasting. max and min propagate NaN; sum and mean
// accumulate in f64.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

template <class Formula>
struct Extreme {
  template <class T>
  using Accumulator = ComputeType<T>;
  template <class A>
  static A combine(A a, A b) {
    return Formula::of(a, b);
  }
  template <class A>
  static A finish(A total, size_t) {
    return total;
  }
};

struct Sum {
  template <class T>
  using Accumulator = double;
  static double combine(double a, double b) { return a + b; }
  static double finish(double total, size_t) { return total; }
};

struct Mean {
  template <class T>
  using Accumulator = double;
  static double combine(double a, double b) { return a + b; }
  static double finish(double total, size_t count) { return total / static_cast<double>(count); }
};

template <class Fold, class T>
void fold_loop_of(const Attributes&, std::span<const void* const> inputs, std::span<const int64_t> steps, void* output,
                  int64_t count) {
  using A = typename Fold::template Accumulator<T>;
  T* out = static_cast<T*>(output);
  for (int64_t i = 0; i < count; ++i) {
    auto total = static_cast<A>(static_cast<const T*>(inputs[0])[i * steps[0]]);
    for (size_t k = 1; k < inputs.size(); ++k) {
      total = Fold::combine(total, static_cast<A>(static_cast<const T*>(inputs[k])[i * steps[k]]));
    }
    out[i] = static_cast<T>(Fold::finish(total, inputs.size()));
  }
}

template <class Fold, class Types>
ScalarLoop fold_loop(std::span<const DType> inputs, DType) {
  ScalarLoop loop = nullptr;
  try_dispatch(Types{}, inputs[0], [&]<class T>(TypeTag<T>) { loop = fold_loop_of<Fold, T>; });
  return loop;
}

void infer(InferContext& context) {
  context.require<ValueError>(context.num_inputs() >= 1, "inputs", "expected 1 or more, got 0");
  infer_elementwise(context);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  OpSample call{.inputs = {draw_tensor(random, DType::f32, dims)}};
  for (int64_t more = draw(random, 0, 3); more > 0; --more) {
    call.inputs.emplace_back(draw_tensor(random, DType::f32, draw_broadcastable(random, dims)));
  }
  return call;
}

// Inputs that are equally large or small share the gradient.
void extreme_vjp(VjpContext& c) {
  if (c.num_inputs() == 1) return c.set(0, c.gy(0));
  std::vector<Var> is_taken;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    is_taken.push_back(cast(equal(c.out(0), c.in(slot)), c.out(0).dtype()));
  }
  const Var share = c.gy(0) / sum(is_taken);
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (c.wants(slot)) c.set(slot, share * is_taken[slot]);
  }
}

// Each gets the gradient, divided by `divisor`.
void set_all(VjpContext& c, double divisor) {
  const Var share = divisor == 1 ? c.gy(0) : c.gy(0) / divisor;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (c.wants(slot)) c.set(slot, share);
  }
}

void sum_vjp(VjpContext& c) { set_all(c, 1); }

void mean_vjp(VjpContext& c) { set_all(c, static_cast<double>(c.num_inputs())); }

OpDef make_variadic(std::string_view name, std::string_view doc, std::string_view onnx, DTypeSet types,
                    ScalarLoopFn scalar, VjpFn vjp) {
  OpDef def;
  def.name = name;
  def.doc = doc;
  def.inputs = {{"inputs", "T", "One or more tensors whose shapes broadcast.", Arity::variadic}};
  def.outputs = {{"y", "T", "The shape to which all inputs broadcast."}};
  def.types = {{"T", types}};
  def.infer = infer;
  def.scalar = scalar;
  def.vjp = vjp;
  def.traits = {.elementwise = true, .commutative = true, .in_place_ok = true};
  def.onnx = {{.name = onnx, .since = 6}};
  def.sample = sample;
  return def;
}

}  // namespace

Var max(const std::vector<Var>& inputs) { return apply(max_def(), inputs); }
Var min(const std::vector<Var>& inputs) { return apply(min_def(), inputs); }
Var sum(const std::vector<Var>& inputs) { return apply(sum_def(), inputs); }
Var mean(const std::vector<Var>& inputs) { return apply(mean_def(), inputs); }

const OpDef& max_def() {
  static const OpDef def =
      make_variadic("max", "y = the largest of the inputs; NaN when one is NaN.", "Max", dtypes::kNumeric,
                    fold_loop<Extreme<formulas::Max>, NumericTypes>, extreme_vjp);
  return def;
}

const OpDef& min_def() {
  static const OpDef def =
      make_variadic("min", "y = the smallest of the inputs; NaN when one is NaN.", "Min", dtypes::kNumeric,
                    fold_loop<Extreme<formulas::Min>, NumericTypes>, extreme_vjp);
  return def;
}

const OpDef& sum_def() {
  static const OpDef def =
      make_variadic("sum", "y = the sum of the inputs.", "Sum", dtypes::kFloat, fold_loop<Sum, FloatTypes>, sum_vjp);
  return def;
}

const OpDef& mean_def() {
  static const OpDef def = make_variadic("mean", "y = the mean of the inputs.", "Mean", dtypes::kFloat,
                                         fold_loop<Mean, FloatTypes>, mean_vjp);
  return def;
}

}  // namespace autograph
