// A compiled graph whose inputs are fields of batches and whose outputs are metrics.
#pragma once

#include "autograph/compile.h"
#include "autograph/data.h"
#include "autograph/trainer.h"

namespace autograph {

/// Keeps the interface of the graph beside the executable, whose own graph the passes have changed.
class TrainingProgram {
 public:
  TrainingProgram(Graph graph, const CompileOptions& options);

  /// One run. Fields whose shape differs from that of the input, but not in the number of elements, are reshaped.
  Metrics run(const Batch& batch) const;
  /// Means over all samples from where `data` is to the end of its epoch; ValueError when there is none.
  Metrics means(DataLoader& data) const;
  const StateStore& states() const { return executable_.states(); }
  int threads() const { return executable_.threads(); }
  /// Memory of activations, as planned; 0 before the first run where extents are symbols.
  size_t arena_bytes() const { return executable_.memory().arena_bytes; }

 private:
  Graph interface_;
  Executable executable_;
};

}  // namespace autograph
