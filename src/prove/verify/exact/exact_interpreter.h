// Evaluates a graph in exact arithmetic modulo a prime, so that "equal" means equal and not "close".
//
// Sums, products, quotients, convolutions, means and whatever only moves elements are computed. Every other op is a
// function without properties: a hash of its attributes and of the elements that it reads, so that two graphs agree
// only where they apply it to the same numbers. Elements are stored as u64 (see prime_field.h); values of integer types
// (shapes, axes) stay what they are.
#pragma once

#include <span>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// What ops that compare numbers (relu, max, min, abs, clip, max_pool, reduce_max ...) and powers are taken to be.
enum class Functions : uint8_t {
  opaque,       ///< Functions without properties: the strongest test.
  on_integers,  ///< Themselves, where what they read are small integers; exp(x) is 3^x.
};

/// How to evaluate.
struct ExactOptions {
  Functions functions = Functions::opaque;
};

/// `tensor` as the exact interpreter holds it: floats become elements of the field, integers and bools stay.
Tensor to_exact(const Tensor& tensor);

/// A tensor of elements of the field, filled by `next()`.
template <class Next>
Tensor make_exact(const Dims& dims, Next&& next) {
  Tensor tensor = Tensor::zeros(DType::u64, dims);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_data<uint64_t>()[i] = next();
  return tensor;
}

/// The outputs of `graph`, all of whose types are static tensors. `inputs` are as to_exact() gives them, in the order
/// of the graph's inputs. Throws UnsupportedError for ops that it cannot evaluate (sequences, nested graphs).
std::vector<Tensor> run_exact(const Graph& graph, std::span<const Tensor> inputs, const ExactOptions& options = {});

/// The outputs of one call, as run_exact() computes them; floats are f32 to inference. Throws what inference throws.
std::vector<Tensor> run_exact_call(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                                   size_t num_outputs, const ExactOptions& options = {});

}  // namespace autograph
