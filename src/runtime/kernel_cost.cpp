#include "runtime/kernel_cost.h"

#include "tensor/size_of.h"

namespace autograph {

double KernelCost::reorder_us(const KernelCatalog&, const ReorderCall& call) {
  // Reading and writing at the speed of a shared cache, and a start.
  constexpr double kBytesPerUs = 6e3;
  constexpr double kStartUs = 3;
  const double bytes =
      static_cast<double>(size_of(call.type, call.from)) + static_cast<double>(size_of(call.type, call.to));
  return kStartUs + bytes / kBytesPerUs / call.threads;
}

}  // namespace autograph
