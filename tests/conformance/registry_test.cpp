// Runs every op of the registry through the same checks; a new op is covered the moment it is listed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"
#include "support/host_devices.h"

namespace autograph {
namespace {

constexpr int kSamples = 40;
// Far above what samples need, and so low that hostile extents of a million cost no time: a transform of that length by
// its definition would take hours.
constexpr size_t kBudgetBytes = size_t{1} << 20;

class Registry : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }

  // Calls `check(sample graph)` for a number of samples; `what` and the seed lead every failure message.
  template <class Check>
  void for_samples(const Check& check) {
    ASSERT_TRUE(op().sample) << op().name << " has no sample";
    for (int seed = 0; seed < kSamples && !HasFailure(); ++seed) {
      Random random(static_cast<uint64_t>(seed));
      const OpSample sample = op().sample(random);
      try {
        check(sample);
      } catch (const std::exception& error) {
        ADD_FAILURE() << op().name << ", seed " << seed << ": " << error.what();
      }
      if (HasFailure()) std::cerr << op().name << ": seed " << seed << "\n" << text_of(sample);
    }
  }

  std::string text_of(const OpSample& sample) const {
    try {
      return print_text(make_sample_graph(op(), sample).graph);
    } catch (const std::exception&) {
      return "";
    }
  }
};

// Ops with a definition in terms of others beside one of their own.
class Decomposition : public Registry {};

std::vector<const OpDef*> decomposed_ops() {
  std::vector<const OpDef*> ops;
  std::copy_if(all_ops().begin(), all_ops().end(), std::back_inserter(ops),
               [](const OpDef* op) { return op->decompose && (op->reference || op->scalar || op->evaluate); });
  return ops;
}

std::vector<Datum> run_on(const std::string& device, Graph graph, const std::vector<Datum>& inputs) {
  CompileOptions options;
  options.device = device;
  options.memory_budget_bytes = kBudgetBytes;
  return compile(std::move(graph), options).run(inputs);
}

// Those with kernels of their own: simulated ones compute with those of the processor.
std::vector<std::string> devices_to_compare() {
  std::vector<std::string> names = host_devices();
  std::erase_if(names, [](const std::string& name) {
    const DeviceProperties properties = get_device(name).properties();
    return properties.is_reference || properties.has_exact_times;
  });
  return names;
}

TEST_P(Registry, IsDefinedAndDocumentedCompletely) {
  EXPECT_FALSE(op().doc.empty());
  EXPECT_TRUE(op().infer || op().decompose) << "no inference";
  EXPECT_TRUE(op().sample);
  const int implementations = (op().scalar != nullptr) + (op().reference != nullptr) + (op().evaluate != nullptr);
  EXPECT_TRUE(implementations == 1 || (implementations == 0 && op().decompose)) << implementations;
  for (const auto* params : {&op().inputs, &op().outputs}) {
    for (const Param& param : *params) EXPECT_FALSE(param.name.empty() || param.doc.empty()) << param.name;
  }
  for (const AttributeSpec& spec : op().attributes) EXPECT_FALSE(spec.doc.empty()) << spec.name;
}

TEST_P(Registry, InferAgreesWithTheReference) {
  for_samples([this](const OpSample& sample) {
    TestGraph test = make_sample_graph(op(), sample);
    std::vector<Type> declared;
    for (const ValueId output : test.graph.outputs()) declared.push_back(test.graph.type(output));
    const std::vector<Datum> outputs = run_on("reference", test.graph, test.inputs);
    ASSERT_EQ(outputs.size(), declared.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor() || !declared[i].is_tensor()) continue;
      EXPECT_EQ(outputs[i].tensor().dtype(), declared[i].dtype());
      const Shape& shape = declared[i].shape();
      if (!shape.has_rank()) continue;
      ASSERT_EQ(outputs[i].tensor().rank(), shape.rank()) << to_string(shape);
      for (int64_t axis = 0; axis < shape.rank(); ++axis) {
        if (!shape[axis].is_known()) continue;
        EXPECT_EQ(outputs[i].tensor().dims()[static_cast<size_t>(axis)], shape[axis].value()) << to_string(shape);
      }
    }
  });
}

TEST_P(Registry, GivesTheSameWhenShapesAreKnownOnlyAtRunTime) {
  for_samples([this](const OpSample& sample) {
    if (op().traits.random) return;
    TestGraph fixed = make_sample_graph(op(), sample);
    TestGraph open = make_sample_graph(op(), sample, true);
    EXPECT_EQ(difference(run_on("reference", open.graph, open.inputs), run_on("reference", fixed.graph, fixed.inputs)),
              "");
  });
}

std::set<std::string> elements_of(const Tensor& tensor) {
  std::set<std::string> elements;
  const auto size = element_size(tensor.dtype());
  const char* data = static_cast<const char*>(tensor.raw());
  for (size_t at = 0; at < tensor.size_bytes(); at += size) elements.insert(std::string(data + at, size));
  return elements;
}

TEST_P(Registry, MovesElementsWhereItSaysSo) {
  if (!op().traits.moves) return;
  for_samples([this](const OpSample& sample) {
    const TestGraph test = make_sample_graph(op(), sample);
    for (const Datum& output : run_on("reference", test.graph, test.inputs)) {
      const DType dtype = output.tensor().dtype();
      if (dtype == DType::string) continue;
      std::set<std::string> known{std::string(element_size(dtype), '\0')};
      for (const Datum& input : sample.inputs) {
        if (input.is_tensor() && input.tensor().dtype() == dtype) known.merge(elements_of(input.tensor()));
      }
      for (const std::string& element : elements_of(output.tensor())) EXPECT_TRUE(known.contains(element));
    }
  });
}

TEST_P(Registry, PrintsAndParsesBackToAnEqualGraph) {
  for_samples([this](const OpSample& sample) {
    const TestGraph test = make_sample_graph(op(), sample);
    const std::string text = print_text(test.graph);
    const Graph parsed = parse_text(text);
    EXPECT_EQ(print_text(parsed), text);
    EXPECT_EQ(structural_hash(parsed), structural_hash(test.graph));
  });
}

TEST_P(Registry, DevicesMatchTheReference) {
  for_samples([this](const OpSample& sample) {
    if (op().traits.random) return;
    const TestGraph test = make_sample_graph(op(), sample);
    for (const std::string& device : devices_to_compare()) {
      EXPECT_EQ(difference(run_on(device, test.graph, test.inputs), run_on("reference", test.graph, test.inputs)), "");
    }
  });
}

TEST_P(Decomposition, EqualsTheReference) {
  for_samples([this](const OpSample& sample) {
    const TestGraph test = make_sample_graph(op(), sample);
    Graph body = test.graph;
    const NodeId id = body.nodes().front();
    const Attributes attributes = body.node(id).attributes();  // a copy: nodes move when the body is added
    DecomposeContext context{body, attributes, {}, body.node(id).outputs().size()};
    for (const ValueId input : body.node(id).inputs()) {
      context.inputs.push_back(input.is_valid() ? Var(body, input) : Var());
    }
    context.inputs.resize(std::max(context.inputs.size(), op().inputs.size()));
    const std::vector<ValueId> outputs = body.node(id).outputs();
    const std::vector<Var> replacement = op().decompose(context);
    ASSERT_GE(replacement.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (replacement[i].is_valid()) body.replace_uses(outputs[i], replacement[i].id());
    }
    body.erase_dead();
    EXPECT_EQ(difference(run_on("reference", body, test.inputs), run_on("reference", test.graph, test.inputs)), "");
  });
}

TEST_P(Registry, OnnxRoundTripGivesTheSameNumbers) {
  if (op().onnx.empty() && !op().decompose) GTEST_SKIP() << "no ONNX form";
  for_samples([this](const OpSample& sample) {
    if (op().traits.random) return;
    const TestGraph test = make_sample_graph(op(), sample);
    const Model model = parse_onnx(serialize_onnx(test.graph));
    EXPECT_EQ(difference(run_on("reference", model.graph, test.inputs), run_on("reference", test.graph, test.inputs)),
              "");
  });
}

TEST_P(Registry, HashSeesEveryAttribute) {
  Random random(7);
  const OpSample sample = op().sample(random);
  const TestGraph test = make_sample_graph(op(), sample);
  const NodeId id = test.graph.nodes().front();
  for (const auto& [name, value] : test.graph.node(id).attributes()) {
    Graph changed = test.graph;
    if (const auto* integer = std::get_if<int64_t>(&value))
      changed.set_attribute(id, name, *integer + 1);
    else if (const auto* real = std::get_if<float>(&value))
      changed.set_attribute(id, name, *real + 1.0F);
    else if (const auto* text = std::get_if<std::string>(&value))
      changed.set_attribute(id, name, *text + "x");
    else
      continue;
    EXPECT_NE(structural_hash(changed), structural_hash(test.graph)) << name;
  }
}

// Replaces about half of the integers of `sample`, in inputs and attributes, by hostile ones that are at most
// `largest_element` in inputs; false when that left all as it was.
bool make_hostile(OpSample& sample, int64_t largest_element, Random& random) {
  constexpr int64_t kHostile[] = {0, -1, 1, 2, -2, 5, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN, INT32_MAX};
  bool changed = false;
  const auto replace = [&](int64_t& value, int64_t largest) {
    if (!draw_bool(random)) return;
    value = std::min(kHostile[draw(random, 0, std::size(kHostile) - 1)], largest);
    changed = true;
  };
  for (Datum& datum : sample.inputs) {
    if (!datum.is_tensor() || datum.tensor().dtype() != DType::i64) continue;
    Tensor tensor = datum.tensor().clone();
    for (int64_t i = 0; i < tensor.num_elements(); ++i) replace(tensor.mutable_data<int64_t>()[i], largest_element);
    datum = tensor;
  }
  const Attributes attributes = sample.attributes;
  for (const auto& [name, value] : attributes) {
    AttributeValue hostile = value;
    if (auto* integer = std::get_if<int64_t>(&hostile)) replace(*integer, INT64_MAX);
    if (auto* list = std::get_if<std::vector<int64_t>>(&hostile)) {
      for (int64_t& item : *list) replace(item, INT64_MAX);
    }
    sample.attributes.set(name, std::move(hostile));
  }
  return changed;
}

// Nothing but an Error that blames the user may come out.
TEST_P(Registry, HostileIntegersAreRefusedOrHarmless) {
  // A million turns of a loop are legal, only long.
  const int64_t largest_element = op().traits.control_flow ? 5 : INT64_MAX;
  Random random(99);
  for_samples([&](const OpSample& sample) {
    for (int round = 0; round < 5; ++round) {
      OpSample bad = sample;
      if (!make_hostile(bad, largest_element, random)) continue;
      for (const bool all_inputs : {false, true}) {
        try {
          const TestGraph test = make_sample_graph(op(), bad, all_inputs);
          run_on("reference", test.graph, test.inputs);
        } catch (const UserError&) {
        } catch (const UnsupportedError&) {
        }
      }
    }
  });
}

constexpr auto kName = [](const auto& info) { return std::string(info.param->name); };
INSTANTIATE_TEST_SUITE_P(Ops, Registry, testing::ValuesIn(all_ops().begin(), all_ops().end()), kName);
INSTANTIATE_TEST_SUITE_P(Ops, Decomposition, testing::ValuesIn(decomposed_ops()), kName);

}  // namespace
}  // namespace autograph
