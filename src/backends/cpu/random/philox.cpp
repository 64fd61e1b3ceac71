// philox: each thread fills a part of the output, which depends on nothing but where it is.
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/random/fill_philox.h"

namespace autograph {
namespace {

constexpr int64_t kWorkPerElement = 8;  // of an f32 that is loaded, added to and stored

class PhiloxKernel : public Kernel {
 public:
  explicit PhiloxKernel(const KernelCall& call)
      : attributes_(call.attributes),
        threads_(useful_threads(call.threads, kWorkPerElement * call.outputs[0].shape().num_elements().value())) {}

  void run(const KernelArgs& args) const override {
    const TensorView y = args.outputs[0];
    check_philox_size(y);
    const PhiloxStream stream = philox_stream(attributes_, args.inputs[1], args.inputs[2]);
    const int64_t count = y.num_elements();
    for_shares(threads_, (count + kPhiloxPart - 1) / kPhiloxPart, [&](int64_t begin, int64_t end, int) {
      fill_philox(stream, attributes_, y, begin * kPhiloxPart, std::min(end * kPhiloxPart, count));
    });
  }

 private:
  const Attributes attributes_;
  const int threads_;
};

std::string why_not(const KernelCall& call) {
  return call.outputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<PhiloxKernel>(call), ""}; }

}  // namespace

KernelDef philox_kernel() {
  return {.name = "cpu.philox", .op = philox_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
