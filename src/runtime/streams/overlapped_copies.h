// Copies of inputs and outputs beside the steps of a launch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "autograph/device.h"
#include "runtime/compiled_plan.h"

namespace autograph {

/// Inputs on the host that no step needs at once, and outputs that are there before the last step, are copied in
/// streams of their own: an input until the first step that reads it, an output behind the last one that writes it.
/// They pass through memory for transfers, whose address stays, so that a captured graph has these copies among its
/// nodes. What the first step reads or the last one writes has nothing to be copied beside; states stay with those who
/// keep them. For one launch at a time.
class OverlappedCopies {
 public:
  /// `num_streams`: in which the steps run.
  OverlappedCopies(const Device& device, const CompiledPlan& compiled, size_t num_streams);

  /// Before each launch: nothing is copied here.
  void begin_launch();
  /// Input `i` is copied to `there` here, if that is possible; what is given may change afterwards.
  bool take_input(size_t i, const Buffer& there, const Buffer& given, size_t bytes);
  /// Output `k` is copied from `there` here, if that is possible; land() brings it to `given`.
  bool take_output(size_t k, const Buffer& given, const Buffer& there);
  bool has_output(size_t k) const { return outputs_[k].is_taken; }
  /// What a captured graph of this launch depends on.
  void add_addresses(std::vector<const void*>& addresses) const;

  /// Before steps [begin, end) are enqueued, all streams of which begin behind `first` and end before it goes on.
  void begin(size_t begin, size_t end, Stream& first);
  /// Before a step is enqueued on stream number `number`.
  void before_step(size_t step, size_t number, Stream& stream);
  /// Behind a step, where the first `width` streams are in use.
  void behind_step(size_t step, const std::vector<std::unique_ptr<Stream>>& streams, size_t width);
  /// Has `first` go on when all of it is over.
  void join(Stream& first);

  /// Returns when nothing is under way; for launches that end early.
  void wait();
  /// When all streams have come to their end: outputs are brought to where the caller wants them.
  void land() const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Port {
    size_t step =
        kNone;  // the first one that reads it, the last one that writes it; none: nothing is copied beside steps
    Buffer staged;
    Buffer there;
    Buffer given;
    size_t bytes = 0;
    bool is_taken = false;
    bool is_under_way = false;       // an input between begin() and join()
    std::vector<bool> is_awaited;    // by stream: does it wait for the copy?
    std::unique_ptr<Event> arrived;  // of an input
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> end;
    bool is_used = false;
  };

  bool take(Port& port, const Buffer& there, const Buffer& given, size_t bytes);
  Stream& stream_of(Lane& lane);

  const Device& device_;
  size_t num_streams_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<std::vector<size_t>> reads_;    // by step: inputs that may be copied here
  std::vector<std::vector<size_t>> written_;  // by step: outputs that it writes last
  size_t staged_bytes_ = 0;
  Lane arrivals_;
  Lane departures_;
  std::vector<std::unique_ptr<Event>> marks_;  // by stream
};

}  // namespace autograph
