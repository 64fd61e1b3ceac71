// What kernels have made of constants: packed weights, laid out trees. Plans of one executable for several shapes have
// the same constants, and most of their kernels want them packed alike: each form is made once and shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// A packed form lives as long as a kernel holds it, and keeps the constants that it was made of: none of
/// their addresses is used again meanwhile. What changes where it is has versions. Any number of threads may call it at
/// once.
class PackedConstants {
 public:
  PackedConstants() = default;
  PackedConstants(const PackedConstants&) = delete;
  PackedConstants& operator=(const PackedConstants&) = delete;

  /// What `make` gives, or gave before for the same elements (the buffers and versions, not what is in them) and the
  /// same `form`: all that the result depends on besides, and its type. Nothing is shared where `packed` is null.
  template <class Make>
  static auto share(PackedConstants* packed, std::vector<Tensor> constants, std::string_view form, Make&& make)
      -> std::shared_ptr<const decltype(make())> {
    using Packed = decltype(make());
    if (!packed) return std::make_shared<const Packed>(make());
    const std::string key = packed->key_of(constants, form);
    if (auto known = packed->find(key)) return std::static_pointer_cast<const Packed>(std::move(known));
    const auto held = std::make_shared<const Held<Packed>>(std::move(constants), make());
    const std::shared_ptr<const Packed> made(held, &held->packed);
    return std::static_pointer_cast<const Packed>(packed->keep(key, made));
  }

  /// The form of this type that some kernel holds; null where none does.
  template <class Packed>
  static std::shared_ptr<const Packed> held(const PackedConstants* packed, const std::vector<Tensor>& constants,
                                            std::string_view form) {
    return packed ? std::static_pointer_cast<const Packed>(packed->find(packed->key_of(constants, form))) : nullptr;
  }

  /// Gives a form back. Where nobody else holds it, it is not found any more, and its memory is returned to be written
  /// again, which takes less time than new memory; otherwise an empty one.
  template <class Packed>
  static Packed take_back(PackedConstants* packed, std::shared_ptr<const Packed> held) {
    std::unique_lock<std::mutex> lock;
    if (packed) lock = std::unique_lock(packed->mutex_);
    Packed room = held.use_count() == 1 ? *held : Packed();
    held.reset();
    return room;
  }

  /// Does some kernel hold this form?
  bool knows(const std::vector<Tensor>& constants, std::string_view form) const;

  /// The elements of this tensor, whose address stays, are those of `version` from here on: what was made of others is
  /// not given any more. Versions of one tensor only grow.
  void renew(const Tensor& tensor, uint64_t version);

  /// Plans of any extents, not of the batch alone, are made for these constants, from here on.
  void expect_other_extents() { expects_other_extents_ = true; }
  bool expects_other_extents() const { return expects_other_extents_; }

  /// Forms that some kernel holds.
  size_t num_held() const;
  /// Forms that were made so far.
  size_t num_made() const;

 private:
  template <class Packed>
  struct Held {
    Held(std::vector<Tensor> of, Packed made) : constants(std::move(of)), packed(std::move(made)) {}
    std::vector<Tensor> constants;
    Packed packed;
  };
  std::string key_of(const std::vector<Tensor>& constants, std::string_view form) const;
  std::shared_ptr<const void> find(const std::string& key) const;
  // What was kept under this key before, where it is still held: another thread may have been faster.
  std::shared_ptr<const void> keep(const std::string& key, std::shared_ptr<const void> made);

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, std::weak_ptr<const void>> known_;
  std::unordered_map<const void*, uint64_t> versions_;  // by address, of what changes
  size_t sweep_at_ = 64;  // forms that nobody holds are looked for when there are so many entries
  size_t num_made_ = 0;
  std::atomic<bool> expects_other_extents_ = false;
};

}  // namespace autograph
