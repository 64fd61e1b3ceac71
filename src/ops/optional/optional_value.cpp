// Optional values: optional (wraps a value, or makes an empty one of a given type), optional_get_element,
// optional_has_element. At run time a present optional is its element and an empty one is nothing, so wrapping and
// unwrapping cost nothing. A value that is not an optional counts as present.
#include "autograph/op_def.h"
#include "autograph/ops/sequence.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Reads the type text that to_string(Type) writes: "f32[2,batch]", "seq(f32[...])", "optional(i64[])".
Type parse_type(const InferContext& context, std::string_view text) {
  const auto inner = [&](std::string_view prefix) {
    return parse_type(context, text.substr(prefix.size(), text.size() - prefix.size() - 1));
  };
  if (text.starts_with("seq(") && text.ends_with(")")) return Type::sequence(inner("seq("));
  if (text.starts_with("optional(") && text.ends_with(")")) return Type::optional(inner("optional("));
  const size_t open = text.find('[');
  const DType dtype = dtype_from_string(text.substr(0, open));
  if (dtype == DType::undefined) {
    context.fail<ValueError>("type", fmt::format("expected a type such as 'seq(f32[2,?])', got '{}'", text));
  }
  if (open == std::string_view::npos || !text.ends_with("]")) return Type(dtype, Shape::unknown());
  std::string_view list = text.substr(open + 1, text.size() - open - 2);
  if (list == "...") return Type(dtype, Shape::unknown());
  Shape shape;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view dim = list.substr(0, comma);
    const bool is_number = dim.find_first_not_of("0123456789") == std::string_view::npos && dim.size() < 19;
    if (dim == "?" || dim.empty()) {
      shape.dims().push_back(Dim::unknown());
    } else {
      shape.dims().push_back(is_number ? Dim(std::stoll(std::string(dim))) : Dim::symbol(std::string(dim)));
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return Type(dtype, std::move(shape));
}

void infer_optional(InferContext& context) {
  if (context.has_input(0)) return context.set_output(0, Type::optional(context.input(0)));
  const auto* type = context.attributes().find_as<std::string>("type");
  if (!type) context.fail<ValueError>("type", "expected it when there is no input");
  context.set_output(0, Type::optional(parse_type(context, *type)));
}

std::vector<Datum> evaluate_optional(EvaluateContext& context) { return {context.input(0)}; }

void infer_get(InferContext& context) {
  const Type& type = context.input(0);
  context.set_output(0, type.is_optional() ? type.element() : type);
}

std::vector<Datum> evaluate_get(EvaluateContext& context) {
  AG_CHECK_USER(context.has_input(0), ValueError,
                "[optional_get_element] input: expected a value, got an empty optional");
  return {context.input(0)};
}

void infer_has(InferContext& context) { context.set_output(0, DType::boolean, {}); }

std::vector<Datum> evaluate_has(EvaluateContext& context) { return {Tensor::scalar(context.has_input(0))}; }

// What flows into an optional is one that holds it.
void optional_vjp(VjpContext& c) { c.set(0, optional_get_element(c.gy(0))); }

void get_vjp(VjpContext& c) { c.set(0, c.in(0).type().is_optional() ? optional_of(c.gy(0)) : c.gy(0)); }

OpSample sample_optional(Random& random) {
  if (draw_bool(random)) return sample_unary(random);
  return {.inputs = {}, .attributes = {{"type", std::string("seq(f32[2,?])")}}};
}

}  // namespace

Var optional_of(Var x) { return apply(optional_def(), {x}); }

Var optional_get_element(Var x) { return apply(optional_get_element_def(), {x}); }

Var optional_has_element(Var x) { return apply(optional_has_element_def(), {x}); }

const OpDef& optional_def() {
  static const OpDef def{
      .name = "optional",
      .doc = "An optional that holds the input, or an empty one.",
      .inputs = {{"input", "", "The element; not given: an empty optional.", Arity::optional}},
      .outputs = {{"output", "", "The optional."}},
      .attributes = {{"type", AttributeType::text, "Type of the element, such as 'seq(f32[2,?])', when it is empty."}},
      .infer = infer_optional,
      .evaluate = evaluate_optional,
      .vjp = optional_vjp,
      .onnx = {{"Optional", 15}},
      .sample = sample_optional,
  };
  return def;
}

const OpDef& optional_get_element_def() {
  static const OpDef def{
      .name = "optional_get_element",
      .doc = "The element of an optional; an empty one is an error.",
      .inputs = {{"input", "", "An optional, or a plain value."}},
      .outputs = {{"output", "", "The element."}},
      .infer = infer_get,
      .evaluate = evaluate_get,
      .vjp = get_vjp,
      .onnx = {{"OptionalGetElement", 15}},
      .sample = sample_unary,
  };
  return def;
}

const OpDef& optional_has_element_def() {
  static const OpDef def{
      .name = "optional_has_element",
      .doc = "Does the optional hold an element?",
      .inputs = {{"input", "", "An optional, or a plain value, which counts as present.", Arity::optional}},
      .outputs = {{"output", "B", "A bool scalar."}},
      .types = {{"B", dtypes::kBool}},
      .infer = infer_has,
      .evaluate = evaluate_has,
      .no_grad = "a yes or no is not differentiable",
      .onnx = {{"OptionalHasElement", 15}},
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
