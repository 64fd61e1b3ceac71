// lower_einsum: sums of products become matrix products, which have kernels, and which the patterns of attention
// are made of.
//
// Two operands at a time, from the left. Labels of both that are still needed are batch dims, labels of both that are
// not are summed by the product, and the others are rows of the left or columns of the right operand:
//   y[batch, rows, columns] = matmul(a[batch, rows, summed], b[batch, summed, columns])
// Several labels in one place are one dim for the product. Where nothing is summed, the operands are multiplied element
// by element.
//
// Precondition: f32 or f64, known ranks, no label twice in a term, equal extents of a label in all terms (1 does not
// give way); known extents, unless every place has exactly one label.
#include <algorithm>
#include <map>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/linear/einsum_equation.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

using Labels = std::vector<EinsumLabel>;

bool contains(const Labels& labels, EinsumLabel label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels join(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A value whose dims have these labels.
struct Term {
  Var value;
  Labels labels;
};

// The parts that two operands play in a product.
struct Places {
  Labels batch, rows, summed, columns;

  bool has_one_label_each() const { return rows.size() == 1 && summed.size() == 1 && columns.size() == 1; }
};

Places places_of(const Labels& a, const Labels& b, const Labels& needed) {
  Places places;
  for (const EinsumLabel label : a) {
    const bool is_shared = contains(b, label);
    (!is_shared ? places.rows : contains(needed, label) ? places.batch : places.summed).push_back(label);
  }
  for (const EinsumLabel label : b) {
    if (!contains(a, label)) places.columns.push_back(label);
  }
  return places;
}

// An einsum with its labels resolved.
class Einsum {
 public:
  static std::optional<Einsum> read(Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const EinsumEquation equation = parse_einsum(node.attributes().text("equation"));
    Einsum einsum;
    int64_t ellipsis_rank = 0;
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      const Type& type = graph.type(node.input(slot));
      const bool is_float = type.is_tensor() && (type.dtype() == DType::f32 || type.dtype() == DType::f64);
      if (!is_float || !type.shape().has_rank()) return std::nullopt;
      const std::string& text = equation.inputs[slot];
      const int64_t rank = type.shape().rank();
      if (text.find('.') != std::string::npos) {
        ellipsis_rank = std::max(ellipsis_rank, rank - static_cast<int64_t>(text.size()) + 1);
      }
      einsum.terms_.push_back({Var(graph, node.input(slot)), expand_labels(text, rank)});
      if (!einsum.learn_extents(einsum.terms_.back())) return std::nullopt;
    }
    einsum.output_ = expand_output(equation.output, ellipsis_rank);
    const bool is_identity = einsum.terms_.size() == 1 && einsum.terms_[0].labels == einsum.output_;
    if (is_identity || !einsum.can_reshape()) return std::nullopt;
    return einsum;
  }

  Var spell_out() const {
    Term result = terms_.front();
    for (size_t next = 1; next < terms_.size(); ++next) result = multiply(result, terms_[next], needed_behind(next));
    return arrange(sum_others(result, output_), output_).value;
  }

 private:
  bool learn_extents(const Term& term) {
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      const Dim& extent = term.value.shape()[static_cast<int64_t>(axis)];
      const auto [it, is_new] = extents_.emplace(term.labels[axis], extent);
      if (!is_new && !it->second.same_as(extent)) return false;
      if (std::count(term.labels.begin(), term.labels.end(), term.labels[axis]) > 1) return false;
    }
    return true;
  }

  // Are the extents known that reshapes would have to name?
  bool can_reshape() const {
    const bool all_known =
        std::all_of(extents_.begin(), extents_.end(), [](const auto& entry) { return entry.second.is_known(); });
    if (all_known || terms_.size() == 1) return true;
    return terms_.size() == 2 && places_of(terms_[0].labels, terms_[1].labels, output_).has_one_label_each();
  }

  // Labels that the output or an operand behind `last` has.
  Labels needed_behind(size_t last) const {
    Labels needed = output_;
    for (size_t k = last + 1; k < terms_.size(); ++k) needed = join({needed, terms_[k].labels});
    return needed;
  }

  static Term sum_others(const Term& term, const Labels& kept) {
    std::vector<int64_t> axes;
    Term result{term.value, {}};
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (contains(kept, term.labels[axis])) {
        result.labels.push_back(term.labels[axis]);
      } else {
        axes.push_back(static_cast<int64_t>(axis));
      }
    }
    if (!axes.empty()) result.value = reduce_sum(term.value, axes, false);
    return result;
  }

  static Term arrange(const Term& term, const Labels& order) {
    if (term.labels == order) return term;
    std::vector<int64_t> perm;
    for (const EinsumLabel label : order) {
      perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
    }
    return {transpose(term.value, perm), order};
  }

  int64_t extent_of(const Labels& labels) const {
    int64_t extent = 1;
    for (const EinsumLabel label : labels) extent *= extents_.at(label).value();
    return extent;
  }

  // To dims as they are, 0 among them.
  static Var reshaped(Var value, const std::vector<int64_t>& dims) {
    return reshape(value, constant(value.graph(), Tensor::vector(dims)), true);
  }

  // The dims of `batch`, then one for each of two groups of labels.
  Var as_matrices(const Term& term, const Labels& batch, const Labels& rows, const Labels& columns) const {
    Var value = arrange(term, join({batch, rows, columns})).value;
    if (rows.size() == 1 && columns.size() == 1) return value;
    std::vector<int64_t> dims;
    for (const EinsumLabel label : batch) dims.push_back(extent_of({label}));
    dims.push_back(extent_of(rows));
    dims.push_back(extent_of(columns));
    return reshaped(value, dims);
  }

  Term multiply(const Term& left, const Term& right, const Labels& needed) const {
    const Term a = sum_others(left, join({needed, right.labels}));
    const Term b = sum_others(right, join({needed, left.labels}));
    const Places at = places_of(a.labels, b.labels, needed);
    const Labels labels = join({at.batch, at.rows, at.columns});
    if (at.rows.empty() && at.columns.empty() && at.summed.empty()) {
      return {mul(a.value, arrange(b, a.labels).value), a.labels};
    }
    const Var x = as_matrices(a, at.batch, at.rows, at.summed);
    const Var y = as_matrices(b, at.batch, at.summed, at.columns);
    const Var product = at.summed.empty() ? mul(x, y) : matmul(x, y);
    if (at.rows.size() == 1 && at.columns.size() == 1) return {product, labels};
    std::vector<int64_t> dims;
    for (const EinsumLabel label : labels) dims.push_back(extent_of({label}));
    return {reshaped(product, dims), labels};
  }

  std::vector<Term> terms_;
  Labels output_;
  std::map<EinsumLabel, Dim> extents_;
};

}  // namespace

bool lower_einsum(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    if (&graph.node(id).op() != &einsum_def()) return false;
    const auto einsum = Einsum::read(graph, id);
    if (!einsum) return false;
    replace_node(graph, id, {einsum->spell_out().id()});
    return true;
  });
}

}  // namespace autograph
