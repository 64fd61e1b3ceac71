#include "prove/verify/draft/call_draft.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"

#include <algorithm>

namespace autograph {
namespace {

const std::vector<std::vector<Dims>>& dims_by_rank() {
  static const std::vector<std::vector<Dims>> all = [] {
    std::vector<std::vector<Dims>> lists{{{}}, {{1}, {2}, {3}}, {}, {{2, 3, 4}}, {{2, 3, 1, 2}, {1, 4, 3, 2}}};
    for (int64_t a = 1; a <= 3; ++a) {
      for (int64_t b = 1; b <= 3; ++b) lists[2].push_back({a, b});
    }
    for (int64_t bits = 0; bits < 16; ++bits) {
      const Dims dims{1 + bits / 8, 1 + bits / 4 % 2, 1 + bits / 2 % 2, 1 + bits % 2};
      if (bits < 8) lists[3].emplace_back(dims.begin() + 1, dims.end());
      lists[4].push_back(dims);
    }
    return lists;
  }();
  return all;
}

// One-element and empty-handed inputs of elementwise ops: the rest broadcasts with what is known.
void complete_elementwise(CallDraft& draft, Choices& choices) {
  std::optional<Dims> known;
  for (size_t slot = 0; slot < draft.inputs.size(); ++slot) {
    if (draft.is_known(slot)) known = known && known->size() >= draft.dims(slot).size() ? known : draft.dims(slot);
  }
  for (size_t slot = 0; slot < draft.inputs.size(); ++slot) {
    if (!draft.is_open(slot)) continue;
    const bool is_bound = draft.op == &clip_def() && slot > 0;
    draft.set_dims(slot, is_bound ? Dims{}
                         : known  ? choose_broadcast(choices, *known)
                                  : choose_dims(draft, choices, 0, 4));
    if (!known) known = draft.dims(slot);
  }
  if (draft.op == &cast_def()) draft.choose(choices, "to", {DType::f16, DType::bf16, DType::f32});
  draft.choose(choices, "alpha", {0.25F, 0.5F});
  draft.choose(choices, "axis", {int64_t{0}, int64_t{1}, int64_t{-1}});
}

// A call out of the op's own samples.
bool complete_from_sample(CallDraft& draft, Choices& choices) {
  Random random(choices.pick(64));
  const OpSample sample = draft.op->sample(random);
  for (size_t slot = 0; slot < draft.inputs.size(); ++slot) {
    if (!draft.is_open(slot)) continue;
    if (slot >= sample.inputs.size() || !sample.inputs[slot].is_tensor()) return false;
    const Tensor& tensor = sample.inputs[slot].tensor();
    if (dtypes::kIndex.contains(tensor.dtype())) {
      if (tensor.rank() != 1) return false;
      draft.set_integers(slot, tensor.to_i64());
    } else {
      draft.set_dims(slot, tensor.dims());
    }
  }
  for (const auto& [name, value] : sample.attributes) draft.choose(choices, name, {value});
  return true;
}

const CallFamily* find_family(const OpDef& op) {
  static const std::vector<CallFamily> kAll = [] {
    std::vector<CallFamily> all;
    for (const auto& list : {linear_calls(), window_calls(), shape_calls(), row_calls()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }();
  const auto is_for = [&](const CallFamily& f) { return std::find(f.ops.begin(), f.ops.end(), &op) != f.ops.end(); };
  const auto at = std::find_if(kAll.begin(), kAll.end(), is_for);
  return at == kAll.end() ? nullptr : &*at;
}

}  // namespace

void CallDraft::set_dims(size_t slot, Dims dims) {
  seen.push_back(dims);
  inputs[slot].dims = std::move(dims);
  inputs[slot].kind = InputDraft::Kind::known;
}

void CallDraft::set_integers(size_t slot, std::vector<int64_t> integers) {
  inputs[slot].dims = {static_cast<int64_t>(integers.size())};
  inputs[slot].integers = std::move(integers);
  inputs[slot].kind = InputDraft::Kind::known;
}

bool CallDraft::is_free(std::string_view name) const { return std::find(free.begin(), free.end(), name) != free.end(); }

void CallDraft::choose(Choices& choices, std::string_view name,
                       const std::vector<std::optional<AttributeValue>>& options) {
  if (!is_free(name)) return;
  free.erase(std::find(free.begin(), free.end(), name));
  if (const auto& option = choices.one_of(options)) attributes.set(name, *option);
}

void CallDraft::spell_out_lists(int64_t rank) {
  for (const AttributeSpec& spec : op->attributes) {
    const AttributeValue* value = attributes.find(spec.name);
    if (spec.type != AttributeType::integers || !value || type_of(*value) != AttributeType::integer) continue;
    const auto length = static_cast<size_t>(spec.name == "pads" ? 2 * rank : rank);
    attributes.set(spec.name, Dims(length, std::get<int64_t>(*value)));
  }
}

Dims choose_dims(CallDraft& draft, Choices& choices, int64_t least, int64_t most) {
  std::vector<Dims> again;
  for (const Dims& dims : draft.seen) {
    const auto rank = static_cast<int64_t>(dims.size());
    if (rank >= least && rank <= most && std::find(again.begin(), again.end(), dims) == again.end()) {
      again.push_back(dims);
    }
  }
  if (!again.empty() && choices.is_random() && choices.pick(3) > 0) return choices.one_of(again);
  const int64_t rank =
      least + static_cast<int64_t>(choices.pick(static_cast<size_t>(std::min<int64_t>(most, 4) - least + 1)));
  return choices.one_of(dims_by_rank()[static_cast<size_t>(rank)]);
}

Dims choose_broadcast(Choices& choices, const Dims& dims) {
  if (choices.is_random() && choices.pick(2) == 0) return dims;
  std::vector<Dims> options{dims};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    Dims other = dims;
    other[axis] = dims[axis] == 1 ? 2 : 1;
    options.push_back(std::move(other));
  }
  for (size_t drop = 1; drop <= dims.size(); ++drop) {
    options.emplace_back(dims.begin() + static_cast<ptrdiff_t>(drop), dims.end());
  }
  options.emplace_back(dims.size(), 1);
  if (dims.size() < 4) {
    options.push_back(dims);
    options.back().insert(options.back().begin(), 2);
  }
  return choices.one_of(options);
}

std::vector<std::optional<AttributeValue>> divisors_of(int64_t channels) {
  std::vector<std::optional<AttributeValue>> divisors{int64_t{1}};
  for (int64_t count = 2; count <= channels; ++count) {
    if (channels % count == 0) divisors.emplace_back(count);
  }
  return divisors;
}

void choose_axis(CallDraft& draft, Choices& choices, size_t rank) {
  std::vector<std::optional<AttributeValue>> axes;
  for (auto axis = -static_cast<int64_t>(rank); axis < static_cast<int64_t>(rank); ++axis) axes.emplace_back(axis);
  if (!axes.empty()) draft.choose(choices, "axis", axes);
}

size_t nearest_axis(int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  return static_cast<size_t>(std::clamp<int64_t>(front_axis(axis, axes), 0, std::max<int64_t>(axes - 1, 0)));
}

bool complete(CallDraft& draft, Choices& choices) {
  if (const CallFamily* family = find_family(*draft.op)) {
    family->complete(draft, choices);
    return draft.free.empty();
  }
  if (draft.op->traits.elementwise) {
    complete_elementwise(draft, choices);
    if (draft.free.empty()) return true;
  }
  return complete_from_sample(draft, choices);
}

}  // namespace autograph
