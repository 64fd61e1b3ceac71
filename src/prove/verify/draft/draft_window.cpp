// Small calls of pools, global pools and reductions.
#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "prove/verify/draft/call_draft.h"

namespace autograph {
namespace {

void complete_pool(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) {
    const Dims image = choices.one_of<Dims>({{4, 4}, {3, 5}, {5, 4}, {2, 2}, {4}});
    Dims x{choices.one_of<int64_t>({1, 2}), choices.one_of<int64_t>({2, 1, 3})};
    x.insert(x.end(), image.begin(), image.end());
    draft.set_dims(0, std::move(x));
  }
  const size_t rank = draft.dims(0).size();
  const size_t spatial = rank > 2 ? rank - 2 : 1;
  draft.spell_out_lists(static_cast<int64_t>(spatial));
  std::vector<std::optional<AttributeValue>> kernels{Dims(spatial, 1), Dims(spatial, 2), Dims(spatial, 3)};
  if (spatial == 2) kernels.insert(kernels.end(), {Dims{1, 3}, Dims{2, 3}});
  if (rank > 2) kernels.emplace_back(Dims(draft.dims(0).begin() + 2, draft.dims(0).end()));
  draft.choose(choices, "kernel_shape", kernels);
  draft.choose(choices, "strides", {std::nullopt, Dims(spatial, 1), Dims(spatial, 2)});
  draft.choose(choices, "dilations", {std::nullopt, Dims(spatial, 1), Dims(spatial, 2)});
  Dims uneven(2 * spatial, 0);
  uneven[0] = 1;
  draft.choose(choices, "pads", {std::nullopt, Dims(2 * spatial, 0), Dims(2 * spatial, 1), uneven});
  draft.choose(choices, "auto_pad", {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  draft.choose(choices, "ceil_mode", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "count_include_pad", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "storage_order", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "p", {int64_t{2}, int64_t{1}});
}

void complete_reduction(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  const auto rank = static_cast<int64_t>(draft.dims(0).size());
  if (draft.is_open(1)) {
    std::vector<std::vector<int64_t>> options{{}};
    for (int64_t axis = 0; axis < rank; ++axis) options.insert(options.end(), {{axis}, {axis - rank}});
    if (rank > 1) options.insert(options.end(), {{0, 1}, {rank - 1, 0}, {rank - 2, rank - 1}});
    draft.set_integers(1, choices.one_of(options));
  }
  draft.choose(choices, "keepdims", {int64_t{1}, int64_t{0}});
  draft.choose(choices, "noop_with_empty_axes", {int64_t{0}, int64_t{1}});
}

void complete_global_pool(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 3, 4));
  draft.choose(choices, "p", {int64_t{2}, int64_t{1}});
}

}  // namespace

std::vector<CallFamily> window_calls() {
  std::vector<const OpDef*> reductions;
  for (const OpDef* op : all_ops()) {
    if (is_reduction(*op)) reductions.push_back(op);
  }
  return {{{&average_pool_def(), &max_pool_def(), &lp_pool_def()}, complete_pool},
          {{&global_average_pool_def(), &global_max_pool_def(), &global_lp_pool_def()}, complete_global_pool},
          {reductions, complete_reduction}};
}

}  // namespace autograph
