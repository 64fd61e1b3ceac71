#include "runtime/memory/packed_constants.h"

#include <fmt/format.h>

#include <algorithm>

namespace autograph {

std::string PackedConstants::key_of(const std::vector<Tensor>& constants, std::string_view form) const {
  const std::lock_guard lock(mutex_);
  std::string key(form);
  for (const Tensor& constant : constants) {
    key +=
        fmt::format("|{} {} {}", constant.raw(), static_cast<int>(constant.dtype()), fmt::join(constant.dims(), ","));
    const auto version = versions_.find(constant.raw());
    if (version != versions_.end()) key += fmt::format(" {}", version->second);
  }
  return key;
}

std::shared_ptr<const void> PackedConstants::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const void> PackedConstants::keep(const std::string& key, std::shared_ptr<const void> made) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const void>& known = known_[key];
  ++num_made_;
  if (auto other = known.lock()) return other;
  known = made;
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<size_t>(sweep_at_, 2 * known_.size());
  }
  return made;
}

bool PackedConstants::knows(const std::vector<Tensor>& constants, std::string_view form) const {
  return find(key_of(constants, form)) != nullptr;
}

void PackedConstants::renew(const Tensor& tensor, uint64_t version) {
  const std::lock_guard lock(mutex_);
  versions_[tensor.raw()] = version;
}

size_t PackedConstants::num_held() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(known_.begin(), known_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

size_t PackedConstants::num_made() const {
  const std::lock_guard lock(mutex_);
  return num_made_;
}

}  // namespace autograph
