// Which kernels a catalog asks.
#include <gtest/gtest.h>

#include "autograph/kernel.h"
#include "ops/defs.h"

namespace autograph {
namespace {

int asked_of_first = 0, asked_of_second = 0;

std::string never(const KernelCall&) {
  ++asked_of_first;
  return "takes nothing";
}
std::string on_one_thread(const KernelCall& call) {
  ++asked_of_second;
  return call.threads == 1 ? "" : "one thread only";
}

TEST(KernelCatalog, AsksFirstWhichTookTheCallBefore) {
  const KernelCatalog catalog({{.name = "first", .op = relu_def().name, .why_not = never},
                               {.name = "second", .op = relu_def().name, .why_not = on_one_thread}});
  const Attributes attributes;
  const KernelCall call{relu_def(), attributes, {}, {}, {}, 1};
  const KernelCall of_two_threads{relu_def(), attributes, {}, {}, {}, 2};
  EXPECT_TRUE(catalog.accepts(call));
  EXPECT_TRUE(catalog.accepts(call));
  EXPECT_EQ(asked_of_first, 1);
  EXPECT_EQ(asked_of_second, 2);
  EXPECT_FALSE(catalog.accepts(of_two_threads));
  EXPECT_EQ(asked_of_first, 2);
  // A catalog with fewer kernels has none at that place.
  const KernelCatalog other({{.name = "first", .op = relu_def().name, .why_not = never}});
  EXPECT_FALSE(other.accepts(call));
}

}  // namespace
}  // namespace autograph
