// Plans with streams: who waits for whom, threads, and that memory holds what is read.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "schedule/plan.h"
#include "schedule/step_order.h"
#include "support/graphs/random_schedule.h"

namespace autograph {
namespace {

NodeId made_by(Var v) { return v.graph().value(v.id()).producer(); }

std::vector<NodeId> nodes_of(const std::vector<Var>& vars) {
  std::vector<NodeId> nodes;
  for (const Var& v : vars) nodes.push_back(made_by(v));
  return nodes;
}

// A plan of `graph` up to its memory, without kernels.
Plan plan_of(Graph& graph, const Schedule& schedule, int threads = 2) {
  EXPECT_EQ(find_fault(schedule, graph), "");
  const KnownValues known = infer_types(graph);
  Plan plan = plan_scheduled(graph, known, schedule, threads);
  find_waits(plan);
  place_memory(plan);
  return plan;
}

std::string failure_of(const Plan& plan) {
  try {
    verify_memory(plan);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

// x -> a -> b, and x -> c -> d, and their sum.
struct TwoBranches {
  Graph graph{"branches"};
  Var x = input(graph, DType::f32, {64}, "x");
  Var a = relu(x);
  Var b = exp(a);
  Var c = neg(x);
  Var d = abs(c);
  Var y = add(b, d);

  TwoBranches() { graph.add_output(y.id(), "y"); }
};

TEST(PlanScheduled, StepsStandInTheirStreamsAndWaitForWhatTheyRead) {
  TwoBranches t;
  const Plan plan = plan_of(t.graph, {{{0, {nodes_of({t.a, t.b, t.y}), nodes_of({t.c, t.d})}}}}, 4);
  ASSERT_EQ(plan.steps.size(), 5U);
  // Streams take turns: a c b d y.
  EXPECT_EQ(plan.steps[1].node, made_by(t.c));
  EXPECT_EQ(plan.steps[1].stream, 1U);
  EXPECT_EQ(plan.steps[4].node, made_by(t.y));
  EXPECT_EQ(plan.steps[4].waits, (std::vector<uint32_t>{3}));
  for (uint32_t n = 0; n < 5; ++n) {
    EXPECT_EQ(plan.steps[n].threads, 2) << n;
    EXPECT_EQ(plan.steps[n].is_awaited, n == 3) << n;
    EXPECT_EQ(plan.steps[n].waits.empty(), n < 4) << n;
  }
  ASSERT_EQ(plan.stages.size(), 1U);
  EXPECT_EQ(plan.stages[0].threads, 2);
  EXPECT_EQ(plan.stages[0].streams, (std::vector<std::vector<uint32_t>>{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(failure_of(plan), "");
}

TEST(PlanScheduled, AWaitThatAnotherImpliesIsLeftOut) {
  Graph graph;
  const Var x = input(graph, DType::f32, {8}, "x");
  const Var a = relu(x);
  const Var b = exp(a);
  const Var c = add(a, b);  // waits for b alone, which follows a in its stream
  const Var d = add(c, b);  // follows c
  const Var e = add(d, a);  // in a third stream: waits for d alone, which comes after a
  graph.add_output(e.id(), "e");
  const Plan plan = plan_of(graph, {{{1, {nodes_of({a, b}), nodes_of({c, d}), nodes_of({e})}}}});
  std::vector<size_t> num_waits;
  for (const Step& step : plan.steps) num_waits.push_back(step.waits.size());
  EXPECT_EQ(num_waits, (std::vector<size_t>{0, 0, 1, 0, 1}));
  EXPECT_EQ(plan.steps[2].waits, (std::vector<uint32_t>{1}));
  EXPECT_EQ(plan.steps[4].waits, (std::vector<uint32_t>{3}));
}

TEST(PlanScheduled, StagesAreBarriersAndThoseOfOneStreamAreMerged) {
  TwoBranches t;
  const Plan plan = plan_of(t.graph, {{{0, {nodes_of({t.a})}},
                                       {0, {nodes_of({t.b})}},
                                       {1, {nodes_of({t.c}), {}}},
                                       {0, {nodes_of({t.d})}},
                                       {0, {nodes_of({t.y})}}}});
  EXPECT_TRUE(plan.stages.empty());
  const Plan wide = plan_of(
      t.graph,
      {{{1, {nodes_of({t.a}), nodes_of({t.c})}}, {1, {nodes_of({t.d}), nodes_of({t.b})}}, {0, {nodes_of({t.y})}}}});
  ASSERT_EQ(wide.stages.size(), 3U);
  EXPECT_EQ(wide.stages[1].streams.size(), 2U);
  EXPECT_TRUE(wide.stages[2].streams.empty());
  for (const Step& step : wide.steps) EXPECT_TRUE(step.waits.empty());
  EXPECT_EQ(wide.steps.back().threads, 0);
  const StepOrder order(wide);
  EXPECT_TRUE(order.precedes(0, 2));
  EXPECT_TRUE(order.precedes(1, 2));
  EXPECT_FALSE(order.precedes(0, 1));
  EXPECT_FALSE(order.precedes(2, 2));
}

TEST(PlanScheduled, ViewsAndKnownValuesHaveNoStepsAndTheirStreamsNoThreads) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var flat = reshape(x, {6});
  const Var known = neg(constant(graph, Tensor::of<float>({6}, {1, 2, 3, 4, 5, 6})));
  const Var a = relu(flat);
  const Var b = add(flat, known);
  graph.add_output(a.id(), "a");
  graph.add_output(b.id(), "b");
  const Schedule schedule{{{0, {nodes_of({flat}), nodes_of({a}), nodes_of({known}), nodes_of({b})}}}};
  const Plan plan = plan_of(graph, schedule, 4);
  ASSERT_EQ(plan.steps.size(), 2U);
  ASSERT_EQ(plan.stages.size(), 1U);
  EXPECT_EQ(plan.stages[0].streams.size(), 2U);
  EXPECT_EQ(plan.stages[0].threads, 2);
  EXPECT_EQ(failure_of(plan), "");
}

TEST(PlanScheduled, WaitsGoThroughViews) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var a = relu(x);
  const Var b = neg(reshape(a, {6}));
  graph.add_output(b.id(), "b");
  const Var view = Var(graph, graph.node(made_by(b)).input(0));
  const Plan plan = plan_of(graph, {{{1, {nodes_of({a}), nodes_of({view, b})}}}});
  // One stream would have no step but for b.
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_EQ(plan.steps[1].waits, (std::vector<uint32_t>{0}));
}

TEST(PlanScheduled, WithStepsOfUnknownShapeAllIsSequential) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var a = relu(x);
  const Var b = non_zero(x);
  graph.add_output(a.id(), "a");
  graph.add_output(b.id(), "b");
  const Plan plan = plan_of(graph, {{{1, {nodes_of({a}), nodes_of({b})}}}});
  EXPECT_TRUE(plan.stages.empty());
  EXPECT_EQ(print_plan(plan, graph), print_plan(plan_of(graph, {}), graph));
}

TEST(PlanScheduled, PrintsStagesStreamsAndWaits) {
  TwoBranches t;
  const Schedule schedule{{{1, {nodes_of({t.a, t.b}), nodes_of({t.c, t.d})}}, {0, {nodes_of({t.y})}}}};
  const std::string text = print_plan(plan_of(t.graph, schedule), t.graph);
  EXPECT_NE(text.find("2 streams of 1 thread:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stage 0 stream 1"), std::string::npos) << text;
  EXPECT_NE(text.find("one stream:\n"), std::string::npos) << text;
  TwoBranches u;
  const Schedule joined{{{1, {nodes_of({u.a, u.b, u.y}), nodes_of({u.c, u.d})}}}};
  const std::string waiting = print_plan(plan_of(u.graph, joined), u.graph);
  EXPECT_NE(waiting.find("waits(3)"), std::string::npos) << waiting;
  EXPECT_EQ(print_plan(plan_of(u.graph, {}), u.graph).find("stream"), std::string::npos);
}

// ---- Memory ----------------------------------------------------------------------------------------------------

TEST(PlanScheduled, StreamsSideBySideShareNoMemory) {
  TwoBranches t;
  const Plan in_turn = plan_of(t.graph, {});
  const Plan plan = plan_of(t.graph, {{{1, {nodes_of({t.a, t.b}), nodes_of({t.c, t.d})}}, {0, {nodes_of({t.y})}}}});
  EXPECT_EQ(failure_of(in_turn), "");
  EXPECT_EQ(failure_of(plan), "");
  EXPECT_EQ(in_turn.arena_bytes, 3 * 256U);
  EXPECT_EQ(plan.arena_bytes, 4 * 256U);
}

TEST(PlanScheduled, MemoryIsUsedAgainBehindABarrier) {
  Graph graph;
  const Var x = input(graph, DType::f32, {64}, "x");
  const Var a = relu(x);
  const Var b = neg(x);
  const Var c = add(a, b);
  const Var d = exp(c);
  const Var e = abs(c);
  const Var y = add(d, e);
  graph.add_output(y.id(), "y");
  const Schedule schedule{{{1, {nodes_of({a}), nodes_of({b})}},
                           {0, {nodes_of({c})}},
                           {1, {nodes_of({d}), nodes_of({e})}},
                           {0, {nodes_of({y})}}}};
  const Plan plan = plan_of(graph, schedule);
  EXPECT_EQ(plan.arena_bytes, 3 * 256U);
  EXPECT_EQ(failure_of(plan), "");
}

TEST(PlanScheduled, StorageIsTakenInPlaceOnlyBehindAllItsReaders) {
  Graph graph;
  const Var x = input(graph, DType::f32, {64}, "x");
  const Var a = relu(x);
  const Var b = exp(a);  // wants the storage of a, which c may still be reading
  const Var c = neg(a);
  const Var y = add(b, c);
  graph.add_output(y.id(), "y");
  const auto in_place = [&](const Schedule& schedule) {
    const KnownValues known = infer_types(graph);
    Plan plan = plan_scheduled(graph, known, schedule, 2);
    find_waits(plan);
    for (Step& step : plan.steps) {
      if (step.node == made_by(b)) step.in_place_inputs = {0};
    }
    place_memory(plan);
    EXPECT_EQ(failure_of(plan), "");
    return std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) { return step.in_place == 0; });
  };
  EXPECT_FALSE(in_place({{{1, {nodes_of({a, b}), nodes_of({c, y})}}}}));
  EXPECT_TRUE(in_place({{{1, {nodes_of({a, c}), {}}}, {1, {nodes_of({b}), {}}}, {0, {nodes_of({y})}}}}));
  // c in another stream, but over before b begins because of what b waits for.
  EXPECT_TRUE(in_place({{{0, {nodes_of({a})}}, {0, {nodes_of({c})}}, {0, {nodes_of({b}), {}}}, {0, {nodes_of({y})}}}}));
}

TEST(VerifyMemory, FindsTensorsOfTwoStreamsInOnePlace) {
  TwoBranches t;
  Plan plan = plan_of(t.graph, {{{1, {nodes_of({t.a, t.b, t.y}), nodes_of({t.c, t.d})}}}});
  ASSERT_EQ(failure_of(plan), "");
  const SlotIndex a = plan.steps[0].outputs[0];
  const SlotIndex c = plan.steps[1].outputs[0];
  plan.slots[c].offset = plan.slots[a].offset;
  EXPECT_NE(failure_of(plan).find("write"), std::string::npos) << failure_of(plan);
}

TEST(VerifyMemory, FindsAMissingWait) {
  TwoBranches t;
  Plan plan = plan_of(t.graph, {{{1, {nodes_of({t.a, t.b, t.y}), nodes_of({t.c, t.d})}}}});
  plan.steps[4].waits.clear();
  EXPECT_NE(failure_of(plan).find("before it is written"), std::string::npos) << failure_of(plan);
}

TEST(VerifyMemory, FindsWhatIsWrittenOverInASequence) {
  TwoBranches t;
  Plan plan = plan_of(t.graph, {});
  ASSERT_EQ(failure_of(plan), "");
  // The order is a b c d y: b must outlive c.
  plan.slots[plan.steps[2].outputs[0]].offset = plan.slots[plan.steps[1].outputs[0]].offset;
  EXPECT_NE(failure_of(plan).find("write"), std::string::npos) << failure_of(plan);
  Plan scratch = plan_of(t.graph, {});
  scratch.steps[2].scratch_bytes = 64;
  scratch.steps[2].scratch_offset = scratch.slots[scratch.steps[1].outputs[0]].offset;
  EXPECT_NE(failure_of(scratch).find("write"), std::string::npos) << failure_of(scratch);
}

TEST(VerifyMemory, FindsWhatEndsBehindTheArena) {
  TwoBranches t;
  Plan plan = plan_of(t.graph, {});
  plan.arena_bytes -= 64;
  EXPECT_NE(failure_of(plan).find("ends at byte"), std::string::npos) << failure_of(plan);
}

// Vectors that are added, joined, taken apart and viewed, most of them read several times.
Graph make_random_vectors(Random& random, int64_t num_nodes) {
  Graph graph;
  std::vector<Var> values{input(graph, DType::f32, {16}, "x"), input(graph, DType::f32, {32}, "y")};
  const auto any = [&] {
    return values[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(values.size()) - 1))];
  };
  while (static_cast<int64_t>(graph.num_nodes()) < num_nodes) {
    const Var v = any();
    const Var w = any();
    const int64_t kind = draw(random, 0, 5);
    if (kind == 0 && v.dim(0) <= 512) {
      values.push_back(concat({v, w, any()}, 0));
    } else if (kind == 1 && v.dim(0) >= 32) {
      for (const Var& piece : split(v, {16, v.dim(0) - 16})) values.push_back(piece);
    } else if (kind == 2) {
      values.push_back(reshape(v, {v.dim(0)}));
    } else if (v.dim(0) == w.dim(0)) {
      values.push_back(add(v, w));
    } else {
      values.push_back(neg(v));
    }
  }
  for (int k = 0; k < 3; ++k) graph.add_output(values[values.size() - 1 - static_cast<size_t>(k)].id());
  return graph;
}

// Gives steps what kernels would: working memory, storage that their output may take, parts and pieces. Some concats
// join four rows, of which all vectors have as many.
void invent_kernels(Random& random, Plan& plan, const Graph& graph) {
  constexpr size_t kRows = 4;
  for (Step& step : plan.steps) {
    if (draw(random, 0, 3) == 0) step.scratch_bytes = static_cast<size_t>(draw(random, 1, 500));
    const std::string_view op = graph.node(step.node).op().name;
    const auto& places = op == "concat" ? step.inputs : step.outputs;
    auto& offsets = op == "concat" ? step.part_offsets : step.piece_offsets;
    if (op == "concat" || op == "split") {
      size_t offset = 0;
      for (const SlotIndex s : places) {
        offsets.push_back(offset);
        offset += plan.slots[s].bytes;
      }
      if (op == "concat" && draw_bool(random)) {
        step.joined_row_bytes = offset / kRows;
        for (size_t& part : offsets) part /= kRows;
      }
    } else if (draw_bool(random)) {
      step.spaced_row_bytes = plan.slots[step.outputs[0]].bytes / kRows;
    } else if (draw_bool(random)) {
      for (uint32_t k = 0; k < step.inputs.size(); ++k) step.in_place_inputs.push_back(k);
    }
  }
}

Plan random_plan(Random& random, Graph& graph) {
  const Schedule schedule = make_random_schedule(random, graph, 4, 4);
  EXPECT_EQ(find_fault(schedule, graph), "");
  const KnownValues known = infer_types(graph);
  Plan plan = plan_scheduled(graph, known, schedule, 4);
  find_waits(plan);
  invent_kernels(random, plan, graph);
  place_parts(plan);
  place_memory(plan);
  return plan;
}

TEST(VerifyMemory, PassesEveryPlanOfRandomSchedules) {
  size_t with_streams = 0;
  size_t in_place = 0;
  size_t over_outputs = 0;
  size_t used_again = 0;
  size_t in_parts = 0;
  size_t in_rows = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    Graph graph = make_random_vectors(random, 5 + static_cast<int64_t>(seed % 60));
    const Plan plan = random_plan(random, graph);
    ASSERT_EQ(failure_of(plan), "") << "seed " << seed << "\n" << print_plan(plan, graph);
    with_streams += !plan.stages.empty();
    used_again += !plan.stages.empty() && plan.arena_bytes < plan.sum_of_tensors_bytes;
    for (const Step& step : plan.steps) {
      in_place += step.in_place >= 0 && step.threads > 0;
      over_outputs += step.in_place >= 0 && plan.slots[step.outputs[0]].place == Place::output;
    }
    for (const Slot& slot : plan.slots) in_parts += slot.root != slot.source && slot.place == Place::arena;
    for (const Slot& slot : plan.slots) in_rows += slot.row_stride > 0;
  }
  EXPECT_GT(with_streams, 300U);
  EXPECT_GT(in_place, 100U);
  EXPECT_GT(over_outputs, 100U);
  EXPECT_GT(used_again, 50U);
  EXPECT_GT(in_parts, 300U);
  EXPECT_GT(in_rows, 100U);
}

// A row further on is where another part has its piece.
TEST(VerifyMemory, SeesRowsThatOverlap) {
  size_t moved = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Graph graph = make_random_vectors(random, 30);
    const Plan plan = random_plan(random, graph);
    for (size_t s = 0; s < plan.slots.size(); ++s) {
      if (plan.slots[s].row_stride == 0 || plan.slots[s].place != Place::arena) continue;
      Plan shifted = plan;
      Slot& part = shifted.slots[s];
      const bool is_first = part.root_offset == plan.slots[part.root].root_offset;
      part.offset += is_first ? part.row_bytes : 0;
      part.offset -= is_first ? 0 : sizeof(float);
      EXPECT_NE(failure_of(shifted), "") << "seed " << seed << "\n" << print_plan(plan, graph);
      ++moved;
    }
  }
  EXPECT_GT(moved, 10U);
}

// What the order of steps says against what the runtime would see: any wait taken away that another does not imply lets
// somebody read too early.
TEST(VerifyMemory, NoWaitIsSuperfluous) {
  size_t removed = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Graph graph = make_random_vectors(random, 30);
    const Plan plan = random_plan(random, graph);
    for (size_t number = 0; number < plan.steps.size(); ++number) {
      for (size_t w = 0; w < plan.steps[number].waits.size(); ++w) {
        Plan without = plan;
        auto& waits = without.steps[number].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        ASSERT_NE(failure_of(without), "") << "seed " << seed << "\n" << print_plan(plan, graph);
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 200U);
}

}  // namespace
}  // namespace autograph
