// What ONNX Runtime's optimiser makes of networks of floats: fused convolutions and products, activations, norms with a
// residual.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/contrib_call.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

struct Activation {
  const char* name;
  std::vector<float> parameters;
};

// Behind a convolution or a product.
const Activation& draw_activation(IdiomGraph& g) {
  static const std::vector<Activation> kActivations = {{"Relu", {}},
                                                       {"Tanh", {}},
                                                       {"Sigmoid", {}},
                                                       {"LeakyRelu", {0.2F}},
                                                       {"Clip", {-0.5F, 0.8F}},
                                                       {"HardSigmoid", {0.3F, 0.4F}}};
  return kActivations[static_cast<size_t>(g.between(0, std::ssize(kActivations) - 1))];
}

Var vector_of(IdiomGraph& g, Var like, int64_t count, double low = -0.5, double high = 0.5) {
  return g.weight_like(like, {count}, low, high);
}

// With a bias, and what is added before the activation.
void add_fused_conv(IdiomGraph& g) {
  const Var x = g.image();
  const int64_t out = g.chance(30) ? x.dim(1) : g.channels();
  const int64_t kernel = g.one_of<int64_t>({1, 3, 5});
  Attributes attributes{{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                        {"pads", std::vector<int64_t>(4, kernel / 2)}};
  if (g.chance(85)) {
    const Activation& activation = draw_activation(g);
    attributes.set("activation", std::string(activation.name));
    if (!activation.parameters.empty()) attributes.set("activation_params", activation.parameters);
  }
  std::vector<Var> inputs{x, g.weight_like(x, {out, x.dim(1), kernel, kernel}, -0.3, 0.3)};
  if (g.chance(70)) inputs.push_back(vector_of(g, x, out));
  if (inputs.size() == 3 && out == x.dim(1) && g.chance(60)) inputs.push_back(x);
  g.leave(contrib(g, "FusedConv", inputs, attributes));
}

// Either factor transposed, and a factor for all.
void add_fused_matmul(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t out = g.channels();
  const bool is_transposed = g.chance(40);
  const Var w = g.weight_like(x, is_transposed ? Dims{out, x.dim(-1)} : Dims{x.dim(-1), out});
  g.leave(contrib(g, "FusedMatMul", {x, w},
                  {{"transB", int64_t{is_transposed}}, {"alpha", static_cast<float>(g.real(0.2, 1.5))}}));
}

void add_fused_gemm(IdiomGraph& g) {
  const Var x = g.row();
  const int64_t out = g.channels();
  Attributes attributes{{"transB", int64_t{1}}, {"alpha", static_cast<float>(g.real(0.5, 1.5))}};
  if (g.chance(85)) {
    const Activation& activation = draw_activation(g);
    attributes.set("activation", std::string(activation.name));
    const char* const names[] = {"activation_alpha", "activation_beta"};
    for (size_t k = 0; k < activation.parameters.size(); ++k) attributes.set(names[k], activation.parameters[k]);
  }
  std::vector<Var> inputs{x, g.weight_like(x, {out, x.dim(-1)})};
  if (g.chance(80)) inputs.push_back(vector_of(g, x, out));
  g.leave(contrib(g, "FusedGemm", inputs, attributes));
}

void add_activations(IdiomGraph& g) {
  const Var x = g.chance(60) ? g.sequence() : g.row();
  const int64_t width = x.dim(-1);
  if (width % 2 == 0 && g.chance(20)) return g.leave(contrib(g, "BiasSplitGelu", {x, vector_of(g, x, width)}));
  switch (g.between(0, 3)) {
    case 0: return g.leave(contrib(g, "Gelu", {x}));
    case 1: return g.leave(contrib(g, "FastGelu", {x, g.chance(60) ? vector_of(g, x, width) : Var()}));
    case 2: return g.leave(contrib(g, "QuickGelu", {x}, {{"alpha", g.one_of({1.702F, 1.0F, 0.5F})}}));
    default: g.leave(contrib(g, "BiasAdd", {x, vector_of(g, x, width), x}));
  }
}

// The sum of both inputs is read once more in most transformers.
void add_norm_of_a_sum(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t width = x.dim(-1);
  const Var earlier = g.earlier(x.type());
  const Var skip = earlier.is_valid() ? earlier : x;
  const bool is_simplified = g.chance(50);
  std::vector<Var> inputs{x, skip, vector_of(g, x, width, 0.5, 1.5)};
  if (!is_simplified) inputs.push_back(g.chance(70) ? vector_of(g, x, width) : Var());
  if (g.chance(50)) inputs.push_back(vector_of(g, x, width));
  const char* op = is_simplified ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization";
  const auto outputs = contrib_outputs(g, op, inputs, {{"epsilon", 1e-5F}}, g.chance(50) ? 4 : 1);
  // Mean and deviation are outputs of files that were trained on.
  for (size_t k = 1; k < outputs.size(); ++k) {
    if (outputs[k].is_valid()) k == 3 ? g.leave(outputs[k]) : g.output(outputs[k]);
  }
  g.leave(outputs[0]);
}

void add_simplified_norm(IdiomGraph& g) {
  const Var x = g.sequence();
  g.leave(contrib(g, "SimplifiedLayerNormalization", {x, vector_of(g, x, x.dim(-1), 0.5, 1.5)},
                  {{"axis", int64_t{-1}}, {"epsilon", 1e-5F}}));
}

void add_embedding_norm(IdiomGraph& g) {
  const int64_t words = g.between(2, 12), width = g.one_of<int64_t>({4, 8, 12});
  const int64_t length = g.between(1, 8);
  const Var ids = g.input(DType::i32, {-1, length}, 0, static_cast<double>(words - 1));
  const auto table = [&](int64_t rows) {
    return g.constant(draw_tensor(g.random(), DType::f32, {rows, width}, -1, 1));
  };
  const auto row = [&] { return g.constant(draw_tensor(g.random(), DType::f32, {width}, 0.5, 1.5)); };
  const Var tokens = table(words), positions = table(length + 3), gamma = row(), beta = row();
  g.leave(
      contrib(g, "EmbedLayerNormalization", {ids, Var(), tokens, positions, Var(), gamma, beta}, {{"epsilon", 1e-5F}}));
}

}  // namespace

void add_contrib_layer(IdiomGraph& g) {
  constexpr void (*kBlocks[])(IdiomGraph&) = {
      add_fused_conv,  add_fused_conv,    add_fused_matmul,  add_fused_gemm,      add_activations,
      add_activations, add_norm_of_a_sum, add_norm_of_a_sum, add_simplified_norm, add_embedding_norm};
  kBlocks[g.between(0, std::ssize(kBlocks) - 1)](g);
}

}  // namespace autograph
