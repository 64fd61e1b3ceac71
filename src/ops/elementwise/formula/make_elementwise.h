// Completes the definition of an elementwise op from the few facts in which such ops differ.
#pragma once

#include <string_view>
#include <vector>

#include "autograph/op_def.h"
#include "ops/sample.h"

namespace autograph {

/// What an elementwise op has of its own.
struct ElementwiseForm {
  std::string_view name;                       ///< Op name.
  std::string_view doc;                        ///< The formula.
  std::string_view onnx;                       ///< Name in ONNX.
  int since = 1;                               ///< First opset that has it.
  DTypeSet types;                              ///< Dtypes of the inputs.
  ScalarLoopFn scalar = nullptr;               ///< The loops.
  std::vector<AttributeSpec> attributes = {};  ///< Attributes, if any.
  Traits traits = {};                          ///< Besides `elementwise`, which is always set.
  std::string_view no_grad = "";               ///< Why there is no gradient, where there is none by nature.
  VjpFn vjp = nullptr;                         ///< Gradient rule.
  DecomposeFn decompose = nullptr;             ///< Body in other ops, if any.
  SampleFn sample = nullptr;                   ///< Null: f32 tensors with elements in [-2, 2].
};

/// y = f(x); in place when asked of the memory planner.
OpDef make_unary(ElementwiseForm form);

/// c = f(a, b) with broadcasting, one dtype.
OpDef make_binary(ElementwiseForm form);

/// y = f(x), bool.
OpDef make_unary_predicate(ElementwiseForm form);

/// c = f(a, b) with broadcasting, bool.
OpDef make_binary_predicate(ElementwiseForm form);

/// One tensor of `dtype` with elements in [low, high]: samples for functions with a limited domain or other dtypes.
template <DType dtype, int low, int high>
OpSample sample_unary_of(Random& random) {
  return {.inputs = {draw_tensor(random, dtype, draw_dims(random), low, high)}};
}

/// Two tensors of `dtype` whose shapes broadcast, elements in [low, high].
template <DType dtype, int low, int high>
OpSample sample_binary_of(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, dtype, dims, low, high),
                     draw_tensor(random, dtype, draw_broadcastable(random, dims), low, high)}};
}

}  // namespace autograph
