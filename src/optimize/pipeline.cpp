// The one ordered list of passes, and the loop that runs, times and verifies them. A name may stand there more than
// once; leaving it out leaves out all of them.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "ops/defs.h"
#include "optimize/pass.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr PassDef kPasses[] = {
    {"order_effects", "Hold nodes with effects in their order.", order_effects, PassHalf::simplify, true},
    {"upcast_half", "Compute in f32 what the device has no kernels for in half precision.", upcast_half},
    {"decompose", "Replace function ops without a kernel by their body.", decompose, PassHalf::simplify, true},
    // Before zeros as large as tables become constants.
    {"update_rows", "Update the rows of a table that were read, where the others stay as they are.", update_rows},
    {"fold_constants", "Compute what depends on constants alone.", fold_constants_before_integers},
    {"resolve_shapes", "Make shapes constant that are computed from symbolic extents.", resolve_shapes},
    {"fold_constants", "Compute what depends on constants alone.", fold_constants_before_integers},
    {"simplify_branches", "Put branches in place whose condition is known; give branches their constants.",
     simplify_branches},
    {"simplify_loops", "Take out of loops what is the same in every turn.", simplify_loops},
    {"count_turns", "Make scans of loops whose turns are known.", count_turns},
    {"simplify_loops", "Take out of loops what is the same in every turn.", simplify_loops},
    // What came out of branches and loops.
    {"decompose", "Replace function ops without a kernel by their body.", decompose, PassHalf::simplify, true},
    {"fold_constants", "Compute what depends on constants alone.", fold_constants_before_integers},
    {"lower_einsum", "Make matrix products of einsum.", lower_einsum},
    {"eliminate_identity", "Remove nodes that give back their input.", eliminate_identity},
    {"resolve_shapes", "Make shapes constant that are computed from symbolic extents.", resolve_shapes},
    {"simplify_shapes", "Make one of chains of reshapes and transposes; constant shapes.", simplify_shapes},
    {"simplify_arithmetic", "Remove arithmetic without effect.", simplify_arithmetic},
    {"common_subexpressions", "Compute equal nodes once.", common_subexpressions},
    {"keep_bytes", "Move and select quantized elements as bytes.", keep_bytes},
    {"lower_quantized", "Dequantize what there are no kernels of bytes for.", lower_quantized},
    {"use_integers", "Compute dequantized convolutions and products with integers.", use_integers},
    {"use_block_matmul", "Multiply by weights of a byte or less as they are.", use_block_matmul},
    {"fold_constants", "Compute what depends on constants alone.", fold_constants},
    {"flush_subnormals", "Make zeros of weights next to 0, with which processors multiply slowly.", flush_subnormals},
    {"fold_batch_norm", "Merge batch normalization into the convolution before it.", fold_batch_norm},
    {"fold_scale", "Merge factors and addends per channel into the weights before them.", fold_scale},
    {"fold_pad", "Merge padding into the convolution or pool behind it.", fold_pad},
    {"fuse_softmax", "Make one node of a spelled-out softmax.", fuse_softmax},
    {"fuse_attention", "Make one node of spelled-out attention, head splits included.", fuse_attention},
    {"fuse_recurrent", "Make one node of an LSTM or GRU spelled out step by step.", fuse_recurrent},
    {"fuse_scanned_cell", "Make one node of a scan whose body is an LSTM or GRU cell.", fuse_scanned_cell},
    {"fuse_layer_norm", "Make one node of a spelled-out layer norm.", fuse_layer_norm},
    {"fuse_rms_norm", "Make one node of a spelled-out RMS norm.", fuse_rms_norm},
    {"fuse_group_norm", "Make one node of a group norm spelled as an instance norm between reshapes.", fuse_group_norm},
    {"fuse_activations", "Make one node of a spelled-out gelu, swish, hard_swish, mish, ...", fuse_activations},
    {"fuse_experts", "Compute of a mixture of experts what counts.", fuse_experts},
    {"use_global_pool", "Spell means over all spatial axes as global pools.", use_global_pool},
    {"apply_before_concat", "Apply a function of a whole to its parts, where they have it for nothing.",
     apply_before_concat, PassHalf::finish},
    // What the patterns left behind: sums of constant masks, views next to views, equal masks.
    {"fold_constants", "Compute what depends on constants alone.", fold_constants, PassHalf::both},
    {"simplify_shapes", "Make one of chains of reshapes and transposes; constant shapes.", simplify_shapes,
     PassHalf::both},
    {"common_subexpressions", "Compute equal nodes once.", common_subexpressions, PassHalf::both},
    {"lower_batch_norm", "Turn batch normalization left alone into a factor and a sum.", lower_batch_norm},
    {"fuse_squeeze_excite", "Compute the gate of squeeze and excitation as one node.", fuse_squeeze_excite,
     PassHalf::finish},
    {"fuse_epilogues", "Compute what follows a convolution or product together with it.", fuse_epilogues,
     PassHalf::finish},
    {"fuse_elementwise", "Compute neighbouring elementwise ops as one node.", fuse_elementwise, PassHalf::finish},
    {"dead_code", "Remove what no output needs.", dead_code, PassHalf::both},
};

void check_names(std::span<const PassDef> passes, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const PassDef& pass : passes) known.emplace_back(pass.name);
  for (const std::string& name : names) {
    AG_CHECK_USER(std::find(known.begin(), known.end(), name) != known.end(), ValueError,
                  "[passes] name: no pass '{}'{}", name, did_you_mean(name, known));
  }
}

bool is_chosen(const PassDef& pass, const PipelineOptions& options) {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), pass.name) != list.end();
  };
  const bool is_in_half = options.half == PassHalf::both || pass.half == PassHalf::both || pass.half == options.half;
  if (!is_in_half) return false;
  if (pass.required) return true;
  return options.use_passes && !names(options.disabled);
}

// Nodes of a graph by op, and constants, from one state of it to the next.
class OpCounts {
 public:
  explicit OpCounts(const Graph& graph) : counts_(count(graph)) {}

  // What came and went since the state before.
  std::vector<std::pair<std::string, int64_t>> follow(const Graph& graph) {
    Counts now = count(graph);
    std::vector<std::pair<std::string, int64_t>> changes;
    for (const auto& [op, number] : now) {
      const auto before = counts_.find(op);
      const int64_t came = number - (before == counts_.end() ? 0 : before->second);
      if (came != 0) changes.emplace_back(op, came);
    }
    for (const auto& [op, number] : counts_) {
      if (!now.contains(op)) changes.emplace_back(op, -number);
    }
    std::sort(changes.begin(), changes.end());
    counts_ = std::move(now);
    return changes;
  }

 private:
  using Counts = std::unordered_map<std::string_view, int64_t>;

  static Counts count(const Graph& graph) {
    Counts counts;
    for (const NodeId id : graph.nodes()) ++counts[graph.node(id).op().name];
    if (const size_t constants = graph.constants().size(); constants > 0) {
      counts[constant_def().name] += static_cast<int64_t>(constants);
    }
    return counts;
  }

  Counts counts_;
};

void verify_behind(std::string_view pass, const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    throw InternalError(fmt::format("[passes] {}: left a broken graph: {}", pass, error.what()));
  }
}

}  // namespace

std::span<const PassDef> all_passes() { return kPasses; }

std::vector<PassReport> run_passes(Graph& graph, PassContext& context, const PipelineOptions& options) {
  const std::span<const PassDef> passes = options.passes.empty() ? all_passes() : options.passes;
  check_names(passes, options.disabled);
  std::vector<PassReport> reports;
  OpCounts counts(graph);
  bool is_verified = true;
  size_t changes = 0;
  std::map<decltype(PassDef::run), size_t> idle;  // passes that found nothing to do, and behind how many changes
  for (size_t number = 0; number < passes.size(); ++number) {
    const PassDef& pass = passes[number];
    if (!is_chosen(pass, options) || (number >= options.max_passes && !pass.required)) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto before = idle.find(pass.run);
    const bool is_idle = before != idle.end() && before->second == changes;
    const bool changed = !is_idle && pass.run(graph, context);
    if (changed) {
      ++changes;
    } else {
      idle[pass.run] = changes;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    reports.push_back({std::string(pass.name), took.count(), changed, graph.num_nodes(), {}});
    if (changed) reports.back().ops = counts.follow(graph);
    if (changed && options.on_change) options.on_change(pass, graph);
    is_verified = is_verified && !changed;
    if (is_verified || !options.verify_each) continue;
    verify_behind(pass.name, graph);
    is_verified = true;
  }
  if (!is_verified) verify_behind("one of them (a build with internal checks tells which)", graph);
  return reports;
}

}  // namespace autograph
