#include "ops/elementwise/formula/formula_table.h"

#include <unordered_map>

#include <fmt/core.h>

#include "ops/elementwise/formula/formulas.h"

namespace autograph {
namespace {

using formulas::Expr;

template <class F, class... Operands>
concept HasFast = requires(Operands... x) {
  F::fast(x...);
};

template <class F, bool kFast, class... Operands>
Expr call(const Operands&... x) {
  if constexpr (kFast && HasFast<F, Operands...>) {
    return F::fast(x...);
  } else {
    return F::of(x...);
  }
}

// The operands, then the parameters.
template <class F, bool kFast>
Expr build(std::span<const Expr> x) {
  constexpr size_t kCount = F::kInfo.operands + F::kInfo.num_parameters();
  if constexpr (kCount == 1) return call<F, kFast>(x[0]);
  if constexpr (kCount == 2) return call<F, kFast>(x[0], x[1]);
  if constexpr (kCount == 3) return call<F, kFast>(x[0], x[1], x[2]);
}

using Build = Expr (*)(std::span<const Expr>);

struct Table {
  template <class... Fs>
  explicit Table(FormulaList<Fs...>) {
    (add(Fs::kInfo, build<Fs, false>, build<Fs, true>), ...);
  }

  void add(const FormulaInfo& info, Build defining, Build fast) {
    std::vector<Expr> x;
    list.push_back({info, {}, {}});
    for (const std::string& name : variables_of(list.back())) x.push_back(Expr::variable(name));
    list.back().defining = defining(x);
    list.back().fast = fast(x);
    builders.push_back(defining);
    if (!info.op.empty()) by_op.emplace(&get_op(info.op), list.size() - 1);
  }

  std::vector<Formula> list;
  std::vector<Build> builders;
  std::unordered_multimap<const OpDef*, size_t> by_op;
};

const Table& table() {
  static const Table kTable{formulas::Formulas()};
  return kTable;
}

Expr folded(const FormulaInfo& info, Build build, std::span<const Expr> operands) {
  Expr total = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) total = build(std::array{total, operands[i]});
  return info.fold == Fold::average ? total / Expr(static_cast<double>(operands.size())) : total;
}

}  // namespace

std::span<const Formula> all_formulas() { return table().list; }

std::optional<size_t> find_formula(const OpDef& op, const Attributes& attributes) {
  const auto [first, last] = table().by_op.equal_range(&op);
  for (auto at = first; at != last; ++at) {
    const FormulaInfo& info = table().list[at->second].info;
    if (info.attribute.empty()) return at->second;
    const auto* text = attributes.find_as<std::string>(info.attribute);
    if (text && *text == info.text) return at->second;
  }
  return std::nullopt;
}

std::vector<std::string> variables_of(const Formula& formula) {
  std::vector<std::string> names;
  for (size_t i = 0; i < formula.info.operands; ++i) names.push_back(fmt::format("x{}", i));
  for (size_t i = 0; i < formula.info.num_parameters(); ++i) names.emplace_back(formula.info.parameters[i]);
  return names;
}

Expr expression_of(const OpDef& op, const Attributes& attributes, std::span<const Expr> operands) {
  const auto index = find_formula(op, attributes);
  if (!index || operands.empty()) return {};
  const FormulaInfo& info = table().list[*index].info;
  if (info.fold != Fold::none) return folded(info, table().builders[*index], operands);
  std::vector<Expr> arguments(operands.begin(), operands.end());
  arguments.resize(info.operands);
  for (size_t i = 0; i < info.num_parameters(); ++i) arguments.emplace_back(attributes.real(info.parameters[i]));
  return table().builders[*index](arguments);
}

}  // namespace autograph
