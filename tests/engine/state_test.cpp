// Running graphs with states: what runs leave for the next, in one store for several executables, on all strategies and
// thread counts; memory of states and donated inputs that is written over.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/random.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/search.h"
#include "autograph/state_store.h"
#include "autograph/text.h"
#include "engine/built_in_devices.h"
#include "engine/executable.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/random_schedule.h"
#include "support/host_devices.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr int kSteps = 4;

Tensor vector_of(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::of<float>({count}, values);
}

// count' = count + 1; mean' = mean + (x - mean) / count'; y = mean'.
Graph make_mean() {
  Graph graph("mean");
  const Var x = input(graph, DType::f32, {3}, "x");
  const Var count = state(graph, Tensor::scalar(0.0F), "count");
  const Var mean = state(graph, Tensor::zeros(DType::f32, {3}), "mean");
  const Var next = add(count, constant(graph, Tensor::scalar(1.0F)));
  const Var y = add(mean, div(sub(x, mean), next));
  update(count, next);
  update(mean, y);
  graph.add_output(y.id(), "y");
  return graph;
}

TEST(States, LastFromRunToRun) {
  const Executable executable = compile(make_mean());
  EXPECT_EQ(difference(executable.run({vector_of({1, 2, 3})})[0], vector_of({1, 2, 3})), "");
  EXPECT_EQ(difference(executable.run({vector_of({3, 2, 1})})[0], vector_of({2, 2, 2})), "");
  EXPECT_EQ(executable.states().names(), (std::vector<std::string>{"count", "mean"}));
  EXPECT_EQ(executable.states().type("mean"), Type(DType::f32, Shape{3}));
  EXPECT_EQ(executable.states().size_bytes(), 4 * sizeof(float));
  EXPECT_EQ(message_of<ValueError>([&] { executable.states().type("meen"); }),
            "[states] 'meen': unknown (did you mean 'mean'?)");
  EXPECT_EQ(executable.states().get("count").to_f64(), (std::vector<double>{2}));
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {3})};
  executable.run_into({vector_of({5, 5, 5})}, outputs);
  EXPECT_EQ(difference(outputs[0], vector_of({3, 3, 3})), "");
}

TEST(States, AreSharedByExecutables) {
  StateStore store;
  CompileOptions options;
  options.states = store;
  const Executable train = compile(make_mean(), options);
  Graph graph("read");
  const Var mean = state(graph, Tensor::zeros(DType::f32, {3}), "mean");
  graph.add_output(neg(mean).id(), "y");
  const Executable evaluate = compile(std::move(graph), options);
  train.run({vector_of({1, 2, 3})});
  EXPECT_EQ(difference(evaluate.run({})[0], vector_of({-1, -2, -3})), "");
  store.set("mean", vector_of({7, 8, 9}));
  EXPECT_EQ(difference(evaluate.run({})[0], vector_of({-7, -8, -9})), "");
  EXPECT_EQ(message_of<UserError>([&] { store.set("mean", vector_of({1})); }),
            "[states] 'mean': expected f32[3], got f32[1]");
  EXPECT_EQ(message_of<UserError>([&] { store.get("meen"); }).substr(0, 24), "[states] 'meen': unknown");
  Graph other("other");
  state(other, Tensor::scalar(int64_t{0}), "mean");
  EXPECT_EQ(message_of<UserError>([&] { compile(other, options); }), "[states] 'mean': expected f32[3], got i64[]");
}

TEST(States, OfAStoreCanBeFrozen) {
  const Executable train = compile(make_mean());
  train.run({vector_of({1, 2, 3})});
  Graph graph = make_mean();
  train.states().copy_to(graph);
  EXPECT_EQ(graph.value(graph.states()[1]).initial().to_f64(), (std::vector<double>{1, 2, 3}));
  train.run({vector_of({5, 6, 7})});  // the graph has a copy
  graph.freeze();
  const Executable frozen = compile(graph);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(difference(frozen.run({vector_of({3, 2, 1})})[0], vector_of({2, 2, 2})), "");
  }
  Graph other("other");
  state(other, Tensor::scalar(7.0F), "count");
  state(other, Tensor::scalar(7.0F), "meen");
  EXPECT_EQ(message_of<UserError>([&] { train.states().copy_to(other); }).substr(0, 24), "[states] 'meen': unknown");
  EXPECT_EQ(other.value(other.states()[0]).initial().to_f64(), (std::vector<double>{7}));
}

TEST(States, ChangePlaces) {
  Graph graph("swap");
  const Var a = state(graph, vector_of({1, 2}), "a");
  const Var b = state(graph, vector_of({3, 4}), "b");
  update(a, b);
  update(b, a);
  graph.add_output(add(a, b).id(), "y");
  const Executable executable = compile(std::move(graph));
  executable.run({});
  EXPECT_EQ(executable.states().get("a").to_f64(), (std::vector<double>{3, 4}));
  EXPECT_EQ(executable.states().get("b").to_f64(), (std::vector<double>{1, 2}));
  executable.run({});
  EXPECT_EQ(executable.states().get("a").to_f64(), (std::vector<double>{1, 2}));
}

TEST(States, AreWrittenInPlaceWhereNothingReadsThemLater) {
  Graph graph("place");
  const Var x = input(graph, DType::f32, {64}, "x");
  const Var w = state(graph, Tensor::zeros(DType::f32, {64}), "w");
  update(w, add(w, x));
  EXPECT_NE(compile(graph).print_plan().find("state \"w\" = s2 over input1"), std::string::npos)
      << compile(graph).print_plan();
  // Read at the end, as an output: the new value has to wait.
  graph.add_output(w.id(), "old");
  const Executable late = compile(graph);
  EXPECT_NE(late.print_plan().find("(copied) over input1"), std::string::npos) << late.print_plan();
  const Tensor ones = Tensor::of<float>({64}, std::vector<float>(64, 1));
  EXPECT_EQ(late.run({ones})[0].tensor().to_f64(), std::vector<double>(64, 0));
  EXPECT_EQ(late.run({ones})[0].tensor().to_f64(), std::vector<double>(64, 1));
}

TEST(States, AreNeitherMergedNorFolded) {
  Graph graph("zeros");
  const Var a = state(graph, vector_of({0, 0}), "a");
  const Var b = state(graph, vector_of({0, 0}), "b");
  const Var one = constant(graph, vector_of({1, 1}));
  update(a, add(a, one));
  update(b, add(b, constant(graph, vector_of({2, 2}))));
  graph.add_output(exp(a).id());
  graph.add_output(exp(b).id());
  const Executable executable = compile(std::move(graph));
  EXPECT_EQ(executable.graph().states().size(), 2U);
  executable.run({});
  executable.run({});
  EXPECT_EQ(executable.states().get("a").to_f64(), (std::vector<double>{2, 2}));
  EXPECT_EQ(executable.states().get("b").to_f64(), (std::vector<double>{4, 4}));
}

TEST(States, WorkWithShapesKnownOnlyWhileRunning) {
  Graph graph("dynamic");
  const Var x = input(graph, DType::f32, {Dim::symbol("n")}, "x");
  const Var dims = input(graph, DType::i64, {1}, "dims");
  const Var w = state(graph, vector_of({1, 2, 3, 4}), "w");
  const Var same = reshape(w, dims);  // of extents that the run gives
  update(w, reshape(add(same, same), constant(graph, Tensor::vector({4}))));
  graph.add_output(same.id(), "old");
  graph.add_output(relu(x).id(), "y");
  const Executable executable = compile(std::move(graph));
  for (int step = 0; step < 3; ++step) {
    const std::vector<Datum> outputs = executable.run({vector_of({1, -1}), Tensor::vector({4})});
    const auto factor = static_cast<float>(1 << step);
    EXPECT_EQ(difference(outputs[0], vector_of({factor, 2 * factor, 3 * factor, 4 * factor})), "") << step;
    EXPECT_EQ(difference(outputs[1], vector_of({1, 0})), "");
  }
}

TEST(States, RandomNumbersDependOnTheStepAlone) {
  const auto draws = [](int threads, const std::string& device) {
    Graph graph("draws");
    const Var step = state(graph, Tensor::scalar(int64_t{0}), "step");
    const Var seed = constant(graph, Tensor::scalar(int64_t{42}));
    update(step, add(step, constant(graph, Tensor::scalar(int64_t{1}))));
    const Var shape = constant(graph, Tensor::vector({3, 5}));
    graph.add_output(philox_uniform(shape, seed, step).id());
    graph.add_output(philox_uniform(shape, seed, step).id());
    graph.add_output(philox_normal(shape, seed, step).id());
    CompileOptions options;
    options.threads = threads;
    options.device = device;
    const Executable executable = compile(std::move(graph), options);
    std::vector<Datum> all;
    for (int run = 0; run < 2; ++run) {
      for (Datum& y : executable.run({})) all.push_back(std::move(y));
    }
    return all;
  };
  const std::vector<Datum> first = draws(1, "cpu");
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(first[i].tensor().bitwise_equal(first[j].tensor())) << i << " " << j;
  }
  for (const std::string& device : built_in_devices()) {
    EXPECT_EQ(difference(draws(3, device), first, {0, 0}), "") << device;
  }
}

TEST(States, RunsOfManyThreadsTakeTurns) {
  Graph graph("count");
  const Var count = state(graph, Tensor::scalar(int64_t{0}), "count");
  update(count, add(count, constant(graph, Tensor::scalar(int64_t{1}))));
  const Executable executable = compile(std::move(graph));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) executable.run({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(executable.states().get("count").to_i64(), (std::vector<int64_t>{800}));
}

// Two states that are equal after every run are equal in every other one, too.
TEST(States, ReadersSeeNoHalfOfAnUpdate) {
  constexpr int64_t kCount = 4096;
  const auto make_pair_of_states = [](Graph& graph) {
    const Tensor zeros = Tensor::zeros(DType::f32, {kCount});
    return std::pair(state(graph, zeros, "a"), state(graph, zeros, "b"));
  };
  CompileOptions options;
  options.threads = 1;
  options.states = StateStore();
  Graph writing("write");
  const auto [a, b] = make_pair_of_states(writing);
  update(a, add(a, constant(writing, Tensor::scalar(1.0F))));
  update(b, add(b, constant(writing, Tensor::scalar(1.0F))));
  const Executable writer = compile(writing, options);
  Graph reading("read");
  const auto [c, d] = make_pair_of_states(reading);
  reading.add_output(sub(c, d).id(), "difference");
  const Executable reader = compile(reading, options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) writer.run({});
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(reader.run({})[0].tensor().to_f64(), std::vector<double>(kCount, 0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reader.states().get("a").to_f64(), std::vector<double>(kCount, 400));
}

// ---- Random graphs ---------------------------------------------------------------------------------------------

// Some f32 inputs of a random graph become states, updated by values of their type; null where there are none.
struct StatefulCase {
  Graph graph;
  std::vector<Datum> inputs;
  Graph function;  // the same with the states as inputs
  HiddenStates hidden;
};

std::optional<StatefulCase> make_case(uint64_t seed) {
  Random random(seed);
  TestGraph test = make_random_graph(random, 4 + static_cast<int>(seed % 16));
  Graph& graph = test.graph;
  const size_t num_inputs = graph.inputs().size();
  const auto is_state = [&](size_t i) {
    return graph.type(graph.inputs()[i]).is_static() && graph.type(graph.inputs()[i]).dtype() == DType::f32;
  };
  size_t first = num_inputs;
  while (first > 0 && is_state(first - 1) && (first == num_inputs || draw_bool(random))) --first;
  if (first == num_inputs) return std::nullopt;
  StatefulCase result;
  for (size_t i = first; i < num_inputs; ++i) {
    result.hidden.initial.push_back(test.inputs[i].tensor());
    std::vector<ValueId> candidates;
    for (uint32_t v = 0; v < graph.value_capacity(); ++v) {
      if (graph.is_live(ValueId{v}) && graph.type({v}) == graph.type(graph.inputs()[i])) candidates.push_back({v});
    }
    graph.set_value_name(graph.inputs()[i], "state " + std::to_string(i));
    if (draw(random, 0, 4) == 0) continue;  // a state that stays as it is
    result.hidden.updated.push_back(i - first);
    graph.add_output(candidates[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(candidates.size()) - 1))]);
  }
  result.function = graph;
  graph.inputs_to_states(result.hidden);
  result.graph = std::move(graph);
  test.inputs.resize(first);
  result.inputs = std::move(test.inputs);
  return result;
}

// What an interpreter that keeps the states beside the graph gives in each step: outputs, then all states.
std::vector<std::vector<Datum>> interpret(const StatefulCase& c, const Graph& function, const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.expert.use_passes = false;
  const Executable executable = compile(function, options);
  std::vector<Datum> states(c.hidden.initial.begin(), c.hidden.initial.end());
  std::vector<std::vector<Datum>> steps;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Datum> inputs = c.inputs;
    inputs.insert(inputs.end(), states.begin(), states.end());
    std::vector<Datum> outputs = executable.run(inputs);
    const size_t num_outputs = outputs.size() - c.hidden.updated.size();
    for (size_t u = 0; u < c.hidden.updated.size(); ++u) states[c.hidden.updated[u]] = outputs[num_outputs + u];
    outputs.resize(num_outputs);
    outputs.insert(outputs.end(), states.begin(), states.end());
    steps.push_back(std::move(outputs));
  }
  return steps;
}

std::vector<std::vector<Datum>> run_steps(const Executable& executable, const std::vector<Datum>& inputs) {
  std::vector<std::vector<Datum>> steps;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Datum> outputs = executable.run(inputs);
    for (const ValueId state : executable.graph().states()) {
      outputs.emplace_back(executable.states().get(executable.graph().value(state).name()));
    }
    steps.push_back(std::move(outputs));
  }
  return steps;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// On one thread a step, kernels are the same and so must be the numbers, whatever memory states share.
TEST(States, RandomGraphsAgreeWithAnInterpreterOnAllSchedules) {
  size_t in_place = 0;
  size_t copied = 0;
  size_t with_streams = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::optional<StatefulCase> c = make_case(seed);
    if (!c) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (const std::string& device : host_devices()) {
      std::vector<std::vector<Datum>> expected;
      Graph graph;
      try {
        graph = prepare_graph(c->graph, get_device(device), {});
        Graph function = graph;
        function.states_to_inputs();
        expected = interpret(*c, function, device);
      } catch (const UserError&) {
        continue;  // a drawn value is no legal index
      }
      Random random(seed);
      for (int variant = 0; variant < 2; ++variant) {
        CompileOptions options;
        options.device = device;
        options.threads = 1;
        options.expert.use_passes = false;
        if (variant == 1) {
          options.expert.schedule = std::make_shared<const Schedule>(make_random_schedule(random, graph, 4, 4));
        }
        const Executable executable = compile(graph, options);
        const std::string plan = executable.print_plan();
        const size_t num_copied = occurrences(plan, "(copied) over input");
        copied += num_copied;
        in_place += occurrences(plan, " over input") - num_copied;
        with_streams += plan.find("streams of") != std::string::npos;
        const auto actual = run_steps(executable, c->inputs);
        for (int step = 0; step < kSteps; ++step) {
          const auto at = static_cast<size_t>(step);
          ASSERT_EQ(difference(actual[at], expected[at], {0, 0}), "") << device << " step " << step << "\n"
                                                                      << print_text(graph) << plan;
        }
      }
    }
  }
  EXPECT_GT(in_place, 10U);
  EXPECT_GT(copied, 30U);
  EXPECT_GT(with_streams, 30U);
}

// w' = w - rate * x^T (x w - y): a step of least squares, in which w is read three times.
Graph make_training() {
  Graph graph("training");
  const Var x = input(graph, DType::f32, {8, 4}, "x");
  const Var y = input(graph, DType::f32, {8, 2}, "y");
  const Var w = state(graph, Tensor::zeros(DType::f32, {4, 2}), "w");
  const Var steps = state(graph, Tensor::scalar(0.0F), "steps");
  const Var error = sub(matmul(x, w), y);
  const Var gradient = matmul(transpose(x, {1, 0}), error);
  update(w, sub(w, mul(gradient, constant(graph, Tensor::scalar(0.02F)))));
  update(steps, add(steps, constant(graph, Tensor::scalar(1.0F))));
  graph.add_output(error.id(), "error");
  graph.add_output(tanh(matmul(x, w)).id(), "prediction");
  return graph;
}

TEST(States, AllStrategiesTrainAlike) {
  Random random(1);
  const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {8, 4}), draw_tensor(random, DType::f32, {8, 2})};
  CompileOptions plain;
  plain.device = "reference";
  const auto expected = run_steps(compile(make_training(), plain), inputs);
  for (const Strategy strategy : available_strategies()) {
    for (int threads = 1; threads <= 3; ++threads) {
      CompileOptions options;
      options.threads = threads;
      SearchOptions search;
      search.strategy = strategy;
      search.budget_seconds = 0.3;
      search.use_tuning = false;
      search.never_slower = false;
      const Optimized optimized = optimize(make_training(), options, search);
      EXPECT_EQ(optimized.graph.states().size(), 2U) << to_string(strategy);
      const auto actual = run_steps(compile(optimized, options), inputs);
      for (size_t step = 0; step < expected.size(); ++step) {
        EXPECT_EQ(difference(actual[step], expected[step]), "")
            << to_string(strategy) << " " << threads << " step " << step;
      }
    }
  }
}

// ---- Donation --------------------------------------------------------------------------------------------------

TEST(Donation, OneBufferIsInputAndOutput) {
  Graph graph("donate");
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var y = add(x, x);
  graph.add_output(y.id(), "y");
  graph.add_output(mul(x, y).id(), "z");  // reads x after y is there
  CompileOptions options;
  options.donations = {{0, 0}};
  const Executable executable = compile(graph, options);
  const Tensor buffer = vector_of({1, 2, 3, 4});
  std::vector<Tensor> outputs{buffer, Tensor::zeros(DType::f32, {4})};
  executable.run_into({buffer}, outputs);
  EXPECT_EQ(difference(buffer, vector_of({2, 4, 6, 8})), "");
  EXPECT_EQ(difference(outputs[1], vector_of({2, 8, 18, 32})), "");
}

TEST(Donation, SaysWhatDoesNotFit) {
  Graph graph("donate");
  const Var x = input(graph, DType::f32, {4}, "x");
  graph.add_output(cast(x, DType::f64).id(), "y");
  graph.add_output(reshape(relu(x), constant(graph, Tensor::vector({2, 2}))).id(), "z");
  const auto error_with = [&](std::vector<Donation> donations) {
    CompileOptions options;
    options.donations = std::move(donations);
    return message_of<UserError>([&] { compile(graph, options); });
  };
  EXPECT_EQ(error_with({{0, 0}}), "[compile] donations: input 0 is f32[4], output 0 is f64[4]");
  EXPECT_EQ(error_with({{0, 1}}), "[compile] donations: input 0 is f32[4], output 1 is f32[2,2]");
  EXPECT_EQ(error_with({{1, 0}}), "[compile] donations: input 1 of 1, output 0 of 2");
  EXPECT_EQ(error_with({{0, 1}, {0, 0}}), "[compile] donations: input 0 or output 0 stands there twice");
}

TEST(Donation, MemoryIsSharedAsWasSaidOrNotAtAll) {
  Graph graph("donate");
  const Var x = input(graph, DType::f32, {4}, "x");
  graph.add_output(relu(x).id(), "y");
  graph.add_output(neg(x).id(), "z");
  CompileOptions options;
  options.donations = {{0, 0}};
  const Executable donating = compile(graph, options);
  const Executable plain = compile(graph);
  const auto memory = std::make_shared<std::vector<float>>(std::vector<float>{-1, 2, -3, 4, 5, 6});
  const auto part = [&](size_t first) { return Tensor::wrap(DType::f32, {4}, memory->data() + first, memory); };
  const auto error_with = [&](const Executable& executable, std::vector<Tensor> outputs) {
    return message_of<UserError>([&] { executable.run_into({part(0)}, outputs); });
  };
  const Tensor other = Tensor::zeros(DType::f32, {4});
  EXPECT_EQ(error_with(plain, {part(0), other}),
            "[run] output 0 shares memory with input 0; compile with that pair in donations, or copy");
  EXPECT_EQ(error_with(donating, {other, part(1)}),
            "[run] output 1 shares memory with input 0; compile with that pair in donations, or copy");
  EXPECT_EQ(error_with(donating, {part(1), other}),
            "[run] output 0 begins 4 bytes from input 0, which is donated: expected the same memory");
  EXPECT_EQ(error_with(donating, {other, other}), "[run] outputs 0 and 1 share memory");
  EXPECT_EQ(error_with(donating, {part(0), other}), "");
  EXPECT_EQ(*memory, (std::vector<float>{0, 2, 0, 4, 5, 6}));
  EXPECT_EQ(difference(other, vector_of({1, -2, 3, -4})), "");
}

TEST(Donation, RandomGraphsGiveTheSameInSharedMemory) {
  size_t shared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const TestGraph test = make_random_graph(random, 4 + static_cast<int>(seed % 16));
    SCOPED_TRACE("seed " + std::to_string(seed));
    CompileOptions options;
    options.threads = 1;
    options.expert.use_passes = false;
    std::vector<Datum> expected;
    Graph graph;
    try {
      graph = prepare_graph(test.graph, get_device("cpu"), {});
      expected = compile(graph, options).run(test.inputs);
    } catch (const UserError&) {
      continue;
    }
    std::vector<size_t> donor(graph.outputs().size(), graph.inputs().size());
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Type& type = graph.type(graph.inputs()[i]);
      for (size_t k = 0; k < donor.size(); ++k) {
        const bool fits = type.is_static() && type.dtype() != DType::string && graph.type(graph.outputs()[k]) == type;
        if (!fits || donor[k] < graph.inputs().size()) continue;
        donor[k] = i;
        options.donations.push_back({i, k});
        break;
      }
    }
    const auto is_plain = [](const Datum& datum) {
      return datum.is_tensor() && datum.tensor().dtype() != DType::string;
    };
    const bool all_static = std::all_of(graph.outputs().begin(), graph.outputs().end(),
                                        [&](ValueId v) { return graph.type(v).is_static(); });
    if (options.donations.empty() || !all_static || !std::all_of(test.inputs.begin(), test.inputs.end(), is_plain) ||
        !std::all_of(expected.begin(), expected.end(), is_plain)) {
      continue;
    }
    options.expert.schedule = std::make_shared<const Schedule>(make_random_schedule(random, graph, 4, 4));
    const Executable executable = compile(graph, options);
    std::vector<Tensor> inputs;
    for (const Datum& datum : test.inputs) inputs.push_back(datum.tensor().clone());
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < donor.size(); ++k) {
      const Tensor& like = expected[k].tensor();
      outputs.push_back(donor[k] < inputs.size() ? inputs[donor[k]] : Tensor::empty(like.dtype(), like.dims()));
    }
    if (executable.print_plan().find(" heap") != std::string::npos) continue;  // sizes known only after running
    executable.run_into(inputs, outputs);
    ++shared;
    for (size_t k = 0; k < outputs.size(); ++k) {
      ASSERT_EQ(difference(outputs[k], expected[k], {0, 0}), "") << "output " << k << "\n"
                                                                 << print_text(graph) << executable.print_plan();
    }
  }
  EXPECT_GT(shared, 20U);
}

}  // namespace
}  // namespace autograph
