// einsum: sums of products over labelled dims, y[output labels] = sum over the other labels of the product of all
// operands.
//
// A label that occurs twice in a term takes the diagonal; extents of 1 broadcast; the ellipsis stands for any number of
// dims that broadcast, aligned at the right. Labels that are not in the output are summed, and so are the dims of an
// ellipsis that the output leaves out. Integers wrap around.
#include <algorithm>
#include <map>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/linear/einsum_equation.h"
#include "ops/linear/matmul_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// The larger of two extents of one label, 1 giving way.
Dim join_extents(const InferContext& context, const Dim& a, const Dim& b) {
  if (a.is_known() && a.value() == 1) return b;
  if (b.is_known() && b.value() == 1) return a;
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail<ShapeError>("extents", fmt::format("{} and {} of one label differ in '{}'", a.value(), b.value(),
                                                    context.attributes().text("equation")));
  }
  return a.is_known() || b.is_unknown() ? a : b;
}

int64_t ellipsis_rank_of(const std::string& term, int64_t rank) {
  return term.find('.') == std::string::npos ? 0 : rank - static_cast<int64_t>(term.size()) + 1;
}

void infer(InferContext& context) {
  const EinsumEquation equation = parse_einsum(context.attributes().text("equation"));
  context.require<ValueError>(
      equation.inputs.size() == context.num_inputs(), "inputs",
      fmt::format("the equation has {} terms, got {} inputs", equation.inputs.size(), context.num_inputs()));
  std::map<EinsumLabel, Dim> extents;
  int64_t ellipsis_rank = 0;
  bool ranks_known = true;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    const Shape& shape = context.shape(slot);
    if (!shape.has_rank()) {
      ranks_known = false;
      continue;
    }
    const std::string& term = equation.inputs[slot];
    const std::vector<EinsumLabel> labels = expand_labels(term, shape.rank());
    ellipsis_rank = std::max(ellipsis_rank, ellipsis_rank_of(term, shape.rank()));
    for (size_t axis = 0; axis < labels.size(); ++axis) {
      const Dim& extent = shape[static_cast<int64_t>(axis)];
      const auto [it, is_new] = extents.emplace(labels[axis], extent);
      if (!is_new) it->second = join_extents(context, it->second, extent);
    }
  }
  if (!ranks_known && equation.output.find('.') != std::string::npos) {
    return context.set_output(0, context.dtype(0), Shape::unknown());
  }
  std::vector<Dim> dims;
  for (const EinsumLabel label : expand_output(equation.output, ellipsis_rank)) dims.push_back(extents[label]);
  context.set_output(0, context.dtype(0), Shape(std::move(dims)));
}

// The loop nest: one loop per label, outputs first, with the step of every operand in it.
struct Loops {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> steps;  // [operand][loop], in elements
  size_t num_output_loops = 0;
};

Loops make_loops(const EinsumEquation& equation, std::span<const TensorView> inputs) {
  std::map<EinsumLabel, int64_t> extents;
  std::vector<std::vector<EinsumLabel>> labels;
  int64_t ellipsis_rank = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    labels.push_back(expand_labels(equation.inputs[k], inputs[k].rank()));
    ellipsis_rank = std::max(ellipsis_rank, ellipsis_rank_of(equation.inputs[k], inputs[k].rank()));
    for (size_t axis = 0; axis < labels[k].size(); ++axis) {
      const int64_t extent = inputs[k].dim(static_cast<int64_t>(axis));
      const auto [it, is_new] = extents.emplace(labels[k][axis], extent);
      if (!is_new && it->second == 1) it->second = extent;
    }
  }
  std::vector<EinsumLabel> order = expand_output(equation.output, ellipsis_rank);
  Loops loops;
  loops.num_output_loops = order.size();
  for (const auto& [label, extent] : extents) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (const EinsumLabel label : order) loops.extents.push_back(extents[label]);
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<int64_t> steps(order.size(), 0);
    int64_t stride = 1;
    for (size_t axis = labels[k].size(); axis-- > 0;) {
      const int64_t extent = inputs[k].dim(static_cast<int64_t>(axis));
      const auto loop = std::find(order.begin(), order.end(), labels[k][axis]) - order.begin();
      if (extent != 1) steps[static_cast<size_t>(loop)] += stride;
      stride *= extent;
    }
    loops.steps.push_back(std::move(steps));
  }
  return loops;
}

// Steps `index` over loops [begin, end) like an odometer, moving `offsets` along; false after the last one.
bool advance(const Loops& loops, size_t begin, size_t end, std::vector<int64_t>& index, std::vector<int64_t>& offsets) {
  for (size_t loop = end; loop-- > begin;) {
    const bool wraps = ++index[loop] == loops.extents[loop];
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] += wraps ? loops.steps[k][loop] * (1 - loops.extents[loop]) : loops.steps[k][loop];
    }
    if (!wraps) return true;
    index[loop] = 0;
  }
  return false;
}

template <class T>
void sum_products(const Loops& loops, std::span<const TensorView> inputs, const TensorView& y) {
  using Sum = MatmulSum<T>;
  const size_t num_loops = loops.extents.size();
  const bool empty_sum = std::find(loops.extents.begin() + static_cast<int64_t>(loops.num_output_loops),
                                   loops.extents.end(), 0) != loops.extents.end();
  std::vector<int64_t> index(num_loops, 0);
  std::vector<int64_t> offsets(inputs.size(), 0);
  T* out = y.mutable_data<T>();
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    Sum sum = 0;
    if (!empty_sum) {
      do {
        Sum product = 1;
        for (size_t k = 0; k < inputs.size(); ++k) product *= static_cast<Sum>(inputs[k].data<T>()[offsets[k]]);
        sum += product;
      } while (advance(loops, loops.num_output_loops, num_loops, index, offsets));
    }
    out[i] = static_cast<T>(sum);
    advance(loops, 0, loops.num_output_loops, index, offsets);
  }
}

void reference(const OpCall& call) {
  const EinsumEquation equation = parse_einsum(call.attributes.text("equation"));
  const Loops loops = make_loops(equation, call.inputs);
  dispatch<NumericTypes>(call.input(0).dtype(),
                         [&]<class T>(TypeTag<T>) { sum_products<T>(loops, call.inputs, call.output(0)); });
}

OpCost cost(const CostContext& context) {
  std::vector<TensorView> views;
  std::vector<Dims> dims;
  dims.reserve(context.inputs.size());
  for (const Type& type : context.inputs) {
    dims.push_back(type.shape().static_dims());
    views.emplace_back(type.dtype(), dims.back(), nullptr);
  }
  OpCost cost{.bytes = moved_bytes(context)};
  cost.flops = static_cast<double>(std::max<size_t>(views.size(), 1));
  for (const int64_t extent : make_loops(parse_einsum(context.attributes.text("equation")), views).extents) {
    cost.flops *= static_cast<double>(extent);
  }
  return cost;
}

OpSample sample(Random& random) {
  struct Form {
    const char* equation;
    std::vector<std::string_view> shapes;  // extents by letter; '*' one dim of the ellipsis
  };
  static const std::vector<Form> forms{{"ij,jk->ik", {"ij", "jk"}},
                                       {"bij, bjk -> bik", {"bij", "bjk"}},
                                       {"ii->i", {"ii"}},
                                       {"ii", {"ii"}},
                                       {"...ij,...jk", {"*ij", "jk"}},
                                       {"ij->ji", {"ij"}},
                                       {"i,j,k->kji", {"i", "j", "k"}},
                                       {"...i->...", {"*i"}},
                                       {"bhqd,bhkd->bhqk", {"bhqd", "bhkd"}}};
  const Form& form = forms[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(forms.size()) - 1))];
  std::map<char, int64_t> extents;
  OpSample result;
  for (const std::string_view letters : form.shapes) {
    Dims dims;
    for (const char letter : letters) dims.push_back(extents.emplace(letter, draw(random, 1, 4)).first->second);
    result.inputs.emplace_back(draw_tensor(random, DType::f32, dims));
  }
  result.attributes = {{"equation", std::string(form.equation)}};
  return result;
}

// Terms of a call with a letter for each dim, those of the ellipsis included.
class LetteredTerms {
 public:
  explicit LetteredTerms(VjpContext& c) {
    const EinsumEquation equation = parse_einsum(c.attributes().text("equation"));
    int64_t ellipsis_rank = 0;
    for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
      if (!c.in(slot).shape().has_rank()) c.unsupported("its rule needs known ranks");
      const int64_t rank = c.in(slot).rank();
      inputs.push_back(spell(c, expand_labels(equation.inputs[slot], rank)));
      ellipsis_rank = std::max(ellipsis_rank, ellipsis_rank_of(equation.inputs[slot], rank));
    }
    output = spell(c, expand_output(equation.output, ellipsis_rank));
  }

  std::vector<std::string> inputs;
  std::string output;

 private:
  std::string spell(const VjpContext& c, const std::vector<EinsumLabel>& labels) {
    static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string term;
    for (const EinsumLabel label : labels) {
      const size_t number = numbers_.emplace(label, numbers_.size()).first->second;
      if (number >= kLetters.size()) c.unsupported("its rule needs a letter for each of at most 52 dims");
      term += kLetters[number];
    }
    return term;
  }

  std::map<EinsumLabel, size_t> numbers_;
};

// An einsum again: the gradient takes the place of the operand, whose labels become the output. Labels that nothing
// else has were summed over, so that the gradient is the same along them; of repeated ones only the diagonal was read.
Var operand_gradient(VjpContext& c, const LetteredTerms& terms, size_t slot) {
  std::string equation = terms.output, available = terms.output;
  std::vector<Var> operands{c.gy(0)};
  for (size_t k = 0; k < c.num_inputs(); ++k) {
    if (k == slot) continue;
    equation += "," + terms.inputs[k];
    available += terms.inputs[k];
    operands.push_back(c.in(k));
  }
  std::string labels, found;
  std::vector<int64_t> missing;
  for (const char letter : terms.inputs[slot]) {
    if (labels.find(letter) != std::string::npos) continue;
    if (available.find(letter) == std::string::npos) {
      missing.push_back(static_cast<int64_t>(labels.size()));
    } else {
      found += letter;
    }
    labels += letter;
  }
  Var gradient = einsum(equation + "->" + found, operands);
  if (!missing.empty()) gradient = unsqueeze(gradient, missing);
  const Var x = c.in(slot);
  if (labels == terms.inputs[slot]) return expand_as(gradient, x);
  const Var positions = einsum(terms.inputs[slot] + "->" + labels, {linear_positions(x)});
  return add_at(x, positions, expand_as(gradient, positions));
}

void vjp(VjpContext& c) {
  const LetteredTerms terms(c);
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (c.wants(slot)) c.set(slot, operand_gradient(c, terms, slot));
  }
}

}  // namespace

Var einsum(const std::string& equation, const std::vector<Var>& operands) {
  return apply(einsum_def(), operands, {{"equation", equation}});
}

const OpDef& einsum_def() {
  static const OpDef def{
      .name = "einsum",
      .doc = "Sums of products over labelled dims, as the equation says: \"ij,jk->ik\" is a matrix product.",
      .inputs = {{"inputs", "T", "One operand per term of the equation.", Arity::variadic}},
      .outputs = {{"y", "T", "One dim per output label."}},
      .types = {{"T", dtypes::kNumeric}},
      .attributes = {{.name = "equation",
                      .type = AttributeType::text,
                      .doc = "Terms of letters and '...', separated by commas; '->' and the output may be left out.",
                      .required = true}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .cost = cost,
      .onnx = {{.name = "Einsum", .since = 12}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
