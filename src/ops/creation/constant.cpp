// constant: a tensor that is written down in the graph. Front ends make graph constants, not nodes of this op; the op
// exists so that the ONNX operator of that name has a home, and for graphs that want the value to be a node.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.attributes().get<Tensor>("value").type()); }

void reference(const OpCall& call) { copy_all(call.attributes.get<Tensor>("value").view(), call.output(0)); }

OpSample sample(Random& random) {
  return {.inputs = {}, .attributes = {{"value", draw_tensor(random, DType::f32, draw_dims(random))}}};
}

template <class T>
Tensor list_tensor(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

// The tensor that one of ONNX's value attributes stands for; absent for other attributes. The importer hands over
// sparse tensors filled up with zeros.
Tensor value_tensor(const std::string& name, const AttributeValue& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* integer = std::get_if<int64_t>(&value)) return Tensor::scalar(*integer);
  if (const auto* real = std::get_if<float>(&value)) return Tensor::scalar(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return Tensor::scalar(*text);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    // An empty list has no type of its own: its name tells.
    if (integers->empty() && name == "value_floats") return list_tensor<float>({});
    if (integers->empty() && name == "value_strings") return list_tensor<std::string>({});
    return list_tensor(*integers);
  }
  if (const auto* reals = std::get_if<std::vector<float>>(&value)) return list_tensor(*reals);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return list_tensor(*texts);
  return {};
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  Tensor found;
  for (const auto& [name, value] : node.attributes) {
    if (!name.starts_with("value") && name != "sparse_value") continue;
    AG_CHECK_USER(!found.is_present(), FormatError,
                  "[constant] attributes: expected one value, got several (node \"{}\")", node.provenance.to_string());
    found = value_tensor(name, value);
  }
  AG_CHECK_USER(found.is_present(), FormatError, "[constant] attributes: expected a value, got none (node \"{}\")",
                node.provenance.to_string());
  return {node.constant(std::move(found))};
}

}  // namespace

const OpDef& constant_def() {
  static const OpDef def{
      .name = "constant",
      .doc = "The tensor in its attribute.",
      .outputs = {{"output", "T", "Shape of value."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = {{.name = "value", .type = AttributeType::tensor, .doc = "The elements.", .required = true}},
      .infer = infer,
      .reference = reference,
      .no_grad = "it has no inputs",
      .onnx = {{.name = "Constant", .import = import_onnx}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
