// label_encoder: looks every element up in a table: y = values_tensor[k] where keys_tensor[k] = x, else default_tensor.
// NaN keys match NaN. The last of equal keys wins. ONNX spells the tables in three ways by version; import makes
// tensors of all of them.
#include <cmath>
#include <map>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/ml.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using KeyTypes = TypeList<float, double, std::string, int64_t, int32_t, int16_t>;

// NaN sorts behind all numbers and equals itself, so that it can be a key.
template <class T>
struct KeyLess {
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a < b || (std::isnan(b) && !std::isnan(a));
    } else {
      return a < b;
    }
  }
};

void infer(InferContext& context) {
  const auto& keys = context.attributes().get<Tensor>("keys_tensor");
  const auto& values = context.attributes().get<Tensor>("values_tensor");
  const auto& otherwise = context.attributes().get<Tensor>("default_tensor");
  if (keys.dtype() != context.dtype(0)) {
    context.fail<TypeError>("keys_tensor", fmt::format("expected {} like the input, got {}",
                                                       to_string(context.dtype(0)), to_string(keys.dtype())));
  }
  if (keys.num_elements() != values.num_elements()) {
    context.fail<ShapeError>("values_tensor", fmt::format("expected {} elements like the keys, got {}",
                                                          keys.num_elements(), values.num_elements()));
  }
  if (otherwise.num_elements() != 1 || otherwise.dtype() != values.dtype()) {
    context.fail<TypeError>("default_tensor", fmt::format("expected one element of {}, got {}",
                                                          to_string(values.dtype()), to_string(otherwise.type())));
  }
  context.set_output(0, values.dtype(), context.shape(0));
}

void reference(const OpCall& call) {
  const auto& keys = call.attributes.get<Tensor>("keys_tensor");
  const TensorView values = call.attributes.get<Tensor>("values_tensor").view();
  const TensorView otherwise = call.attributes.get<Tensor>("default_tensor").view();
  dispatch<KeyTypes>(keys.dtype(), [&]<class T>(TypeTag<T>) {
    std::map<T, int64_t, KeyLess<T>> table;
    for (int64_t k = 0; k < keys.num_elements(); ++k) table[keys.data<T>()[k]] = k;
    const T* in = call.input(0).data<T>();
    for (int64_t i = 0; i < call.input(0).num_elements(); ++i) {
      const auto found = table.find(in[i]);
      const bool is_known = found != table.end();
      copy_run(is_known ? values : otherwise, is_known ? found->second : 0, call.output(0), i, 1);
    }
  });
}

OpSample sample(Random& random) {
  return {.inputs = {draw_tensor(random, DType::i64, draw_dims(random), 0, 4)},
          .attributes = {{"keys_tensor", Tensor::vector({0, 2, 3})},
                         {"values_tensor", draw_tensor(random, DType::f32, {3})},
                         {"default_tensor", draw_tensor(random, DType::f32, {1})}}};
}

template <class T>
Tensor list_tensor(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

// Takes the table `prefix`_tensor, _strings, _int64s or _floats off the node; absent when there is none.
Tensor take_table(ForeignNode& node, const std::string& prefix) {
  Tensor table;
  for (const char* suffix : {"_tensor", "_strings", "_int64s", "_floats"}) {
    const AttributeValue* value = node.attributes.find(prefix + suffix);
    if (!value) continue;
    if (const auto* tensor = std::get_if<Tensor>(value)) table = *tensor;
    if (const auto* texts = std::get_if<std::vector<std::string>>(value)) table = list_tensor(*texts);
    if (const auto* integers = std::get_if<std::vector<int64_t>>(value)) table = list_tensor(*integers);
    if (const auto* reals = std::get_if<std::vector<float>>(value)) table = list_tensor(*reals);
    node.attributes.erase(prefix + suffix);
  }
  return table;
}

// The default of ONNX for values of this dtype.
Tensor take_default(ForeignNode& node, DType dtype) {
  Tensor result;
  const auto text = node.attributes.get_or<std::string>("default_string", "_Unused");
  const auto integer = node.attributes.get_or<int64_t>("default_int64", -1);
  const auto real = node.attributes.get_or<float>("default_float", -0.0F);
  if (const auto* tensor = node.attributes.find_as<Tensor>("default_tensor")) result = *tensor;
  for (const char* name : {"default_string", "default_int64", "default_float"}) node.attributes.erase(name);
  if (result.is_present()) return result;
  if (dtype == DType::string) return list_tensor<std::string>({text});
  try_dispatch(TypeList<float, double>{}, dtype,
               [&]<class T>(TypeTag<T>) { result = list_tensor<T>({static_cast<T>(real)}); });
  try_dispatch(SignedTypes{}, dtype, [&]<class T>(TypeTag<T>) { result = list_tensor<T>({static_cast<T>(integer)}); });
  return result;
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  Tensor keys = take_table(node, "keys");
  Tensor values = take_table(node, "values");
  if (const auto* classes = node.attributes.find_as<std::vector<std::string>>("classes_strings")) {
    // Version 1: one list of names, looked up by name or by position.
    std::vector<int64_t> positions(classes->size());
    for (size_t k = 0; k < positions.size(); ++k) positions[k] = static_cast<int64_t>(k);
    const bool by_name = node.input_type(0).dtype() == DType::string;
    keys = by_name ? list_tensor(*classes) : Tensor::vector(positions);
    values = by_name ? Tensor::vector(positions) : list_tensor(*classes);
    node.attributes.erase("classes_strings");
  }
  AG_CHECK_USER(keys.is_present() && values.is_present(), FormatError,
                "[label_encoder] attributes: expected keys and values, got none (node \"{}\")",
                node.provenance.to_string());
  node.attributes.set("default_tensor", take_default(node, values.dtype()));
  node.attributes.set("keys_tensor", std::move(keys));
  node.attributes.set("values_tensor", std::move(values));
  return node.emit();
}

}  // namespace

Var label_encoder(Var x, Tensor keys, Tensor values, Tensor otherwise) {
  return apply(label_encoder_def(), {x},
               {{"keys_tensor", std::move(keys)},
                {"values_tensor", std::move(values)},
                {"default_tensor", std::move(otherwise)}});
}

const OpDef& label_encoder_def() {
  static constexpr DTypeSet kAllowed{DType::string, DType::i64, DType::f32, DType::i32, DType::i16, DType::f64};
  static const OpDef def{
      .name = "label_encoder",
      .doc = "Looks every element up in a table of keys and values.",
      .inputs = {{"x", "T1", "Any shape."}},
      .outputs = {{"y", "T2", "Shape of x, dtype of the values."}},
      .types = {{"T1", kAllowed}, {"T2", kAllowed}},
      .attributes =
          {{.name = "keys_tensor", .type = AttributeType::tensor, .doc = "Keys.", .required = true},
           {.name = "values_tensor", .type = AttributeType::tensor, .doc = "The value of each key.", .required = true},
           {.name = "default_tensor",
            .type = AttributeType::tensor,
            .doc = "One element: for inputs that are no key.",
            .required = true}},
      .infer = infer,
      .reference = reference,
      .no_grad = "labels are not differentiable",
      .onnx = {{.name = "LabelEncoder", .domain = "ai.onnx.ml", .import = import_onnx, .export_since = 4}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
