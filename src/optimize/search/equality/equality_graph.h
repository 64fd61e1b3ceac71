// Many equal graphs in one (equality saturation: Tate et al., POPL 2009; egg, POPL 2021). A *class* is a set of values
// that are known to be equal, a *term* an op over classes that makes members of others; what rewrites show to be equal
// becomes one class, and terms that are then the same become one. Choosing a term for each class gives a graph: a
// *form* of the one at the start.
//
// Rules are matched in such graphs and nowhere else, so that guards and builds see nodes, readers and weights as ever.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "autograph/graph.h"
#include "autograph/hash.h"
#include "optimize/rules/rule.h"

namespace autograph {

using ClassId = uint32_t;
using TermId = uint32_t;
inline constexpr uint32_t kNoTerm = UINT32_MAX;

/// What the values and nodes of a graph are in an equality graph.
struct TermNames {
  std::vector<ClassId> classes;  ///< By value.
  std::vector<TermId> terms;     ///< By node.
};

/// A graph that an equality graph stands for.
struct GraphForm {
  Graph graph;
  TermNames names;
};

/// For one thread.
class EqualityGraph {
 public:
  struct Term {
    const OpDef* op = nullptr;
    Attributes attributes;
    Provenance provenance;
    Hash128 head;                 ///< Of op, attributes and number of outputs.
    std::vector<ClassId> inputs;  ///< kNoTerm: not given.
    std::vector<ClassId> outputs;
  };

  /// `start` has neither states nor nodes that do anything besides their outputs.
  explicit EqualityGraph(const Graph& start);

  const TermNames& start() const { return start_; }
  size_t num_terms() const { return terms_.size(); }
  /// Changes whenever something new is known: a term, or that two classes are one.
  size_t version() const { return version_; }
  /// What stands for a class or a term now.
  ClassId find_class(ClassId id) const;
  TermId find_term(TermId id) const;
  const Term& term(TermId id) const { return terms_[id]; }
  /// Terms that make a class, or read it.
  std::vector<TermId> makers(ClassId id) const;
  std::vector<TermId> readers(ClassId id) const;
  /// Inputs and constants need no term.
  bool is_source(ClassId id) const { return classes_[find_class(id)].source != kNoSource; }
  /// Of the graph at the start.
  const std::vector<ClassId>& outputs() const { return outputs_; }

  /// Takes over what a rule made of a graph with these names, which are brought up to date. False where that reads a
  /// value that has no name: nothing is said to be equal then.
  bool learn(const Graph& graph, const RuleEffect& effect, TermNames& names);

  /// The graph of the terms that come first in `wishes` for the classes that they make. Nothing where a class that is
  /// needed has none, or depends on itself.
  std::optional<GraphForm> make(std::span<const std::span<const TermId>> wishes) const;

 private:
  static constexpr uint32_t kNoSource = UINT32_MAX;
  // An input or a constant.
  struct Source {
    Type type;
    Tensor constant;  // absent: an input
    std::string name;
  };
  struct Class {
    Type type;
    uint32_t source = kNoSource;
    std::vector<TermId> makers;
    std::vector<TermId> readers;
  };
  class FormBuilder;

  ClassId add_class(Type type);
  ClassId add_source(const Value& value);
  ClassId add_constant(const Value& value, int64_t max_compared);
  bool name_constant(const Graph& graph, ValueId v, TermNames& names);
  TermId add_term(const Graph& graph, const Node& node, const TermNames& names);
  void name_node(const Graph& graph, NodeId id, TermNames& names);
  Hash128 key_of(const Term& term) const;
  void unite(ClassId a, ClassId b);
  void rebuild();
  void merge_terms(TermId kept, TermId gone);

  std::vector<Class> classes_;
  std::vector<ClassId> class_parents_;  // union-find, by class; roots have the smallest number
  std::vector<Term> terms_;
  std::vector<TermId> term_parents_;                // the same for terms
  std::unordered_map<Hash128, TermId> known_;       // terms by what they compute from which classes
  std::unordered_map<Hash128, ClassId> constants_;  // that rules have made, by content
  std::vector<ClassId> changed_;                    // classes whose readers are to be looked at again
  std::vector<Source> sources_;
  std::vector<ClassId> inputs_;
  std::vector<ClassId> outputs_;
  TermNames start_;
  size_t version_ = 0;
};

}  // namespace autograph
