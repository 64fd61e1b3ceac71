// The devices of this build. The only place that names concrete backends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/sim/sim_machine.h"
#include "runtime/kernel_catalog.h"
#include "runtime/run_context.h"

namespace autograph {

/// A device that graphs can be compiled for.
struct Device {
  std::string name;
  KernelCatalog catalog;
  /// Makes the calling thread use this many threads inside kernels; returns what it used before. Null: no threads.
  int (*set_threads)(int threads) = nullptr;
  /// Makes kernels that the calling thread runs use so many threads at most, whatever they were made for. Null: no
  /// need.
  void (*limit_threads)(int threads) = nullptr;
  /// Binds the calling thread and its team to processors of their own, and lets the caller go again. Null: cannot.
  void (*pin_threads)(int threads) = nullptr;
  void (*unpin_thread)() = nullptr;
  /// Machine and libraries with their versions: measurements hold where this text is the same.
  std::string (*identity)() = nullptr;
  /// Drops what libraries keep of kernels made before; see MeasuredCost.
  void (*forget_kernels)() = nullptr;
  /// See RunStreams. Null: streams run one after the other.
  RunStreams run_streams = nullptr;
  /// Of a simulated device: it computes with the kernels of the processor, and time is that of the machine's clock.
  std::optional<SimMachine> machine = std::nullopt;
};

/// The device named `name`; throws DeviceError with the nearest name when it is not there. With a precision other than
/// "f32" it is one whose kernels may use that; throws ValueError when there is no such precision, UnsupportedError when
/// the device has none of it and DeviceError when this machine has not.
const Device& get_device(const std::string& name, const std::string& precision = "f32");

/// Makes another device known by its name: for tests of what happens with kernels that are wrong. Throws ValueError
/// when there is one of that name. Devices stay where they are.
void add_device(Device device);

}  // namespace autograph
