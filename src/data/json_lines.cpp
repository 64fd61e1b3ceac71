// JSON lines: an object a line, each with the members of the first one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "data/label_column.h"

namespace autograph {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxLineBytes = 16 << 20;  // a parsed line takes several times its length
constexpr int kMaxDepth = 16;

// One member of all lines.
struct Member {
  std::string name;
  bool is_label = false;
  Dims dims = {};
  std::vector<float> numbers = {};
  std::vector<std::string> words = {};  // of labels
};

class LinesReader {
 public:
  LinesReader(const std::string& path, const JsonLinesOptions& options) : path_(path), options_(options) {}

  DatasetPtr read() {
    const std::string text = read_text(path_, options_.limits);
    bytes_ = static_cast<int64_t>(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line(text.data() + at, end - at);
      at = end + 1;
      ++line_;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) add(parse(line));
    }
    AG_CHECK_USER(rows_ > 0, FormatError, "[json lines] '{}': expected lines, got an empty file", printable(path_));
    return to_dataset();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("[json lines] '{}', line {}: {}", printable(path_), line_, what));
  }

  Json parse(std::string_view line) const {
    if (line.size() > kMaxLineBytes) {
      fail(fmt::format("expected at most {} bytes, got {}", kMaxLineBytes, line.size()));
    }
    const auto callback = [this](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) fail(fmt::format("nested deeper than {}", kMaxDepth));
      return true;
    };
    try {
      Json json = Json::parse(line, callback);
      if (!json.is_object()) fail("expected an object");
      return json;
    } catch (const Json::exception& error) {
      fail(printable(error.what()));
    }
  }

  void add(const Json& object) {
    if (rows_ == 0) start(object);
    if (object.size() != members_.size()) {
      fail(fmt::format("expected {} members as in the first line, got {}", members_.size(), object.size()));
    }
    for (Member& member : members_) {
      const auto found = object.find(member.name);
      if (found == object.end()) fail(fmt::format("member '{}' is missing", printable(member.name)));
      if (member.is_label) {
        member.words.push_back(found->is_string() ? found->get<std::string>() : found->dump());
        bytes_ += static_cast<int64_t>(sizeof(std::string) + member.words.back().size());
      } else {
        add_numbers(member, *found, 0);
      }
    }
    ++rows_;
    AG_CHECK_USER(bytes_ <= options_.limits.max_bytes, BudgetError,
                  "[json lines] '{}', line {}: expected at most {} bytes of memory, got more", printable(path_), line_,
                  options_.limits.max_bytes);
  }

  // Names and extents are those of the first line.
  void start(const Json& object) {
    for (const auto& [name, value] : object.items()) {
      Member member{.name = name, .is_label = name == options_.label && !value.is_array()};
      for (const Json* part = &value; part->is_array(); part = &part->front()) {
        if (part->empty())
          fail(fmt::format("member '{}': expected lists of numbers, got an empty one", printable(name)));
        member.dims.push_back(static_cast<int64_t>(part->size()));
      }
      members_.push_back(std::move(member));
    }
    if (members_.empty()) fail("expected members, got an empty object");
  }

  void add_numbers(Member& member, const Json& value, size_t axis) {
    if (axis < member.dims.size()) {
      const bool fits = value.is_array() && static_cast<int64_t>(value.size()) == member.dims[axis];
      if (!fits) {
        fail(fmt::format("member '{}': expected a list of {} at depth {}, got {}", printable(member.name),
                         member.dims[axis], axis, value.is_array() ? std::to_string(value.size()) : value.type_name()));
      }
      for (const Json& part : value) add_numbers(member, part, axis + 1);
      return;
    }
    bytes_ += static_cast<int64_t>(sizeof(float));
    if (value.is_number()) return member.numbers.push_back(static_cast<float>(value.get<double>()));
    if (value.is_boolean()) return member.numbers.push_back(value.get<bool>() ? 1.0F : 0.0F);
    if (value.is_null()) return member.numbers.push_back(std::numeric_limits<float>::quiet_NaN());
    fail(fmt::format("member '{}': expected a number, got {}", printable(member.name), value.type_name()));
  }

  DatasetPtr to_dataset() {
    NamedTensors tensors;
    std::vector<std::string> class_names;
    for (Member& member : members_) {
      if (member.is_label) {
        LabelClasses classes = find_classes(member.words);
        tensors.emplace_back("label", Tensor::vector(classes.labels));
        class_names = std::move(classes.names);
        continue;
      }
      Dims dims{rows_};
      dims.insert(dims.end(), member.dims.begin(), member.dims.end());
      tensors.emplace_back(member.name, Tensor::of(std::move(dims), member.numbers));
    }
    return tensor_dataset(std::move(tensors), std::move(class_names));
  }

  const std::string& path_;
  const JsonLinesOptions& options_;
  std::vector<Member> members_;
  int64_t rows_ = 0;
  int64_t line_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

DatasetPtr json_lines_dataset(const std::string& path, const JsonLinesOptions& options) {
  return LinesReader(path, options).read();
}

}  // namespace autograph
