// Small calls of the ops that move elements.
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "ops/defs.h"
#include "prove/verify/draft/call_draft.h"

namespace autograph {
namespace {

using Options = std::vector<std::optional<AttributeValue>>;

int64_t rank_of(const CallDraft& draft, size_t slot = 0) { return static_cast<int64_t>(draft.dims(slot).size()); }

// Chooses an axis of so many, and counts it from the front.
size_t chosen_axis(CallDraft& draft, Choices& choices, size_t rank) {
  choose_axis(draft, choices, rank);
  return nearest_axis(draft.attributes.get_or<int64_t>("axis", 0), rank);
}

void complete_concat(CallDraft& draft, Choices& choices) {
  std::optional<Dims> known;
  for (size_t slot = 0; slot < draft.inputs.size(); ++slot) {
    if (draft.is_known(slot) && !known) known = draft.dims(slot);
  }
  if (!known) known = choose_dims(draft, choices, 1, 4);
  const size_t axis = chosen_axis(draft, choices, known->size());
  for (size_t slot = 0; slot < draft.inputs.size(); ++slot) {
    if (!draft.is_open(slot)) continue;
    Dims dims = *known;
    if (!dims.empty()) dims[axis] = choices.one_of<int64_t>({dims[axis], 2, 1});
    draft.set_dims(slot, std::move(dims));
  }
}

// A composition of `total` (2 or 3 for each piece when it is open) into `count` pieces.
std::vector<int64_t> choose_pieces(Choices& choices, std::optional<int64_t> total, size_t count) {
  std::vector<int64_t> pieces(count, 1);
  if (!total) {
    for (int64_t& piece : pieces) piece = choices.one_of<int64_t>({1, 2});
    return pieces;
  }
  int64_t rest = *total;
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    pieces[i] = last ? rest : static_cast<int64_t>(choices.pick(static_cast<size_t>(rest) + 1));
    rest -= pieces[i];
  }
  return pieces;
}

void complete_split(CallDraft& draft, Choices& choices) {
  const bool open = draft.is_open(0);
  Dims x = open ? choose_dims(draft, choices, 1, 4) : draft.dims(0);
  const size_t axis = chosen_axis(draft, choices, x.size());
  if (draft.is_open(1)) {
    const auto total = open || x.empty() ? std::nullopt : std::optional(x[axis]);
    const std::vector<int64_t> pieces = choose_pieces(choices, total, draft.num_outputs);
    if (open && !x.empty()) x[axis] = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
    draft.set_integers(1, pieces);
  } else if (open && !x.empty()) {
    x[axis] = static_cast<int64_t>(draft.num_outputs) * choices.one_of<int64_t>({1, 2});
  }
  if (open) draft.set_dims(0, std::move(x));
  draft.choose(choices, "num_outputs", {static_cast<int64_t>(draft.num_outputs), std::nullopt});
}

void complete_slice(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  const int64_t rank = std::max<int64_t>(rank_of(draft), 1);
  const size_t count = rank > 1 && choices.pick(4) == 3 ? 2 : 1;
  const auto list = [&](std::initializer_list<int64_t> options) {
    std::vector<int64_t> values;
    for (size_t i = 0; i < count; ++i) values.push_back(choices.one_of(options));
    return values;
  };
  if (draft.is_open(1)) draft.set_integers(1, list({0, 1, -1}));
  if (draft.is_open(2)) draft.set_integers(2, list({2, 1, -1, 100}));
  if (draft.is_open(3)) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < count; ++i) {
      const auto axis = static_cast<int64_t>(choices.pick(static_cast<size_t>(rank)));
      axes.push_back(choices.one_of<int64_t>({axis, axis - rank}));
    }
    draft.set_integers(3, axes);
  }
  if (draft.is_open(4)) draft.set_integers(4, list({1, 2, -1}));
}

void complete_pad(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  if (draft.is_open(3)) {
    const int64_t rank = std::max<int64_t>(rank_of(draft), 1);
    draft.set_integers(3, {static_cast<int64_t>(choices.pick(static_cast<size_t>(rank)))});
  }
  const size_t axes = draft.has(3) ? 1 : draft.dims(0).size();
  if (draft.is_open(1)) {
    std::vector<int64_t> pads(2 * axes, 0);
    // Images are padded at their spatial axes more often than elsewhere.
    const bool spatial_only = axes == 4 && choices.pick(3) > 0;
    for (size_t i = 0; i < pads.size(); ++i) {
      if (!spatial_only || i % axes >= 2) pads[i] = choices.one_of<int64_t>({0, 1, 2});
    }
    if (choices.rarely(8) && !pads.empty()) pads.back() = -1;
    draft.set_integers(1, std::move(pads));
  }
  if (draft.is_open(2)) draft.set_dims(2, {});
  draft.choose(choices, "mode", {"constant", "edge", "reflect", "wrap"});
}

void complete_transpose(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  std::vector<int64_t> perm(draft.dims(0).size());
  std::iota(perm.begin(), perm.end(), 0);
  Options options{std::nullopt};
  do {
    options.emplace_back(perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
  draft.choose(choices, "perm", options);
}

int64_t product(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

// Other ways to cut up as many elements.
void complete_reshape(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  const Dims x = draft.dims(0);
  if (draft.is_open(1)) {
    const int64_t count = product(x);
    std::vector<std::vector<int64_t>> options{x, {-1}, {1, count}, {count, 1}};
    for (const int64_t factor : {2, 3, 4}) {
      if (count % factor == 0) options.insert(options.end(), {{factor, -1}, {count / factor, factor}, {1, -1, factor}});
    }
    if (x.size() > 1) {
      options.emplace_back(std::vector<int64_t>{0, -1});
      Dims merged(x.begin() + 1, x.end());
      merged[0] *= x[0];
      options.push_back(merged);
      merged = Dims(x.begin(), x.end() - 1);
      merged.back() *= x.back();
      options.push_back(merged);
    }
    if (choices.is_random()) {
      // Channels in groups; the shape of something that is there already.
      if (x.size() > 2) options.insert(options.end(), {{x[0], 1, -1}, {x[0], 2, -1}});
      const auto fits = [&](const Dims& dims) { return dims != x && product(dims) == count; };
      std::copy_if(draft.seen.begin(), draft.seen.end(), std::back_inserter(options), fits);
    }
    draft.set_integers(1, choices.one_of(options));
  }
  draft.choose(choices, "allowzero", {int64_t{0}, int64_t{1}});
}

void complete_squeeze(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  if (!draft.is_open(1)) return;
  std::vector<std::vector<int64_t>> options;
  for (int64_t axis = 0; axis < rank_of(draft); ++axis) {
    if (draft.dims(0)[static_cast<size_t>(axis)] == 1) options.insert(options.end(), {{axis}, {axis - rank_of(draft)}});
  }
  options.emplace_back(std::vector<int64_t>{});
  draft.set_integers(1, choices.one_of(options));
}

void complete_unsqueeze(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 0, 3));
  if (!draft.is_open(1)) return;
  std::vector<std::vector<int64_t>> options{{0, 1}};
  for (int64_t axis = -rank_of(draft) - 1; axis <= rank_of(draft); ++axis) options.push_back({axis});
  draft.set_integers(1, choices.one_of(options));
}

void complete_expand(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 0, 3));
  if (draft.is_open(1)) draft.set_integers(1, choose_broadcast(choices, draft.dims(0)));
}

void complete_gather(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  if (draft.is_open(1)) draft.set_integers(1, choices.one_of<std::vector<int64_t>>({{0}, {0, 0}, {-1, 0}, {0, 1}}));
  choose_axis(draft, choices, draft.dims(0).size());
}

void complete_flatten(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  Options axes;
  for (int64_t axis = -rank_of(draft); axis <= rank_of(draft); ++axis) axes.emplace_back(axis);
  draft.choose(choices, "axis", axes);
}

}  // namespace

std::vector<CallFamily> shape_calls() {
  return {{{&concat_def()}, complete_concat},       {{&split_def()}, complete_split},
          {{&slice_def()}, complete_slice},         {{&pad_def()}, complete_pad},
          {{&transpose_def()}, complete_transpose}, {{&reshape_def()}, complete_reshape},
          {{&squeeze_def()}, complete_squeeze},     {{&unsqueeze_def()}, complete_unsqueeze},
          {{&expand_def()}, complete_expand},       {{&gather_def()}, complete_gather},
          {{&flatten_def()}, complete_flatten}};
}

}  // namespace autograph
