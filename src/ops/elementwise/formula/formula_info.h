// What is known of a formula besides itself. The formulas: formulas-inl.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

/// Formulas are inlined into the loops that read them, whatever the instruction set of those is.
#define AG_FORMULA   \
  template <class T> \
  static inline __attribute__((always_inline))

namespace autograph {

/// How a formula of two operands reads any number of them.
enum class Fold : uint8_t {
  none,     ///< As many operands as the formula has.
  plain,    ///< f(f(a, b), c) ...
  average,  ///< The same, then divided by their number.
};

/// Facts about a formula. Its functions take its operands, then its parameters.
struct FormulaInfo {
  std::string_view op = "";                         ///< Which op it defines; "": a special case of ops.
  size_t operands = 1;                              ///< Their number.
  std::array<std::string_view, 2> parameters = {};  ///< Attributes that it reads, "" for none.
  std::string_view attribute = "";                  ///< It defines the op where this attribute
  std::string_view text = "";                       ///< has this value, where an op has several formulas.
  Fold fold = Fold::none;                           ///< Does the op take any number of operands?
  bool on_truth = false;                            ///< Does it take or give truth values?

  constexpr size_t num_parameters() const { return parameters[0].empty() ? 0 : parameters[1].empty() ? 1 : 2; }
};

/// A list of formulas.
template <class... Fs>
struct FormulaList {
  static constexpr size_t kSize = sizeof...(Fs);
};

/// The place of F in a list.
template <class F, class... Fs>
constexpr size_t index_in(FormulaList<Fs...>) {
  constexpr bool kIs[] = {std::is_same_v<F, Fs>...};
  size_t index = 0;
  while (!kIs[index]) ++index;  // of an F that is not in the list: no constant expression
  return index;
}

}  // namespace autograph
