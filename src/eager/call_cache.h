// Prepared calls that a thread keeps for the next call of the same kind.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "eager/prepared_call.h"

namespace autograph {

/// What has not been used for long goes: the calls live in two generations, and when the younger one is full
/// it becomes the older one, which is dropped.
class CallCache {
 public:
  /// The call for this request, from the cache or new.
  std::shared_ptr<PreparedCall> find(const CallRequest& request);
  size_t size() const;
  int64_t calls() const { return calls_; }
  int64_t new_calls() const { return new_calls_; }

  /// That of the calling thread.
  static CallCache& of_thread();

 private:
  // Calls of one op with equal attributes and types of inputs. Where elements of inputs matter, one for each.
  struct Family {
    const OpDef* op;
    const Device* device;
    int threads;
    int num_outputs;
    Attributes attributes;
    std::vector<Type> inputs;
    std::vector<size_t> value_slots;
    struct Member {
      std::vector<Tensor> values;  // of value_slots
      std::shared_ptr<PreparedCall> call;
    };
    std::vector<Member> members;
  };
  using Generation = std::unordered_multimap<uint64_t, std::shared_ptr<Family>>;

  static bool fits(const Family& family, const CallRequest& request);
  static std::shared_ptr<PreparedCall> find_member(Family& family, const CallRequest& request);
  std::shared_ptr<Family> find_family(uint64_t hash, const CallRequest& request);
  void add(uint64_t hash, const CallRequest& request, const std::shared_ptr<PreparedCall>& call);

  // The families that were found last, by the low bits of their hashes: in front of the generations, and empty when
  // they change, so that those in use come into the younger one.
  struct Recent {
    uint64_t hash = 0;
    std::shared_ptr<Family> family;
  };
  static constexpr size_t kRecent = 256;
  Recent& recent(uint64_t hash) { return recent_[hash % kRecent]; }

  Generation young_, old_;
  std::array<Recent, kRecent> recent_;
  size_t young_members_ = 0;
  int64_t calls_ = 0, new_calls_ = 0;
};

}  // namespace autograph
