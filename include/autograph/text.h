// The text form of a graph: prints and parses back to an equal graph. Bug reports and golden tests stand on it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// How to print.
struct TextOptions {
  /// Constants with more elements than this are printed as a digest instead of elements; such a text is for reading
  /// only: parse_text refuses it. The default prints everything.
  size_t max_constant_elements = static_cast<size_t>(-1);
};

/// The graph as text, in topological order.
std::string print_text(const Graph& graph, const TextOptions& options = {});

/// The graph as text without its large tensors: those of more than a few dozen elements are added to `pool`, equal
/// buffers once, and stand in the text as `pool N`. Nothing is copied.
std::string print_text(const Graph& graph, std::vector<Tensor>& pool);

/// The graph that `text` describes, with tensors `pool N` taken from `pool`; throws FormatError with line and column
/// when it is malformed.
Graph parse_text(std::string_view text, std::span<const Tensor> pool = {});

}  // namespace autograph
