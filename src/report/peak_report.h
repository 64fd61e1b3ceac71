// The measured peak of the machine in words, and what it means for a model as a whole.
#pragma once

#include "autograph/machine_peak.h"
#include "report/graph_summary.h"
#include "report/json.h"

namespace autograph {

/// {isa, compute:[{threads, gflops}], memory:[{level, threads, bytes_per_thread, read_gb_per_s, copy_gb_per_s}]}
Json peak_json(const MachinePeak& peak);

/// Two tables for people.
std::string peak_text(const MachinePeak& peak, bool escapes);

/// The most bytes a second that go to or from the level that holds `bytes` on `threads` threads; 0 when not measured.
double bandwidth_gb_per_s(const MachinePeak& peak, double bytes, int threads);

/// Times below which no run of a model can come that computes its sums in f32, term by term (Winograd's way of doing a
/// convolution with fewer products is outside of this).
struct ModelRoof {
  double compute_ms = 0;  ///< All operations at the peak of the multiply-add units.
  double memory_ms = 0;   ///< Every weight, input and output moved once; what lies between them counts as free.
  double bound_ms() const { return compute_ms > memory_ms ? compute_ms : memory_ms; }
};

/// For the model whose summary is `summary`, on `threads` threads.
ModelRoof model_roof(const GraphSummary& summary, const MachinePeak& peak, int threads);

}  // namespace autograph
