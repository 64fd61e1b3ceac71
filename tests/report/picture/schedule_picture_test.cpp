// Pictures of schedules, and the critical path that they show.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "report/critical_path.h"
#include "report/picture/graph_picture.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// x -> relu -> add; x -> sigmoid -> add.
struct Diamond {
  Graph graph;
  std::vector<NodeId> order;
  Diamond() {
    const Var x = input(graph, DType::f32, {4}, "x");
    const Var a = relu(x);
    const Var b = sigmoid(x);
    graph.add_output(add(a, b).id(), "y");
    order = graph.topological_order();
  }
};

TEST(CriticalPath, IsTheLongestChain) {
  const Diamond d;
  const CriticalPath path = critical_path(d.graph, {1, 5, 2});
  EXPECT_EQ(path.us, 7);
  EXPECT_EQ(path.nodes, (std::vector<NodeId>{d.order[1], d.order[2]}));
  EXPECT_TRUE(critical_path(Graph(), {}).nodes.empty());
}

TEST(SchedulePicture, ShowsStreamsStagesAndTheCriticalPath) {
  const Diamond d;
  const Schedule schedule{{{0, {{d.order[0]}, {d.order[1]}}}, {0, {{d.order[2]}}}}};
  const std::string dot = schedule_to_dot(d.graph, {schedule, {1, 5, 2}}, "title");
  EXPECT_TRUE(contains(dot, "3 nodes, 2 stages, 2 streams; nodes 8 us, critical path 7 us")) << dot;
  EXPECT_TRUE(contains(dot, "stage 1"));
  EXPECT_FALSE(contains(dot, "stage 2"));  // one stream needs no frame
  EXPECT_TRUE(contains(dot, "label=\"stream 1\""));
  EXPECT_TRUE(contains(dot, "label=\"critical path\""));
}

TEST(SchedulePicture, WithoutTimesHasNoCriticalPath) {
  const Diamond d;
  const std::string dot = schedule_to_dot(d.graph, {}, "title");
  EXPECT_TRUE(contains(dot, "3 nodes, one after the other"));
  EXPECT_FALSE(contains(dot, "critical path"));
}

TEST(Pictures, ShowStatesAndWhatUpdatesThem) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var total = state(graph, Tensor::zeros(DType::f32, {4}), "total");
  const Var sum = add(total, x);
  update(total, sum);
  graph.add_output(relu(sum).id(), "y");
  const std::string dot = graph_to_dot(graph);
  EXPECT_TRUE(contains(dot, "label=\"state total\\nf32[4]\", shape=cylinder")) << dot;
  EXPECT_TRUE(contains(dot, "label=\"update\"")) << dot;
  const std::string scheduled = schedule_to_dot(graph, {}, "title");
  EXPECT_TRUE(contains(scheduled, "state total")) << scheduled;
  EXPECT_TRUE(contains(scheduled, "style=dashed, constraint=false")) << scheduled;
}

}  // namespace
}  // namespace autograph
