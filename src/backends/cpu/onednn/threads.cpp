// The number of OpenMP threads that oneDNN uses on the calling thread.
#include <omp.h>

#include "backends/cpu/cpu_kernels.h"

namespace autograph {

int set_cpu_threads(int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  return before;
}

}  // namespace autograph
