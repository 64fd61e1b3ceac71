#include "runtime/streams/stream_run.h"

#include <algorithm>
#include <functional>

#include "autograph/executor.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "runtime/dynamic_step.h"
#include "runtime/find_nonfinite.h"
#include "runtime/observe/row_major.h"
#include "runtime/step_error.h"
#include "runtime/step_profile.h"

namespace autograph {
namespace {

// Captured graphs of one plan: two buffers that take turns need two, and each graph takes memory of the device.
constexpr size_t kMostPlacements = 4;

// Is it looked at step by step?
bool is_observed(const RunOptions& options) { return options.profile || options.check_nan || NodeWatch::current(); }

}  // namespace

StreamRun::StreamRun(const Device& device, std::shared_ptr<const CompiledPlan> compiled)
    : Launchable(std::move(compiled)), device_(device), capture_(compiled_->plan) {
  const Plan& plan = compiled_->plan;
  inputs_.resize(plan.inputs.size());
  outputs_.resize(plan.outputs.size());
  datums_.resize(plan.inputs.size());
  for (const PlanOutput& output : plan.outputs) {
    staged_.push_back(output.staged ? Buffer::allocate(plan.slots[output.slot].bytes, device.memory()) : Buffer());
  }
  for (Port& port : inputs_) port.home = device.memory();
  for (Port& port : outputs_) port.home = device.memory();
  for (const uint32_t state : compiled_->states_on_host) {
    inputs_[state].home = nullptr;
    for (const SharedMemory& pair : plan.shared) {
      if (pair.input == state) outputs_[pair.output].home = nullptr;
    }
  }
  make_streams();
  copies_ = std::make_unique<OverlappedCopies>(device_, *compiled_, streams_.size());
  build_views();
}

// Streams of the widest stage, and what they wait for each other with. A schedule may have more streams than are worth
// using here: these share one, in which steps keep their order.
void StreamRun::make_streams() {
  const Plan& plan = compiled_->plan;
  size_t width = 1;
  for (const PlanStage& stage : plan.stages) width = std::max(width, stage.streams.size());
  const int most = device_.properties().max_streams;
  if (most > 0) width = std::min(width, static_cast<size_t>(most));
  stream_of_.resize(plan.steps.size(), 0);
  for (const PlanStage& stage : plan.stages) {
    for (size_t stream = 0; stream < stage.streams.size(); ++stream) {
      for (const uint32_t step : stage.streams[stream]) stream_of_[step] = static_cast<uint32_t>(stream % width);
    }
  }
  for (size_t i = 0; i < width; ++i) {
    streams_.push_back(device_.new_stream());
    ends_.push_back(device_.new_event());
  }
  for (const Step& step : plan.steps) events_.push_back(step.is_awaited ? device_.new_event() : nullptr);
}

void StreamRun::build_views() {
  const Plan& plan = compiled_->plan;
  const auto add = [&](SlotIndex s) {
    slot_of_view_.push_back(s);
    if (s == kNoSlot) {
      views_.emplace_back();
    } else {
      views_.emplace_back(plan.slots[s].type.dtype(), compiled_->slot_dims[s], nullptr);
    }
  };
  for (const Step& step : plan.steps) {
    step_views_.push_back({views_.size(), views_.size() + step.inputs.size()});
    if (step.kind != StepKind::fixed) continue;
    for (const SlotIndex s : step.inputs) add(s);
    for (const SlotIndex s : step.outputs) add(s);
  }
}

void StreamRun::bind(Port& port, const Buffer& given, size_t bytes, const char* what, size_t number) {
  if (!given.is_on_host() && given.memory() != device_.memory()) {
    throw DeviceError(
        fmt::format("[run] {} {}: expected memory of the host or of '{}', got that of '{}'; copy it with "
                    "to_host()",
                    what, number, device_.name(), given.memory()->name()));
  }
  port.given = given;
  port.bytes = bytes;
  port.is_copied = given.data() && given.memory() != port.home;
  if (!port.is_copied || port.copy.size_bytes() >= bytes) return;
  try {
    port.copy = Buffer();  // makes room first
    port.copy = port.home ? Buffer::allocate(bytes, port.home) : Buffer::for_transfers(bytes, *given.memory());
  } catch (const BudgetError&) {
    rethrow_with_largest(*compiled_);
  }
}

void StreamRun::bind_input(size_t i, const Tensor& tensor) {
  if (compiled_->has_dynamic_steps) datums_[i] = tensor;
  // Strings are for dynamic steps alone.
  if (tensor.dtype() != DType::string) bind(inputs_[i], tensor.buffer(), tensor.size_bytes(), "input", i);
}

void StreamRun::bind_input(size_t i, const Datum& datum) {
  if (datum.is_tensor()) {
    bind_input(i, datum.tensor());
  } else {
    datums_[i] = datum;
  }
}

void StreamRun::bind_input(size_t i, const void* data) {
  const size_t bytes = compiled_->plan.slots[compiled_->plan.inputs[i]].bytes;
  bind(inputs_[i], Buffer(nullptr, const_cast<void*>(data), bytes, nullptr), bytes, "input", i);
}

void StreamRun::bind_output(size_t k, Tensor& tensor) {
  bind(outputs_[k], tensor.buffer(), tensor.size_bytes(), "output", k);
}

void StreamRun::bind_output(size_t k, void* data) {
  const size_t bytes = compiled_->plan.slots[compiled_->plan.outputs[k].slot].bytes;
  bind(outputs_[k], Buffer(nullptr, data, bytes, nullptr), bytes, "output", k);
}

Datum StreamRun::take_output(size_t k) { return datum_of(compiled_->plan.outputs[k].slot); }

Datum StreamRun::datum_of(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  const auto under_dims_of_slot = [&](const Datum& whole) {
    return slot.root == s || !whole.is_tensor() ? whole : Datum(whole.tensor().reshaped(compiled_->slot_dims[s]));
  };
  switch (slot.place) {
    case Place::heap: return heap_[s];
    case Place::weight: return under_dims_of_slot(compiled_->plan.weights[slot.index]);
    case Place::input: return under_dims_of_slot(datums_[slot.index]);
    case Place::arena:
    case Place::output: break;
  }
  return Tensor::wrap(slot.type.dtype(), compiled_->slot_dims[s], buffer_of(s));
}

void StreamRun::release() {
  for (Port& port : inputs_) port.given = Buffer();
  for (Port& port : outputs_) port.given = Buffer();
  for (Datum& datum : datums_) datum = Datum();
  for (Datum& datum : heap_) datum = Datum();
}

void* StreamRun::weight(size_t i) const {
  if (device_.memory()) return compiled_->weights[i].data();
  return compiled_->plan.weights[i].buffer().data();
}

// Of what steps write and read: on the device, but for states that wait on the host.
Buffer StreamRun::buffer_of(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  const Memory* memory = device_.memory();
  if (slot.place == Place::input) memory = inputs_[slot.index].home;
  if (slot.place == Place::output) memory = outputs_[slot.index].home;
  return {memory, address_of(s), slot.bytes, nullptr};
}

void* StreamRun::address_of(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  const auto at = [](void* root, size_t offset) -> void* { return root ? static_cast<char*>(root) + offset : nullptr; };
  switch (slot.place) {
    case Place::input: return at(inputs_[slot.index].address(), slot.root_offset);
    case Place::output: return at(outputs_[slot.index].address(), slot.root_offset);
    case Place::weight: return at(weight(slot.index), slot.root_offset);
    case Place::arena: return at(arena_address_, slot.offset);
    case Place::heap: break;
  }
  return nullptr;
}

void StreamRun::bind_arena(Tensor arena) {
  arena_ = std::move(arena);
  arena_address_ = static_cast<char*>(arena_.buffer().data());
}

// Outputs that are the next inputs, and buffers that take turns, come back to the same few places.
void StreamRun::resolve_views() {
  addresses_.assign(1, arena_address_);
  for (const Port& port : inputs_) addresses_.push_back(port.address());
  for (const Port& port : outputs_) addresses_.push_back(port.address());
  copies_->add_addresses(addresses_);
  if (!placements_.empty() && placements_.front().addresses == addresses_) return;
  for (size_t v = 0; v < views_.size(); ++v) {
    if (slot_of_view_[v] == kNoSlot) continue;
    views_[v] = TensorView(views_[v].dtype(), views_[v].dims(), address_of(slot_of_view_[v]));
  }
  const auto is_here = [this](const Placement& placement) { return placement.addresses == addresses_; };
  auto here = std::find_if(placements_.begin(), placements_.end(), is_here);
  if (here == placements_.end()) {
    if (placements_.size() == kMostPlacements) placements_.pop_back();
    placements_.emplace_back().addresses = addresses_;
    here = placements_.end() - 1;
  }
  std::rotate(placements_.begin(), here, here + 1);
}

void StreamRun::launch(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  run_around(!is_observed(options), [&] {
    const Launch launch{options, meter};
    if (is_observed(options)) {
      run_observed(launch);
    } else {
      start_steps(launch);
    }
  });
}

double StreamRun::time_us(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  double us = 0;
  run_around(/*overlaps=*/false, [&] {
    streams_[0]->wait();
    const Launch launch{options, meter};
    // Where each step is timed by itself, the whole is by the host.
    const Stopwatch watch;
    if (is_observed(options)) {
      run_observed(launch);
      us = watch.us();
    } else {
      us = streams_[0]->time_us([&] { start_steps(launch); });
    }
  });
  return us;
}

void StreamRun::run_around(bool overlaps, const std::function<void()>& work) {
  if (!arena_.is_present()) {
    bind_arena(Tensor::empty(DType::u8, {static_cast<int64_t>(compiled_->plan.arena_bytes)}, device_.memory()));
  }
  try {
    enqueue_inputs(overlaps);
    resolve_views();
    work();
    enqueue_outputs();
  } catch (...) {
    // What has been enqueued uses memory of the caller.
    try {
      wait_for_all(/*with_copies=*/true);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a consequence of the first error
    }
    throw;
  }
  wait_for_all();
  copies_->land();
}

// All of them, even where one has failed: what they use may go afterwards.
void StreamRun::wait_for_all(bool with_copies) {
  std::exception_ptr first;
  const auto wait_for = [&first](auto& work) {
    try {
      work.wait();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  };
  for (const auto& stream : streams_) wait_for(*stream);
  if (with_copies) wait_for(*copies_);
  retired_.clear();
  if (first) std::rethrow_exception(first);
}

// What cannot be copied beside the steps comes before them.
void StreamRun::enqueue_inputs(bool overlaps) {
  copies_->begin_launch();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Port& port = inputs_[i];
    if (!port.is_copied || !port.given.data()) continue;
    if (overlaps && copies_->take_input(i, port.copy, port.given, port.bytes)) continue;
    copy_bytes(port.copy, port.given, port.bytes, streams_[0].get());
  }
  for (size_t k = 0; k < outputs_.size() && overlaps; ++k) {
    const Port& port = outputs_[k];
    if (port.is_copied) copies_->take_output(k, port.given, buffer_of(compiled_->plan.outputs[k].slot));
  }
}

// What is launched a second time in the same place is captured, where the device can do that: steps that wait on the
// host stay as they are, between pieces that have been captured.
void StreamRun::start_steps(const Launch& launch) {
  Placement& here = placements_.front();
  if (++here.num_launches == 2) {
    here.pieces = capture_.capture(*streams_[0], [&](size_t begin, size_t end) { enqueue_steps(begin, end, launch); });
  }
  if (here.pieces.empty()) return enqueue_steps(0, compiled_->plan.steps.size(), launch);
  for (const StepPiece& piece : here.pieces) {
    if (piece.captured) {
      piece.captured->replay(*streams_[0]);
    } else {
      enqueue_steps(piece.begin, piece.end, launch);
    }
  }
}

// Begins behind what is in the first stream, and has all it enqueues come before what follows there.
void StreamRun::enqueue_steps(size_t begin, size_t end, const Launch& launch) {
  try {
    copies_->begin(begin, end, *streams_[0]);
    enqueue_stages(begin, end, launch);
  } catch (...) {
    // What is captured must come back to where it began, also where it is thrown away.
    try {
      copies_->join(*streams_[0]);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a consequence of the first error
    }
    throw;
  }
  copies_->join(*streams_[0]);
}

void StreamRun::enqueue_stages(size_t begin, size_t end, const Launch& launch) {
  const Plan& plan = compiled_->plan;
  if (plan.stages.empty()) {
    for (size_t i = begin; i < end; ++i) {
      copies_->before_step(i, 0, *streams_[0]);
      enqueue(i, *streams_[0], launch);
      copies_->behind_step(i, streams_, 1);
    }
  }
  for (const PlanStage& stage : plan.stages) {
    const size_t from = std::max<size_t>(stage.begin, begin);
    const size_t to = std::min<size_t>(stage.end, end);
    if (from < to) enqueue_of_stage(stage, from, to, launch);
  }
}

void StreamRun::enqueue_of_stage(const PlanStage& stage, size_t begin, size_t end, const Launch& launch) {
  const Plan& plan = compiled_->plan;
  const size_t width = std::clamp<size_t>(stage.streams.size(), 1, streams_.size());
  if (width > 1) streams_[0]->record(*ends_[0]);
  for (size_t s = 1; s < width; ++s) streams_[s]->wait_for(*ends_[0]);
  try {
    for (size_t i = begin; i < end; ++i) {
      Stream& stream = stream_of(i);
      for (const uint32_t other : plan.steps[i].waits) {
        if (other >= begin) stream.wait_for(*events_[other]);  // those before have been joined
      }
      copies_->before_step(i, stream_of_[i], stream);
      enqueue(i, stream, launch);
      if (events_[i]) stream.record(*events_[i]);
      copies_->behind_step(i, streams_, width);
    }
  } catch (...) {
    try {  // as in enqueue_steps()
      join_streams(width);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a consequence of the first error
    }
    throw;
  }
  join_streams(width);
}

// The first one goes on when the others are over.
void StreamRun::join_streams(size_t width) {
  for (size_t s = 1; s < width; ++s) {
    streams_[s]->record(*ends_[s]);
    streams_[0]->wait_for(*ends_[s]);
  }
}

void StreamRun::enqueue(size_t number, Stream& stream, const Launch& launch) {
  const auto describe = [&] { return describe_step(*compiled_, compiled_->plan.steps[number]); };
  const EnqueuedStep enqueued(describe);
  try {
    if (kernels_[number].kernel) {
      kernels_[number].kernel->run(args_of(number, &stream));
    } else {
      DynamicStep(*this, number, launch.options, launch.meter, &stream).run();
    }
  } catch (...) {
    capture_.refuse(number);
    rethrow_with_place(describe());
  }
}

// One step after the other, so that each can be timed, and the first one that makes a NaN be named.
void StreamRun::run_observed(const Launch& launch) {
  const RunOptions& options = launch.options;
  if (options.profile && profile_.empty()) profile_ = describe_steps(*compiled_);
  const auto find = [this](SlotIndex s) { return find_nonfinite_in(s); };
  const auto read = [this](SlotIndex s) { return read_slot(s); };
  if (options.check_nan) {
    if (!finite_) finite_ = std::make_unique<FiniteCheck>(*compiled_);
    finite_->begin_run();
  }
  streams_[0]->wait();
  double now_us = 0;
  for (size_t i = 0; i < compiled_->plan.steps.size(); ++i) {
    const bool inputs_are_finite = options.check_nan && finite_->has_finite_inputs(i, find);
    std::optional<WatchedStep> watched = WatchedStep::begin(NodeWatch::current(), *compiled_, i, read);
    num_started_ = i + 1;
    const double us = streams_[0]->time_us([&] { enqueue(i, *streams_[0], launch); });
    if (options.profile) {
      profile_[i].start_us = now_us;
      profile_[i].duration_us = us;
      now_us += us;
    }
    if (!watched && !options.check_nan) continue;
    streams_[0]->wait();
    try {
      if (watched) watched->show(read);
      if (options.check_nan) finite_->check_outputs(i, inputs_are_finite, find, read);
    } catch (...) {
      rethrow_with_place(describe_step(*compiled_, compiled_->plan.steps[i]));
    }
  }
}

Nonfinite StreamRun::find_nonfinite_in(SlotIndex s) {
  if (s == kNoSlot) return {};
  const Datum made = compiled_->plan.slots[s].place == Place::heap ? heap_[s] : Datum();
  if (made.is_tensor()) {
    streams_[0]->wait();
    return find_worst(made.tensor().to_host().view());
  }
  if (!address_of(s)) return {};
  return find_worst(copy_of(s).view());
}

Tensor StreamRun::copy_of(SlotIndex s) {
  const Slot& slot = compiled_->plan.slots[s];
  Tensor copy = Tensor::empty(slot.type.dtype(), {static_cast<int64_t>(slot.bytes / element_size(slot.type.dtype()))});
  copy_bytes(copy.buffer(), buffer_of(s), slot.bytes, streams_[0].get());
  streams_[0]->wait();
  return copy;
}

Datum StreamRun::read_slot(SlotIndex s) {
  const Slot& slot = compiled_->plan.slots[s];
  streams_[0]->wait();
  if (slot.place == Place::heap || !slot.type.is_tensor() || slot.type.dtype() == DType::string) {
    const Datum value = slot.place == Place::heap ? heap_[s] : datum_of(s);
    return value.is_tensor() ? Datum(value.tensor().to_host()) : value;
  }
  if (!address_of(s)) return {};
  return to_row_major(slot.type.dtype(), compiled_->slot_dims[s], slot.layout, copy_of(s).raw());
}

void StreamRun::enqueue_outputs() {
  // What the host copies from its own memory to its own is in no stream.
  if (!device_.memory()) wait_for_all();
  const Plan& plan = compiled_->plan;
  Stream* stream = streams_[0].get();
  const auto source = [&](size_t k) { return plan.outputs[k].staged ? staged_[k] : buffer_of(plan.outputs[k].slot); };
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Slot& slot = plan.slots[plan.outputs[k].slot];
    if (plan.outputs[k].staged) {
      copy_bytes(staged_[k], buffer_of(plan.outputs[k].slot), slot.bytes, stream);
    }
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Port& port = outputs_[k];
    if (copies_->has_output(k)) continue;
    const Buffer from = source(k);
    if (!port.given.data() || port.given.data() == from.data()) continue;
    copy_bytes(port.given, from, from.size_bytes(), stream);
  }
}

std::shared_ptr<Launchable> record_steps(const Device& device, std::shared_ptr<const CompiledPlan> plan) {
  return std::make_shared<StreamRun>(device, std::move(plan));
}

}  // namespace autograph
