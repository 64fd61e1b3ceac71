#include "eager/call_cache.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "eager/tape/tape.h"
#include "graph/attribute_hash.h"

namespace autograph {
namespace {

// Members of the younger generation, after which it becomes the older one: kernels are kept for the last 512 to 1024
// kinds of call.
constexpr size_t kGeneration = 512;
// Of one family: calls that differ in elements of their inputs alone.
constexpr size_t kMembers = 64;
// Calls that depend on more elements than this are not kept.
constexpr size_t kValueBytes = 4096;

class QuickHash {
 public:
  void add(uint64_t value) {
    state_ = (state_ ^ value) * 0x9E3779B97F4A7C15ULL;
    state_ ^= state_ >> 29;
  }
  void add(const std::string& text) { add(std::hash<std::string>()(text)); }
  void add(const AttributeValue& value) {
    add(uint64_t{value.index()});
    std::visit(
        [this]<class T>(const T& held) {
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, DType>) {
            add(static_cast<uint64_t>(held));
          } else if constexpr (std::is_same_v<T, float>) {
            add(uint64_t{std::hash<float>()(held)});
          } else if constexpr (std::is_same_v<T, std::string>) {
            add(held);
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            for (const int64_t item : held) add(static_cast<uint64_t>(item));
          } else {
            Hasher slow;
            add_attributes(slow, Attributes{{"value", held}});
            add(slow.finish().low);
          }
        },
        value);
  }
  void add(const Type& type) {
    add((static_cast<uint64_t>(type.kind()) << 8) | static_cast<uint64_t>(type.dtype()));
    if (!type.is_tensor()) return;
    for (const Dim& dim : type.shape().dims()) add(static_cast<uint64_t>(dim.value_or(-1)));
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xC2B2AE3D27D4EB4FULL;
};

uint64_t hash_of(const CallRequest& request) {
  QuickHash hash;
  hash.add(reinterpret_cast<uintptr_t>(&request.op));
  hash.add(reinterpret_cast<uintptr_t>(&request.device));
  hash.add((static_cast<uint64_t>(request.threads) << 32) | static_cast<uint32_t>(request.num_outputs));
  for (const auto& [name, value] : request.attributes) {
    hash.add(uint64_t{name.size()});
    hash.add(value);
  }
  static const Type kNone;
  for (const Var& input : request.inputs) hash.add(input.is_valid() ? input.type() : kNone);
  return hash.value();
}

bool equal_attributes(const Attributes& a, const Attributes& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && equal(x.second, y.second);
         });
}

const Tensor& tensor_of(const Var& input) { return static_cast<const Eager&>(input.eager()).tensor(); }

// Does each call of the op differ from all others?
bool has_unique_id(const CallRequest& request) {
  const auto& specs = request.op.attributes;
  return std::any_of(specs.begin(), specs.end(),
                     [&](const AttributeSpec& spec) { return spec.unique && !request.attributes.contains(spec.name); });
}

}  // namespace

CallCache& CallCache::of_thread() {
  thread_local CallCache cache;
  return cache;
}

size_t CallCache::size() const {
  size_t count = 0;
  for (const Generation* generation : {&young_, &old_}) {
    for (const auto& [hash, family] : *generation) count += family->members.size();
  }
  return count;
}

std::shared_ptr<PreparedCall> CallCache::find(const CallRequest& request) {
  ++calls_;
  const uint64_t hash = hash_of(request);
  Recent& last = recent(hash);
  if (!last.family || last.hash != hash || !fits(*last.family, request)) last = {hash, find_family(hash, request)};
  if (last.family) {
    if (std::shared_ptr<PreparedCall> call = find_member(*last.family, request)) return call;
  }
  ++new_calls_;
  auto call = std::make_shared<PreparedCall>(request);
  if (!has_unique_id(request)) add(hash, request, call);
  return call;
}

bool CallCache::fits(const Family& family, const CallRequest& request) {
  if (family.op != &request.op || family.device != &request.device || family.threads != request.threads ||
      family.num_outputs != request.num_outputs || family.inputs.size() != request.inputs.size()) {
    return false;
  }
  for (size_t i = 0; i < family.inputs.size(); ++i) {
    const Var& input = request.inputs[i];
    if (input.is_valid() ? !(family.inputs[i] == input.type()) : family.inputs[i].kind() != Type::Kind::none) {
      return false;
    }
  }
  return equal_attributes(family.attributes, request.attributes);
}

std::shared_ptr<CallCache::Family> CallCache::find_family(uint64_t hash, const CallRequest& request) {
  const auto in = [&](Generation& generation) {
    const auto [begin, end] = generation.equal_range(hash);
    return std::find_if(begin, end, [&](const auto& entry) { return fits(*entry.second, request); });
  };
  if (const auto found = in(young_); found != young_.equal_range(hash).second) return found->second;
  const auto found = in(old_);
  if (found == old_.equal_range(hash).second) return nullptr;
  std::shared_ptr<Family> family = found->second;
  old_.erase(found);
  young_members_ += family->members.size();
  young_.emplace(hash, family);
  return family;
}

std::shared_ptr<PreparedCall> CallCache::find_member(Family& family, const CallRequest& request) {
  for (const Family::Member& member : family.members) {
    bool same = true;
    for (size_t i = 0; same && i < member.values.size(); ++i) {
      same = i < family.value_slots.size() &&
             member.values[i].bitwise_equal(tensor_of(request.inputs[family.value_slots[i]]));
    }
    if (same) return member.call;
  }
  return nullptr;
}

// Which elements infer looks at may depend on elements: where a family has learnt of further ones, it begins anew.
void CallCache::add(uint64_t hash, const CallRequest& request, const std::shared_ptr<PreparedCall>& call) {
  std::vector<Tensor> values;
  size_t bytes = 0;
  for (const size_t slot : call->value_slots()) {
    values.push_back(tensor_of(request.inputs[slot]));
    bytes += values.back().size_bytes();
  }
  if (bytes > kValueBytes) return;
  if (young_members_ >= kGeneration) {
    old_ = std::move(young_);
    young_.clear();
    recent_.fill({});
    young_members_ = 0;
  }
  std::shared_ptr<Family> family = find_family(hash, request);
  if (!family) {
    family = std::make_shared<Family>(Family{&request.op,
                                             &request.device,
                                             request.threads,
                                             request.num_outputs,
                                             request.attributes,
                                             {},
                                             call->value_slots(),
                                             {}});
    for (const Var& input : request.inputs) family->inputs.push_back(input.is_valid() ? input.type() : Type());
    young_.emplace(hash, family);
  }
  if (family->value_slots != call->value_slots() || family->members.size() >= kMembers) {
    young_members_ -= std::min(young_members_, family->members.size());
    family->members.clear();
    family->value_slots = call->value_slots();
  }
  recent(hash) = {hash, family};
  family->members.push_back({std::move(values), call});
  ++young_members_;
}

}  // namespace autograph
