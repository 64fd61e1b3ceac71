// The tensors behind a StateStore, and access to them for runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "autograph/state_store.h"
#include "runtime/memory/packed_constants.h"

namespace autograph {

/// A state as it is now.
struct StoredState {
  Tensor tensor;         ///< In the memory of the device that updated it last.
  uint64_t version = 1;  ///< Another one after each write, so that what was made of older elements is known as such.
  Tensor copy = {};      ///< For runs that read it in other memory, in the one that asked last; absent: none did.
  uint64_t copied = 0;   ///< The version that it is a copy of.
};

class StateStore::Impl {
 public:
  /// Held by runs: alone by those that update states, together by those that read.
  std::shared_mutex& mutex() { return mutex_; }
  /// A state that add() has seen, as long as the store lives; the caller holds the mutex while it uses it.
  StoredState& state(const std::string& name);
  /// The elements of a state in `memory`, where they are not, copied once for each version of them. The caller holds
  /// the mutex.
  Tensor copy_in(StoredState& state, const Memory* memory);
  /// What kernels have made of states, for all executables that have the store.
  const std::shared_ptr<PackedConstants>& packed() const { return packed_; }
  void add(const std::string& name, const Tensor& initial);
  std::vector<std::string> names();
  bool contains(const std::string& name);
  Type type(const std::string& name);
  size_t size_bytes();
  Tensor get(const std::string& name);
  void set(const std::string& name, const Tensor& tensor);

 private:
  StoredState& find(const std::string& name);

  std::shared_mutex mutex_;  // guards what follows, tensors included
  std::map<std::string, StoredState> states_;
  const std::shared_ptr<PackedConstants> packed_ = std::make_shared<PackedConstants>();
  std::mutex copy_mutex_;  // guards copies of states among runs that read
};

/// Holds a store for one run.
class StateLock {
 public:
  StateLock(StateStore& store, bool updates) : mutex_(store.impl().mutex()), updates_(updates) {
    updates_ ? mutex_.lock() : mutex_.lock_shared();
  }
  ~StateLock() { updates_ ? mutex_.unlock() : mutex_.unlock_shared(); }
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  std::shared_mutex& mutex_;
  bool updates_;
};

}  // namespace autograph
