// Writes a profile in the trace event format that chrome://tracing and Perfetto read.
#pragma once

#include <string>
#include <vector>

#include "autograph/run_report.h"

namespace autograph {

/// {"traceEvents": [...]}: one complete event ("ph": "X") per step on the track of its stream, times in microseconds,
/// and one metadata event per track that names it.
std::string chrome_trace(const std::vector<StepProfile>& steps, const std::string& process_name);

}  // namespace autograph
