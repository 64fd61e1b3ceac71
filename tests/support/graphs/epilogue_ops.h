// The elementwise ops that exporters write behind convolutions and matrix products, with operands of every form.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// Makes what products and epilogue ops read: constants, and inputs of the graph with elements for them.
class OperandMaker {
 public:
  OperandMaker(Graph& graph, Random& random) : graph_(graph), random_(random) {}
  /// Says what the chain looks like of which ops are appended from now on.
  void set_chain(Dims dims, size_t channel_axis);

  /// A constant of one element, spelled with up to as many dims as the chain has.
  Var scalar(float value);
  /// A constant of rank 0.
  Var bound(float value) { return constant(graph_, Tensor::scalar(value)); }
  /// One of these numbers.
  float number(std::initializer_list<float> values);
  /// An input of the graph; `known`: a constant, as weights are.
  Var tensor(const Dims& dims, float low, float high, bool known = false);
  /// The last such input once more, or a first one: what several ops of a chain read.
  Var tensor_again(const Dims& dims, float low, float high);
  /// What differs along the channels alone, spelled in one of the ways there are; mostly a constant.
  Var vector(float low, float high);
  const Dims& dims() const { return dims_; }
  size_t channel_axis() const { return channel_axis_; }
  Random& random() { return random_; }
  /// Elements of the inputs that were made, in their order.
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  Graph& graph_;
  Random& random_;
  Dims dims_;
  size_t channel_axis_ = 0;
  std::vector<Tensor> inputs_;
};

/// One kind of op that may stand behind a product.
struct EpilogueKind {
  std::string_view name;
  Var (*append)(Var chain, OperandMaker& operands);
};

/// All of them.
std::span<const EpilogueKind> epilogue_kinds();

/// "relu mul_scalar add_scalar" for a list of indices into epilogue_kinds().
std::string names_of(std::span<const size_t> kinds);

}  // namespace autograph
