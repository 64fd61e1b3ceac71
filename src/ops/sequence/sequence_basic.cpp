// Building and taking apart sequences of tensors: empty, construct, at, insert, erase, length. Positions may be
// negative; insert also takes the position behind the last element. Sequences share their tensors, so none of these
// copies elements.
#include "autograph/op_def.h"
#include "autograph/ops/sequence.h"
#include "base/check.h"
#include "ops/control/merge_types.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/sequence/sequence_vjp.h"
#include "ops/shape/axes.h"

namespace autograph {
namespace {

// The position in input `slot`, counted from the front; `behind` allows the place behind the last one.
size_t checked_position(const EvaluateContext& context, std::string_view op, size_t slot, bool behind) {
  const auto length = static_cast<int64_t>(context.input(0).sequence().size());
  const int64_t largest = behind ? length : length - 1;
  const std::vector<int64_t> values = context.tensor(slot).to_i64();
  AG_CHECK_USER(values.size() == 1, ShapeError, "[{}] position: expected one element, got {}", op, values.size());
  AG_CHECK_USER(values[0] >= -length && values[0] <= largest, ValueError,
                "[{}] position: expected {}..{} for {} elements, got {}", op, -length, largest, length, values[0]);
  return static_cast<size_t>(values[0] < 0 ? values[0] + length : values[0]);
}

const Type& element_type(const InferContext& context) {
  const Type& sequence = context.input(0);
  if (!sequence.is_sequence()) {
    context.fail<TypeError>("input_sequence", fmt::format("expected a sequence, got {}", to_string(sequence)));
  }
  return sequence.element();
}

void infer_empty(InferContext& context) {
  const DType dtype = context.attributes().get<DType>("dtype");
  context.set_output(0, Type::sequence(Type(dtype, Shape::unknown())));
}

std::vector<Datum> evaluate_empty(EvaluateContext&) { return {Datum(std::vector<Datum>())}; }

void infer_construct(InferContext& context) {
  Type element;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    element = merged_type(context, element, context.input(slot), "inputs");
  }
  context.set_output(0, Type::sequence(std::move(element)));
}

std::vector<Datum> evaluate_construct(EvaluateContext& context) {
  std::vector<Datum> elements;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) elements.push_back(context.input(slot));
  return {Datum(std::move(elements))};
}

void infer_at(InferContext& context) { context.set_output(0, element_type(context)); }

std::vector<Datum> evaluate_at(EvaluateContext& context) {
  return {context.input(0).sequence()[checked_position(context, "sequence_at", 1, false)]};
}

void infer_insert(InferContext& context) {
  context.set_output(0, Type::sequence(merged_type(context, element_type(context), context.input(1), "tensor")));
}

std::vector<Datum> evaluate_insert(EvaluateContext& context) {
  std::vector<Datum> elements = context.input(0).sequence();
  const size_t at = context.has_input(2) ? checked_position(context, "sequence_insert", 2, true) : elements.size();
  elements.insert(elements.begin() + static_cast<int64_t>(at), context.input(1));
  return {Datum(std::move(elements))};
}

void infer_erase(InferContext& context) { context.set_output(0, Type::sequence(element_type(context))); }

std::vector<Datum> evaluate_erase(EvaluateContext& context) {
  std::vector<Datum> elements = context.input(0).sequence();
  AG_CHECK_USER(!elements.empty(), ValueError,
                "[sequence_erase] input_sequence: expected an element to erase, got none");
  const size_t at = context.has_input(1) ? checked_position(context, "sequence_erase", 1, false) : elements.size() - 1;
  elements.erase(elements.begin() + static_cast<int64_t>(at));
  return {Datum(std::move(elements))};
}

void infer_length(InferContext& context) {
  element_type(context);
  context.set_output(0, DType::i64, {});
}

std::vector<Datum> evaluate_length(EvaluateContext& context) {
  return {Tensor::scalar(static_cast<int64_t>(context.input(0).sequence().size()))};
}

std::vector<Datum> draw_elements(Random& random) {
  std::vector<Datum> elements;
  const int64_t count = draw(random, 1, 4);
  for (int64_t k = 0; k < count; ++k) elements.emplace_back(draw_tensor(random, DType::f32, draw_dims(random)));
  return elements;
}

OpSample sample_empty(Random& random) {
  OpSample result{.inputs = {}};
  if (draw_bool(random)) result.attributes.set("dtype", DType::i64);
  return result;
}

OpSample sample_construct(Random& random) { return {.inputs = draw_elements(random)}; }

OpSample sample_length(Random& random) { return {.inputs = {Datum(draw_elements(random))}}; }

OpSample sample_at(Random& random) {
  std::vector<Datum> elements = draw_elements(random);
  const auto length = static_cast<int64_t>(elements.size());
  return {.inputs = {Datum(std::move(elements)), Tensor::scalar(draw(random, -length, length - 1))}};
}

OpSample sample_erase(Random& random) {
  OpSample result = sample_at(random);
  if (draw_bool(random)) result.inputs.pop_back();
  return result;
}

OpSample sample_insert(Random& random) {
  std::vector<Datum> elements = draw_elements(random);
  const auto length = static_cast<int64_t>(elements.size());
  OpSample result{.inputs = {Datum(std::move(elements)), draw_tensor(random, DType::f32, draw_dims(random))}};
  if (draw_bool(random)) result.inputs.emplace_back(Tensor::scalar(draw(random, -length, length)));
  return result;
}

constexpr std::string_view kSequenceDoc = "A sequence of tensors.";
constexpr std::string_view kPositionDoc = "One element: -length..length-1.";

std::vector<TypeVar> types() { return {{"T", dtypes::kAll}, {"I", dtypes::kIndex}}; }

}  // namespace

Var sequence_empty(Graph& graph, DType dtype) {
  const NodeId node = graph.add_node(sequence_empty_def(), {}, {{"dtype", dtype}});
  return {graph, graph.node(node).output(0)};
}

Var sequence_construct(const std::vector<Var>& elements) { return apply(sequence_construct_def(), elements); }

Var sequence_at(Var sequence, Var position) { return apply(sequence_at_def(), {sequence, position}); }

Var sequence_insert(Var sequence, Var element, Var position) {
  return apply(sequence_insert_def(), {sequence, element, position});
}

Var sequence_erase(Var sequence, Var position) { return apply(sequence_erase_def(), {sequence, position}); }

Var sequence_length(Var sequence) { return apply(sequence_length_def(), {sequence}); }

const OpDef& sequence_empty_def() {
  static const OpDef def{
      .name = "sequence_empty",
      .doc = "A sequence without elements.",
      .outputs = {{"output", "T", kSequenceDoc}},
      .types = types(),
      .attributes = {{"dtype", AttributeType::dtype, "Dtype of the elements to come.", DType::f32}},
      .infer = infer_empty,
      .evaluate = evaluate_empty,
      .no_grad = "it has no inputs",
      .onnx = {{"SequenceEmpty", 11}},
      .sample = sample_empty,
  };
  return def;
}

const OpDef& sequence_construct_def() {
  static const OpDef def{
      .name = "sequence_construct",
      .doc = "A sequence of the given tensors.",
      .inputs = {{"inputs", "T", "The elements, of one dtype.", Arity::variadic}},
      .outputs = {{"output_sequence", "T", kSequenceDoc}},
      .types = types(),
      .infer = infer_construct,
      .evaluate = evaluate_construct,
      .vjp = sequence_construct_vjp,
      .onnx = {{"SequenceConstruct", 11}},
      .sample = sample_construct,
  };
  return def;
}

const OpDef& sequence_at_def() {
  static const OpDef def{
      .name = "sequence_at",
      .doc = "The element at a position.",
      .inputs = {{"input_sequence", "T", kSequenceDoc}, {"position", "I", kPositionDoc}},
      .outputs = {{"tensor", "T", "The element."}},
      .types = types(),
      .infer = infer_at,
      .evaluate = evaluate_at,
      .vjp = sequence_at_vjp,
      .onnx = {{"SequenceAt", 11}},
      .sample = sample_at,
  };
  return def;
}

const OpDef& sequence_insert_def() {
  static const OpDef def{
      .name = "sequence_insert",
      .doc = "The sequence with one more element.",
      .inputs = {{"input_sequence", "T", kSequenceDoc},
                 {"tensor", "T", "The new element."},
                 {"position", "I", "One element: -length..length; the end when not given.", Arity::optional}},
      .outputs = {{"output_sequence", "T", kSequenceDoc}},
      .types = types(),
      .infer = infer_insert,
      .evaluate = evaluate_insert,
      .vjp = sequence_insert_vjp,
      .onnx = {{"SequenceInsert", 11}},
      .sample = sample_insert,
  };
  return def;
}

const OpDef& sequence_erase_def() {
  static const OpDef def{
      .name = "sequence_erase",
      .doc = "The sequence without one element.",
      .inputs = {{"input_sequence", "T", kSequenceDoc},
                 {"position", "I", "One element: -length..length-1; the last when not given.", Arity::optional}},
      .outputs = {{"output_sequence", "T", kSequenceDoc}},
      .types = types(),
      .infer = infer_erase,
      .evaluate = evaluate_erase,
      .vjp = sequence_erase_vjp,
      .onnx = {{"SequenceErase", 11}},
      .sample = sample_erase,
  };
  return def;
}

const OpDef& sequence_length_def() {
  static const OpDef def{
      .name = "sequence_length",
      .doc = "The number of elements.",
      .inputs = {{"input_sequence", "T", kSequenceDoc}},
      .outputs = {{"length", "I", "An i64 scalar."}},
      .types = types(),
      .infer = infer_length,
      .evaluate = evaluate_length,
      .no_grad = "a count is not differentiable",
      .onnx = {{"SequenceLength", 11}},
      .sample = sample_length,
  };
  return def;
}

}  // namespace autograph
