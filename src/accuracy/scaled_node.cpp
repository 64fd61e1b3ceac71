// Scales of one node's outputs. A rule each for
//   elementwise ops    each operand is moved up and down by what it may be off; what the result moves by adds up
//   sums of products   the op itself on squares: sum of (x^2 + sx^2) * (w^2 + sw^2)
//   sums               the op itself on scales and magnitudes
//   moves of elements  the op itself on scales
//   groups of nodes    node by node
//   all others         all operands are moved at random, some times; the largest move of the result counts
// Errors of different operands and terms are taken for independent: squares add up. Results are off by their own
// rounding, too. All of it is an estimate, on the large side; tolerances leave room above it (see compare_values.h).
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "accuracy/real_tensor.h"
#include "accuracy/scaled_tensor.h"
#include "base/check.h"
#include "base/parallel_for.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// Scales beyond this say nothing any more, and their squares must stay finite.
constexpr double kLargestScale = 1e100;
// How often operands are moved at random. Each direction comes up once with a chance of 1 - 2^-n.
constexpr int kProbes = 5;
// Outputs of a tile of Winograd's algorithm, on an axis.
constexpr int64_t kTile = 4;
// From here on a second thread pays.
constexpr double kManyFlops = 1e7;

using OpSet = std::set<const OpDef*>;

// Sums of products of their first two operands, the third one added.
bool is_product(const OpDef& op) {
  static const OpSet kProducts = {&conv_def(), &conv_transpose_def(), &conv_grad_weight_def(), &matmul_def(),
                                  &gemm_def()};
  return kProducts.contains(&op);
}

// Is the operand a term of a sum? Then it counts itself, not only what the sum comes to. Batch norms may be computed as
// x times a factor plus (bias - mean times that factor).
bool is_term(const OpDef& op, size_t slot) {
  static const OpSet kSums = {&add_def(), &sub_def(), &sum_def(), &mean_def()};
  const bool is_batch_norm = &op == &batch_normalization_def();
  return kSums.contains(&op) || (is_batch_norm && (slot == 0 || slot == 2 || slot == 3));
}

// Sums of one operand. What makes its elements be off is often the same for all, such as a rounded weight of the
// convolution before: scales add up themselves, not their squares.
bool is_average(const OpDef& op) {
  static const OpSet kAverages = {&average_pool_def(), &global_average_pool_def(), &reduce_mean_def(),
                                  &reduce_sum_def()};
  return kAverages.contains(&op);
}

// Each element of an output is one of the operands of the output's type.
bool is_move(const OpDef& op) {
  static const OpSet kChoices = {&max_pool_def(),         &reduce_max_def(), &global_max_pool_def(),
                                 &scatter_elements_def(), &scatter_nd_def(), &identity_def()};
  return op.traits.moves || kChoices.contains(&op);
}

// Made of terms as large as the operand or 1, which may cancel: gelu(-6) is 0.5 * -6 + 0.5 * 6 but for the last digits.
bool is_composed(const OpDef& op) {
  static const OpSet kComposed = {&gelu_def(),         &swish_def(),    &hard_swish_def(), &mish_def(), &sigmoid_def(),
                                  &hard_sigmoid_def(), &softplus_def(), &elu_def(),        &selu_def(), &celu_def(),
                                  &tanh_def(),         &erf_def(),      &log_def(),        &sin_def(),  &cos_def(),
                                  &tan_def(),          &sinh_def(),     &asin_def(),       &atanh_def()};
  return kComposed.contains(&op);
}
// Their share of epsilon: these are single roundings, no sums of many.
constexpr double kComposedShare = 0.01;

// Elementwise in operand 0, by a reference of their own; batch norms while they train are sums.
bool is_elementwise(const OpDef& op, const Attributes& attributes) {
  static const OpSet kElementwise = {&quantize_linear_def(), &dequantize_linear_def(), &batch_normalization_def()};
  return op.scalar || (kElementwise.contains(&op) && !attributes.flag("training_mode"));
}

bool is_float(const Tensor& tensor) { return dtypes::kFloat.contains(tensor.dtype()); }

class ScaledNode {
 public:
  ScaledNode(const OpDef& op, const Attributes& attributes, std::span<const ScaledTensor> inputs,
             std::span<const Type> types, const ErrorModel& model)
      : op_(op), attributes_(attributes), inputs_(inputs), types_(types), model_(model) {
    for (const ScaledTensor& input : inputs) values_.push_back(input.value);
  }

  std::vector<ScaledTensor> run() {
    if (is_product(op_) && is_float(values_[0])) return products();
    std::vector<ScaledTensor> outputs;
    for (Tensor& value : run_reference(op_, attributes_, values_, types_)) outputs.push_back({std::move(value), {}});
    if (!may_be_off()) return outputs;
    if (is_move(op_)) {
      move(outputs);
    } else if (is_average(op_) && is_float(values_[0])) {
      average(outputs);
    } else if (is_elementwise(op_, attributes_)) {
      elementwise(outputs);
    } else {
      probe(outputs);
    }
    return outputs;
  }

 private:
  // Integers that come from integers are what they are.
  bool may_be_off() const {
    if (op_.traits.random) return false;
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [](const ScaledTensor& input) { return input.scale.is_present() || is_float(input.value); });
  }

  // ---- Sums of products --------------------------------------------------------------------------------------------

  // x^2 + sx^2; what is not finite says nothing.
  static Tensor squares(const ScaledTensor& input) {
    if (!input.value.is_present()) return {};
    std::vector<double> result = input.value.to_f64();
    const double* scale = input.scale.is_present() ? input.scale.data<double>() : nullptr;
    for (size_t i = 0; i < result.size(); ++i) {
      const double x = std::isfinite(result[i]) ? std::min(std::fabs(result[i]), kLargestScale) : 0;
      result[i] = x * x + (scale ? scale[i] * scale[i] : 0);
    }
    return Tensor::of<double>(input.value.dims(), result);
  }

  std::vector<ScaledTensor> products() {
    std::vector<Tensor> of_squares;
    for (const ScaledTensor& input : inputs_) of_squares.push_back(squares(input));
    Attributes on_squares = attributes_;
    for (const char* factor : {"alpha", "beta"}) {
      if (const auto* number = attributes_.find_as<float>(factor)) on_squares.set(factor, *number * *number);
    }
    const std::vector<Type> wide{Type(DType::f64, types_[0].shape())};
    std::vector<Tensor> values;
    std::vector<Tensor> sums;
    std::vector<Type> input_types;
    for (const Tensor& value : values_) input_types.push_back(value.is_present() ? value.type() : Type());
    const double flops = cost_of(op_, {attributes_, input_types, types_}).flops;
    parallel_for(2, flops > kManyFlops ? 2 : 1, [&](size_t which) {
      if (which == 0) values = run_reference(op_, attributes_, values_, types_.subspan(0, 1));
      if (which == 1) sums = run_reference(op_, on_squares, of_squares, wide);
    });
    spread_windows(sums[0]);
    std::vector<ScaledTensor> outputs{{std::move(values[0]), {}}};
    set_scale(outputs[0], sums[0].elements<double>());
    return outputs;
  }

  // Winograd's algorithm computes tiles of outputs from all that they read together, and what is added to an output on
  // the way there is taken away again.
  void spread_windows(Tensor& sums) const {
    if (model_.exact || &op_ != &conv_def() || sums.rank() != 4 || sums.num_elements() == 0) return;
    if (values_[1].dims()[2] != 3 || values_[1].dims()[3] != 3) return;
    const int64_t height = sums.dims()[2];
    const int64_t width = sums.dims()[3];
    const int64_t planes = sums.dims()[0] * sums.dims()[1];
    std::vector<double> line;
    const auto spread = [&](double* data, int64_t extent, int64_t stride) {
      line.resize(static_cast<size_t>(extent));
      for (int64_t i = 0; i < extent; ++i) line[static_cast<size_t>(i)] = data[i * stride];
      for (int64_t i = 0; i < extent; ++i) {
        const auto begin = line.begin() + std::max<int64_t>(i - kTile + 1, 0);
        const auto end = line.begin() + std::min<int64_t>(i + kTile, extent);
        data[i * stride] = *std::max_element(begin, end);
      }
    };
    auto* data = sums.mutable_data<double>();
    for (int64_t plane = 0; plane < planes; ++plane, data += height * width) {
      for (int64_t y = 0; y < height; ++y) spread(data + y * width, width, 1);
      for (int64_t x = 0; x < width; ++x) spread(data + x, height, width);
    }
  }

  // scale^2 = squares + value^2
  static void set_scale(ScaledTensor& output, std::span<const double> squares) {
    const std::vector<double> values = output.value.to_f64();
    const bool is_rounded = is_float(output.value);
    std::vector<double> scale(values.size());
    for (size_t i = 0; i < scale.size(); ++i) {
      const double own = is_rounded && std::isfinite(values[i]) ? std::min(std::fabs(values[i]), kLargestScale) : 0;
      const double all = std::sqrt(std::max(squares[i], 0.0) + own * own);
      scale[i] = all < kLargestScale ? all : kLargestScale;  // NaN, too
    }
    output.scale = Tensor::of<double>(output.value.dims(), scale);
  }

  // ---- Moves of elements -------------------------------------------------------------------------------------------

  bool is_moved(size_t slot) const {
    if (op_.inputs.empty() || op_.outputs.empty()) return false;
    return op_.inputs[std::min(slot, op_.inputs.size() - 1)].type_var == op_.outputs[0].type_var;
  }

  void move(std::vector<ScaledTensor>& outputs) const {
    std::vector<Tensor> scales;
    bool any = false;
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      const ScaledTensor& input = inputs_[slot];
      const bool is_data = is_moved(slot) && input.value.is_present();
      any = any || (is_data && input.scale.is_present());
      if (!is_data) {
        scales.push_back(input.value);
      } else {
        scales.push_back(input.scale.is_present() ? input.scale : Tensor::zeros(DType::f64, input.value.dims()));
      }
    }
    if (!any) return;
    std::vector<Type> types;
    for (size_t k = 0; k < types_.size(); ++k) {
      const bool is_data = op_.outputs[std::min(k, op_.outputs.size() - 1)].type_var == op_.outputs[0].type_var;
      types.push_back(is_data ? Type(DType::f64, types_[k].shape()) : types_[k]);
    }
    std::vector<Tensor> moved = run_reference(op_, attributes_, scales, types);
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (types[k].dtype() == DType::f64) outputs[k].scale = std::move(moved[k]);
    }
  }

  void average(std::vector<ScaledTensor>& outputs) const {
    std::vector<Tensor> operands = values_;
    operands[0] = Tensor::of<double>(values_[0].dims(), reach(inputs_[0], true));
    const std::vector<Type> types{Type(DType::f64, types_[0].shape())};
    std::vector<double> squares = run_reference(op_, attributes_, operands, types)[0].to_f64();
    for (double& scale : squares) scale *= scale;
    set_scale(outputs[0], squares);
  }

  // ---- All others --------------------------------------------------------------------------------------------------

  // By how much the elements of an operand may be off, as a multiple of epsilon.
  std::vector<double> reach(const ScaledTensor& input, bool with_value) const {
    std::vector<double> result(static_cast<size_t>(input.value.num_elements()), 0.0);
    if (input.scale.is_present()) std::copy_n(input.scale.data<double>(), result.size(), result.begin());
    if (!with_value || !is_float(input.value)) return result;
    const std::vector<double> values = input.value.to_f64();
    for (size_t i = 0; i < result.size(); ++i) {
      if (std::isfinite(values[i])) result[i] = std::hypot(result[i], values[i]);
    }
    return result;
  }

  // Operands and outputs in f64, where the op has a formula for that: differences are small.
  void widen(std::vector<Tensor>& operands, std::vector<Type>& types) const {
    if (!op_.scalar || !is_float(operands[0]) || op_.inputs[0].type_var != op_.outputs[0].type_var) return;
    std::vector<DType> dtypes;
    for (const Tensor& operand : operands) dtypes.push_back(is_float(operand) ? DType::f64 : operand.dtype());
    if (!op_.scalar(dtypes, DType::f64)) return;
    for (Tensor& operand : operands) {
      if (is_float(operand)) operand = as_f64(operand);
    }
    types[0] = Type(DType::f64, types[0].shape());
  }

  void elementwise(std::vector<ScaledTensor>& outputs) const {
    std::vector<Tensor> operands = values_;
    std::vector<Type> types(types_.begin(), types_.end());
    widen(operands, types);
    const std::vector<double> base = run_reference(op_, attributes_, operands, types)[0].to_f64();
    std::vector<double> squares(base.size(), 0.0);
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      const ScaledTensor& input = inputs_[slot];
      if (!input.value.is_present() || !is_real(input.value.dtype())) continue;
      const bool counts = is_term(op_, slot);
      if (!input.scale.is_present() && !(counts && is_float(input.value))) continue;
      const std::vector<double> reached = reach(input, counts);
      std::vector<double> largest(base.size(), 0.0);
      for (const double step : {model_.epsilon, -model_.epsilon}) {
        std::vector<double> delta = reached;
        for (double& d : delta) d *= step;
        std::vector<Tensor> moved = operands;
        moved[slot] = moved_by(operands[slot], delta);
        add_moves(run_reference(op_, attributes_, moved, types)[0], base, largest);
      }
      for (size_t i = 0; i < squares.size(); ++i) squares[i] += largest[i] * largest[i];
    }
    if (is_composed(op_)) {
      const std::vector<double> x = operands[0].to_f64();
      for (size_t i = 0; i < squares.size(); ++i) {
        const double term = std::isfinite(x[i]) ? kComposedShare * (std::fabs(x[i]) + 1) : 0;
        squares[i] += term * term;
      }
    }
    set_scale(outputs[0], squares);
  }

  // The largest |moved - base| / epsilon so far.
  void add_moves(const Tensor& moved, const std::vector<double>& base, std::vector<double>& largest) const {
    const std::vector<double> values = moved.to_f64();
    for (size_t i = 0; i < base.size(); ++i) {
      const bool is_same = values[i] == base[i] || (std::isnan(values[i]) && std::isnan(base[i]));
      if (is_same) continue;
      const double move = std::fabs(values[i] - base[i]) / model_.epsilon;
      largest[i] = std::max(largest[i], move < kLargestScale ? move : kLargestScale);
    }
  }

  void probe(std::vector<ScaledTensor>& outputs) const {
    std::mt19937_64 random(0);
    std::vector<std::vector<double>> reaches(inputs_.size());
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      if (is_real(values_[slot].dtype())) reaches[slot] = reach(inputs_[slot], true);
    }
    std::vector<std::vector<double>> base(outputs.size());
    std::vector<std::vector<double>> largest(outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (!is_real(outputs[k].value.dtype())) continue;
      base[k] = outputs[k].value.to_f64();
      largest[k].assign(base[k].size(), 0.0);
    }
    for (int probe = 0; probe < kProbes; ++probe) {
      std::vector<Tensor> moved = values_;
      for (size_t slot = 0; slot < moved.size(); ++slot) {
        if (reaches[slot].empty()) continue;
        std::vector<double> delta = reaches[slot];
        for (double& d : delta) d *= random() % 2 == 0 ? model_.epsilon : -model_.epsilon;
        moved[slot] = moved_by(moved[slot], delta);
      }
      const std::vector<Tensor> results = run_reference(op_, attributes_, moved, types_);
      for (size_t k = 0; k < outputs.size(); ++k) {
        if (!base[k].empty()) add_moves(results[k], base[k], largest[k]);
      }
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (base[k].empty()) continue;
      // Sums of many terms come to the middle between two bytes from either side.
      const DType dtype = outputs[k].value.dtype();
      const double least = dtype == DType::i8 || dtype == DType::u8 ? 1 / model_.epsilon : 0;
      for (double& move : largest[k]) move = std::max(move, least) * std::max(move, least);
      set_scale(outputs[k], largest[k]);
    }
  }

  const OpDef& op_;
  const Attributes& attributes_;
  std::span<const ScaledTensor> inputs_;
  std::span<const Type> types_;
  const ErrorModel& model_;
  std::vector<Tensor> values_;
};

// The body of a `fused` node, node by node.
std::vector<ScaledTensor> run_body(const Graph& body, std::span<const ScaledTensor> inputs, const ErrorModel& model) {
  std::vector<ScaledTensor> values(body.value_capacity());
  for (size_t i = 0; i < inputs.size(); ++i) values[body.inputs()[i].index] = inputs[i];
  for (const ValueId v : body.constants()) values[v.index] = {body.value(v).constant(), {}};
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    std::vector<ScaledTensor> operands;
    std::vector<Tensor> known;
    std::vector<Type> types;
    for (const ValueId v : node.inputs()) {
      operands.push_back(v.is_valid() ? values[v.index] : ScaledTensor());
      known.push_back(operands.back().value);
      types.push_back(known.back().is_present() ? known.back().type() : Type());
    }
    const std::vector<Type> outputs =
        infer_call(node.op(), std::move(types), known, node.attributes(), node.outputs().size(), "");
    std::vector<ScaledTensor> results = run_scaled(node.op(), node.attributes(), operands, outputs, model);
    for (size_t k = 0; k < results.size(); ++k) values[node.output(k).index] = std::move(results[k]);
  }
  std::vector<ScaledTensor> outputs;
  for (const ValueId v : body.outputs()) outputs.push_back(values[v.index]);
  return outputs;
}

}  // namespace

std::vector<ScaledTensor> run_scaled(const OpDef& op, const Attributes& attributes,
                                     std::span<const ScaledTensor> inputs, std::span<const Type> output_types,
                                     const ErrorModel& model) {
  if (&op == &fused_def()) return run_body(*attributes.get<GraphRef>("body"), inputs, model);
  return ScaledNode(op, attributes, inputs, output_types, model).run();
}

}  // namespace autograph
