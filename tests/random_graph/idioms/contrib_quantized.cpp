// What ONNX Runtime's quantiser writes: elementwise ops, pools, joins and convolutions of bytes, products and attention
// with scales around them, weights in blocks of few bits, experts, 8-bit LSTMs.
#include <algorithm>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/contrib_call.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// Bytes with what they stand for.
struct Bytes {
  Var values, scale, zero;
};

Var scale_of(IdiomGraph& g, double low = 0.01, double high = 0.06) {
  return g.constant(Tensor::scalar(static_cast<float>(g.real(low, high))));
}

Var zero_of(IdiomGraph& g, DType dtype) {
  const int64_t value = dtype == DType::u8 ? g.one_of<int64_t>({0, 128, 119}) : g.one_of<int64_t>({0, -128, 11});
  return dtype == DType::u8 ? g.constant(Tensor::scalar(static_cast<uint8_t>(value)))
                            : g.constant(Tensor::scalar(static_cast<int8_t>(value)));
}

Bytes quantized(IdiomGraph& g, Var x, DType dtype) {
  const Var scale = scale_of(g), zero = zero_of(g, dtype);
  return {quantize_linear(in_f32(x), scale, zero), scale, zero};
}

// Goes on with bytes made of `inputs`, as floats.
void leave_bytes(IdiomGraph& g, Var like, Bytes y) {
  g.leave(cast(dequantize_linear(y.values, y.scale, y.zero), like.dtype()));
}

DType draw_bytes(IdiomGraph& g) { return g.one_of({DType::u8, DType::i8}); }

void add_sum_or_product(IdiomGraph& g) {
  const Var x = g.chance(50) ? g.image() : g.sequence();
  const DType dtype = draw_bytes(g);
  const Bytes a = quantized(g, x, dtype);
  const Bytes b =
      g.chance(60) ? quantized(g, x, dtype) : quantized(g, g.per_channel(x, x.rank() == 4 ? 1 : -1, -1, 1), dtype);
  const Var scale = scale_of(g, 0.02, 0.1), zero = zero_of(g, dtype);
  const char* op = g.chance(60) ? "QLinearAdd" : "QLinearMul";
  const Var y = contrib(g, op, {a.values, a.scale, a.zero, b.values, b.scale, b.zero, scale, zero});
  leave_bytes(g, x, {y, scale, zero});
}

void add_function(IdiomGraph& g) {
  const Var x = g.chance(50) ? g.image() : g.sequence();
  const Bytes a = quantized(g, x, draw_bytes(g));
  // What sigmoid and softmax give lies between 0 and 1.
  const Var unit = g.constant(Tensor::scalar(1.0F / 256)), scale = scale_of(g);
  const Var lowest =
      a.values.dtype() == DType::u8 ? g.constant(Tensor::scalar(uint8_t{0})) : g.constant(Tensor::scalar(int8_t{-128}));
  const std::vector<Var> to_unit{a.values, a.scale, a.zero, unit, lowest};
  switch (g.between(0, 2)) {
    case 0: {
      const Var y = contrib(g, "QLinearLeakyRelu", {a.values, a.scale, a.zero, scale, a.zero}, {{"alpha", 0.1F}});
      return leave_bytes(g, x, {y, scale, a.zero});
    }
    case 1: return leave_bytes(g, x, {contrib(g, "QLinearSigmoid", to_unit), unit, lowest});
    default: {
      const Var y = contrib(g, "QLinearSoftmax", to_unit, {{"axis", int64_t{-1}}, {"opset", int64_t{13}}});
      leave_bytes(g, x, {y, unit, lowest});
    }
  }
}

void add_pool(IdiomGraph& g) {
  const Var x = g.image();
  const Bytes a = quantized(g, x, draw_bytes(g));
  const Var scale = scale_of(g);
  const std::vector<Var> inputs{a.values, a.scale, a.zero, scale, a.zero};
  if (g.chance(50)) {
    return leave_bytes(
        g, x, {contrib(g, "QLinearGlobalAveragePool", inputs, {{"channels_last", int64_t{0}}}), scale, a.zero});
  }
  const Attributes window{{"kernel_shape", std::vector<int64_t>{3, 3}},
                          {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                          {"strides", std::vector<int64_t>(2, g.between(1, 2))}};
  leave_bytes(g, x, {contrib(g, "QLinearAveragePool", inputs, window), scale, a.zero});
}

void add_mean(IdiomGraph& g) {
  const Var x = g.chance(50) ? g.image() : g.sequence();
  const Bytes a = quantized(g, x, draw_bytes(g));
  const Var scale = scale_of(g);
  const std::vector<int64_t> axes = x.rank() == 4 ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{-1};
  const Var y = contrib(g, "QLinearReduceMean", {a.values, a.scale, a.zero, scale, a.zero},
                        {{"axes", axes}, {"keepdims", int64_t{1}}});
  leave_bytes(g, x, {y, scale, a.zero});
}

void add_choice(IdiomGraph& g) {
  const Var x = g.chance(50) ? g.image() : g.sequence();
  const DType dtype = draw_bytes(g);
  const Bytes a = quantized(g, x, dtype);
  const Bytes b = quantized(g, g.per_channel(x, x.rank() == 4 ? 1 : -1, -1, 1), dtype);
  const Var scale = scale_of(g), zero = zero_of(g, dtype);
  const Var y =
      contrib(g, "QLinearWhere",
              {greater(x, g.number(x, 0.1)), a.values, a.scale, a.zero, b.values, b.scale, b.zero, scale, zero});
  leave_bytes(g, x, {y, scale, zero});
}

// Channels first or last, with a pool behind.
void add_quantized_conv(IdiomGraph& g) {
  const Var x = g.image();
  const int64_t out = g.channels(), is_last = g.between(0, 1), kernel = g.one_of<int64_t>({1, 3});
  const Bytes a = quantized(g, x, draw_bytes(g));
  const DType bytes = a.values.dtype();
  const Dims per_channel = g.chance(50) ? Dims{out} : Dims{};
  const Var w = g.constant(draw_tensor(g.random(), DType::i8, {out, x.dim(1), kernel, kernel}, -127, 127));
  const Var w_scale = g.constant(draw_tensor(g.random(), DType::f32, per_channel, 0.001, 0.01));
  const Var w_zero = g.constant(Tensor::zeros(DType::i8, per_channel));
  const Var scale = scale_of(g, 0.02, 0.1), zero = zero_of(g, bytes);
  const Var b = g.chance(50) ? g.constant(draw_tensor(g.random(), DType::i32, {out}, -300, 300)) : Var();
  const Var image = is_last ? transpose(a.values, {0, 2, 3, 1}) : a.values;
  Var y = contrib(g, "QLinearConv", {image, a.scale, a.zero, w, w_scale, w_zero, scale, zero, b},
                  {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                   {"pads", std::vector<int64_t>(4, kernel / 2)},
                   {"channels_last", is_last}});
  const Var y_scale = scale_of(g);
  const bool is_pooled = g.chance(50);
  if (is_pooled) {
    y = contrib(g, "QLinearGlobalAveragePool", {y, scale, zero, y_scale, zero}, {{"channels_last", is_last}});
  }
  leave_bytes(g, x, {is_last ? transpose(y, {0, 3, 1, 2}) : y, is_pooled ? y_scale : scale, zero});
}

void add_join(IdiomGraph& g) {
  const Var x = g.image();
  const DType dtype = draw_bytes(g);
  const Var scale = scale_of(g), zero = zero_of(g, dtype);
  std::vector<Var> inputs{scale, zero};
  for (int64_t pieces = g.between(1, 3); pieces > 0; --pieces) {
    const Bytes piece = quantized(g, x, dtype);
    for (const Var& v : {piece.values, piece.scale, piece.zero}) inputs.push_back(v);
  }
  leave_bytes(g, x, {contrib(g, "QLinearConcat", inputs, {{"axis", int64_t{1}}}), scale, zero});
}

Bytes weights(IdiomGraph& g, Dims dims, bool is_per_column) {
  const Dims scales = is_per_column ? Dims{dims.back()} : Dims{};
  const DType dtype = g.chance(80) ? DType::i8 : DType::u8;
  const double low = dtype == DType::u8 ? 0 : -127, high = dtype == DType::u8 ? 255 : 127;
  const Var values = g.constant(draw_tensor(g.random(), dtype, dims, low, high));
  const Var scale = g.constant(draw_tensor(g.random(), DType::f32, scales, 0.001, 0.01));
  return {values, scale, g.constant(draw_tensor(g.random(), dtype, scales, 0, dtype == DType::u8 ? 128 : 5))};
}

Var maybe_bias(IdiomGraph& g, int64_t count) {
  return g.chance(60) ? g.constant(draw_tensor(g.random(), DType::f32, {count}, -0.5, 0.5)) : Var();
}

void add_product(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t out = g.channels();
  const Bytes w = weights(g, {x.dim(-1), out}, g.chance(50));
  if (g.chance(50)) {
    // Numbers that are all alike have a zero point in the middle between two: not here.
    const Var shifted = add(in_f32(x), g.number(in_f32(x), 0.3));
    const Var y = contrib(g, "DynamicQuantizeMatMul", {shifted, w.values, w.scale, w.zero, maybe_bias(g, out)});
    return g.leave(cast(y, x.dtype()));
  }
  const Bytes a = quantized(g, x, draw_bytes(g));
  const Var y =
      contrib(g, "MatMulIntegerToFloat", {a.values, w.values, a.scale, w.scale, a.zero, w.zero, maybe_bias(g, out)});
  g.leave(cast(y, x.dtype()));
}

void add_gemm(IdiomGraph& g) {
  const Var x = g.row();
  const int64_t out = g.channels();
  const Bytes a = quantized(g, x, draw_bytes(g));
  const Bytes w = weights(g, {x.dim(-1), out}, false);
  const Var c = g.chance(50) ? g.constant(draw_tensor(g.random(), DType::i32, {out}, -300, 300)) : Var();
  std::vector<Var> inputs{a.values, a.scale, a.zero, w.values, w.scale, w.zero, c};
  if (g.chance(40)) return g.leave(cast(contrib(g, "QGemm", inputs), x.dtype()));
  const Var scale = scale_of(g), zero = zero_of(g, a.values.dtype());
  inputs.insert(inputs.end(), {scale, zero});
  leave_bytes(g, x, {contrib(g, "QGemm", inputs), scale, zero});
}

// In a batch of its own, which the cache and the numbers of keys have, too.
void add_quantized_attention(IdiomGraph& g) {
  const int64_t batch = g.between(1, 2), length = g.between(1, 6), width = g.between(3, 20);
  const int64_t heads = g.between(1, 3), size = g.one_of<int64_t>({4, 8}), packed = 3 * heads * size;
  const int64_t past = g.chance(50) ? g.between(1, 5) : 0;
  const Bytes x = quantized(g, g.input(DType::f32, {batch, length, width}), DType::u8);
  const Bytes w = weights(g, {width, packed}, g.chance(50));
  const Var bias = g.constant(draw_tensor(g.random(), DType::f32, {packed}, -0.5, 0.5));
  const Var counts = g.chance(50) ? g.input(DType::i32, {batch}, 1, static_cast<double>(length + past)) : Var();
  const Var cache = past > 0 ? g.input(DType::f32, {2, batch, heads, past, size}) : Var();
  const auto outputs =
      contrib_outputs(g, "QAttention", {x.values, w.values, bias, x.scale, w.scale, counts, x.zero, w.zero, cache},
                      {{"num_heads", heads}, {"unidirectional", g.between(0, 1)}}, past > 0 ? 2 : 1);
  for (const Var& y : outputs) g.output(y);
}

// Weights of 4 or 8 bits with a scale for each block of a column.
void add_block_product(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t bits = g.one_of<int64_t>({4, 4, 8}), block = g.one_of<int64_t>({16, 32});
  const int64_t n = g.channels(), k = x.dim(-1), blocks = (k + block - 1) / block;
  const auto packed = [&](Dims dims) {
    return g.constant(draw_tensor(g.random(), DType::u8, std::move(dims), 0, 255));
  };
  const Var q = packed({n, blocks, block * bits / 8});
  const Var scale = g.constant(draw_tensor(g.random(), DType::f32, {n, blocks}, 0.004, 0.05));
  Var zero;
  if (g.chance(40)) zero = packed({n, (blocks * bits + 7) / 8});
  if (!zero.is_valid() && g.chance(20)) zero = g.constant(draw_tensor(g.random(), DType::f32, {n, blocks}, 0, 15));
  const Var y = contrib(
      g, "MatMulNBits", {in_f32(x), q, scale, zero, Var(), maybe_bias(g, n)},
      {{"bits", bits}, {"block_size", block}, {"N", n}, {"K", k}, {"accuracy_level", g.one_of<int64_t>({0, 1, 4})}});
  g.leave(cast(y, x.dtype()));
}

// A layer of experts of which each token chooses some: router, two or three products, an activation.
void add_experts(IdiomGraph& g) {
  const Var x = in_f32(g.sequence());
  const int64_t experts = g.between(2, 6), chosen = g.between(1, std::min<int64_t>(3, experts));
  const int64_t bits = g.one_of<int64_t>({2, 4, 4, 8, 32}), block = g.chance(70) ? 16 : 0;
  const int64_t width = 16 * g.between(1, 2), inner = 16 * g.between(1, 2);
  const bool is_gated = g.chance(60), is_packed = bits < 32;
  const Var fit = g.constant(draw_tensor(g.random(), DType::f32, {x.dim(-1), width}, -0.5, 0.5));
  const Var tokens = matmul(x, fit);
  const Var scores = matmul(tokens, g.constant(draw_tensor(g.random(), DType::f32, {width, experts}, -1, 1)));
  std::vector<Var> inputs{tokens, reshape(scores, std::vector<int64_t>{-1, experts})};
  const auto add_layer = [&](int64_t rows, int64_t depth) {
    if (is_packed) {
      const Dims scales = block > 0 ? Dims{experts, rows, depth / block} : Dims{experts, rows};
      inputs.push_back(g.constant(draw_tensor(g.random(), DType::u8, {experts, rows, depth * bits / 8}, 0, 255)));
      inputs.push_back(g.constant(draw_tensor(g.random(), DType::f32, scales, 0.2 / (1 << bits), 0.5 / (1 << bits))));
    } else {
      inputs.push_back(g.constant(draw_tensor(g.random(), DType::f32, {experts, rows, depth}, -0.3, 0.3)));
    }
    inputs.push_back(g.chance(50) ? g.constant(draw_tensor(g.random(), DType::f32, {experts, rows}, -0.5, 0.5))
                                  : Var());
  };
  add_layer(is_gated ? 2 * inner : inner, width);
  add_layer(width, inner);
  Attributes attributes{{"k", chosen},
                        {"activation_type", std::string(is_gated ? "swiglu" : g.one_of({"relu", "gelu", "silu"}))},
                        {"swiglu_fusion", g.between(1, 2)},
                        {"normalize_routing_weights", g.between(0, 1)}};
  if (is_gated && g.chance(50)) {
    attributes.set("swiglu_limit", 0.7F);
    attributes.set("activation_beta", 1.0F);
  }
  if (is_packed) attributes.set("expert_weight_bits", bits);
  if (is_packed && block > 0) attributes.set("block_size", block);
  g.leave(contrib(g, is_packed ? "QMoE" : "MoE", inputs, attributes));
}

void add_block_gather(IdiomGraph& g) {
  const int64_t bits = g.one_of<int64_t>({4, 8}), block = 16, rows = g.between(2, 12), width = block * g.between(1, 2);
  const Var ids = g.input(DType::i64, {-1, -2}, 0, static_cast<double>(rows - 1));
  const Var data = g.constant(draw_tensor(g.random(), DType::u8, {rows, width * bits / 8}, 0, 255));
  const Var scale = g.constant(draw_tensor(g.random(), DType::f32, {rows, width / block}, 0.004, 0.05));
  g.leave(contrib(g, "GatherBlockQuantized", {data, ids, scale},
                  {{"bits", bits}, {"block_size", block}, {"gather_axis", int64_t{0}}, {"quantize_axis", int64_t{1}}}));
}

void add_lstm(IdiomGraph& g) {
  const int64_t size = g.between(1, 8), hidden = g.between(1, 8);
  const char* direction = g.one_of({"forward", "reverse", "bidirectional"});
  const int64_t directions = direction[0] == 'b' ? 2 : 1;
  const Var x = g.input(DType::f32, {g.between(1, 8), g.between(1, 3), size}, -1, 1);
  const auto bytes = [&](int64_t rows) {
    return g.constant(draw_tensor(g.random(), DType::i8, {directions, rows, 4 * hidden}, -127, 127));
  };
  const Dims per = g.chance(50) ? Dims{directions, 4 * hidden} : Dims{directions};
  const auto scale = [&] { return g.constant(draw_tensor(g.random(), DType::f32, per, 0.002, 0.006)); };
  const Var w = bytes(size), r = bytes(hidden), w_scale = scale(), r_scale = scale();
  const Var zero = g.constant(Tensor::zeros(DType::i8, per));
  const Var b =
      g.chance(70) ? g.constant(draw_tensor(g.random(), DType::f32, {directions, 8 * hidden}, -0.5, 0.5)) : Var();
  const std::vector<Var> inputs{x, w, r, b, Var(), Var(), Var(), Var(), w_scale, zero, r_scale, zero};
  const std::vector<Var> y = apply_all(get_op("dynamic_quantize_lstm"), inputs,
                                       {{"hidden_size", hidden}, {"direction", std::string(direction)}}, 3);
  for (const Var& v : y) g.output(v);  // its batch is the second axis
}

}  // namespace

void add_contrib_quantized(IdiomGraph& g) {
  constexpr void (*kBlocks[])(IdiomGraph&) = {
      add_sum_or_product, add_sum_or_product, add_function,     add_pool,    add_mean,
      add_choice,         add_quantized_conv, add_join,         add_product, add_product,
      add_gemm,           add_block_product,  add_block_gather, add_lstm,    add_quantized_attention,
      add_experts};
  kBlocks[g.between(0, std::ssize(kBlocks) - 1)](g);
}

}  // namespace autograph
