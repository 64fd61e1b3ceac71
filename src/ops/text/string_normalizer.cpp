// string_normalizer: drops stop words and changes case. Nothing left gives one empty string. Case is changed for ASCII,
// Latin-1, Greek and Cyrillic letters in UTF-8, by the rules that all languages share; a locale whose language has
// rules of its own (Turkish, Azeri, Lithuanian) is an error.
#include <algorithm>
#include <set>

#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/text/draw_strings.h"

namespace autograph {
namespace {

// Distance from a lower-case letter to its capital, or 0: code points of one or two UTF-8 bytes.
int to_upper_offset(int code) {
  if (code >= 'a' && code <= 'z') return -32;
  if (code >= 0xE0 && code <= 0xFE && code != 0xF7) return -32;     // Latin-1
  if (code >= 0x3B1 && code <= 0x3C9 && code != 0x3C2) return -32;  // Greek
  if (code >= 0x430 && code <= 0x44F) return -32;                   // Cyrillic
  if (code >= 0x450 && code <= 0x45F) return -80;                   // Cyrillic extensions
  return 0;
}

int to_lower_offset(int code) {
  for (const int offset : {32, 80}) {
    if (to_upper_offset(code + offset) == -offset) return offset;
  }
  return 0;
}

std::string change_case(const std::string& text, bool upper) {
  std::string result = text;
  for (size_t i = 0; i < result.size(); ++i) {
    const auto lead = static_cast<unsigned char>(result[i]);
    const bool two_bytes = lead >= 0xC2 && lead <= 0xDF && i + 1 < result.size();
    if (lead >= 0x80 && !two_bytes) continue;
    const int code = two_bytes ? (lead & 0x1F) << 6 | (static_cast<unsigned char>(result[i + 1]) & 0x3F) : lead;
    const int changed = code + (upper ? to_upper_offset(code) : to_lower_offset(code));
    if (!two_bytes) {
      result[i] = static_cast<char>(changed);
      continue;
    }
    result[i++] = static_cast<char>(0xC0 | changed >> 6);
    result[i] = static_cast<char>(0x80 | (changed & 0x3F));
  }
  return result;
}

void infer(InferContext& context) {
  const std::string locale = context.attributes().get_or<std::string>("locale", "");
  const std::string language = locale.substr(0, locale.find_first_of("_-."));
  if (language == "tr" || language == "az" || language == "lt") {
    context.fail<ValueError>("locale",
                             fmt::format("expected a language without case rules of its own, got '{}'", locale));
  }
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, DType::string, Shape::unknown());
  const bool is_row = x.rank() == 2 && x[0].value_or(1) == 1;
  if (x.rank() != 1 && !is_row) {
    context.fail<ShapeError>("x", fmt::format("expected [n] or [1,n], got {}", to_string(x)));
  }
  context.set_output(0, DType::string, is_row ? Shape{1, Dim::unknown()} : Shape{Dim::unknown()});
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Attributes& attributes = context.attributes();
  const std::string& action = attributes.text("case_change_action");
  const bool sensitive = attributes.flag("is_case_sensitive");
  std::set<std::string> stopwords;
  for (const auto& word : attributes.get_or<std::vector<std::string>>("stopwords", {})) {
    stopwords.insert(sensitive ? word : change_case(word, false));
  }
  std::vector<std::string> kept;
  for (const std::string& text : context.tensor(0).elements<std::string>()) {
    if (stopwords.count(sensitive ? text : change_case(text, false)) > 0) continue;
    kept.push_back(action == "NONE" ? text : change_case(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims = context.tensor(0).dims();
  dims.back() = static_cast<int64_t>(kept.size());
  Tensor y = context.allocate(DType::string, dims);
  std::copy(kept.begin(), kept.end(), y.mutable_data<std::string>());
  return {std::move(y)};
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 1, 1);
  if (draw_bool(random)) dims.insert(dims.begin(), 1);
  OpSample result{.inputs = {draw_strings(random, dims)},
                  .attributes = {{"is_case_sensitive", draw(random, 0, 1)},
                                 {"case_change_action",
                                  std::string(draw_one_of<const char*>(random, {"NONE", "LOWER", "UPPER"}))}}};
  if (draw_bool(random)) result.attributes.set("stopwords", std::vector<std::string>{"the", "b"});
  return result;
}

}  // namespace

Var string_normalizer(Var x, Attributes attributes) {
  return apply(string_normalizer_def(), {x}, std::move(attributes));
}

const OpDef& string_normalizer_def() {
  static const OpDef def{
      .name = "string_normalizer",
      .doc = "Drops stop words and changes case.",
      .inputs = {{"x", "T", "[n] or [1, n] strings in UTF-8."}},
      .outputs = {{"y", "T", "[kept] or [1, kept]; one empty string when none is kept."}},
      .types = {{"T", dtypes::kString}},
      .attributes = {{.name = "case_change_action",
                      .type = AttributeType::text,
                      .doc = "What to do with the case of kept strings.",
                      .default_value = "NONE",
                      .allowed = {"NONE", "LOWER", "UPPER"}},
                     {"is_case_sensitive", AttributeType::integer, "1: stop words match in their case only.",
                      int64_t{0}},
                     {"locale", AttributeType::text, "Whose case rules to follow, such as en_US."},
                     {"stopwords", AttributeType::texts, "Strings to drop; none when absent."}},
      .infer = infer,
      .evaluate = evaluate,
      .no_grad = "strings are not differentiable",
      .onnx = {{"StringNormalizer", 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
