// Cases for rules: small graphs in the language of patterns, with shapes, on which a rule must fire or must not.
//
//   {"arithmetic.join_addends", "x:2,3; $c:3; $d:1", "s = add(x, c); t = add(s, d)"}
//
// Values: `x:2,3` an input, `i:#2,3` one of indices from -3 to 3, `$c:3` a constant with random elements, `$s:={1,2}`
// an integer constant, `$w:=quarter` kernels [2,1,4] of 0.25, `$o:=ones` [1,1,1]. Attributes are literals. What nothing
// reads is an output of the graph, and so are `kept` values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

struct RuleCase {
  std::string_view rule;
  std::string_view values;
  std::string_view text;
  bool fires = true;           ///< False: a near miss.
  std::string_view kept = "";  ///< Values made in the text that are outputs as well, blanks between.
};

/// The graph of a case.
Graph make_case_graph(const RuleCase& rule_case);

/// Adds cases to the table that rules_test.cpp runs; returns true so that it can initialise a constant.
bool add_rule_cases(const std::vector<RuleCase>& cases);

/// All of them.
const std::vector<RuleCase>& all_rule_cases();

}  // namespace autograph
