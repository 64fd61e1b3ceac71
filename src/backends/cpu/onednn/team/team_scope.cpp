#include "backends/cpu/onednn/team/team_scope.h"

#include "backends/cpu/cpu_kernels.h"

namespace autograph::onednn {

int threads_in_use() {
  const int threads = set_cpu_threads(1);
  set_cpu_threads(threads);
  return threads;
}

TeamScope::TeamScope(int threads) : before_(set_cpu_threads(threads)) {}
TeamScope::~TeamScope() { set_cpu_threads(before_); }

}  // namespace autograph::onednn
