#include "cost/cut_call.h"

#include <algorithm>

#include "accuracy/selection.h"
#include "autograph/error.h"
#include "graph/infer_node.h"

namespace autograph {
namespace {

// Loops over fewer show nothing of what lies between the first and the last.
constexpr int64_t kLeastExtent = 2;

bool is_full(const Type& type) {
  return !type.is_tensor() || (type.is_static() && type.shape().num_elements().value_or(0) > 0);
}

}  // namespace

CutCall::CutCall(const KernelCall& call)
    : whole_(call),
      inputs_(call.inputs.begin(), call.inputs.end()),
      outputs_(call.outputs.begin(), call.outputs.end()),
      constants_(call.constants.begin(), call.constants.end()) {
  constants_.resize(inputs_.size());
}

KernelCall CutCall::call() const {
  return {whole_.op, whole_.attributes, inputs_, outputs_, constants_, whole_.threads, whole_.exact, whole_.variant};
}

// Those that can be halved, in the order in which they stand.
std::vector<int64_t> CutCall::extents() const {
  std::vector<int64_t> list;
  for (const Type& type : inputs_) {
    if (!type.is_tensor()) continue;
    for (const int64_t extent : type.shape().static_dims()) {
      const bool is_new = std::find(list.begin(), list.end(), extent) == list.end();
      if (extent > kLeastExtent && is_new) list.push_back(extent);
    }
  }
  return list;
}

bool CutCall::halve(int64_t extent) {
  const std::vector<int64_t> left = select_all({(extent + 1) / 2})[0];
  std::vector<Type> inputs = inputs_;
  std::vector<Tensor> constants = constants_;
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!inputs[slot].is_tensor()) continue;
    Selection kept = select_all(inputs[slot].shape().static_dims());
    for (auto& positions : kept) {
      if (std::ssize(positions) == extent) positions = left;
    }
    inputs[slot] = Type(inputs[slot].dtype(), Shape::of(dims_of(kept)));
    if (constants[slot].is_present()) constants[slot] = select(constants[slot], kept);
  }
  try {
    std::vector<Type> outputs = infer_call(whole_.op, inputs, constants, whole_.attributes, outputs_.size(), "");
    if (!std::all_of(outputs.begin(), outputs.end(), is_full)) return false;
    inputs_ = std::move(inputs);
    constants_ = std::move(constants);
    outputs_ = std::move(outputs);
    return true;
  } catch (const UserError&) {
    return false;  // no call of this op
  }
}

std::optional<CutCall> CutCall::of(const KernelCall& call, const std::function<bool(const KernelCall&)>& is_small) {
  CutCall cut(call);
  while (!is_small(cut.call())) {
    const std::vector<int64_t> extents = cut.extents();
    if (std::none_of(extents.begin(), extents.end(), [&](int64_t extent) { return cut.halve(extent); })) {
      return std::nullopt;
    }
  }
  return cut;
}

}  // namespace autograph
