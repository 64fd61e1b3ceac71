#include "runtime/run_context.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "runtime/dynamic_step.h"
#include "runtime/find_nonfinite.h"
#include "runtime/observe/row_major.h"
#include "runtime/step_error.h"
#include "runtime/step_profile.h"
#include "runtime/threads/core_gate.h"

namespace autograph {
namespace {

// Streams that have to share processors must not spin while they wait for each other.
bool has_processors_for(const PlanStage& stage) {
  const auto processors = static_cast<size_t>(CoreGate::of_process().cores());
  return stage.streams.size() * static_cast<size_t>(stage.threads) <= processors;
}

// Threads that the kernels of the calling thread may use from here on.
int follow_watch(const RunOptions& options) {
  if (!options.watch) return CoreWatch::kNoLimit;
  const int limit = options.watch->limit();
  options.host_threads.limit(limit);
  return limit;
}

}  // namespace

RunContext::RunContext(std::shared_ptr<const CompiledPlan> compiled) : Launchable(std::move(compiled)) {
  const Plan& plan = compiled_->plan;
  input_views_.resize(plan.inputs.size());
  output_views_.resize(plan.outputs.size());
  input_data_.resize(plan.inputs.size(), nullptr);
  output_data_.resize(plan.outputs.size(), nullptr);
  input_data_as_datums_.resize(plan.inputs.size());
  for (const PlanOutput& output : plan.outputs) {
    const size_t bytes = output.staged ? plan.slots[output.slot].bytes : 0;
    staged_.push_back(Tensor::empty(DType::u8, {static_cast<int64_t>(bytes)}));
  }
  if (!plan.stages.empty()) sync_ = std::make_unique<StreamSync>(plan);
  build_views();
}

// Views of weights are final; those of the arena, inputs and outputs get their address in bind_*().
void RunContext::build_views() {
  const Plan& plan = compiled_->plan;
  const auto add = [&](SlotIndex s) {
    if (s == kNoSlot) {
      views_.emplace_back();
      return;
    }
    const Slot& slot = plan.slots[s];
    const PlacedView placed{static_cast<uint32_t>(views_.size()), slot.root_offset};
    if (slot.place == Place::arena) arena_views_.push_back({placed.view, slot.offset});
    if (slot.place == Place::input) input_views_[slot.index].push_back(placed);
    if (slot.place == Place::output) output_views_[slot.index].push_back(placed);
    views_.emplace_back(slot.type.dtype(), compiled_->slot_dims[s], address_of(s));
  };
  for (const Step& step : plan.steps) {
    step_views_.push_back({views_.size(), views_.size()});
    if (step.kind != StepKind::fixed) continue;
    for (const SlotIndex s : step.inputs) add(s);
    step_views_.back().outputs = views_.size();
    for (const SlotIndex s : step.outputs) add(s);
  }
}

void* RunContext::address_of(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  switch (slot.place) {
    case Place::input: return input_data_[slot.index];
    case Place::output: {
      char* data = static_cast<char*>(output_data_[slot.index]);
      return data ? data + slot.root_offset : nullptr;
    }
    case Place::weight: return const_cast<void*>(compiled_->plan.weights[slot.index].raw());
    case Place::arena: return arena_address_ ? arena_address_ + slot.offset : nullptr;
    case Place::heap: break;
  }
  return nullptr;
}

void RunContext::patch(const std::vector<PlacedView>& views, void* data) {
  for (const PlacedView& placed : views) {
    TensorView& view = views_[placed.view];
    view = TensorView(view.dtype(), view.dims(), data ? static_cast<char*>(data) + placed.offset : nullptr);
  }
}

void RunContext::bind_arena(Tensor arena) {
  AG_CHECK(arena.size_bytes() >= compiled_->plan.arena_bytes, "an arena of {} bytes, the plan has {}",
           arena.size_bytes(), compiled_->plan.arena_bytes);
  arena_ = std::move(arena);
  char* address = static_cast<char*>(arena_.mutable_raw());
  if (address == arena_address_) return;
  arena_address_ = address;
  patch(arena_views_, address);
}

void RunContext::bind_input(size_t i, const Tensor& tensor) {
  input_data_[i] = const_cast<void*>(tensor.raw());
  patch(input_views_[i], input_data_[i]);
  if (compiled_->has_dynamic_steps) input_data_as_datums_[i] = Datum(tensor);
}

void RunContext::bind_input(size_t i, const Datum& datum) {
  if (datum.is_tensor()) {
    input_data_[i] = const_cast<void*>(datum.tensor().raw());
    patch(input_views_[i], input_data_[i]);
  }
  input_data_as_datums_[i] = datum;
}

void RunContext::bind_input(size_t i, const void* data) {
  input_data_[i] = const_cast<void*>(data);
  patch(input_views_[i], input_data_[i]);
}

void RunContext::bind_output(size_t k, void* data) {
  output_data_[k] = data;
  patch(output_views_[k], data);
}

Datum RunContext::datum_of(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  switch (slot.place) {
    case Place::heap: return heap_[s];
    case Place::weight:
    case Place::input: {
      const Datum whole =
          slot.place == Place::weight ? Datum(compiled_->plan.weights[slot.index]) : input_data_as_datums_[slot.index];
      return slot.root == s || !whole.is_tensor() ? whole : Datum(whole.tensor().reshaped(compiled_->slot_dims[s]));
    }
    case Place::arena:
    case Place::output: return Datum(Tensor::wrap(slot.type.dtype(), compiled_->slot_dims[s], address_of(s), nullptr));
  }
  return {};
}

Datum RunContext::take_output(size_t k) { return datum_of(compiled_->plan.outputs[k].slot); }

void RunContext::release() {
  for (Datum& datum : heap_) datum = Datum();
  for (Datum& datum : input_data_as_datums_) datum = Datum();
}

void RunContext::launch(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  if (options.profile && profile_.empty()) profile_ = describe_steps(*compiled_);
  if (options.profile) run_start_ = Clock::now();
  node_watch_ = NodeWatch::current();
  if (options.check_nan) {
    if (!finite_) finite_ = std::make_unique<FiniteCheck>(*compiled_);
    finite_->begin_run();
  }
  const Plan& plan = compiled_->plan;
  if (!arena_.is_present()) bind_arena(Tensor::empty(DType::u8, {static_cast<int64_t>(plan.arena_bytes)}));
  if (plan.stages.empty()) {
    run_range(0, plan.steps.size(), options, meter);
  } else if (options.check_nan || node_watch_) {
    // The first step that makes a NaN is the same in every run only when there is an order; nor can a watch be called
    // by several threads.
    run_in_turn(0, plan.steps.size(), options, meter);
  } else {
    sync_->begin_run();
    for (const PlanStage& stage : plan.stages) {
      if (stage.streams.empty()) {
        run_range(stage.begin, stage.end, options, meter);
      } else {
        run_stage(stage, options, meter);
      }
    }
  }
  copy_outputs();
}

void RunContext::run_range(size_t begin, size_t end, const RunOptions& options,
                           const std::shared_ptr<MemoryMeter>& meter) {
  size_t number = begin;
  try {
    const bool is_observed = options.check_nan || options.profile || node_watch_;
    for (; number < end; ++number) {
      follow_watch(options);
      is_observed ? run_observed(number, options, meter) : run_step(number, options, meter);
    }
  } catch (...) {
    rethrow_from(number);
  }
}

// As run_range(), each step with the number of threads for which its kernel was made.
void RunContext::run_in_turn(size_t begin, size_t end, const RunOptions& options,
                             const std::shared_ptr<MemoryMeter>& meter) {
  for (size_t number = begin; number < end; ++number) {
    const int threads = compiled_->plan.steps[number].threads;
    options.host_threads.set(threads > 0 ? threads : options.threads);
    run_range(number, number + 1, options, meter);
  }
  options.host_threads.set(options.threads);
}

void RunContext::run_stage(const PlanStage& stage, const RunOptions& options,
                           const std::shared_ptr<MemoryMeter>& meter) {
  const bool may_spin = has_processors_for(stage);
  const auto work = [&](int stream) {
    run_stream(stage.streams[static_cast<size_t>(stream)], may_spin, options, meter);
  };
  const auto num_streams = static_cast<int>(stage.streams.size());
  const bool has_processors = follow_watch(options) >= num_streams * stage.threads;
  if (!has_processors || !options.host_threads.run_streams(num_streams, stage.threads, work)) {
    run_in_turn(stage.begin, stage.end, options, meter);
    return;
  }
  if (!sync_->error()) return;
  try {
    std::rethrow_exception(sync_->error());
  } catch (...) {
    rethrow_from(sync_->failed_step());
  }
}

void RunContext::run_stream(const std::vector<uint32_t>& steps, bool may_spin, const RunOptions& options,
                            const std::shared_ptr<MemoryMeter>& meter) noexcept {
  size_t at = 0;
  try {
    for (; at < steps.size(); ++at) {
      if (!sync_->wait_for_others(compiled_->plan.steps[steps[at]], may_spin)) break;
      if (options.profile) {
        run_observed(steps[at], options, meter);
      } else {
        run_step(steps[at], options, meter);
      }
      sync_->finish(steps[at]);
    }
  } catch (...) {
    sync_->fail(steps[at]);
  }
  for (; at < steps.size(); ++at) sync_->finish(steps[at]);
}

// Called in a catch block: step `number` threw.
void RunContext::rethrow_from(size_t number) {
  const std::string where = describe_step(*compiled_, compiled_->plan.steps[number]);
  release();
  rethrow_with_place(where);
}

void RunContext::run_step(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  if (kernels_[number].kernel) {
    run_fixed(number);
  } else {
    DynamicStep(*this, number, options, meter).run();
  }
}

void RunContext::run_fixed(size_t number) { kernels_[number].kernel->run(args_of(number)); }

void RunContext::run_observed(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) {
  const auto us_between = [](Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double, std::micro>(b - a).count();
  };
  const auto find = [this](SlotIndex s) { return find_nonfinite_in(s); };
  const auto read = [this](SlotIndex s) { return read_slot(s); };
  const bool inputs_are_finite = options.check_nan && finite_->has_finite_inputs(number, find);
  std::optional<WatchedStep> watched = WatchedStep::begin(node_watch_, *compiled_, number, read);
  num_started_ = number + 1;
  const auto start = Clock::now();
  run_step(number, options, meter);
  if (options.profile) {
    profile_[number].duration_us = us_between(start, Clock::now());
    profile_[number].start_us = us_between(run_start_, start);
  }
  if (watched) watched->show(read);
  if (options.check_nan) finite_->check_outputs(number, inputs_are_finite, find, read);
}

// What a slot holds at worst; nothing where there is nothing to look at.
Nonfinite RunContext::find_nonfinite_in(SlotIndex s) const {
  if (s == kNoSlot) return {};
  const Slot& slot = compiled_->plan.slots[s];
  const bool is_plain = slot.layout == Layout::row_major && slot.row_stride == 0;
  const Datum datum = is_plain ? datum_of(s) : Datum();
  if (datum.is_tensor()) return find_worst(datum.tensor().view());
  const void* data = address_of(s);
  if (!data) return {};
  // Whatever the layout, padding included: what matters is that every element is finite.
  const Tensor rows = gathered_rows(s);
  if (rows.is_present()) data = rows.raw();
  const auto count = static_cast<int64_t>(slot.bytes / element_size(slot.type.dtype()));
  const Dims dims = slot.layout == Layout::row_major ? compiled_->slot_dims[s] : Dims{count};
  return find_worst({slot.type.dtype(), dims, const_cast<void*>(data)});
}

Datum RunContext::read_slot(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  if (slot.place == Place::heap || !slot.type.is_tensor() || slot.type.dtype() == DType::string) return datum_of(s);
  void* const data = address_of(s);
  if (!data) return {};
  const Dims& dims = compiled_->slot_dims[s];
  if (slot.layout == Layout::row_major && slot.row_stride == 0) {
    return Tensor::wrap(slot.type.dtype(), dims, data, nullptr);
  }
  const Tensor rows = gathered_rows(s);
  return to_row_major(slot.type.dtype(), dims, slot.layout, rows.is_present() ? rows.raw() : data);
}

// The bytes of a slot whose rows lie apart, without the gaps; absent for all others.
Tensor RunContext::gathered_rows(SlotIndex s) const {
  const Slot& slot = compiled_->plan.slots[s];
  if (slot.row_stride == 0) return {};
  Tensor rows = Tensor::empty(DType::u8, {static_cast<int64_t>(slot.bytes)});
  const char* from = static_cast<const char*>(address_of(s));
  for (size_t at = 0; at < slot.bytes; at += slot.row_bytes, from += slot.row_stride) {
    std::memcpy(static_cast<char*>(rows.mutable_raw()) + at, from, slot.row_bytes);
  }
  return rows;
}

void RunContext::copy_outputs() {
  const Plan& plan = compiled_->plan;
  const auto is_in_place = [&](size_t k) {
    const PlanOutput& output = plan.outputs[k];
    if (output.direct || !output_data_[k] || !is_fixed_output(k) || plan.slots[output.slot].bytes == 0) return true;
    return output_data_[k] == address_of(output.slot);
  };
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    if (!plan.outputs[k].staged || is_in_place(k)) continue;
    std::memcpy(staged_[k].mutable_raw(), address_of(plan.outputs[k].slot), staged_[k].size_bytes());
  }
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    if (is_in_place(k)) continue;
    const PlanOutput& output = plan.outputs[k];
    std::memcpy(output_data_[k], output.staged ? staged_[k].raw() : address_of(output.slot),
                plan.slots[output.slot].bytes);
  }
}

}  // namespace autograph
