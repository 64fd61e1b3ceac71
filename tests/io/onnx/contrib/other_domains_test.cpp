// The list of ops of other domains: what it says of each is there, and the guide has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>

#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "io/onnx/op_index.h"

namespace autograph::io {
namespace {

std::vector<std::string_view> becomes(std::string_view domain, std::string_view name) {
  for (const OtherDomainOp& op : other_domain_ops()) {
    if (op.domain == domain && op.name == name) return op.becomes;
  }
  return {};
}

TEST(OtherDomains, HasWhatTheImporterFinds) {
  const std::vector<OtherDomainOp> ops = other_domain_ops();
  std::set<std::tuple<std::string_view, std::string_view, int>> seen;
  for (const OtherDomainOp& op : ops) {
    EXPECT_TRUE(seen.emplace(op.domain, op.name, op.since).second) << op.domain << "::" << op.name;
    const std::string domain(op.domain == "ai.onnx" ? "" : op.domain);
    const FormSearch search = find_form(domain, std::string(op.name), op.since);
    ASSERT_TRUE(search.form) << op.domain << "::" << op.name;
    EXPECT_EQ(search.form->op, op.schema);
  }
  EXPECT_GE(ops.size(), 60u);
}

TEST(OtherDomains, AreMadeOfOps) {
  for (const OtherDomainOp& op : other_domain_ops()) {
    EXPECT_FALSE(op.becomes.empty()) << op.name;
    for (const std::string_view name : op.becomes) EXPECT_TRUE(find_op(name)) << op.name << ": " << name;
  }
  EXPECT_EQ(becomes("com.microsoft", "QLinearAdd"),
            (std::vector<std::string_view>{"dequantize_linear", "add", "quantize_linear"}));
  EXPECT_EQ(becomes("com.microsoft", "DynamicQuantizeLSTM"), std::vector<std::string_view>{"dynamic_quantize_lstm"});
  EXPECT_EQ(becomes("com.ms.internal.nhwc", "Conv"), std::vector<std::string_view>{"conv"});
  EXPECT_EQ(becomes("ai.onnx", "SimplifiedLayerNormalization").front(), "rms_normalization");
  EXPECT_TRUE(becomes("ai.onnx", "Conv").empty());
  const std::vector<std::string_view> fused = becomes("com.microsoft", "FusedConv");
  EXPECT_EQ(fused.front(), "conv");
  EXPECT_TRUE(std::find(fused.begin(), fused.end(), "leaky_relu") != fused.end());
}

TEST(OtherDomains, AreInTheGuide) {
  std::ifstream file(AG_DOCS_FOLDER "/user/contrib_ops.md");
  const std::string guide{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(guide.empty());
  for (const OtherDomainOp& op : other_domain_ops()) {
    if (op.domain == "autograph") continue;  // what other programs do not write
    EXPECT_NE(guide.find("`" + std::string(op.name) + "`"), std::string::npos) << op.domain << "::" << op.name;
  }
}

}  // namespace
}  // namespace autograph::io
