// Scales of errors through nodes that run nested graphs. Such a node moves tensors about, its nested graphs compute:
// what goes into a run is an input of the node, a slice of one or a result of the run before, and what comes out of the
// node is one of these, or the results of all runs put together. So scales are found by where elements lie, or by their
// bits.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "accuracy/scaled_run.h"

namespace autograph {

/// Of one node, while it is evaluated.
class NestedScales {
 public:
  explicit NestedScales(std::span<const ScaledDatum> inputs) : inputs_(inputs) {}

  /// An input of the next nested run, with its scale. One of unknown origin makes all outputs unknown.
  ScaledDatum input_of_run(const Datum& value);
  /// What the run gave.
  void add_run(const std::vector<ScaledDatum>& results);

  /// The scale of an output of the node, absent where it has none; nothing where it is not known.
  std::optional<Tensor> scale_of(const Tensor& output) const;

 private:
  const ScaledDatum* find(const Tensor& tensor) const;
  std::optional<Tensor> scale_of_slice(const Tensor& tensor) const;
  std::optional<Tensor> scale_of_stack(const Tensor& tensor, size_t result) const;

  std::span<const ScaledDatum> inputs_;
  std::vector<ScaledDatum> last_;               // results of the run before
  std::vector<std::vector<ScaledDatum>> runs_;  // of all runs, as long as they are not too many
  int64_t num_runs_ = 0;
  size_t kept_bytes_ = 0;
  bool all_known_ = true;
};

}  // namespace autograph
