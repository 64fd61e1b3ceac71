#include "prove/verify/instance_values.h"

#include <algorithm>
#include <numeric>

#include "ops/defs.h"
#include "optimize/rules/siblings.h"
#include "prove/verify/draft/call_draft.h"

namespace autograph {

ValueId ValueMaker::add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  Graph& graph = instance_.graph;
  return graph.node(graph.add_node(op, std::move(inputs), std::move(attributes))).output(0);
}

ValueId ValueMaker::make_input(const Dims& dims, bool positive, DType dtype) {
  if (dtype == DType::f32 && choices_.rarely(16)) return make_weight(dims, positive);
  instance_.positive_inputs.push_back(positive);
  const std::string name = "x" + std::to_string(instance_.graph.inputs().size());
  return instance_.graph.add_input(Type(dtype, Shape::of(dims)), name);
}

ValueId ValueMaker::make_weight(const Dims& dims, bool positive) {
  const ValueId weight = make_constant(dims, positive);
  return choices_.rarely(6) ? add(mul_def(), {weight, make_constant(dims, positive)}) : weight;
}

ValueId ValueMaker::make_constant(const Dims& dims, bool positive) {
  Tensor tensor = Tensor::zeros(DType::f32, dims);
  const bool is_one = choices_.rarely(12);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto magnitude = static_cast<float>(is_one ? 1 : 1 + choices_.draw() % 4);
    tensor.mutable_data<float>()[i] = is_one || positive || choices_.draw() % 2 == 0 ? magnitude : -magnitude;
  }
  return instance_.graph.add_constant(std::move(tensor));
}

void ValueMaker::choose_maker(size_t n, int64_t axis) {
  maker_ = Maker::nothing;
  axis_ = axis;
  shared_ = {};
  next_ = 0;
  if (!choices_.rarely(n)) return;
  maker_ = choices_.one_of({Maker::unary, Maker::binary_weight, Maker::binary_shared, Maker::binary_value, Maker::pool,
                            Maker::concat, Maker::split, Maker::slice, Maker::transpose, Maker::matmul, Maker::conv,
                            Maker::conv, Maker::look_up, Maker::widened});
  variant_ = choices_.pick(2) == 0;
  shares_ = choices_.pick(2) == 0;
  if (maker_ == Maker::unary) op_ = choices_.one_of<const OpDef*>({&relu_def(), &tanh_def(), &neg_def()});
  if (maker_ == Maker::pool) op_ = choices_.one_of<const OpDef*>({&max_pool_def(), &average_pool_def()});
  const bool binary = maker_ == Maker::binary_weight || maker_ == Maker::binary_shared || maker_ == Maker::binary_value;
  if (binary) op_ = choices_.one_of<const OpDef*>({&add_def(), &mul_def(), &sub_def()});
}

// The second operand of a binary op with a result of these dims.
ValueId ValueMaker::other_operand(const Dims& dims) {
  if (maker_ == Maker::binary_value) return make_input(dims);
  Dims other(dims.size(), 1);
  if (maker_ == Maker::binary_shared) {
    if (!shared_.is_valid()) shared_ = choices_.pick(2) == 0 ? make_weight(other) : make_input(other);
    return shared_;
  }
  // Like the bias of channels: varies along the axis alone, or is full.
  if (!dims.empty() && choices_.pick(4) > 0) {
    const size_t axis = nearest_axis(axis_, dims.size());
    other[axis] = dims[axis];
    if (choices_.pick(2) == 0) other.erase(other.begin(), other.begin() + static_cast<ptrdiff_t>(axis));
    return make_weight(other);
  }
  return make_weight(dims);
}

// Half precision computed in f32.
ValueId ValueMaker::make_upcast(const Dims& dims) {
  const ValueId x = make_input(dims, false, choices_.pick(2) == 0 ? DType::f16 : DType::bf16);
  return add(cast_def(), {x}, {{"to", DType::f32}});
}

ValueId ValueMaker::make_pooled(const Dims& dims) {
  if (dims.size() != 4) return make_input(dims);
  const Dims pads(4, 1);
  return add(*op_, {make_input(dims)}, {{"kernel_shape", Dims{3, 3}}, {"pads", pads}});
}

// Two channels become as many as asked for.
ValueId ValueMaker::make_convolved(const Dims& dims) {
  if (dims.size() != 4) return make_input(dims);
  const int64_t kernel = variant_ ? 3 : 1;
  // All of one input, or each of its own.
  const Dims source{dims[0], 2, dims[2], dims[3]};
  const bool fits = shared_.is_valid() && instance_.graph.type(shared_).shape() == Shape::of(source);
  const ValueId x = shares_ && fits ? shared_ : make_input(source);
  shared_ = x;
  std::vector<ValueId> inputs{x, make_weight({dims[1], 2, kernel, kernel})};
  if (choices_.rarely(3)) inputs.push_back(make_weight({dims[1]}));
  return add(conv_def(), inputs, {{"pads", Dims(4, kernel / 2)}});
}

// A product with a weight matrix: all of one left side, or each of its own, then perhaps times a number for each row.
ValueId ValueMaker::make_product(const Dims& dims) {
  if (dims.size() < 2) return make_input(dims);
  Dims left = dims;
  left.back() = 2;
  const bool fits = shared_.is_valid() && instance_.graph.type(shared_).shape() == Shape::of(left);
  shared_ = shares_ && fits ? shared_ : make_input(left);
  const ValueId product = add(matmul_def(), {shared_, make_weight({2, dims.back()})});
  if (!variant_ || choices_.rarely(4)) return product;
  Dims rows = dims;
  rows.back() = 1;
  return add(mul_def(), {product, make_input(rows)});
}

// Rows of a table, one for each index.
ValueId ValueMaker::make_looked_up(const Dims& dims) {
  if (dims.size() < 2) return make_input(dims);
  const ValueId table = make_weight({kLeastExtentOfIndices, dims.back()});
  return add(gather_def(), {table, make_input({dims.begin(), dims.end() - 1}, false, DType::i64)});
}

// Reversed, or with the last two axes exchanged.
ValueId ValueMaker::make_transposed(const Dims& dims) {
  Dims perm;
  for (size_t axis = 0; axis < dims.size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
  if (variant_ || dims.size() < 2) {
    std::reverse(perm.begin(), perm.end());
  } else {
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  }
  Dims source(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) source[static_cast<size_t>(perm[axis])] = dims[axis];
  return add(transpose_def(), {make_input(source)}, {{"perm", perm}});
}

ValueId ValueMaker::make_joined(const Dims& dims, size_t axis) {
  if (dims.empty() || dims[axis] < 2 || choices_.pick(3) == 0) return make_input(dims);
  std::vector<ValueId> parts;
  for (Dims rest = dims; rest[axis] > 0;) {
    Dims part = rest;
    if (parts.size() < 2 && rest[axis] > 1) {
      part[axis] = 1 + static_cast<int64_t>(choices_.pick(static_cast<size_t>(rest[axis] - (parts.empty() ? 1 : 0))));
    }
    rest[axis] -= part[axis];
    parts.push_back(make_input(part));
  }
  return add(concat_def(), parts, {{"axis", static_cast<int64_t>(axis)}});
}

ValueId ValueMaker::make_cut(Dims dims, size_t axis) {
  if (dims.empty()) return make_input(dims);
  const int64_t own = dims[axis];
  const int64_t rest = choices_.one_of<int64_t>({1, 2});
  dims[axis] += rest;
  Graph& graph = instance_.graph;
  const bool first = choices_.pick(2) == 0;
  const ValueId sizes = graph.add_constant(Tensor::vector(first ? Dims{own, rest} : Dims{rest, own}));
  NodeOptions options;
  options.num_outputs = 2;
  const ValueId whole = make_input(dims);
  const NodeId node = graph.add_node(split_def(), {whole, sizes}, {{"axis", static_cast<int64_t>(axis)}}, options);
  graph.add_output(graph.node(node).output(first ? 1 : 0));
  return graph.node(node).output(first ? 0 : 1);
}

// The next piece of one value, most of the time right behind the last one; with a piece of another axis, too.
ValueId ValueMaker::make_sliced(const Dims& dims, size_t axis) {
  if (dims.empty()) return make_input(dims);
  const size_t other = (axis + 1) % dims.size();
  const bool cuts_other = variant_ && other != axis;
  if (next_ > 0 && choices_.rarely(8)) ++next_;
  Dims whole = dims;
  if (cuts_other) ++whole[other];
  whole[axis] = choices_.one_of<int64_t>({2 * dims[axis], 8});
  if (shared_.is_valid()) {
    const Dims shared = instance_.graph.type(shared_).shape().static_dims();
    if (same_dims_but(shared, whole, static_cast<int64_t>(axis))) whole[axis] = shared[axis];
  }
  const bool fits = shared_.is_valid() && instance_.graph.type(shared_).shape() == Shape::of(whole);
  if (!fits || next_ + dims[axis] > whole[axis]) {
    shared_ = make_input(whole);
    next_ = 0;
  }
  std::vector<int64_t> starts{next_}, ends{next_ + dims[axis]}, axes{static_cast<int64_t>(axis)};
  if (cuts_other) {
    starts.push_back(1);
    ends.push_back(whole[other]);
    axes.push_back(static_cast<int64_t>(other));
  }
  next_ += dims[axis];
  const auto list = [&](const std::vector<int64_t>& values) {
    return instance_.graph.add_constant(Tensor::vector(values));
  };
  return add(slice_def(), {shared_, list(starts), list(ends), list(axes)});
}

ValueId ValueMaker::make(const Dims& dims) {
  switch (maker_) {
    case Maker::nothing: break;
    case Maker::unary: return add(*op_, {make_input(dims)});
    case Maker::binary_weight:
    case Maker::binary_shared:
    case Maker::binary_value: return add(*op_, {make_input(dims), other_operand(dims)});
    case Maker::pool: return make_pooled(dims);
    case Maker::concat: return make_joined(dims, nearest_axis(axis_, dims.size()));
    case Maker::split: return make_cut(dims, nearest_axis(axis_, dims.size()));
    case Maker::slice: return make_sliced(dims, nearest_axis(axis_, dims.size()));
    case Maker::transpose: return make_transposed(dims);
    case Maker::conv: return make_convolved(dims);
    case Maker::widened: return make_upcast(dims);
    case Maker::matmul: return make_product(dims);
    case Maker::look_up: return make_looked_up(dims);
  }
  return make_input(dims);
}

// Each value with the same piece of another split with the same cuts.
std::vector<ValueId> ValueMaker::read_in_pairs(const std::vector<ValueId>& values) {
  Graph& graph = instance_.graph;
  Dims whole = graph.type(values[0]).shape().static_dims();
  const size_t axis = nearest_axis(axis_, whole.size());
  if (whole.empty()) return values;
  Dims sizes;
  for (const ValueId value : values) sizes.push_back(graph.type(value).shape().static_dims()[axis]);
  whole[axis] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  NodeOptions options;
  options.num_outputs = static_cast<int>(sizes.size());
  const ValueId other = make_input(whole);
  const ValueId cuts = graph.add_constant(Tensor::vector(sizes));
  const NodeId node = graph.add_node(split_def(), {other, cuts}, {{"axis", static_cast<int64_t>(axis)}}, options);
  std::vector<ValueId> results;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueId piece = graph.node(node).output(i);
    results.push_back(add(variant_ ? mul_def() : sub_def(), {values[i], piece}));
  }
  return results;
}

std::vector<ValueId> ValueMaker::read_alike(const std::vector<ValueId>& values) {
  if (maker_ == Maker::split) return read_in_pairs(values);
  std::vector<ValueId> results;
  for (const ValueId value : values) {
    const Dims dims = instance_.graph.type(value).shape().static_dims();
    if (maker_ == Maker::unary) {
      results.push_back(add(*op_, {value}));
    } else if (maker_ == Maker::binary_weight || maker_ == Maker::binary_shared || maker_ == Maker::binary_value) {
      results.push_back(add(*op_, {value, other_operand(dims)}));
    } else {
      results.push_back(value);
    }
  }
  return results;
}

}  // namespace autograph
