// Passes: plain rewrites that always pay. Each is one file in passes/, run by run_passes() in the order of
// pipeline.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "autograph/graph.h"
#include "autograph/pass_report.h"

namespace autograph {

/// What a pass may ask, and its limits.
struct PassContext {
  /// Does the device have a kernel for this very node, so that it need not be decomposed? Null: no.
  std::function<bool(const Graph&, NodeId)> has_kernel;
  /// Is a kernel likely to take the node, extents that are not known yet taken as typical ones? Passes ask it about a
  /// fused node before they replace what already has kernels. Null: no.
  std::function<bool(const Graph&, NodeId)> expects_kernel;
  /// Computes an op on constants, absent inputs empty, for outputs of static types. Null: the reference.
  std::function<std::vector<Tensor>(const OpDef&, const Attributes&, std::span<const Tensor>, std::span<const Type>)>
      compute;
  /// Constant folding makes no tensor larger than this.
  int64_t max_folded_bytes = int64_t{64} << 20;
  /// Weights that flush_subnormals has left as they are, by address; they live as long as this. Null: none.
  const std::unordered_set<const void*>* flushed = nullptr;
};

/// The constants that flush_subnormals looks at, by address.
std::unordered_set<const void*> flushed_weights(const Graph& graph);

/// Which half of the pipeline a pass belongs to: the search works between the two (docs/design/0003).
enum class PassHalf : uint8_t {
  simplify,  ///< Leaves one op a node.
  finish,    ///< Makes groups of nodes run as one.
  both,      ///< Tidies up what came before it; runs in either half.
};

/// One pass.
struct PassDef {
  std::string_view name;
  std::string_view doc;               ///< One line.
  bool (*run)(Graph&, PassContext&);  ///< True when it changed the graph.
  PassHalf half = PassHalf::simplify;
  bool required = false;  ///< Runs even where optimisation is off.
};

/// All passes in their order.
std::span<const PassDef> all_passes();

#ifdef NDEBUG
inline constexpr bool kHasInternalChecks = false;
#else
inline constexpr bool kHasInternalChecks = true;
#endif

/// Which passes to run.
struct PipelineOptions {
  bool use_passes = true;             ///< False: only the required ones.
  std::vector<std::string> disabled;  ///< Names of passes to leave out; throws ValueError when there is no such pass.
  PassHalf half = PassHalf::both;     ///< Run one half alone, or all.
  /// Verify the graph after every pass that changed it, as builds with internal checks do. Else it is verified when all
  /// have run, which takes a third of the time.
  bool verify_each = kHasInternalChecks;
  std::span<const PassDef> passes = {};         ///< The list of passes; empty: all_passes().
  size_t max_passes = static_cast<size_t>(-1);  ///< Of those behind the first so many, only the required ones.
  /// Called behind each pass that changed the graph; null: nobody asks.
  std::function<void(const PassDef&, const Graph&)> on_change = nullptr;
};

/// Runs the pipeline once and tells what each pass did; throws InternalError with what the verifier says when a pass
/// breaks the graph.
std::vector<PassReport> run_passes(Graph& graph, PassContext& context, const PipelineOptions& options = {});

}  // namespace autograph
