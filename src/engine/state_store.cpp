#include "engine/state_store.h"

#include <mutex>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/printable.h"

namespace autograph {
namespace {

void overwrite(StoredState& state, const Tensor& from) {
  Tensor& to = state.tensor;
  ++state.version;
  if (to.dtype() == DType::string) {
    to = from.clone();
  } else {
    copy_bytes(to.buffer(), from.buffer(), to.size_bytes());
  }
}

void check_type(const std::string& name, const Tensor& known, const Tensor& given) {
  AG_CHECK_USER(given.is_present() && known.dtype() == given.dtype(), TypeError, "[states] '{}': expected {}, got {}",
                printable(name), to_string(known.type()), to_string(given.type()));
  AG_CHECK_USER(known.dims() == given.dims(), ShapeError, "[states] '{}': expected {}, got {}", printable(name),
                to_string(known.type()), to_string(given.type()));
}

}  // namespace

StoredState& StateStore::Impl::find(const std::string& name) {
  const auto it = states_.find(name);
  if (it != states_.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [other, state] : states_) known.push_back(other);
  throw ValueError(fmt::format("[states] '{}': unknown{}", printable(name), did_you_mean(name, known)));
}

StoredState& StateStore::Impl::state(const std::string& name) { return find(name); }

// Into the memory that older elements had: no run reads them any more, since runs that read see all the same version.
Tensor StateStore::Impl::copy_in(StoredState& state, const Memory* memory) {
  const std::lock_guard lock(copy_mutex_);
  const bool is_there = state.copy.is_present() && state.copy.buffer().memory() == memory;
  if (is_there && state.copied == state.version) return state.copy;
  if (is_there) {
    copy_bytes(state.copy.buffer(), state.tensor.buffer(), state.tensor.size_bytes());
  } else {
    state.copy = state.tensor.to(memory);
  }
  state.copied = state.version;
  return state.copy;
}

void StateStore::Impl::add(const std::string& name, const Tensor& initial) {
  const std::lock_guard lock(mutex_);
  const auto it = states_.find(name);
  if (it != states_.end()) return check_type(name, it->second.tensor, initial);
  states_.emplace(name, StoredState{initial.clone()});
}

std::vector<std::string> StateStore::Impl::names() {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, state] : states_) names.push_back(name);
  return names;
}

bool StateStore::Impl::contains(const std::string& name) {
  const std::shared_lock lock(mutex_);
  return states_.contains(name);
}

Type StateStore::Impl::type(const std::string& name) {
  const std::shared_lock lock(mutex_);
  return find(name).tensor.type();
}

size_t StateStore::Impl::size_bytes() {
  const std::shared_lock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [name, state] : states_) bytes += state.tensor.size_bytes();
  return bytes;
}

Tensor StateStore::Impl::get(const std::string& name) {
  const std::shared_lock lock(mutex_);
  const Tensor& tensor = find(name).tensor;
  return tensor.is_on_host() ? tensor.clone() : tensor.to_host();
}

void StateStore::Impl::set(const std::string& name, const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  StoredState& known = find(name);
  check_type(name, known.tensor, tensor);
  overwrite(known, tensor);
}

// ---- StateStore ------------------------------------------------------------------------------------------------

StateStore::StateStore() : impl_(std::make_shared<Impl>()) {}

void StateStore::add(const Graph& graph) {
  for (const ValueId state : graph.states()) impl_->add(graph.value(state).name(), graph.value(state).initial());
}

void StateStore::copy_to(Graph& graph) const {
  std::vector<Tensor> tensors;
  for (const ValueId state : graph.states()) {
    tensors.push_back(impl_->get(graph.value(state).name()));
    check_type(graph.value(state).name(), graph.value(state).initial(), tensors.back());
  }
  for (size_t i = 0; i < tensors.size(); ++i) graph.set_initial(graph.states()[i], std::move(tensors[i]));
}

std::vector<std::string> StateStore::names() const { return impl_->names(); }
bool StateStore::contains(const std::string& name) const { return impl_->contains(name); }
Type StateStore::type(const std::string& name) const { return impl_->type(name); }
size_t StateStore::size_bytes() const { return impl_->size_bytes(); }
Tensor StateStore::get(const std::string& name) const { return impl_->get(name); }
void StateStore::set(const std::string& name, const Tensor& tensor) { impl_->set(name, tensor); }

}  // namespace autograph
