#include "runtime/streams/overlapped_copies.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "autograph/error.h"

namespace autograph {
namespace {

// Page-locked memory is taken from all programs of the machine.
constexpr size_t kMostStaged = size_t{32} << 20;

}  // namespace

OverlappedCopies::OverlappedCopies(const Device& device, const CompiledPlan& compiled, size_t num_streams)
    : device_(device), num_streams_(num_streams) {
  const Plan& plan = compiled.plan;
  const size_t num_steps = plan.steps.size();
  inputs_.resize(plan.inputs.size());
  outputs_.resize(plan.outputs.size());
  reads_.resize(num_steps);
  written_.resize(num_steps);
  // What steps find out while running they may look for anywhere.
  if (compiled.has_dynamic_steps) return;
  const auto for_all = [&](const std::vector<SlotIndex>& slots, Place place, auto&& use) {
    for (const SlotIndex s : slots) {
      if (s != kNoSlot && plan.slots[s].place == place) use(plan.slots[s].index);
    }
  };
  for (size_t i = 0; i < num_steps; ++i) {
    const auto read = [&](size_t input) {
      inputs_[input].step = std::min(inputs_[input].step, i);
      reads_[i].push_back(input);
    };
    for_all(plan.steps[i].inputs, Place::input, read);
    for_all(plan.steps[i].outputs, Place::input, read);
    for_all(plan.steps[i].outputs, Place::output, [&](size_t output) { outputs_[output].step = i; });
  }
  for (Port& port : inputs_) {
    if (port.step == 0) port.step = kNone;
  }
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    const Slot& slot = plan.slots[plan.outputs[k].slot];
    const bool is_own = slot.place == Place::output && slot.index == k && !plan.outputs[k].staged;
    if (!is_own || outputs_[k].step + 1 == num_steps) outputs_[k].step = kNone;
    if (slot.place == Place::input) inputs_[slot.index].step = kNone;  // an output that is an input as it is
  }
  for (const SharedMemory& pair : plan.shared) inputs_[pair.input].step = outputs_[pair.output].step = kNone;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (outputs_[k].step != kNone) written_[outputs_[k].step].push_back(k);
  }
}

void OverlappedCopies::begin_launch() {
  for (Port& port : inputs_) port.is_taken = false;
  for (Port& port : outputs_) port.is_taken = false;
}

bool OverlappedCopies::take(Port& port, const Buffer& there, const Buffer& given, size_t bytes) {
  if (port.step == kNone || bytes == 0 || there.is_on_host() || !given.is_on_host()) return false;
  if (port.staged.size_bytes() < bytes) {
    const size_t others = staged_bytes_ - port.staged.size_bytes();
    if (others + bytes > kMostStaged) return false;
    staged_bytes_ = others;
    port.staged = Buffer();
    try {
      port.staged = Buffer::for_transfers(bytes, *there.memory());
    } catch (const BudgetError&) {
      return false;
    }
    staged_bytes_ += bytes;
  }
  port.there = there;
  port.given = given;
  port.bytes = bytes;
  port.is_taken = true;
  return true;
}

bool OverlappedCopies::take_input(size_t i, const Buffer& there, const Buffer& given, size_t bytes) {
  Port& port = inputs_[i];
  if (!take(port, there, given, bytes)) return false;
  if (!port.arrived) port.arrived = device_.new_event();
  std::memcpy(port.staged.data(), given.data(), bytes);
  return true;
}

bool OverlappedCopies::take_output(size_t k, const Buffer& given, const Buffer& there) {
  return take(outputs_[k], there, given, there.size_bytes());
}

void OverlappedCopies::add_addresses(std::vector<const void*>& addresses) const {
  for (const auto* ports : {&inputs_, &outputs_}) {
    for (const Port& port : *ports) {
      addresses.push_back(port.is_taken ? port.staged.data() : nullptr);
      addresses.push_back(std::bit_cast<const void*>(port.is_taken ? port.bytes : size_t{0}));
    }
  }
}

Stream& OverlappedCopies::stream_of(Lane& lane) {
  if (!lane.stream) {
    lane.stream = device_.new_stream();
    lane.end = device_.new_event();
  }
  lane.is_used = true;
  return *lane.stream;
}

void OverlappedCopies::begin(size_t begin, size_t end, Stream& first) {
  while (marks_.size() < num_streams_) marks_.push_back(device_.new_event());
  for (Port& port : inputs_) {
    if (!port.is_taken || port.step < begin || port.step >= end) continue;
    const bool is_first = !arrivals_.is_used;
    Stream& stream = stream_of(arrivals_);
    if (is_first) {
      first.record(*marks_[0]);
      stream.wait_for(*marks_[0]);
    }
    copy_bytes(port.there, port.staged, port.bytes, &stream);
    stream.record(*port.arrived);
    port.is_under_way = true;
    port.is_awaited.assign(num_streams_, false);
  }
}

void OverlappedCopies::before_step(size_t step, size_t number, Stream& stream) {
  for (const size_t input : reads_[step]) {
    Port& port = inputs_[input];
    if (!port.is_under_way || port.is_awaited[number]) continue;
    stream.wait_for(*port.arrived);
    port.is_awaited[number] = true;
  }
}

// Parts of an output may have been written on several streams.
void OverlappedCopies::behind_step(size_t step, const std::vector<std::unique_ptr<Stream>>& streams, size_t width) {
  bool is_behind = false;
  for (const size_t output : written_[step]) {
    const Port& port = outputs_[output];
    if (!port.is_taken) continue;
    Stream& stream = stream_of(departures_);
    for (size_t s = 0; s < width && !is_behind; ++s) {
      streams[s]->record(*marks_[s]);
      stream.wait_for(*marks_[s]);
    }
    is_behind = true;
    copy_bytes(port.staged, port.there, port.bytes, &stream);
  }
}

void OverlappedCopies::join(Stream& first) {
  for (Port& port : inputs_) port.is_under_way = false;
  const bool arrive = std::exchange(arrivals_.is_used, false);
  const bool depart = std::exchange(departures_.is_used, false);
  const auto join_lane = [&first](const Lane& lane) {
    lane.stream->record(*lane.end);
    first.wait_for(*lane.end);
  };
  if (arrive) join_lane(arrivals_);
  if (depart) join_lane(departures_);
}

void OverlappedCopies::wait() {
  for (const Lane* lane : {&arrivals_, &departures_}) {
    if (lane->stream) lane->stream->wait();
  }
}

void OverlappedCopies::land() const {
  for (const Port& port : outputs_) {
    if (port.is_taken) std::memcpy(port.given.data(), port.staged.data(), port.bytes);
  }
}

}  // namespace autograph
