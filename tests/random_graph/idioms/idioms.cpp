#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

constexpr IdiomFamily kFamilies[] = {
    {"conv_epilogue", add_conv_epilogue, 5},
    {"matmul_epilogue", add_matmul_epilogue, 4},
    {"normalization", add_normalization, 3},
    {"squeeze_excite", add_squeeze_excite, 2},
    {"residual_block", add_residual_block, 3},
    {"pools_and_joins", add_pools_and_joins, 3},
    {"attention", add_attention, 4},
    {"nhwc_sandwich", add_nhwc_sandwich, 3},
    {"shape_chain", add_shape_chain, 3},
    {"control_flow", add_control_flow, 2},
    {"recurrent_layer", add_recurrent_layer, 2},
    {"quantized_chain", add_quantized_chain, 3},
    {"packed_linear", add_packed_linear, 2},
    {"vocoder", add_vocoder, 2},
    {"integer_chain", add_integer_chain, 2},
    {"arithmetic_chain", add_arithmetic_chain, 3},
    {"contrib_layer", add_contrib_layer, 2},
    {"contrib_quantized", add_contrib_quantized, 2},
    {"contrib_attention", add_contrib_attention, 2},
    {"contrib_images", add_contrib_images, 2},
};

const IdiomFamily& draw_family(IdiomGraph& g) {
  int64_t all = 0;
  for (const IdiomFamily& family : kFamilies) all += family.weight;
  int64_t at = g.between(0, all - 1);
  for (const IdiomFamily& family : kFamilies) {
    if (at < family.weight) return family;
    at -= family.weight;
  }
  return kFamilies[0];
}

}  // namespace

std::span<const IdiomFamily> idiom_families() { return kFamilies; }

TestGraph make_idiom_graph(uint64_t seed, std::vector<std::string_view>* blocks) {
  IdiomGraph g(seed);
  const int64_t count = g.between(1, 6);
  for (int64_t k = 0; k < count; ++k) {
    const IdiomFamily& family = draw_family(g);
    if (blocks) blocks->push_back(family.name);
    const ProvenanceScope scope("b" + std::to_string(k));
    family.add(g);
  }
  return g.finish();
}

}  // namespace autograph
