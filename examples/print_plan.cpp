// What compile() decided: the steps of the plan, the memory it needs, why each kernel was taken, and where the time of
// one run went.
#include <cstdio>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/zoo.h"

using autograph::Tensor;

int main() try {
  autograph::CompileOptions options;
  options.profile = true;
  const autograph::Executable program = autograph::compile(autograph::build_zoo_model("mlp"), options);
  std::printf("%s\n", program.print_plan().c_str());

  const autograph::MemoryReport memory = program.memory();
  // The arena holds what kernels need to work in, too.
  std::printf("arena %zu bytes for %zu bytes of tensors, weights %zu bytes\n", memory.arena_bytes,
              memory.sum_of_tensors_bytes, memory.weight_bytes);
  for (const autograph::KernelChoice& choice : program.kernel_choices()) {
    std::printf("%s: %s\n", choice.node.c_str(), choice.kernel.c_str());
    for (const std::string& refusal : choice.refusals) std::printf("  not %s\n", refusal.c_str());
  }

  program.run({Tensor::zeros(autograph::DType::f32, {1, 784})});
  for (const autograph::StepProfile& step : program.profile()) {
    std::printf("%-24s %8.1f us\n", step.name.c_str(), step.duration_us);
  }
  return !program.profile().empty() && memory.arena_bytes >= memory.lower_bound_bytes ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
