// State of oneDNN and its threads: the number that it uses on the calling thread, and the primitives that it keeps.
#include <omp.h>

#include <dnnl.hpp>

#include "backends/cpu/cpu_kernels.h"

namespace autograph {

int set_cpu_threads(int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  return before;
}

void forget_cpu_kernels() {
  const int capacity = dnnl::get_primitive_cache_capacity();
  dnnl::set_primitive_cache_capacity(0);
  dnnl::set_primitive_cache_capacity(capacity);
}

}  // namespace autograph
