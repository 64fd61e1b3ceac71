#include "eager/tape/tape.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "eager/capture/recording.h"
#include "eager/modes.h"
#include "runtime/find_nonfinite.h"

namespace autograph {
namespace {

std::atomic<uint64_t> next_number{0};
std::atomic<int64_t> live_nodes{0};

}  // namespace

TapeNode::TapeNode() : number(next_number.fetch_add(1, std::memory_order_relaxed)) {
  live_nodes.fetch_add(1, std::memory_order_relaxed);
}

// A node may be the last to hold the nodes that it depends on, those again others: a chain of any length is taken down
// in a loop, by the first of them.
TapeNode::~TapeNode() {
  live_nodes.fetch_sub(1, std::memory_order_relaxed);
  struct Remains {
    Var input;
    GradientFunction function;  // which may hold values, too
  };
  thread_local std::vector<Remains>* taken_down = nullptr;
  std::vector<Remains> own;
  const bool is_first = !taken_down;
  if (is_first) taken_down = &own;
  for (Var& input : inputs) taken_down->push_back({std::move(input), {}});
  if (function) taken_down->push_back({{}, std::move(function)});
  if (!is_first) return;
  while (!own.empty()) {
    const Remains last = std::move(own.back());
    own.pop_back();
  }
  taken_down = nullptr;
}

std::string TapeNode::describe() const {
  const std::string text = describe_origin(info->name, origin.get());
  const bool has_place = origin && (origin->has_place || !origin->return_places.empty());
  return has_place ? text : text + "; inside SourceLines, the forward pass keeps its lines";
}

int64_t TapeNode::num_live() { return live_nodes.load(std::memory_order_relaxed); }

const Tensor* Eager::known() const { return datum_.is_tensor() && !modes().capture ? &datum_.tensor() : nullptr; }

Var Eager::constant(Tensor tensor) const {
  if (Recording* capture = modes().capture) return autograph::constant(capture->graph(), std::move(tensor));
  return eager(std::move(tensor));
}

Var Eager::in_graph(Graph& graph) {
  if (Recording* capture = modes().capture) return capture->value_of(*this, graph);
  AG_CHECK_USER(datum_.is_tensor(), TypeError, "[graph] eager value: expected a tensor to make a constant of, got {}",
                to_string(type()));
  return autograph::constant(graph, tensor());
}

Var Eager::variable() const {
  Var copy = autograph::variable(tensor());
  return copy;
}

Var Eager::as_recorded() {
  if (!variable_) return Var(shared_from_this());
  std::shared_ptr<Eager> snapshot = snapshot_.lock();
  if (!snapshot) {
    snapshot = std::make_shared<Eager>(type_, datum_);
    snapshot->snapshot_of_ = shared_from_this();
    snapshot_ = snapshot;
  }
  return Var(std::move(snapshot));
}

void Eager::set_tensor(Tensor tensor) {
  datum_ = std::move(tensor);
  snapshot_.reset();
}

std::vector<SharedHook> Eager::hooks() const {
  if (variable_) return variable_->hooks;
  std::vector<SharedHook> found;
  if (!producer_) return found;
  for (const auto& [slot, hook] : producer_->hooks) {
    if (slot == slot_) found.push_back(hook);
  }
  return found;
}

Var Eager::hooked(Var gradient) const {
  for (const SharedHook& hook : hooks()) gradient = changed_by(*hook, gradient, type());
  return gradient;
}

std::vector<Var> recorded_inputs(std::span<const Var> inputs) {
  std::vector<Var> recorded;
  recorded.reserve(inputs.size());
  for (const Var& input : inputs) {
    const bool is_variable = input.is_valid() && static_cast<const Eager&>(input.eager()).is_variable();
    recorded.push_back(is_variable ? static_cast<Eager&>(input.eager()).as_recorded() : input);
  }
  return recorded;
}

Eager& eager_of(const Var& value, std::string_view where) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[{}] value: expected one, got none", where);
  AG_CHECK_USER(
      value.is_eager(), ValueError,
      "[{}] value: expected one that is computed already, got {} of a graph (or in a function that is captured)", where,
      to_string(value.type()));
  return static_cast<Eager&>(value.eager());
}

Var output_of(const std::shared_ptr<TapeNode>& node, uint32_t slot) {
  std::shared_ptr<const Type> type(node->info, &node->info->output_types[slot]);
  const bool flows = carries_floats(*type);
  return Var(std::make_shared<Eager>(std::move(type), node->outputs[slot], flows ? node : nullptr, slot));
}

bool carries_floats(const Type& type) {
  if (type.is_tensor()) return dtypes::kFloat.contains(type.dtype());
  return type.kind() != Type::Kind::none && carries_floats(type.element());
}

Var changed_by(const GradientHook& hook, const Var& gradient, const Type& type) {
  Var changed = hook(gradient);
  if (!changed.is_valid()) return gradient;
  check_gradient(changed, type, "a hook");
  return changed;
}

// In graphs extents may be known on one side alone.
void check_gradient(const Var& gradient, const Type& type, const std::string& from) {
  const auto fits = [&](const Type& got) {
    if (!got.is_tensor() || !type.is_tensor() || (got.is_static() && type.is_static())) return got == type;
    return got.dtype() == type.dtype();
  };
  AG_CHECK_USER(gradient.is_valid() && fits(gradient.type()), ShapeError, "[gradient] {}: expected {}, got {}", from,
                to_string(type), gradient.is_valid() ? to_string(gradient.type()) : "nothing");
}

bool is_finite(const Datum& datum) {
  if (datum.is_sequence()) return std::all_of(datum.sequence().begin(), datum.sequence().end(), is_finite);
  return !datum.is_tensor() || find_nonfinite(datum.tensor().view()) < 0;
}

void check_finite(const Datum& datum, const std::string& what) {
  if (datum.is_sequence()) {
    for (const Datum& element : datum.sequence()) check_finite(element, what);
  }
  if (!datum.is_tensor()) return;
  const int64_t place = find_nonfinite(datum.tensor().view());
  AG_CHECK_USER(place < 0, ValueError, "{}: expected finite numbers, got {} at element {} of {}", what,
                datum.tensor().to_f64()[static_cast<size_t>(place)], place, to_string(datum.tensor().type()));
}

}  // namespace autograph
