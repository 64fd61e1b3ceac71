// tile, pad with elements of the input, and resize to the nearest element: tables of positions for IndexedCopy.
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/indexed_copy.h"
#include "backends/cpu/known_inputs.h"
#include "backends/cpu/refusal.h"
#include "ops/shape/pad_positions.h"
#include "ops/vision/resize_grid.h"

namespace autograph {
namespace {

class IndexedCopyKernel : public Kernel {
 public:
  IndexedCopyKernel(const KernelCall& call, const std::vector<std::vector<int64_t>>& positions, float fill = 0)
      : copy_(call.input_dims(0), positions, element_size(call.inputs[0].dtype()), call.threads), fill_(fill) {}

  void run(const KernelArgs& args) const override { copy_.run(args.inputs[0].raw(), args.outputs[0].raw(), &fill_); }

 private:
  const IndexedCopy copy_;
  const float fill_;
};

// ---- tile ------------------------------------------------------------------------------------------------------

Prepared prepare_tile(const KernelCall& call) {
  const Dims in = call.input_dims(0), out = call.output_dims(0);
  std::vector<std::vector<int64_t>> positions(in.size());
  for (size_t a = 0; a < in.size(); ++a) {
    for (int64_t i = 0; i < out[a]; ++i) positions[a].push_back(i % in[a]);
  }
  return {std::make_unique<IndexedCopyKernel>(call, positions), ""};
}

// ---- pad -------------------------------------------------------------------------------------------------------

std::string why_not_pad(const KernelCall& call) {
  if (call.attributes.text("mode") == "constant") return "mode constant";
  if (call.inputs[0].dtype() == DType::string) return "strings";
  return why_not_known(call, {1, 3}, "positions");
}

Prepared prepare_pad(const KernelCall& call) {
  const Dims in = call.input_dims(0), out = call.output_dims(0);
  const auto positions =
      pad_positions(call.attributes.text("mode"), in, out, known_input(call, 1), known_input(call, 3));
  return {std::make_unique<IndexedCopyKernel>(call, positions), ""};
}

// ---- resize ----------------------------------------------------------------------------------------------------

std::string why_not_resize(const KernelCall& call) {
  if (call.attributes.text("mode") != "nearest") return "mode " + call.attributes.text("mode");
  const DType dtype = call.inputs[0].dtype();
  if (dtype == DType::string) return "strings";
  if (call.attributes.text("coordinate_transformation_mode") == "tf_crop_and_resize" && dtype != DType::f32) {
    return "elements outside of a region, of another dtype than f32";
  }
  if (call.outputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return why_not_known(call, {1, 2, 3}, "roi, scales or sizes");
}

Prepared prepare_resize(const KernelCall& call) {
  const auto axes = resize_axes(call.attributes, call.input_dims(0), call.output_dims(0),
                                {known_input(call, 1), known_input(call, 2), known_input(call, 3)});
  std::vector<std::vector<int64_t>> positions(axes.size());
  for (size_t a = 0; a < axes.size(); ++a) {
    for (const ResizeMix& mix : resize_mixes(call.attributes, axes[a])) {
      positions[a].push_back(mix.taps.empty() ? -1 : mix.taps[0].first);
    }
  }
  const float outside = static_cast<float>(call.attributes.real("extrapolation_value"));
  return {std::make_unique<IndexedCopyKernel>(call, positions, outside), ""};
}

}  // namespace

std::vector<KernelDef> repeating_copy_kernels() {
  return {
      {"cpu.tile", "tile", why_not_bytes, prepare_tile},
      {"cpu.pad_repeating", "pad", why_not_pad, prepare_pad},
      {"cpu.resize_nearest", "resize", why_not_resize, prepare_resize},
  };
}

}  // namespace autograph
