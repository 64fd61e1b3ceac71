// The JSON header of a plan file: everything that is neither the graph nor large.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograph/plan_file.h"

namespace autograph {

/// A tensor that lies in the file behind the text.
struct PooledType {
  DType dtype = DType::undefined;
  Dims dims;
  size_t size_bytes = 0;
};

/// What the header says besides what goes into a SavedPlan as it is.
struct PlanHeader {
  std::vector<PooledType> pool;
  std::vector<size_t> probe_outputs;  ///< Numbers of tensors of the pool.
  std::string input_defaults = {};    ///< Text of a graph whose outputs are these constants; "" where there are none.
  std::vector<std::pair<int, std::vector<std::vector<size_t>>>> stages;  ///< Threads; streams of node positions.
};

/// The header of `plan`, as JSON.
std::string print_plan_header(const SavedPlan& plan, const PlanHeader& header);

/// Reads it back: fills in origin, report, times and the seed of the probe of `plan`. Throws FormatError.
PlanHeader parse_plan_header(std::string_view text, SavedPlan& plan);

}  // namespace autograph
