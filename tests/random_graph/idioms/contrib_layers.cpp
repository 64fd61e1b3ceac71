// What ONNX Runtime's optimiser makes of networks of floats: fused convolutions and products, activations, norms with a
// residual, attention.
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
  if (outputs.size() > 3 && outputs[3].is_valid()) g.leave(outputs[3]);
  g.leave(outputs[0]);
}

void add_simplified_norm(IdiomGraph& g) {
  const Var x = g.sequence();
  g.leave(contrib(g, "SimplifiedLayerNormalization", {x, vector_of(g, x, x.dim(-1), 0.5, 1.5)},
                  {{"axis", int64_t{-1}}, {"epsilon", 1e-5F}}));
}

struct Heads {
  int64_t count, size;
  int64_t width() const { return count * size; }
};

Heads draw_heads(IdiomGraph& g) { return {g.one_of<int64_t>({1, 2, 3}), g.one_of<int64_t>({4, 8})}; }

// q, k and v from one product inside the op.
void add_packed_attention(IdiomGraph& g) {
  const Var x = g.sequence();
  const Heads heads = draw_heads(g);
  const int64_t packed = 3 * heads.width();
  g.leave(contrib(g, "Attention",
                  {x, g.weight_like(x, {x.dim(-1), packed}), g.chance(80) ? vector_of(g, x, packed) : Var()},
                  {{"num_heads", heads.count}, {"unidirectional", g.between(0, 1)}}));
}

void add_multi_head_attention(IdiomGraph& g) {
  const Var x = g.sequence();
  const Heads heads = draw_heads(g);
  const auto linear = [&](Var from) {
    return contrib(g, "FusedMatMul", {from, g.weight_like(from, {from.dim(-1), heads.width()})});
  };
  const Var kv = g.chance(30) ? g.input(x.dtype(), {-1, g.between(1, 9), 6}) : x;
  const bool is_causal = kv.id() == x.id() && g.chance(40);
  const Var bias = g.chance(50) ? vector_of(g, x, 3 * heads.width()) : Var();
  Attributes attributes{{"num_heads", heads.count}, {"unidirectional", int64_t{is_causal}}};
  if (g.chance(30)) attributes.set("scale", 0.3F);
  g.leave(contrib(g, "MultiHeadAttention", {linear(x), linear(kv), linear(kv), bias}, attributes));
}

// The first tokens of a language model, and then one behind a cache.
void add_group_query_attention(IdiomGraph& g) {
  const int64_t kv_heads = g.between(1, 2), heads = kv_heads * g.between(1, 2), size = 16;
  const int64_t batch = g.between(1, 2), past = g.chance(50) ? g.between(1, 7) : 0;
  const int64_t length = past > 0 ? 1 : g.between(1, 6), total = past + length;
  const auto values = [&](Dims dims) { return g.input(DType::f32, std::move(dims)); };
  const auto cache = [&] { return past > 0 ? values({batch, kv_heads, past, size}) : Var(); };
  const bool is_rotated = g.chance(50);
  const auto angles = [&] {
    return is_rotated ? g.constant(draw_tensor(g.random(), DType::f32, {32, size / 2}, -1, 1)) : Var();
  };
  std::vector<Var> inputs{values({batch, length, heads * size}), values({batch, length, kv_heads * size}),
                          values({batch, length, kv_heads * size})};
  inputs.push_back(cache());
  inputs.push_back(cache());
  inputs.push_back(g.constant(
      Tensor::of<int32_t>({batch}, std::vector<int32_t>(static_cast<size_t>(batch), static_cast<int32_t>(total - 1)))));
  inputs.push_back(g.constant(Tensor::scalar(static_cast<int32_t>(total))));
  inputs.push_back(angles());
  inputs.push_back(angles());
  Attributes attributes{{"num_heads", heads}, {"kv_num_heads", kv_heads}, {"do_rotary", int64_t{is_rotated}}};
  if (g.chance(25)) attributes.set("local_window_size", g.between(1, 6));
  if (g.chance(25)) attributes.set("softcap", 2.0F);
  for (const Var& y : contrib_outputs(g, "GroupQueryAttention", inputs, attributes, 3)) {
    if (y.is_valid()) g.output(y);  // of a batch of its own
  }
}

void add_rotary_embedding(IdiomGraph& g) {
  const Heads heads = draw_heads(g);
  const Var x = g.input(DType::f32, {-1, g.between(1, 6), heads.width()});
  const auto angles = [&] { return g.constant(draw_tensor(g.random(), DType::f32, {12, heads.size / 2}, -1, 1)); };
  const Var first = angles(), second = angles();
  g.leave(
      contrib(g, "RotaryEmbedding", {x, g.integers({g.between(0, 5)}), first, second},
              {{"interleaved", g.between(0, 1)}, {"num_heads", heads.count}, {"rotary_embedding_dim", heads.size}}));
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
  constexpr void (*kBlocks[])(IdiomGraph&) = {add_fused_conv,       add_fused_conv,           add_fused_matmul,
                                              add_fused_gemm,       add_activations,          add_activations,
                                              add_norm_of_a_sum,    add_norm_of_a_sum,        add_simplified_norm,
                                              add_packed_attention, add_multi_head_attention, add_group_query_attention,
                                              add_rotary_embedding, add_embedding_norm};
  kBlocks[g.between(0, std::ssize(kBlocks) - 1)](g);
}

}  // namespace autograph
