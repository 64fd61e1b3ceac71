// Devices: where kernels run. A backend derives a class from Device and, where the device has memory of its own, one
// from Memory and one from Stream; the base classes are those of the host, so that nothing else has to be written. See
// docs/add_a_backend.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograph/buffer.h"
#include "autograph/kernel.h"
#include "autograph/precision.h"
#include "autograph/schedule.h"

namespace autograph {

class CostModel;
class HostThreads;
class Launchable;
struct CompiledPlan;

/// A mark in a stream. This one is the host's: there is nothing to wait for.
class Event {
 public:
  virtual ~Event() = default;
};

/// Work that a stream was asked for once, to be done again: a captured graph.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  /// Enqueues all of it on a stream of the device that captured it, with the addresses of then.
  virtual void replay(Stream& stream) = 0;
};

/// Work of a device in the order in which it was enqueued. For one thread at a time. This one is the host's: what was
/// enqueued is over.
class Stream {
 public:
  virtual ~Stream() = default;
  /// The memory that kernels of this stream read and write; null: the host's.
  virtual const Memory* memory() const { return nullptr; }
  /// Marks what has been enqueued so far in `event`, which Device::new_event() of the same device gave.
  virtual void record(Event& event) { static_cast<void>(event); }
  /// What is enqueued from here on begins when what `event` marks, in whatever stream, is over.
  virtual void wait_for(const Event& event) { static_cast<void>(event); }
  /// What `enqueue` enqueues here, and on other streams between events that bind them to this one, without doing any of
  /// it. Null where the device cannot capture at all, or not this: where something in it waits on the host, for
  /// example.
  virtual std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue);
  /// Returns when all that was enqueued is over; throws DeviceError when some of it failed.
  virtual void wait() {}
  /// Microseconds that the device takes for what `enqueue` enqueues here, from when it begins: neither launches nor
  /// copies of others count where the device can tell. This one looks at the host's clock, and waits.
  virtual double time_us(const std::function<void()>& enqueue);
};

/// What schedules and searches ask about a device.
struct DeviceProperties {
  int max_streams = 0;           ///< Streams that are worth using; each has the whole device. 0: they share threads.
  double sync_us = 1.5;          ///< What a wait for another stream takes.
  bool has_exact_times = false;  ///< Are latencies computed (see Device::latency_us), the same for every run?
  bool can_time_kernels = true;  ///< Does running a kernel tell what it takes in a plan? If not, estimates decide.
  bool is_reference = false;     ///< Are its kernels what those of others are compared with?
  bool has_clock = false;        ///< Does Stream::time_us() read a clock of the device? If not, the host's decides.
};

/// Made once, and kept until the process ends; any number of threads may use it at once.
class Device {
 public:
  explicit Device(std::string name) : name_(std::move(name)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// What CompileOptions::device calls it.
  const std::string& name() const { return name_; }
  /// Hardware and libraries with their versions: what is measured, fitted or found out about kernels here is kept for
  /// devices with equal identities. Devices of different kinds must differ.
  virtual std::string identity() const { return name_; }
  virtual DeviceProperties properties() const { return {}; }
  /// Its kernels.
  virtual const KernelCatalog& catalog() const = 0;
  /// The device as it is with kernels that may multiply in this precision (see CompileOptions); itself for "f32".
  /// Throws UnsupportedError or DeviceError when it cannot.
  virtual const Device& with_precision(Precision precision) const;

  /// Where its kernels read and write; null: the host's memory.
  virtual const Memory* memory() const { return nullptr; }
  virtual std::unique_ptr<Stream> new_stream() const { return std::make_unique<Stream>(); }
  virtual std::unique_ptr<Event> new_event() const { return std::make_unique<Event>(); }
  /// Makes a plan ready to be launched many times, one launch at a time: record_steps() in executor.h, which enqueues
  /// one step after the other, or what the device has of its own, such as a captured graph.
  virtual std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const = 0;

  /// How its kernels use threads of the host; by default not at all.
  virtual const HostThreads& host_threads() const;
  /// Drops what libraries keep of kernels made before, so that variants of a kernel can be made side by side.
  virtual void forget_kernels() const {}
  /// What nodes take here, where a model of the device knows better than its kernels; null: it does not.
  virtual std::unique_ptr<CostModel> cost_model() const;
  /// What a launch of `graph` by `schedule` takes, where the device can tell without one.
  virtual std::optional<double> latency_us(const Graph& graph, const Schedule& schedule) const;

 private:
  std::string name_;
};

}  // namespace autograph
