#include "backends/cpu/onednn/implementation_lists.h"

#include <bit>
#include <map>
#include <mutex>

namespace autograph::onednn {
namespace {

// Of each power of two the lower and the upper half.
int64_t magnitude(int64_t extent) {
  constexpr int64_t kExact = 8;
  if (extent <= kExact) return extent;
  const int bits = std::bit_width(static_cast<uint64_t>(extent));
  return kExact + 2 * bits + (extent >> (bits - 2) & 1);
}

class Lists {
 public:
  std::vector<std::string> get(const ProblemKind& kind, FunctionRef<std::vector<std::string>()> list) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = lists_.find(kind.key()); known != lists_.end()) return known->second;
    }
    std::vector<std::string> names = list();
    const std::lock_guard lock(mutex_);
    if (lists_.size() >= kMaxKinds) lists_.clear();
    return lists_.emplace(kind.key(), std::move(names)).first->second;
  }

 private:
  static constexpr size_t kMaxKinds = 10'000;

  std::mutex mutex_;
  std::map<std::vector<int64_t>, std::vector<std::string>> lists_;
};

}  // namespace

ProblemKind& ProblemKind::add(int64_t number) {
  key_.push_back(number);
  return *this;
}

ProblemKind& ProblemKind::add(const dnnl::memory::dims& numbers) {
  key_.push_back(static_cast<int64_t>(numbers.size()));
  key_.insert(key_.end(), numbers.begin(), numbers.end());
  return *this;
}

ProblemKind& ProblemKind::add_magnitudes(const dnnl::memory::dims& extents) {
  key_.push_back(static_cast<int64_t>(extents.size()));
  for (const int64_t extent : extents) key_.push_back(magnitude(extent));
  return *this;
}

ProblemKind& ProblemKind::add(const dnnl::post_ops& ops) {
  for (int i = 0; i < ops.len(); ++i) {
    const dnnl::primitive::kind kind = ops.kind(i);
    add(static_cast<int64_t>(kind));
    dnnl::algorithm algorithm{};
    if (kind == dnnl::primitive::kind::eltwise) {
      float scale = 0, alpha = 0, beta = 0;
      ops.get_params_eltwise(i, scale, algorithm, alpha, beta);
      add(static_cast<int64_t>(algorithm));
      for (const float number : {scale, alpha, beta}) add(std::bit_cast<int32_t>(number));
    } else if (kind == dnnl::primitive::kind::binary) {
      dnnl::memory::desc operand;
      ops.get_params_binary(i, algorithm, operand);
      add(static_cast<int64_t>(algorithm)).add(static_cast<int64_t>(operand.data_type()));
      for (const int64_t extent : operand.dims()) add(extent == 1 ? 1 : 0);
    }
  }
  return *this;
}

std::vector<std::string> implementations_for(const ProblemKind& kind, FunctionRef<std::vector<std::string>()> list) {
  static Lists lists;
  return lists.get(kind, list);
}

}  // namespace autograph::onednn
