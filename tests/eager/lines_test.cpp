// Lines of the program in messages. This file has debug information, whatever the build type.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "autograph/capture.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Var weights(const std::vector<float>& values) {
  return variable(Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

std::string line(int number) { return "lines_test.cpp:" + std::to_string(number); }

TEST(SourceLines, TheFirstNanNamesTheLineThatMadeIt) {
  const CheckFinite check;
  const SourceLines lines;
  const Var x = weights({-1, 1});
  const std::string message = message_of<ValueError>([&] { log(x); });
  EXPECT_NE(message.find("[eager] log"), std::string::npos) << message;
  EXPECT_NE(message.find("f32[2] {-1, 1}"), std::string::npos) << message;
#ifdef AG_HAS_BACKTRACE
  EXPECT_NE(message.find(line(__LINE__ - 4)), std::string::npos) << message;
#endif
}

TEST(SourceLines, AnInfiniteGradientNamesTheLineOfTheForwardPass) {
  const CheckFinite check;
  const SourceLines lines;
  const Var zero = weights({0});
  const Var root = sqrt(zero);
  const int made_at = __LINE__ - 1;
  const Var loss = reduce_sum(root, {}, false);
  const std::string message = message_of<ValueError>([&] { backward(loss); });
  EXPECT_NE(message.find("sqrt"), std::string::npos) << message;
#ifdef AG_HAS_BACKTRACE
  EXPECT_NE(message.find(line(made_at)), std::string::npos) << message;
#endif
}

// The call is on the stack still when its result is looked at; that of the forward pass is not when its gradient is.
TEST(SourceLines, TheFirstNanNeedsNoScopeToNameTheLine) {
  const CheckFinite check;
  const Var x = weights({-1, 1});
  const std::string message = message_of<ValueError>([&] { log(x); });
#ifdef AG_HAS_BACKTRACE
  EXPECT_NE(message.find(line(__LINE__ - 2)), std::string::npos) << message;
#endif
  const Var loss = reduce_sum(sqrt(weights({0})), {}, false);
  const std::string of_gradient = message_of<ValueError>([&] { backward(loss); });
  EXPECT_NE(of_gradient.find("(in the gradient of sqrt; inside SourceLines, the forward pass keeps its lines)"),
            std::string::npos)
      << of_gradient;
}

TEST(SourceLines, AScopeTellsThePlaceWithout) {
  const CheckFinite check;
  const SourceScope here;
  const int made_at = __LINE__ - 1;
  const std::string message = message_of<ValueError>([&] { log(weights({-1})); });
  EXPECT_NE(message.find(line(made_at)), std::string::npos) << message;
}

// A graph runs long after its nodes were made: they carry the line.
std::string message_of_captured(const std::function<Var(const Var& x)>& function) {
  CaptureOptions options;
  options.compile.check_nan = NanCheck::nodes;
  Captured graph = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {function(x[0])}; }, options);
  return message_of<Error>([&] { graph({eager(Tensor::of<float>({2}, {-1, 1}))}); });
}

TEST(SourceLines, TheFirstNanOfACapturedGraphNamesTheLine) {
  const SourceLines lines;
  int made_at = 0;
  const std::string message = message_of_captured([&](const Var& x) {
    const Var shifted = x - 0.5;
    made_at = __LINE__ + 1;
    return log(shifted) * 2;
  });
  EXPECT_NE(message.find("[check_nan]"), std::string::npos) << message;
  EXPECT_NE(message.find("log at "), std::string::npos) << message;
#ifdef AG_HAS_BACKTRACE
  EXPECT_NE(message.find(line(made_at)), std::string::npos) << message;
#endif
}

// That of the forward pass, and of the call of backward().
TEST(SourceLines, AnInfiniteGradientOfACapturedGraphNamesTheLine) {
  const Var w = weights({0, 0});
  int made_at = 0, formed_at = 0;
  const std::string message = message_of_captured([&](const Var& x) {
    Var root;
    {
      const SourceScope here;
      made_at = __LINE__ - 1;
      root = sqrt(w * x);
    }
    const SourceScope here;
    formed_at = __LINE__ - 1;
    backward(reduce_sum(root, {}, false));
    return root;
  });
  EXPECT_NE(message.find(line(made_at)), std::string::npos) << message;
  EXPECT_NE(message.find(line(formed_at)), std::string::npos) << message;
}

TEST(SourceLines, WithoutScopesGraphsCarryNone) {
  const std::string message = message_of_captured([](const Var& x) { return log(x); });
  EXPECT_NE(message.find("[check_nan]"), std::string::npos) << message;
  EXPECT_EQ(message.find(" at lines_test"), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
