#include "support/kernels/every_variant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "autograph/compile.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "runtime/packing_kernel.h"
#include "support/spaced_rows.h"

namespace autograph {
namespace {

// A tensor of these dims in another layout.
Tensor reordered(const TensorView& from, const Dims& dims, Layout from_layout, Layout to_layout) {
  Tensor to = Tensor::empty(DType::f32, to_layout == Layout::row_major ? dims : Dims{padded_elements(to_layout, dims)});
  if (from_layout == to_layout) {
    std::memcpy(to.mutable_raw(), from.raw(), to.size_bytes());
    return to;
  }
  const Type type(DType::f32, Shape::of(dims));
  const std::unique_ptr<Kernel> kernel = cpu_reorder()({type, from_layout, to_layout, 1});
  const TensorView input(DType::f32, dims, const_cast<void*>(from.raw()));
  const TensorView output(DType::f32, dims, to.mutable_raw());
  const auto state = kernel->new_state();
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel->scratch_bytes()) + 1});
  kernel->run({{&input, 1}, {&output, 1}, scratch.mutable_raw(), state.get()});
  return to;
}

// Room behind an output into which no kernel may write.
constexpr int64_t kGuardElements = 512;

// Memory for an output of these dims in a layout, and the guard: all of it NaN.
Tensor guarded_output(const Dims& dims, Layout layout) {
  Tensor out = Tensor::empty(DType::f32, {padded_elements(layout, dims) + kGuardElements});
  std::memset(out.mutable_raw(), 0xFF, out.size_bytes());
  return out;
}

bool is_guard_untouched(const Tensor& out) {
  const std::span<const float> all = out.elements<float>();
  const auto guard = std::as_bytes(all.last(static_cast<size_t>(kGuardElements)));
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == std::byte{0xFF}; });
}

// Runs the kernel of a variant with inputs brought into its layouts and the outputs back.
std::vector<Datum> run_in_layouts(const Kernel& kernel, const KernelCase& test, const KernelVariant& variant) {
  const KernelCall call = test.call();
  std::vector<Tensor> owned;
  std::vector<TensorView> inputs(test.inputs().begin(), test.inputs().end());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (variant.input(k) == Layout::row_major) continue;
    const Dims x = call.input_dims(k);
    owned.push_back(reordered(inputs[k], x, Layout::row_major, variant.input(k)));
    inputs[k] = TensorView(DType::f32, x, owned.back().mutable_raw());
  }
  std::vector<Tensor> memory;
  std::vector<TensorView> outputs;
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    memory.push_back(guarded_output(call.output_dims(k), variant.output(k)));
    outputs.emplace_back(DType::f32, call.output_dims(k), memory.back().mutable_raw());
  }
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel.scratch_bytes()) + 1});
  const auto state = kernel.new_state();
  const KernelArgs args{inputs, outputs, scratch.mutable_raw(), state.get()};
  kernel.run(args);
  if (kernel.spaced_row_bytes() > 0) {
    const auto elements = static_cast<size_t>(padded_elements(variant.output(0), call.output_dims(0)));
    EXPECT_EQ(spaced_rows_complaint(kernel, args, elements * sizeof(float)), "");
  }
  std::vector<Datum> results;
  for (size_t k = 0; k < outputs.size(); ++k) {
    EXPECT_TRUE(is_guard_untouched(memory[k])) << "wrote behind output " << k;
    results.emplace_back(reordered(outputs[k], call.output_dims(k), variant.output(k), Layout::row_major));
  }
  return results;
}

void expect_right(const Kernel& kernel, const KernelCase& test, const KernelVariant& variant,
                  const FloatTolerance& tolerance) {
  const std::vector<Tensor> expected = test.reference();
  const std::vector<Datum> actual = run_in_layouts(kernel, test, variant);
  EXPECT_EQ(difference(actual, std::vector<Datum>(expected.begin(), expected.end()), tolerance), "");
}

// Calls check(variant) for every variant that this build can run.
template <class Check>
void for_each_variant(const KernelDef& def, const KernelCase& plain, const Check& check) {
  ASSERT_EQ(def.why_not(plain.call()), "");
  const std::vector<KernelVariant> variants = def.variants ? def.variants(plain.call()) : std::vector<KernelVariant>(1);
  EXPECT_FALSE(variants.empty());
  for (const KernelVariant& variant : variants) {
    // A build without oneDNN knows row-major tensors alone.
    if (!variant.is_row_major() && !cpu_reorder()) continue;
    SCOPED_TRACE(variant.name + " " + std::string(to_string(variant.input(0))));
    check(variant);
  }
}

// Draws other elements for the weights of a sample: all tensors of floats but input 0. Gives them by input.
std::vector<StateContents> write_weights(OpSample& sample) {
  std::vector<StateContents> written(sample.inputs.size());
  Random random(1);
  for (size_t k = 1; k < written.size(); ++k) {
    const Tensor old = sample.inputs[k].is_tensor() ? sample.inputs[k].tensor() : Tensor();
    if (old.dtype() != DType::f32 || old.num_elements() < 2) continue;
    sample.inputs[k] = draw_tensor(random, DType::f32, old.dims(), -1, 1);
    written[k] = {sample.inputs[k].tensor(), 1};
  }
  return written;
}

}  // namespace

KernelDef cpu_kernel(std::string_view name, std::string_view op) {
  for (const KernelDef& def : cpu_kernels()) {
    if (def.name == name && (def.op == op || def.op.empty())) return def;
  }
  return {};
}

void expect_every_kernel(const OpDef& op, const OpSample& sample, int threads, const FloatTolerance& tolerance) {
  int tried = 0;
  for (const KernelDef& def : cpu_kernels()) {
    if (def.op != op.name || !def.why_not(KernelCase(op, sample, {threads, true}).call()).empty()) continue;
    SCOPED_TRACE(def.name);
    expect_every_variant(def, op, sample, threads, tolerance);
    ++tried;
  }
  EXPECT_GT(tried, 0) << "no kernel takes this call of " << op.name;
}

void expect_every_variant(const KernelDef& def, const OpDef& op, const OpSample& sample, int threads,
                          const FloatTolerance& tolerance) {
  for_each_variant(def, KernelCase(op, sample, {threads, true}), [&](const KernelVariant& variant) {
    const KernelCase test(op, sample, {threads, true, &variant});
    const Prepared prepared = def.prepare(test.call());
    ASSERT_NE(prepared.kernel, nullptr) << prepared.refusal;
    expect_right(*prepared.kernel, test, variant, tolerance);
  });
}

void expect_every_variant_renews(const KernelDef& def, const OpDef& op, const OpSample& sample, int threads,
                                 const FloatTolerance& tolerance) {
  OpSample other = sample;
  const std::vector<StateContents> written = write_weights(other);
  for_each_variant(def, KernelCase(op, sample, {threads, true}), [&](const KernelVariant& variant) {
    PackedConstants packed;
    const KernelSetup setup{.threads = threads, .constant_weights = true, .variant = &variant, .packed = &packed};
    const KernelCase before(op, sample, setup), after(op, other, setup);
    const Prepared prepared = def.prepare(before.call());
    auto* const kernel = dynamic_cast<PackingKernel*>(prepared.kernel.get());
    ASSERT_NE(kernel, nullptr) << prepared.refusal << "; it has to be made anew";
    expect_right(*kernel, before, variant, tolerance);
    const size_t held = packed.num_held(), bytes = kernel->weight_bytes();
    EXPECT_TRUE(kernel->renew(written, &packed));
    expect_right(*kernel, after, variant, tolerance);
    EXPECT_EQ(packed.num_held(), held) << "older forms are freed";
    EXPECT_EQ(kernel->weight_bytes(), bytes);
  });
}

}  // namespace autograph
