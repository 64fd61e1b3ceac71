// What a kernel takes of a device whose streams share processors and bandwidth.
#pragma once

#include <algorithm>

namespace autograph {

/// Nothing at all for what is no kernel, and where streams have processors of their own.
struct KernelLoad {
  double start_us = 0;    ///< To start, at any load; others work meanwhile.
  double work_us = 0;     ///< Of work with the device to itself.
  double processors = 0;  ///< Part of them that it fills.
  double bandwidth = 0;   ///< Part of it that it takes.

  /// Device time: work times the part of the device that it keeps busy.
  double area_us() const { return work_us * std::max(processors, bandwidth); }
};

}  // namespace autograph
