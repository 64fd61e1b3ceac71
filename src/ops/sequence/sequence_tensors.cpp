// Between tensors and sequences, and a nested graph over sequences:
//   split_to_sequence     cuts a tensor along `axis` into pieces of the sizes in `split` (a scalar: of that size, the
//                         last may be smaller; not given: of 1, whose axis goes away unless `keepdims`)
//   concat_from_sequence  joins the elements along `axis`, or stacks them along a new one
//   sequence_map          runs `body` on each element of the first sequence, together with the same element of every
//                         other sequence; inputs that are tensors are handed over whole
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/sequence.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "ops/control/captures.h"
#include "ops/control/merge_types.h"
#include "ops/control/slices.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/sequence/sequence_vjp.h"
#include "ops/shape/axes.h"

namespace autograph {
namespace {

// ---- split_to_sequence -----------------------------------------------------------------------------------------

void infer_split(InferContext& context) {
  const Shape& x = context.shape(0);
  Shape piece = x;
  if (x.has_rank()) {
    const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
    if (context.has_input(1)) {
      piece[axis] = Dim::unknown();
    } else if (context.attributes().flag("keepdims")) {
      piece[axis] = 1;
    } else {
      piece.dims().erase(piece.dims().begin() + axis);
    }
  }
  context.set_output(0, Type::sequence(Type(context.dtype(0), std::move(piece))));
}

std::vector<int64_t> piece_sizes(const EvaluateContext& context, int64_t extent) {
  if (!context.has_input(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  const Tensor& split = context.tensor(1);
  std::vector<int64_t> sizes = split.to_i64();
  for (const int64_t size : sizes) {
    AG_CHECK_USER(size >= (split.rank() == 0 ? 1 : 0), ValueError,
                  "[split_to_sequence] split: expected sizes of 0 or "
                  "more (a scalar of 1 or more), got {}",
                  size);
  }
  if (split.rank() == 0) {
    const int64_t size = sizes[0];
    sizes.clear();
    for (int64_t at = 0; at < extent; at += sizes.back()) sizes.push_back(std::min(size, extent - at));
    return sizes;
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) sum = checked_add(sum, size, "split_to_sequence");
  AG_CHECK_USER(sum == extent, ValueError, "[split_to_sequence] split: expected a sum of {}, got {}", extent, sum);
  return sizes;
}

std::vector<Datum> evaluate_split(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const int64_t axis = front_axis(context.attributes().integer("axis"), x.rank());
  const bool drop_axis = !context.has_input(1) && !context.attributes().flag("keepdims");
  std::vector<Datum> pieces;
  int64_t at = 0;
  for (const int64_t size : piece_sizes(context, x.dims()[static_cast<size_t>(axis)])) {
    pieces.emplace_back(take_slice(context, x, axis, at, size, drop_axis));
    at += size;
  }
  return {Datum(std::move(pieces))};
}

OpSample sample_split(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims)},
                  .attributes = {{"axis", axis}, {"keepdims", draw(random, 0, 1)}}};
  const int64_t extent = dims[static_cast<size_t>(front_axis(axis, rank))];
  const int64_t form = draw(random, 0, 2);
  const int64_t size = draw(random, 1, extent);
  if (form == 1) result.inputs.emplace_back(Tensor::scalar(size));
  if (form == 2) result.inputs.emplace_back(Tensor::vector({size, extent - size}));
  return result;
}

// ---- concat_from_sequence --------------------------------------------------------------------------------------

void infer_concat(InferContext& context) {
  const Type& sequence = context.input(0);
  if (!sequence.is_sequence() || !sequence.element().is_tensor()) {
    context.fail<TypeError>("input_sequence",
                            fmt::format("expected a sequence of tensors, got {}", to_string(sequence)));
  }
  Shape y = sequence.element().shape();
  if (y.has_rank()) {
    const bool new_axis = context.attributes().flag("new_axis");
    const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), y.rank() + (new_axis ? 1 : 0));
    if (new_axis) {
      y.dims().insert(y.dims().begin() + axis, Dim::unknown());
    } else {
      y[axis] = Dim::unknown();
    }
  }
  context.set_output(0, sequence.element().dtype(), std::move(y));
}

std::vector<Datum> evaluate_concat(EvaluateContext& context) {
  std::vector<Tensor> tensors;
  for (const Datum& element : context.input(0).sequence()) tensors.push_back(element.tensor());
  AG_CHECK_USER(!tensors.empty(), ValueError, "[concat_from_sequence] input_sequence: expected an element, got none");
  const int64_t axis = context.attributes().integer("axis");
  if (context.attributes().flag("new_axis")) return {stack_tensors(context, "concat_from_sequence", tensors, axis)};
  return {concat_tensors(context, "concat_from_sequence", tensors, axis)};
}

OpSample sample_concat(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const int64_t new_axis = draw(random, 0, 1);
  const auto rank = static_cast<int64_t>(dims.size()) + new_axis;
  std::vector<Datum> elements;
  const int64_t count = draw(random, 1, 3);
  for (int64_t k = 0; k < count; ++k) elements.emplace_back(draw_tensor(random, DType::f32, dims));
  return {.inputs = {Datum(std::move(elements))},
          .attributes = {{"axis", draw(random, -rank, rank - 1)}, {"new_axis", new_axis}}};
}

// ---- sequence_map ----------------------------------------------------------------------------------------------

void infer_map(InferContext& context) {
  const size_t formal = num_formal_inputs(context);
  context.require<ValueError>(formal > 0, "inputs", "expected a sequence");
  std::vector<Type> inputs;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    const Type& type = context.input(slot);
    inputs.push_back(slot < formal && type.is_sequence() ? type.element() : type);
  }
  if (!context.input(0).is_sequence()) {
    context.fail<TypeError>("input_sequence", fmt::format("expected a sequence, got {}", to_string(context.input(0))));
  }
  std::vector<Type> types = context.infer_nested("body", inputs);
  if (types.size() != context.num_outputs()) {
    context.fail<ValueError>("body", fmt::format("expected {} outputs, one per output of the node, got {}",
                                                 context.num_outputs(), types.size()));
  }
  for (size_t k = 0; k < types.size(); ++k) context.set_output(k, Type::sequence(std::move(types[k])));
}

std::vector<Datum> evaluate_map(EvaluateContext& context) {
  const size_t formal = num_formal_inputs(context);
  const size_t length = context.input(0).sequence().size();
  std::vector<Datum> values;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    values.push_back(context.input(slot));
    const bool is_mapped = slot < formal && values.back().is_sequence();
    AG_CHECK_USER(!is_mapped || values.back().sequence().size() == length, ShapeError,
                  "[sequence_map] additional_inputs: expected sequences of {} elements, got {}", length,
                  values.back().sequence().size());
  }
  std::vector<std::vector<Datum>> collected(context.num_outputs());
  for (size_t k = 0; k < length; ++k) {
    for (size_t slot = 0; slot < formal; ++slot) {
      if (context.input(slot).is_sequence()) values[slot] = context.input(slot).sequence()[k];
    }
    std::vector<Datum> results = context.run_nested("body", values);
    for (size_t j = 0; j < collected.size(); ++j) collected[j].push_back(std::move(results[j]));
  }
  std::vector<Datum> outputs;
  for (auto& sequence : collected) outputs.emplace_back(std::move(sequence));
  return outputs;
}

// Joins an element of the sequence and a whole tensor.
GraphRef sample_body() {
  auto graph = std::make_shared<Graph>();
  const ValueId element = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "element");
  const ValueId whole = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "whole");
  const NodeId joined = graph->add_node(concat_def(), {element, whole}, {{"axis", int64_t{0}}});
  graph->add_output(graph->node(joined).output(0), "y");
  return graph;
}

OpSample sample_map(Random& random) {
  std::vector<Datum> elements;
  const int64_t count = draw(random, 1, 3);
  for (int64_t k = 0; k < count; ++k) elements.emplace_back(draw_tensor(random, DType::f32, draw_dims(random, 1, 1)));
  return {.inputs = {Datum(std::move(elements)), draw_tensor(random, DType::f32, draw_dims(random, 1, 1))},
          .attributes = {{"body", sample_body()}},
          .num_outputs = 1};
}

std::vector<ValueId> import_map(ForeignNode& node) {
  import_captures(node);
  return node.emit();
}

std::vector<TypeVar> types() { return {{"T", dtypes::kAll}, {"I", dtypes::kIndex}}; }

}  // namespace

Var split_to_sequence(Var x, Var sizes, int64_t axis, bool keep_dims) {
  return apply(split_to_sequence_def(), {x, sizes}, {{"axis", axis}, {"keepdims", int64_t{keep_dims}}});
}

Var concat_from_sequence(Var sequence, int64_t axis, bool new_axis) {
  return apply(concat_from_sequence_def(), {sequence}, {{"axis", axis}, {"new_axis", int64_t{new_axis}}});
}

std::vector<Var> sequence_map(Var sequence, const std::vector<Var>& others, const Graph& body,
                              const std::vector<Var>& captured) {
  std::vector<Var> inputs{sequence};
  inputs.insert(inputs.end(), others.begin(), others.end());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return apply_all(sequence_map_def(), inputs,
                   {{"body", std::make_shared<const Graph>(body)}, {"num_captures", std::ssize(captured)}},
                   static_cast<int>(body.outputs().size()));
}

const OpDef& split_to_sequence_def() {
  static const OpDef def{
      .name = "split_to_sequence",
      .doc = "Cuts a tensor along axis into a sequence of pieces.",
      .inputs = {{"input", "T", "Rank 1 or more."},
                 {"split", "I", "A size, or [n] sizes that add up to the extent; 1 each when not given.",
                  Arity::optional}},
      .outputs = {{"output_sequence", "T", "The pieces."}},
      .types = types(),
      .attributes = {{"axis", AttributeType::integer, "The axis to cut along.", int64_t{0}},
                     {"keepdims", AttributeType::integer, "0: without split, pieces lose the axis.", int64_t{1}}},
      .infer = infer_split,
      .evaluate = evaluate_split,
      .vjp = split_to_sequence_vjp,
      .onnx = {{"SplitToSequence", 11}},
      .sample = sample_split,
  };
  return def;
}

const OpDef& concat_from_sequence_def() {
  static const OpDef def{
      .name = "concat_from_sequence",
      .doc = "Joins the tensors of a sequence along axis, or stacks them along a new one.",
      .inputs = {{"input_sequence", "T", "At least one tensor."}},
      .outputs = {{"concat_result", "T", "The tensors end to end, or stacked."}},
      .types = types(),
      .attributes = {{.name = "axis", .doc = "The axis, in the output.", .required = true},
                     {"new_axis", AttributeType::integer, "1: the axis is new.", int64_t{0}}},
      .infer = infer_concat,
      .evaluate = evaluate_concat,
      .vjp = concat_from_sequence_vjp,
      .onnx = {{"ConcatFromSequence", 11}},
      .sample = sample_concat,
  };
  return def;
}

const OpDef& sequence_map_def() {
  static const OpDef def{
      .name = "sequence_map",
      .doc = "Runs body on the elements of sequences, position by position.",
      .inputs = {{"input_sequence", "", "A sequence."},
                 {"additional_inputs", "", "Sequences of the same length, whole tensors, then captured values.",
                  Arity::variadic}},
      .outputs = {{"out_sequence", "", "One sequence per output of body.", Arity::variadic}},
      .attributes = {{.name = "body",
                      .type = AttributeType::graph,
                      .doc = "(element, elements or tensors, captured) -> elements.",
                      .required = true},
                     captures_spec()},
      .infer = infer_map,
      .evaluate = evaluate_map,
      .vjp = sequence_map_vjp,
      .traits = {.control_flow = true},
      .onnx = {{.name = "SequenceMap", .since = 17, .import = import_map, .export_node = export_captures}},
      .sample = sample_map,
  };
  return def;
}

}  // namespace autograph
