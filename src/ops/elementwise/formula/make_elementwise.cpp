#include "ops/elementwise/formula/make_elementwise.h"

#include <utility>

#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

OpDef make_common(ElementwiseForm form) {
  OpDef def;
  def.name = form.name;
  def.doc = form.doc;
  def.attributes = std::move(form.attributes);
  def.scalar = form.scalar;
  def.vjp = form.vjp;
  def.decompose = form.decompose;
  def.no_grad = form.no_grad;
  def.traits = form.traits;
  def.traits.elementwise = true;
  def.onnx = {{.name = form.onnx, .since = form.since}};
  def.sample = form.sample;
  return def;
}

}  // namespace

OpDef make_unary(ElementwiseForm form) {
  const DTypeSet types = form.types;
  OpDef def = make_common(std::move(form));
  def.inputs = {{"x", "T", "Any shape."}};
  def.outputs = {{"y", "T", "Shape of x."}};
  def.types = {{"T", types}};
  def.infer = infer_elementwise;
  def.traits.in_place_ok = true;
  if (!def.sample) def.sample = sample_unary;
  return def;
}

OpDef make_binary(ElementwiseForm form) {
  const DTypeSet types = form.types;
  OpDef def = make_common(std::move(form));
  def.inputs = {{"a", "T", "Any shape."}, {"b", "T", "A shape that broadcasts with that of a."}};
  def.outputs = {{"c", "T", "The shape to which a and b broadcast."}};
  def.types = {{"T", types}};
  def.infer = infer_elementwise;
  def.traits.in_place_ok = true;
  if (!def.sample) def.sample = sample_binary;
  return def;
}

OpDef make_unary_predicate(ElementwiseForm form) {
  const DTypeSet types = form.types;
  OpDef def = make_common(std::move(form));
  def.inputs = {{"x", "T", "Any shape."}};
  def.outputs = {{"y", "B", "Shape of x."}};
  def.types = {{"T", types}, {"B", dtypes::kBool}};
  def.infer = infer_predicate;
  if (def.no_grad.empty()) def.no_grad = "the result is bool";
  if (!def.sample) def.sample = sample_unary;
  return def;
}

OpDef make_binary_predicate(ElementwiseForm form) {
  const DTypeSet types = form.types;
  OpDef def = make_common(std::move(form));
  def.inputs = {{"a", "T", "Any shape."}, {"b", "T", "A shape that broadcasts with that of a."}};
  def.outputs = {{"c", "B", "The shape to which a and b broadcast."}};
  def.types = {{"T", types}, {"B", dtypes::kBool}};
  def.infer = infer_predicate;
  if (def.no_grad.empty()) def.no_grad = "the result is bool";
  if (!def.sample) def.sample = sample_binary;
  return def;
}

}  // namespace autograph
