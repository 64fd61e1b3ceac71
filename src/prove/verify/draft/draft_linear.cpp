// Small calls of matmul, gemm and conv.
#include <algorithm>

#include "ops/defs.h"
#include "prove/verify/draft/call_draft.h"

namespace autograph {
namespace {

int64_t extent(Choices& choices) { return choices.one_of<int64_t>({2, 1, 3}); }

// The extent that both operands share, as far as one is known.
std::optional<int64_t> known_inner(const CallDraft& draft) {
  if (draft.is_known(0) && !draft.dims(0).empty()) return draft.dims(0).back();
  if (!draft.is_known(1) || draft.dims(1).empty()) return std::nullopt;
  const Dims& b = draft.dims(1);
  return b.size() == 1 ? b[0] : b[b.size() - 2];
}

// Leading dims for an operand whose partner has `other`.
Dims choose_batch(Choices& choices, const std::optional<Dims>& other) {
  if (!other) return choices.one_of<Dims>({{}, {2}, {1}, {2, 1}});
  Dims same = other->size() <= 2 ? Dims() : Dims(other->begin(), other->end() - 2);
  return choices.one_of<Dims>({same, {}, same.empty() ? Dims{2} : Dims(same.size(), 1)});
}

void complete_matmul(CallDraft& draft, Choices& choices) {
  const int64_t inner = known_inner(draft).value_or(draft.is_open(0) && draft.is_open(1) ? extent(choices) : 1);
  for (const size_t slot : {0U, 1U}) {
    if (!draft.is_open(slot)) continue;
    const bool partner_known = draft.is_known(1 - slot);
    Dims dims = choose_batch(choices, partner_known ? std::optional(draft.dims(1 - slot)) : std::nullopt);
    const bool vector = dims.empty() && choices.pick(5) == 4;
    if (slot == 0) {
      if (!vector) dims.push_back(extent(choices));
      dims.push_back(inner);
    } else {
      dims.push_back(inner);
      if (!vector) dims.push_back(extent(choices));
    }
    draft.set_dims(slot, std::move(dims));
  }
}

void complete_gemm(CallDraft& draft, Choices& choices) {
  draft.choose(choices, "transA", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "transB", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "alpha", {1.0F, 2.0F, 0.5F});
  draft.choose(choices, "beta", {1.0F, 0.5F, 0.0F});
  const bool transposed[2] = {draft.attributes.flag("transA"), draft.attributes.flag("transB")};
  std::optional<int64_t> inner;
  for (const size_t slot : {0U, 1U}) {
    if (draft.is_known(slot) && draft.dims(slot).size() == 2)
      inner = draft.dims(slot)[transposed[slot] == (slot == 0) ? 0 : 1];
  }
  if (!inner) inner = extent(choices);
  for (const size_t slot : {0U, 1U}) {
    if (!draft.is_open(slot)) continue;
    const bool inner_first = transposed[slot] == (slot == 0);
    const int64_t outer = extent(choices);
    draft.set_dims(slot, inner_first ? Dims{*inner, outer} : Dims{outer, *inner});
  }
  if (!draft.is_open(2)) return;
  const int64_t rows = draft.dims(0).empty() ? 1 : draft.dims(0)[transposed[0] ? draft.dims(0).size() - 1 : 0];
  const int64_t columns = draft.dims(1).empty() ? 1 : draft.dims(1)[transposed[1] ? 0 : draft.dims(1).size() - 1];
  draft.set_dims(2, choices.one_of<Dims>({{columns}, {rows, columns}, {1, columns}, {rows, 1}, {}}));
}

void choose_window(CallDraft& draft, Choices& choices, size_t spatial) {
  const bool flat = spatial == 2;
  draft.choose(choices, "strides",
               {std::nullopt, Dims(spatial, 1), Dims(spatial, 2), flat ? Dims{1, 2} : Dims(spatial, 2)});
  draft.choose(choices, "dilations",
               {std::nullopt, Dims(spatial, 1), Dims(spatial, 2), flat ? Dims{2, 1} : Dims(spatial, 1)});
  Dims uneven(2 * spatial, 0);
  uneven[0] = 1;
  Dims odd(2 * spatial, 1);
  odd.back() = 0;
  draft.choose(choices, "pads", {std::nullopt, Dims(2 * spatial, 0), Dims(2 * spatial, 1), uneven, odd});
  draft.choose(choices, "auto_pad", {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
}

Dims choose_kernel(Choices& choices, size_t spatial) {
  if (spatial == 2) return choices.one_of<Dims>({{1, 1}, {3, 3}, {1, 3}, {3, 1}, {2, 2}, {2, 3}});
  return Dims(spatial, choices.one_of<int64_t>({1, 3, 2}));
}

Dims choose_image(Choices& choices, size_t spatial) {
  if (spatial == 2) return choices.one_of<Dims>({{4, 4}, {3, 5}, {1, 1}, {5, 4}});
  return Dims(spatial, choices.one_of<int64_t>({4, 3, 5}));
}

void choose_group(CallDraft& draft, Choices& choices) {
  if (!draft.is_known(0)) {
    const bool first = draft.seen.empty() || !choices.is_random();
    draft.choose(choices, "group", {int64_t{1}, int64_t{2}, first ? int64_t{4} : int64_t{1}, std::nullopt});
    return;
  }
  draft.choose(choices, "group", divisors_of(draft.dims(0).size() > 1 ? draft.dims(0)[1] : 1));
}

void complete_conv(CallDraft& draft, Choices& choices) {
  size_t rank = 4;
  for (const size_t slot : {0U, 1U}) {
    if (draft.is_known(slot)) rank = std::max<size_t>(draft.dims(slot).size(), 3);
  }
  if (!draft.is_known(0) && !draft.is_known(1) && draft.seen.empty()) rank = choices.one_of<size_t>({4, 4, 4, 3, 5});
  const size_t spatial = rank - 2;
  draft.spell_out_lists(static_cast<int64_t>(spatial));
  choose_group(draft, choices);
  const int64_t group = std::max<int64_t>(draft.attributes.get_or<int64_t>("group", 1), 1);
  choose_window(draft, choices, spatial);
  if (draft.is_open(0)) {
    const int64_t per_group =
        draft.is_known(1) && draft.dims(1).size() > 1 ? draft.dims(1)[1] : choices.one_of<int64_t>({1, 2, 3});
    Dims fresh{choices.one_of<int64_t>({1, 2}), per_group * group};
    const Dims image = choose_image(choices, spatial);
    fresh.insert(fresh.end(), image.begin(), image.end());
    // Branches of a graph mostly have images of one size.
    for (const Dims& dims : draft.seen) {
      if (dims.size() != rank || !choices.is_random() || choices.pick(3) == 0) continue;
      std::copy(dims.begin() + 2, dims.end(), fresh.begin() + 2);
      fresh[0] = dims[0];
      break;
    }
    draft.set_dims(0, std::move(fresh));
  }
  if (draft.is_open(1)) {
    const int64_t channels = draft.dims(0).size() > 1 ? draft.dims(0)[1] : 1;
    Dims dims{group * choices.one_of<int64_t>({1, 2}), channels / group};
    const Dims& x = draft.dims(0);
    const bool is_pixel = x.size() == rank && std::all_of(x.begin() + 2, x.end(), [](int64_t n) { return n == 1; });
    const bool is_small = is_pixel && choices.is_random() && choices.pick(4) > 0;
    const Dims kernel = is_small ? Dims(spatial, 1) : choose_kernel(choices, spatial);
    dims.insert(dims.end(), kernel.begin(), kernel.end());
    draft.set_dims(1, std::move(dims));
  }
  const Dims& w = draft.dims(1);
  if (w.size() > 2) draft.choose(choices, "kernel_shape", {std::nullopt, Dims(w.begin() + 2, w.end())});
  if (draft.is_open(2)) draft.set_dims(2, {w.empty() ? 1 : w[0]});
}

}  // namespace

std::vector<CallFamily> linear_calls() {
  return {{{&matmul_def()}, complete_matmul}, {{&gemm_def()}, complete_gemm}, {{&conv_def()}, complete_conv}};
}

}  // namespace autograph
