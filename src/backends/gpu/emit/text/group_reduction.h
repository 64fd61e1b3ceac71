// Reductions that the items of a group, or one item alone, compute: shared by sums, norms and softmax.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// How values are combined: "combine" of two texts, from "start" on.
struct Combination {
  std::string type;   ///< Of what is accumulated.
  std::string start;  ///< The neutral element.
  std::function<std::string(const std::string& a, const std::string& b)> combine;
};

/// a + b, in `type`.
Combination sum_of(std::string_view type);
/// a * b, in `type`.
Combination product_of(std::string_view type);
/// The larger one, NaN where either is; for floats of `type`.
Combination largest_of(std::string_view type);

/// How the results of a reduction are shared out.
struct ReductionPlan {
  bool by_group = false;  ///< A group for each result; else an item for each.
  size_t group_size = 1;
};

/// For `results` results of `combined` elements each.
ReductionPlan plan_reduction(const Target& target, int64_t results, int64_t combined);

/// Writes a loop over `r` in [0, combined), of which the items of a group take turns when `by_group`, and in it
/// `body`, which combines into the variable `total`.
void write_loop(Writer& writer, const ReductionPlan& plan, int64_t combined, const std::function<void()>& body);

/// Writes what makes `total` of all items of a group the same: the combination of all of them. A declaration of local
/// memory `name` must be unique in the kernel. Does nothing where items work alone.
void write_group_total(Writer& writer, const ReductionPlan& plan, const Combination& combination,
                       std::string_view total);

/// Begins a kernel of one result for each item or group; its number is in `o`.
void begin_reduction(Writer& writer, const ReductionPlan& plan, const std::vector<Parameter>& parameters,
                     int64_t results);

/// Where there are fewer results than processors, into how many parts what belongs to one of them is cut, each for a
/// group: one group would take all the others' time, and add up more numbers than f32 can. Later launches combine them.
int64_t choose_parts(const Target& target, const ReductionPlan& plan, int64_t results, int64_t combined);

/// Begins a kernel of a group for each part: `o` is the number of the result, of whose elements `first` to `last` are
/// the part's. Positions up to twice `combined` must be covered.
void begin_parts(Writer& writer, const ReductionPlan& plan, const std::vector<Parameter>& parameters, int64_t results,
                 int64_t combined, int64_t parts);

}  // namespace autograph::gpu
