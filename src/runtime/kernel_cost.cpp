#include "runtime/kernel_cost.h"

#include "tensor/size_of.h"

namespace autograph {
namespace {

// The planes of pictures are interleaved, or taken apart, as fast as they are copied.
bool is_interleaving(const ReorderCall& call) {
  constexpr int64_t kMostPlanes = 4;
  const bool keeps_rows = (call.from == Layout::row_major && call.to == Layout::channels_last) ||
                          (call.from == Layout::channels_last && call.to == Layout::row_major);
  const auto& dims = call.type.shape().dims();
  return keeps_rows && dims.size() > 1 && dims[1].is_known() && dims[1].value() <= kMostPlanes;
}

}  // namespace

double KernelCost::reorder_us(const KernelCatalog&, const ReorderCall& call) {
  // Reading and writing at the speed of a shared cache, and a start.
  constexpr double kBytesPerUs = 6e3, kInterleavedBytesPerUs = 12e3;
  constexpr double kStartUs = 3;
  const double bytes =
      static_cast<double>(size_of(call.type, call.from)) + static_cast<double>(size_of(call.type, call.to));
  return kStartUs + bytes / (is_interleaving(call) ? kInterleavedBytesPerUs : kBytesPerUs) / call.threads;
}

}  // namespace autograph
