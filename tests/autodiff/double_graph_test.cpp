// Graphs in double precision.
#include "autodiff/double_graph.h"

#include <gtest/gtest.h>

#include "autograph/text.h"
#include "autograph/verify.h"

namespace autograph {
namespace {

std::string in_double(const char* text) {
  const Graph graph = in_double(parse_text(text));
  verify(graph);
  return print_text(graph);
}

TEST(DoubleGraph, HasFloatsInF64AndKeepsTheRest) {
  EXPECT_EQ(in_double(R"(graph "g" {
  input %0 "x": f32[batch,2]
  input %1 "i": i64[1]
  const %2 "w": f16[2] = {1.0, 0.5}
  %3: f32[2] = cast(%2) {to=f32}
  %4: f32[batch,2] = mul(%0, %3)
  %5: f32[1,2] = gather(%4, %1) {axis=0}
  output %5 "y"
}
)"),
            R"(graph "g" {
  input %0 "x": f64[batch,2]
  input %1 "i": i64[1]
  const %2 "w": f64[2] = {1.0, 0.5}
  %3: f64[2] = cast(%2) {round_mode="up", saturate=1, to=f64}
  %4: f64[batch,2] = mul(%0, %3)
  %5: f64[1,2] = gather(%4, %1) {axis=0}
  output %5 "y"
}
)");
}

// dynamic_quantize_linear takes f32 alone.
TEST(DoubleGraph, OpsThatDoNotTakeItComputeAsTheyDid) {
  const std::string text = in_double(R"(graph "g" {
  input %0 "x": f32[4]
  %1: u8[4], %2: f32[], %3: u8[] = dynamic_quantize_linear(%0)
  %4: f32[4] = dequantize_linear(%1, %2, %3)
  output %4 "y"
}
)");
  EXPECT_NE(text.find("input %0 \"x\": f64[4]"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[4] = cast(%0)"), std::string::npos) << text;
  EXPECT_NE(text.find("dynamic_quantize_linear"), std::string::npos) << text;
}

// The scales of a resize are f32 whatever it resizes: rules must see that they are constants.
TEST(DoubleGraph, SettingsOfOneDtypeStayConstants) {
  const std::string text = in_double(R"(graph "g" {
  input %0 "x": f32[2]
  const %1 "scales": f32[1] = {2.0}
  %2: f32[4] = resize(%0, _, %1) {mode="linear"}
  output %2 "y"
}
)");
  EXPECT_NE(text.find("f64[4] = resize(%0"), std::string::npos) << text;
  EXPECT_NE(text.find(": f32[1] = {2.0}"), std::string::npos) << text;
  EXPECT_EQ(text.find("cast("), std::string::npos) << text;
}

}  // namespace
}  // namespace autograph
