// What a run is given, and whether it fits what the graph declares.
#pragma once

#include <string>
#include <vector>

#include "autograph/donation.h"
#include "autograph/graph.h"
#include "runtime/launchable.h"

namespace autograph {

/// The inputs of a run, whichever way they were given.
class RunInputs {
 public:
  explicit RunInputs(const std::vector<Datum>& datums) : datums_(&datums) {}
  explicit RunInputs(const std::vector<Tensor>& tensors) : tensors_(&tensors) {}
  size_t size() const { return datums_ ? datums_->size() : tensors_->size(); }
  /// Input `i`, or null when it is not a tensor.
  const Tensor* tensor(size_t i) const {
    if (!datums_) return &(*tensors_)[i];
    return (*datums_)[i].is_tensor() ? &(*datums_)[i].tensor() : nullptr;
  }
  /// Hands input `i` over.
  void bind(Launchable& launchable, size_t i) const {
    if (datums_)
      launchable.bind_input(i, (*datums_)[i]);
    else
      launchable.bind_input(i, (*tensors_)[i]);
  }
  /// "a sequence", "nothing" or the tensor's type, for messages.
  std::string describe(size_t i) const;

 private:
  const std::vector<Datum>* datums_ = nullptr;
  const std::vector<Tensor>* tensors_ = nullptr;
};

/// Throws TypeError or ShapeError, naming the input, unless dtypes, ranks and extents are those that the inputs of
/// `graph` declare, and a symbol has one extent everywhere; ValueError for another number of inputs.
void check_inputs(const Graph& graph, const RunInputs& inputs);

/// Throws ValueError, naming both, where an output shares memory with another one or with an input, unless `donations`
/// has the pair and the memory is the same.
void check_memory(const RunInputs& inputs, const std::vector<Tensor>& outputs, const std::vector<Donation>& donations);

}  // namespace autograph
