// Kernels of other layouts between reorders of their own give callers with row-major tensors what the reference does.
#include "device/row_major_operands.h"

#include <gtest/gtest.h>

#include <set>

#include "autograph/devices.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// A convolution of few channels, or of many: the layouts of both.
OpSample conv_sample(Random& random, const Dims& x, const Dims& w) {
  return {.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)},
          .attributes = {{"pads", std::vector<int64_t>(2 * (w.size() - 2), 1)}}};
}

std::vector<Datum> run(const Kernel& kernel, const KernelCase& test) {
  const KernelCall call = test.call();
  std::vector<Datum> results;
  std::vector<TensorView> outputs;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    Tensor output = Tensor::empty(DType::f32, call.output_dims(k));
    outputs.emplace_back(DType::f32, call.output_dims(k), output.mutable_raw());
    results.emplace_back(std::move(output));
  }
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel.scratch_bytes()) + 1});
  const auto state = kernel.new_state();
  kernel.run({test.inputs(), outputs, scratch.mutable_raw(), state.get()});
  return results;
}

// Of every kernel that takes the call; gives the layouts that there were.
std::set<Layout> check_every_variant(const OpSample& sample) {
  std::set<Layout> seen;
  const KernelCase plain(conv_def(), sample, {2, true});
  const std::vector<Tensor> expected = plain.reference();
  for (const KernelDef& def : cpu_kernels()) {
    if (def.op != conv_def().name || !def.variants || !def.why_not(plain.call()).empty()) continue;
    for (const KernelVariant& variant : def.variants(plain.call())) {
      SCOPED_TRACE(std::string(def.name) + " " + variant.name + " " + std::string(to_string(variant.input(0))));
      const KernelCase test(conv_def(), sample, {2, true, &variant});
      Prepared prepared = def.prepare(test.call());
      if (!prepared.kernel) continue;
      const KernelCatalog& catalog = get_device("cpu").catalog();
      const auto kernel = with_row_major_operands(catalog, test.call(), variant, std::move(prepared.kernel));
      EXPECT_EQ(difference(run(*kernel, plain), {expected.begin(), expected.end()}, {1e-4, 1e-4}), "");
      seen.insert({variant.input(0), variant.output(0)});
    }
  }
  return seen;
}

TEST(RowMajorOperands, EveryVariantOfAConvolution) {
  Random random(1);
  std::set<Layout> seen;
  for (const auto& [x, w] : {std::pair<Dims, Dims>{{2, 3, 12, 13}, {16, 3, 3, 3}},
                             {{1, 32, 9, 8}, {32, 32, 3, 3}},
                             {{1, 16, 30}, {24, 16, 5}}}) {
    seen.merge(check_every_variant(conv_sample(random, x, w)));
  }
  // Reorders of some layouts have a state, of others none.
  if (cpu_reorder()) {
    EXPECT_GE(seen.size(), 3U);
  }
}

}  // namespace
}  // namespace autograph
