// string_split: cuts every string at `delimiter`, at most `maxsplit` times from the left, and gives the pieces along a
// new last axis, filled up with "", and their number. Without a delimiter (or with "") runs of white space separate,
// and white space at the ends gives no pieces.
#include <algorithm>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/text/draw_strings.h"

namespace autograph {
namespace {

constexpr const char* kSpace = " \t\n\r\f\v";

std::vector<std::string> split_at_space(const std::string& text, int64_t most) {
  std::vector<std::string> pieces;
  size_t at = text.find_first_not_of(kSpace);
  while (at != std::string::npos) {
    const size_t end = static_cast<int64_t>(pieces.size()) == most ? std::string::npos : text.find_first_of(kSpace, at);
    pieces.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    at = text.find_first_not_of(kSpace, std::min(end, text.size()));
  }
  return pieces;
}

std::vector<std::string> split_at(const std::string& text, const std::string& delimiter, int64_t most) {
  std::vector<std::string> pieces;
  size_t at = 0;
  while (static_cast<int64_t>(pieces.size()) < most) {
    const size_t end = text.find(delimiter, at);
    if (end == std::string::npos) break;
    pieces.push_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
  pieces.push_back(text.substr(at));
  return pieces;
}

void infer(InferContext& context) {
  if (const auto* most = context.attributes().find_as<int64_t>("maxsplit"); most && *most < 0) {
    context.fail<ValueError>("maxsplit", fmt::format("expected 0 or more, got {}", *most));
  }
  Shape y = context.shape(0);
  if (y.has_rank()) y.dims().push_back(Dim::unknown());
  context.set_output(0, DType::string, std::move(y));
  context.set_output(1, DType::i64, context.shape(0));
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const std::string delimiter = context.attributes().get_or<std::string>("delimiter", "");
  const int64_t most = context.attributes().get_or<int64_t>("maxsplit", std::numeric_limits<int64_t>::max());
  std::vector<std::vector<std::string>> split;
  size_t longest = 0;
  for (const std::string& text : x.elements<std::string>()) {
    split.push_back(delimiter.empty() ? split_at_space(text, most) : split_at(text, delimiter, most));
    longest = std::max(longest, split.back().size());
  }
  Dims dims = x.dims();
  dims.push_back(static_cast<int64_t>(longest));
  Tensor y = context.allocate(DType::string, dims);
  Tensor counts = context.allocate(DType::i64, x.dims());
  for (size_t i = 0; i < split.size(); ++i) {
    std::copy(split[i].begin(), split[i].end(), y.mutable_data<std::string>() + i * longest);
    counts.mutable_data<int64_t>()[i] = static_cast<int64_t>(split[i].size());
  }
  return {std::move(y), std::move(counts)};
}

OpSample sample(Random& random) {
  OpSample result{.inputs = {draw_strings(random, draw_dims(random, 0, 3))}};
  if (draw_bool(random)) result.attributes.set("maxsplit", draw(random, 0, 2));
  if (draw_bool(random))
    result.attributes.set("delimiter", std::string(draw_one_of<const char*>(random, {"", " ", "a"})));
  return result;
}

}  // namespace

std::vector<Var> string_split(Var x, const std::string& delimiter, int64_t max_splits) {
  Attributes attributes{{"delimiter", delimiter}};
  if (max_splits >= 0) attributes.set("maxsplit", max_splits);
  return apply_all(string_split_def(), {x}, std::move(attributes), 2);
}

const OpDef& string_split_def() {
  static const OpDef def{
      .name = "string_split",
      .doc = "Cuts strings at a delimiter; pieces along a new last axis, and how many.",
      .inputs = {{"x", "T", "Strings of any shape."}},
      .outputs = {{"y", "T", "[..., most pieces of any string], filled up with empty strings."},
                  {"z", "I", "Shape of x: number of pieces."}},
      .types = {{"T", dtypes::kString}, {"I", dtypes::kI64}},
      .attributes = {{"delimiter", AttributeType::text, "Where to cut; white space when absent or empty."},
                     {"maxsplit", AttributeType::integer, "Most cuts per string; no limit when absent."}},
      .infer = infer,
      .evaluate = evaluate,
      .no_grad = "strings are not differentiable",
      .onnx = {{"StringSplit", 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
