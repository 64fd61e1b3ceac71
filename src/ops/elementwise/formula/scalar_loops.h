// Turns a functor for one element into the scalar loops of an elementwise op, for every dtype that the op allows.
//
// A functor is built from the node's attributes and called with values of the compute type (f32 for narrow floats):
//   struct Relu { explicit Relu(const Attributes&) {} template <class T> T operator()(T x) const {...} };
#pragma once

#include <array>
#include <utility>

#include "autograph/op_def.h"
#include "tensor/element_types.h"

namespace autograph {

namespace detail {

// One loop for a functor of Arity inputs of type In and outputs of type Out.
template <class Functor, class In, class Out, size_t... K>
void scalar_loop(const Attributes& attributes, std::span<const void* const> inputs, std::span<const int64_t> steps,
                 void* output, int64_t count, std::index_sequence<K...>) {
  const Functor functor(attributes);
  const std::array<const In*, sizeof...(K)> in{static_cast<const In*>(inputs[K])...};
  Out* out = static_cast<Out*>(output);
  // The dense case on its own, so that the compiler can vectorise it.
  if (((steps[K] == 1) && ...)) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<Out>(functor(static_cast<ComputeType<In>>(in[K][i])...));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<Out>(functor(static_cast<ComputeType<In>>(in[K][i * steps[K]])...));
  }
}

template <class Functor, class In, class Out, size_t Arity>
void scalar_loop_of(const Attributes& attributes, std::span<const void* const> inputs, std::span<const int64_t> steps,
                    void* output, int64_t count) {
  scalar_loop<Functor, In, Out>(attributes, inputs, steps, output, count, std::make_index_sequence<Arity>());
}

}  // namespace detail

/// Loops for ops whose output dtype is the input dtype, which all inputs share.
template <class Functor, size_t Arity, class Types>
ScalarLoop same_type_loop(std::span<const DType> inputs, DType) {
  ScalarLoop loop = nullptr;
  try_dispatch(Types{}, inputs[0], [&]<class T>(TypeTag<T>) { loop = detail::scalar_loop_of<Functor, T, T, Arity>; });
  return loop;
}

/// Loops for predicates: any input dtype of the list, bool out.
template <class Functor, size_t Arity, class Types>
ScalarLoop predicate_loop(std::span<const DType> inputs, DType) {
  ScalarLoop loop = nullptr;
  try_dispatch(Types{}, inputs[0],
               [&]<class T>(TypeTag<T>) { loop = detail::scalar_loop_of<Functor, T, bool, Arity>; });
  return loop;
}

/// Output 0 has the dtype of input 0 and the broadcast shape of all inputs.
void infer_elementwise(InferContext& context);

/// Output 0 is bool and has the broadcast shape of all inputs.
void infer_predicate(InferContext& context);

/// The shape to which all shapes broadcast; throws ShapeError through `context` when they do not.
Shape broadcast_shapes(const InferContext& context, std::span<const Shape> shapes);

}  // namespace autograph
