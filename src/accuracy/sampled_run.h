// Some elements of what a graph computes, by the reference, from no more than they need: a convolution's output at one
// position needs the window there, not the image. Ops that cannot be cut down are computed as a whole.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "accuracy/crop_call.h"
#include "accuracy/scaled_tensor.h"
#include "autograph/graph.h"

namespace autograph {

/// For one thread at a time.
class SampledRun {
 public:
  /// `graph` has static types and ops with a reference; it and the inputs must outlive this.
  SampledRun(const Graph& graph, const std::vector<ScaledTensor>& inputs, const ErrorModel& model);

  /// What computing these elements takes, roughly: floating-point operations of the reference.
  double work(ValueId value, const Selection& wanted);
  /// The elements, with the scales of their errors.
  ScaledTensor compute(ValueId value, const Selection& wanted);

  /// Some elements of a value, as many as can be computed within `max_work`; nothing where one is too much.
  std::optional<Selection> draw(ValueId value, int64_t count, double max_work, std::mt19937_64& random);

 private:
  // A node's call, and how it is cut down.
  struct Plan {
    std::vector<Type> inputs;
    std::vector<Type> outputs;
    std::vector<Tensor> known;
    CroppedCall cropped;
  };
  Plan plan(const Node& node, size_t output, const Selection& wanted);
  const Tensor* leaf(ValueId value) const;
  size_t first_window(ValueId value) const;

  const Graph& graph_;
  const ErrorModel model_;
  std::vector<ScaledTensor> inputs_;  // by value: of inputs and constants
  std::map<std::pair<ValueId, Selection>, ScaledTensor> computed_;
  std::map<NodeId, std::vector<ScaledTensor>> whole_;  // all that nodes make that were not cut down
};

}  // namespace autograph
