// unique: the different elements of x, or the different slices along `axis`, sorted or in order of first occurrence,
// with the position of the first occurrence, the group of every element and the size of every group. NaNs are equal to
// each other and sort last; slices compare element by element.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

template <class T>
bool less(const T& a, const T& b) {
  if constexpr (kIsFloat<T>) {
    const auto x = static_cast<double>(a);
    const auto y = static_cast<double>(b);
    return x < y || (std::isnan(y) && !std::isnan(x));
  } else if constexpr (kDTypeOf<T> == DType::c64 || kDTypeOf<T> == DType::c128) {
    if (less(a.real(), b.real())) return true;
    return !less(b.real(), a.real()) && less(a.imag(), b.imag());
  } else {
    return a < b;
  }
}

// x seen as [outer, extent, inner]: the slices are the positions along the middle.
struct Slices {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

Slices slices_of(const Tensor& x, const Attributes& attributes) {
  const auto* axis = attributes.find_as<int64_t>("axis");
  if (!axis) return {1, x.num_elements(), 1};
  const auto along = static_cast<size_t>(front_axis(*axis, x.rank()));
  Slices slices{1, x.dims()[along], 1};
  for (size_t a = 0; a < along; ++a) slices.outer *= x.dims()[a];
  for (size_t a = along + 1; a < x.dims().size(); ++a) slices.inner *= x.dims()[a];
  return slices;
}

template <class T>
bool less_slice(const T* x, const Slices& slices, int64_t a, int64_t b) {
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (int64_t i = 0; i < slices.inner; ++i) {
      const T& left = x[(o * slices.extent + a) * slices.inner + i];
      const T& right = x[(o * slices.extent + b) * slices.inner + i];
      if (less(left, right)) return true;
      if (less(right, left)) return false;
    }
  }
  return false;
}

struct Groups {
  std::vector<int64_t> first;    // first slice of each group
  std::vector<int64_t> inverse;  // group of each slice
  std::vector<int64_t> counts;
};

// Puts groups into the order of their first slices.
void order_by_occurrence(Groups& groups) {
  std::vector<size_t> order(groups.first.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups.first[a] < groups.first[b]; });
  Groups result = groups;
  std::vector<int64_t> new_group(order.size());
  for (size_t g = 0; g < order.size(); ++g) {
    result.first[g] = groups.first[order[g]];
    result.counts[g] = groups.counts[order[g]];
    new_group[order[g]] = static_cast<int64_t>(g);
  }
  for (int64_t& group : result.inverse) group = new_group[static_cast<size_t>(group)];
  groups = std::move(result);
}

template <class T>
Groups group_slices(const T* x, const Slices& slices) {
  std::vector<int64_t> order(static_cast<size_t>(slices.extent));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return less_slice(x, slices, a, b); });
  Groups groups;
  groups.inverse.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || less_slice(x, slices, order[k - 1], order[k])) {
      groups.first.push_back(order[k]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  return groups;
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  Shape y{Dim::unknown()};
  if (const auto* axis = context.attributes().find_as<int64_t>("axis")) {
    y = x;
    if (x.has_rank()) y[context.normalized_axis(*axis, x.rank())] = Dim::unknown();
  }
  context.set_output(0, context.dtype(0), std::move(y));
  for (size_t k = 1; k < 4; ++k) context.set_output(k, DType::i64, Shape{Dim::unknown()});
}

Tensor make_list(EvaluateContext& context, const std::vector<int64_t>& values) {
  Tensor list = context.allocate(DType::i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), list.mutable_data<int64_t>());
  return list;
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const Slices slices = slices_of(x, context.attributes());
  Groups groups;
  using Types = Concat<NumericTypes, TypeList<bool, std::string, std::complex<float>, std::complex<double>>>;
  dispatch<Types>(x.dtype(), [&]<class T>(TypeTag<T>) { groups = group_slices(x.data<T>(), slices); });
  if (!context.attributes().flag("sorted")) order_by_occurrence(groups);
  const auto count = static_cast<int64_t>(groups.first.size());
  const auto* axis = context.attributes().find_as<int64_t>("axis");
  Dims dims = axis ? x.dims() : Dims{count};
  if (axis) dims[static_cast<size_t>(front_axis(*axis, x.rank()))] = count;
  Tensor y = context.allocate(x.dtype(), dims);
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (int64_t g = 0; g < count; ++g) {
      copy_run(x.view(), (o * slices.extent + groups.first[static_cast<size_t>(g)]) * slices.inner, y.view(),
               (o * count + g) * slices.inner, slices.inner);
    }
  }
  std::vector<Datum> outputs{std::move(y)};
  for (const auto* list : {&groups.first, &groups.inverse, &groups.counts}) {
    if (outputs.size() < context.num_outputs()) outputs.emplace_back(make_list(context, *list));
  }
  return outputs;
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 3);
  const auto rank = static_cast<int64_t>(dims.size());
  OpSample result{.inputs = {draw_tensor(random, DType::i32, dims, 0, 2)},
                  .attributes = {{"sorted", draw(random, 0, 1)}},
                  .num_outputs = static_cast<int>(draw(random, 1, 4))};
  if (draw_bool(random)) result.attributes.set("axis", draw(random, -rank, rank - 1));
  return result;
}

}  // namespace

std::vector<Var> unique(Var x, std::optional<int64_t> axis, bool sorted) {
  Attributes attributes{{"sorted", int64_t{sorted}}};
  if (axis) attributes.set("axis", *axis);
  return apply_all(unique_def(), {x}, std::move(attributes), 4);
}

const OpDef& unique_def() {
  static const OpDef def{
      .name = "unique",
      .doc = "The different elements, or slices along axis, with first positions, groups and counts.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "The different slices; one-dimensional without axis."},
                  {"indices", "I", "[groups]: first slice of each group.", Arity::optional},
                  {"inverse_indices", "I", "[slices]: group of each slice.", Arity::optional},
                  {"counts", "I", "[groups]: slices in each group.", Arity::optional}},
      .types = {{"T", dtypes::kNumeric | dtypes::kBool | dtypes::kString | dtypes::kComplex}, {"I", dtypes::kI64}},
      .attributes = {{"axis", AttributeType::integer, "The axis of the slices; absent: single elements."},
                     {"sorted", AttributeType::integer, "1: ascending, 0: by first occurrence.", int64_t{1}}},
      .infer = infer,
      .evaluate = evaluate,
      .no_grad = "the number of elements depends on the input",
      .onnx = {{"Unique", 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
