// What oneDNN's backward convolutions, by data and by weights, have in common.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/primitive_kernel.h"

namespace autograph::onednn {

/// Names of the implementations for a problem, best first; empty where oneDNN has nothing. A problem makes the sources
/// of descriptors, describes one, and says whether an implementation is usable.
template <class Problem>
std::vector<std::string> list_implementations(const Problem& problem) {
  std::vector<std::string> names;
  const ConvolutionTurn turn(DataType::f32);
  try {
    const auto source = problem.make_source();
    auto candidate = Problem::describe(source, Use::list);
    do {
      const std::string name = candidate.impl_info_str();
      const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
      if (is_new && problem.is_usable(name)) names.push_back(name);
    } while (candidate.next_impl());
  } catch (const dnnl::error&) {
    // oneDNN has nothing for this form.
  }
  return names;
}

}  // namespace autograph::onednn
