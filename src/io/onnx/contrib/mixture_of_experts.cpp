// Contrib MoE and QMoE: each token chooses k experts, layers of two or three products, and adds up what they give.
//
//   y = sum over the chosen e of share_e * (fc2_e f(fc1_e x)) with f(h) = activation(h), or of pairs (swiglu)
//   f = swish(gate) * (value + beta), gate and value from fc1, or from fc1 and fc3
//
// Shares are softmax(router) over all experts, divided by their sum with normalize_routing_weights. As ONNX Runtime's
// CPU kernels, QMoE always divides. With router_weights these are the shares, and the router only chooses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"

#include "io/onnx/contrib/body.h"
#include "io/onnx/contrib/packed_numbers.h"

namespace autograph::io {
namespace {

// ---- The router ------------------------------------------------------------------------------------------------

struct Choice {
  Var index;  // i64 [tokens, k]
  Var share;  // [tokens, k]
};

// The best one by `scores`, and its share among those that are not far below: SparseMixer's way at inference (Liu et
// al. 2023, "Sparse backpropagation for MoE training"), as Phi-3.5-MoE has it.
Choice sparse_choice(Var router, Var scores) {
  constexpr double kJitter = 0.01;
  const auto [best, index] = top_k(scores, 1);
  const Var hidden = scalar_like(router, -std::numeric_limits<double>::infinity());
  const Var distance = div(sub(best, router), max({abs(router), best}));
  const Var is_far = greater(distance, scalar_like(router, 2 * kJitter));
  return {index, gather_elements(softmax(where(is_far, hidden, scores)), index, 1)};
}

Choice sparse_mixer(const ContribCall& call, Var router) {
  if (call.attributes().integer("k") != 2) call.refuse("attribute 'k'", "expected 2 with use_sparse_mixer");
  const Choice first = sparse_choice(router, router);
  const Var hidden =
      apply(get_op("expand"), {scalar_like(router, -std::numeric_limits<double>::infinity()), shape(first.index)});
  const Choice second = sparse_choice(router, scatter_elements(router, first.index, hidden, 1));
  return {concat({first.index, second.index}, 1), concat({first.share, second.share}, 1)};
}

Var normalized(Var share) { return div(share, reduce_sum(share, {1})); }

Choice choose(const ContribCall& call, bool normalizes_always) {
  const Attributes& attributes = call.attributes();
  const bool normalizes = attributes.flag("normalize_routing_weights");
  const Var router = as_dtype(call["router_probs"], DType::f32);
  if (attributes.flag("use_sparse_mixer")) {
    Choice choice = sparse_mixer(call, router);
    if (normalizes) choice.share = normalized(choice.share);
    return choice;
  }
  const auto [best, index] = top_k(router, attributes.integer("k"));
  if (normalizes_always || normalizes) return {index, softmax(best)};
  return {index, gather_elements(softmax(router), index, 1)};
}

// ---- The experts -----------------------------------------------------------------------------------------------

// Where the weights of a layer come from: product(x, index, "fc1").
using Product = Var (*)(const ContribCall& call, Var x, Var index, const std::string& layer);

Var with_bias(const ContribCall& call, Var y, Var index, const std::string& layer) {
  const Var bias = call[layer + "_experts_bias"];
  return bias.is_valid() ? add(y, gather(as_dtype(bias, DType::f32), index)) : y;
}

struct Gated {
  Var gate, value;
};

// What swiglu and geglu read of the results of fc1.
Gated gated(const ContribCall& call, Var h, Var x, Var index, Product product) {
  const int64_t fusion = call.attributes().integer("swiglu_fusion");
  call.only("swiglu_fusion", {0, 1, 2});
  if (fusion == 0) return {h, with_bias(call, product(call, x, index, "fc3"), index, "fc3")};
  if (fusion == 1) {
    return {slice(h, {0}, {kToTheEnd}, {2}, {2}), slice(h, {1}, {kToTheEnd}, {2}, {2})};
  }
  const int64_t inner = call.extent(h, 2) / 2;
  return {slice(h, {0}, {inner}, {2}), slice(h, {inner}, {2 * inner}, {2})};
}

Var swiglu_of(const ContribCall& call, Gated pair) {
  const Attributes& attributes = call.attributes();
  const float* given = attributes.find_as<float>("swiglu_limit");
  const bool limits_after = attributes.flag("swiglu_limit_after_activation");
  const bool has_limit = given && std::isfinite(*given);
  const auto limit = [&](double sign) { return scalar_like(pair.gate, sign * *given); };
  if (has_limit) {
    if (!limits_after) pair.gate = min({pair.gate, limit(1)});
    pair.value = clip(pair.value, limit(-1), limit(1));
  }
  const float alpha = attributes.real("activation_alpha"), beta = attributes.real("activation_beta");
  if (beta == 0 && !(has_limit && limits_after)) return swiglu(pair.gate, pair.value, alpha);
  Var gate = swish(pair.gate, alpha);
  if (has_limit && limits_after) gate = min({gate, limit(1)});
  return mul(gate, add(pair.value, scalar_like(gate, beta)));
}

Var activated_experts(const ContribCall& call, Var h, Var x, Var index, Product product) {
  const std::string& activation = call.attributes().text("activation_type");
  if (activation == "relu") return relu(h);
  if (activation == "relu2") return mul(relu(h), relu(h));
  if (activation == "gelu") return gelu(h, /*approximate=*/true);
  if (activation == "silu") return swish(h);
  if (activation == "identity") return h;
  if (activation == "swiglu") return swiglu_of(call, gated(call, h, x, index, product));
  if (activation == "geglu") {
    const auto [gate, value] = gated(call, h, x, index, product);
    return mul(gelu(gate, /*approximate=*/true), value);
  }
  call.refuse("attribute 'activation_type'",
              "expected relu, relu2, gelu, silu, swiglu, geglu or identity, got '" + activation + "'");
}

std::vector<Var> mixture(const ContribCall& call, const Choice& choice, Product product) {
  const Var input = call["input"];
  const int64_t rank = call.rank(input);
  if (rank != 2 && rank != 3) call.refuse("input 'input'", "expected rank 2 or 3, got " + to_string(input.type()));
  const Var tokens = as_dtype(rank == 2 ? input : reshape(input, {-1, call.extent(input, 2)}), DType::f32);
  const Var x = unsqueeze(tokens, {1});
  const Var h = with_bias(call, product(call, x, choice.index, "fc1"), choice.index, "fc1");
  const Var hidden = activated_experts(call, h, x, choice.index, product);
  const Var y = with_bias(call, product(call, hidden, choice.index, "fc2"), choice.index, "fc2");
  const Var sum = reduce_sum(mul(y, unsqueeze(choice.share, {2})), {1}, /*keepdims=*/false);
  return {as_dtype(rank == 2 ? sum : reshape(sum, shape(input)), input.dtype())};
}

// ---- MoE -------------------------------------------------------------------------------------------------------

Var float_product(const ContribCall& call, Var x, Var index, const std::string& layer) {
  const Var w = call[layer + "_experts_weights"];
  if (!w.is_valid()) call.refuse("input '" + layer + "_experts_weights'", "missing");
  return gather_matmul(x, index, as_dtype(w, DType::f32));
}

std::vector<Var> moe(ContribCall& call) {
  return mixture(call, choose(call, /*normalizes_always=*/false), float_product);
}

// ---- QMoE ------------------------------------------------------------------------------------------------------

// Blocks along the depth of weights that have one scale a row: kernels like those of a usual size.
int64_t block_of_row(int64_t depth) {
  for (const int64_t block : {128, 64, 32, 16, 8}) {
    if (depth % block == 0) return block;
  }
  return depth;
}

// Each of [experts, rows] `times` behind itself, [experts, rows, times].
Tensor repeated(const Tensor& of_rows, int64_t times) {
  Dims dims = of_rows.dims();
  dims.push_back(times);
  Tensor result = Tensor::empty(DType::f32, dims);
  auto* to = result.mutable_data<float>();
  for (int64_t i = 0; i < of_rows.num_elements(); ++i) to = std::fill_n(to, times, of_rows.data<float>()[i]);
  return result;
}

Tensor known_input(const ContribCall& call, const std::string& name) {
  const auto tensor = call.known(call[name]);
  if (!tensor) call.refuse("input '" + name + "'", call.has(name) ? "computed ones are not supported" : "missing");
  return *tensor;
}

// What gather_block_matmul takes, and how many bits numbers have.
struct ExpertWeights {
  Tensor q, scale, zero;
  int64_t depth, bits;
};

class QuantizedLayer {
 public:
  QuantizedLayer(const ContribCall& call, const std::string& layer) : call_(call), layer_(layer) {
    const Attributes& attributes = call.attributes();
    const int64_t* of_layer = attributes.find_as<int64_t>(layer + "_expert_weight_bits");
    bits_ = of_layer ? *of_layer : attributes.integer("expert_weight_bits");
    if (bits_ != 2 && bits_ != 4 && bits_ != 8) {
      call.refuse("attribute 'expert_weight_bits'", std::to_string(bits_) + " is not supported");
    }
    q_ = known_input(call, layer + "_experts_weights");
    if (q_.rank() != 3 || q_.dtype() != DType::u8 || q_.num_elements() == 0) {
      call.refuse("input '" + layer + "_experts_weights'", "expected u8 of rank 3, got " + to_string(q_.type()));
    }
    experts_ = q_.dims()[0], rows_ = q_.dims()[1], depth_ = q_.dims()[2] * 8 / bits_;
    scales_ = known_input(call, layer + "_scales");
    is_by_row_ = scales_.rank() == 2 || (scales_.rank() == 3 && scales_.dims()[2] == 1);
    blocks_ = is_by_row_ ? depth_ / block_of_row(depth_) : scales_.rank() == 3 ? scales_.dims()[2] : 0;
    const bool fits = blocks_ > 0 && depth_ % blocks_ == 0 && depth_ / blocks_ * bits_ % 8 == 0 &&
                      scales_.num_elements() == experts_ * rows_ * (is_by_row_ ? 1 : blocks_);
    if (!fits) {
      call.refuse("input '" + layer + "_scales'",
                  to_string(scales_.type()) + " does not go with weights " + to_string(q_.type()));
    }
  }

  ExpertWeights weights() const {
    // There are no kernels for two bits.
    const int64_t bits = std::max<int64_t>(bits_, 4);
    const Tensor q = bits == bits_ ? q_ : repack_numbers(q_, bits_, bits);
    return {q.reshaped({experts_, rows_, blocks_, depth_ / blocks_ * bits / 8}), by_block(scales_), zero(bits), depth_,
            bits};
  }

 private:
  Tensor by_block(const Tensor& numbers) const {
    if (is_by_row_) return repeated(floats_of(numbers, {experts_, rows_}), blocks_);
    return floats_of(numbers, {experts_, rows_, blocks_});
  }

  // Absent where it is the middle of numbers of so many bits.
  Tensor zero(int64_t bits) const {
    const std::string name = layer_ + "_zero_points";
    if (!call_.has(name)) {
      if (bits == bits_) return {};
      const auto middle = static_cast<float>(1 << (bits_ - 1));
      return repeated(
          Tensor::of<float>({experts_, rows_}, std::vector<float>(static_cast<size_t>(experts_ * rows_), middle)),
          blocks_);
    }
    const Tensor packed = known_input(call_, name);
    // Along the blocks of a row, or along the rows of an expert.
    const bool has_blocks = scales_.rank() == 3;
    const int64_t count = has_blocks ? scales_.dims()[2] : rows_, lines = has_blocks ? experts_ * rows_ : experts_;
    const int64_t line_bytes = (count * bits_ + 7) / 8;
    if (packed.dtype() != DType::u8 || packed.num_elements() != lines * line_bytes) {
      call_.refuse("input '" + name + "'",
                   "expected " + std::to_string(lines * line_bytes) + " bytes, got " + to_string(packed.type()));
    }
    const Tensor numbers = unpack_numbers(packed.reshaped({lines, line_bytes}), bits_, count);
    return by_block(numbers);
  }

  const ContribCall& call_;
  std::string layer_;
  Tensor q_, scales_;
  int64_t bits_ = 0, experts_ = 0, rows_ = 0, depth_ = 0, blocks_ = 0;
  bool is_by_row_ = false;
};

Var quantized_product(const ContribCall& call, Var x, Var index, const std::string& layer) {
  const ExpertWeights w = QuantizedLayer(call, layer).weights();
  const Var zero = w.zero.is_present() ? call.constant(w.zero) : Var();
  // What lets ONNX Runtime round x to bytes lets kernels round it to 16 bits.
  const bool rounds = call.attributes().integer("accuracy_level") >= 2 || w.bits == 8;
  return gather_block_matmul(x, index, call.constant(w.q), call.constant(w.scale), zero, w.depth, w.bits,
                             rounds ? 16 : 32);
}

std::vector<Var> qmoe(ContribCall& call) {
  const std::string& type = call.attributes().text("quant_type");
  if (type != "int") call.refuse("attribute 'quant_type'", "'" + type + "' is not supported, only 'int'");
  // Layouts of GPUs but for what raw bytes are.
  call.only("weights_prepacked", {-1, 0});
  Choice choice = choose(call, /*normalizes_always=*/true);
  if (const Var given = call["router_weights"]; given.is_valid()) {
    const Var share = gather_elements(as_dtype(given, DType::f32), choice.index, 1);
    choice.share = call.attributes().flag("normalize_routing_weights") ? normalized(share) : share;
  }
  return mixture(call, choice, quantized_product);
}

std::vector<AttributeSpec> attributes_of_mixtures(std::vector<AttributeSpec> more) {
  more.insert(more.end(),
              {with_default("k", int64_t{1}), with_default("activation_type", std::string("relu")),
               with_default("activation_alpha", 1.0F), with_default("activation_beta", 0.0F),
               with_default("normalize_routing_weights", int64_t{0}), with_default("use_sparse_mixer", int64_t{0}),
               with_default("swiglu_fusion", int64_t{0}), optional_attribute("swiglu_limit", AttributeType::real),
               with_default("swiglu_limit_after_activation", int64_t{0})});
  return more;
}

}  // namespace

std::vector<ContribOp> contrib_mixture_of_experts() {
  const std::string shared =
      "top_k, softmax, gather_elements, scatter_elements, gather, swiglu, swish, gelu, relu, mul, add, reduce_sum, ";
  // Names of ops live as long as the table.
  static const std::string of_floats = shared + "gather_matmul", of_numbers = shared + "gather_block_matmul";
  return {
      contrib_op("MoE",
                 "input, router_probs, fc1_experts_weights, fc1_experts_bias?, fc2_experts_weights, fc2_experts_bias?, "
                 "fc3_experts_weights?, fc3_experts_bias?",
                 "output", of_floats, moe, attributes_of_mixtures({})),
      contrib_op("QMoE",
                 "input, router_probs, fc1_experts_weights, fc1_scales?, fc1_experts_bias?, fc2_experts_weights, "
                 "fc2_scales?, fc2_experts_bias?, fc3_experts_weights?, fc3_scales?, fc3_experts_bias?, "
                 "fc1_zero_points?, fc2_zero_points?, fc3_zero_points?, router_weights?",
                 "output", of_numbers, qmoe,
                 attributes_of_mixtures(
                     {with_default("expert_weight_bits", int64_t{4}),
                      optional_attribute("fc1_expert_weight_bits", AttributeType::integer),
                      optional_attribute("fc2_expert_weight_bits", AttributeType::integer),
                      optional_attribute("fc3_expert_weight_bits", AttributeType::integer),
                      with_default("block_size", int64_t{0}), with_default("quant_type", std::string("int")),
                      with_default("weights_prepacked", int64_t{-1}), with_default("accuracy_level", int64_t{0})})),
  };
}

}  // namespace autograph::io
