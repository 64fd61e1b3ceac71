// tile, pad with elements of the input, and resize to the nearest element (in any layout): tables of positions for
// IndexedCopy.
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/known_inputs.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/shape/indexed_copy.h"
#include "backends/cpu/vision/resize_layouts.h"
#include "ops/defs.h"
#include "ops/shape/pad_positions.h"
#include "ops/vision/resize_grid.h"

namespace autograph {
namespace {

class IndexedCopyKernel : public Kernel {
 public:
  IndexedCopyKernel(const KernelCall& call, const Dims& in, const std::vector<std::vector<int64_t>>& positions,
                    float fill = 0)
      : copy_(in, positions, element_size(call.inputs[0].dtype()), call.threads), fill_(fill) {}

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
  return {std::make_unique<IndexedCopyKernel>(call, in, positions), ""};
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
  return {std::make_unique<IndexedCopyKernel>(call, in, positions), ""};
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
  Dims in;
  std::vector<std::vector<int64_t>> positions;
  for (const ResizeAxis& axis : axes_in_memory(call)) {
    in.push_back(axis.in);
    positions.emplace_back();
    for (const ResizeMix& mix : resize_mixes(call.attributes, axis)) {
      positions.back().push_back(mix.taps.empty() ? -1 : mix.taps[0].first);
    }
  }
  const float outside = static_cast<float>(call.attributes.real("extrapolation_value"));
  return {std::make_unique<IndexedCopyKernel>(call, in, positions, outside), ""};
}

// Pixels whose channels lie together move as one.
std::vector<KernelVariant> variants_of_resize(const KernelCall& call) {
  constexpr double kBytesPerUs = 10e3;
  constexpr double kGain = 2;
  return resize_variants(call, kBytesPerUs, kGain);
}

}  // namespace

std::vector<KernelDef> repeating_copy_kernels() {
  return {
      {"cpu.tile", tile_def().name, why_not_bytes, prepare_tile},
      {"cpu.pad_repeating", pad_def().name, why_not_pad, prepare_pad},
      {"cpu.resize_nearest", resize_def().name, why_not_resize, prepare_resize, variants_of_resize},
  };
}

}  // namespace autograph
