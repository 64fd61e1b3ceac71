// A memory object whose address is set only when it changes: setting it may clear padding.
#pragma once

#include <dnnl.hpp>

#include "backends/cpu/onednn/cpu_engine.h"

namespace autograph::onednn {

struct MovableMemory {
  dnnl::memory memory;
  void* address = nullptr;

  explicit MovableMemory(const dnnl::memory::desc& desc) : memory(desc, cpu_engine(), nullptr) {}
  void move_to(void* data) {
    if (data == address) return;
    memory.set_data_handle(data);
    address = data;
  }
};

}  // namespace autograph::onednn
