#include "optimize/rules/pattern/read_formula.h"

#include <cmath>

#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

constexpr int kMaxDepth = 8;        // of arithmetic between a formula and its variables
constexpr double kMaxExponent = 4;  // further powers stay functions

class Reader {
 public:
  Reader(const Graph& graph, const FormulaReading& how, std::vector<NodeId>& passed)
      : graph_(graph), how_(how), passed_(passed) {}

  Sum read(ValueId v, int depth) {
    if (const auto number = scalar_constant(graph_, v)) return Sum::of(*number);
    const NodeId producer = graph_.value(v).producer();
    const bool is_root = how_.is_root && depth == kMaxDepth;
    const bool may_pass = depth > 0 && producer.is_valid() && graph_.value(v).slot() == 0 &&
                          (is_root || (num_reads(graph_, v) == 1 && !how_.is_known(v)));
    if (may_pass) {
      const size_t mark = passed_.size();
      if (auto sum = read_node(graph_.node(producer), depth)) {
        passed_.push_back(producer);
        return *sum;
      }
      passed_.resize(mark);
    }
    return Sum::of(Factor{Factor::Kind::value, v.index});
  }

 private:
  using Result = std::optional<Sum>;

  Result read_node(const Node& node, int depth) {
    const OpDef* op = &node.op();
    if (op == &neg_def()) return plus({}, -1, read(node.input(0), depth - 1));
    const bool is_binary = op == &add_def() || op == &sub_def() || op == &mul_def() || op == &div_def();
    if (is_binary) return read_binary(node, depth);
    if (how_.only_numbers) return std::nullopt;
    if (op == &sqrt_def()) return read_power(node, 0.5, depth);
    if (op == &reciprocal_def()) return read_power(node, -1, depth);
    if (op != &pow_def()) return std::nullopt;
    const auto exponent = scalar_constant(graph_, node.input(1));
    return exponent && std::fabs(*exponent) <= kMaxExponent ? read_power(node, *exponent, depth) : std::nullopt;
  }

  Result read_power(const Node& node, double exponent, int depth) {
    return power(read(node.input(0), depth - 1), exponent, node.input(0).index);
  }

  Result read_binary(const Node& node, int depth) {
    const bool has_number = scalar_constant(graph_, node.input(0)) || scalar_constant(graph_, node.input(1));
    if (how_.only_numbers && !has_number) return std::nullopt;
    const Sum a = read(node.input(0), depth - 1);
    const Sum b = read(node.input(1), depth - 1);
    if (&node.op() == &add_def()) return plus(a, 1, b);
    if (&node.op() == &sub_def()) return plus(a, -1, b);
    if (&node.op() == &mul_def()) return times(a, b);
    const Result inverse = power(b, -1, node.input(1).index);
    const bool divides_number = how_.only_numbers && !scalar_constant(graph_, node.input(1));
    return inverse && !divides_number ? times(a, *inverse) : std::nullopt;
  }

  const Graph& graph_;
  const FormulaReading& how_;
  std::vector<NodeId>& passed_;
};

}  // namespace

Sum read_formula(const Graph& graph, ValueId v, const FormulaReading& how, std::vector<NodeId>& passed) {
  return Reader(graph, how, passed).read(v, kMaxDepth);
}

}  // namespace autograph
