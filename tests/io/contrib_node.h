// A model of one contrib op, run on every device, with extents known before and not.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "io/proto_bytes.h"
#include "support/compare.h"

namespace autograph::tests {

class ContribNode {
 public:
  explicit ContribNode(std::string op, std::string domain = "com.microsoft")
      : op_(std::move(op)), domain_(std::move(domain)) {}

  /// Operands in the order of the op: fed in, stored in the file, or not given.
  ContribNode& input(Tensor tensor) { return operand(std::move(tensor), false); }
  ContribNode& constant(Tensor tensor) { return operand(std::move(tensor), true); }
  ContribNode& skip() { return operand(Tensor(), true); }

  ContribNode& set(const std::string& name, int value) { return attribute(name, field(3, int64_t{value}), 2); }
  ContribNode& set(const std::string& name, float value) { return attribute(name, raw_float(2, value), 1); }
  ContribNode& set(const std::string& name, const std::string& value) { return attribute(name, field(4, value), 3); }
  ContribNode& set(const std::string& name, const std::vector<int64_t>& values) {
    std::string content;
    for (const int64_t v : values) content += field(8, v);
    return attribute(name, content, 7);
  }
  ContribNode& set(const std::string& name, const std::vector<float>& values) {
    std::string content;
    for (const float v : values) content += raw_float(7, v);
    return attribute(name, content, 6);
  }
  ContribNode& set(const std::string& name, const std::vector<std::string>& values) {
    std::string content;
    for (const std::string& v : values) content += field(9, v);
    return attribute(name, content, 8);
  }
  /// Which outputs the node has; one by default.
  ContribNode& outputs(std::vector<bool> wanted) {
    wanted_ = std::move(wanted);
    return *this;
  }

  /// The wanted outputs on the CPU. Those of the reference, and with symbolic extents, must be the same.
  std::vector<Tensor> run(const FloatTolerance& tolerance = {}) const {
    std::vector<Datum> inputs;
    for (const Operand& operand : operands_) {
      if (operand.tensor.is_present() && !operand.is_constant) inputs.emplace_back(operand.tensor);
    }
    std::vector<Datum> first;
    for (const bool symbolic : {false, true}) {
      for (const char* device : {"cpu", "reference"}) {
        CompileOptions options;
        options.device = device;
        options.threads = 1;
        const Graph graph = parse_onnx(bytes(symbolic)).graph;
        expect_listed(graph);
        const std::vector<Datum> results = compile(graph, options).run(inputs);
        if (first.empty()) first = results;
        EXPECT_EQ(difference(results, first, tolerance), "") << op_ << " on " << device << ", symbolic " << symbolic;
      }
    }
    std::vector<Tensor> tensors;
    for (const Datum& result : first) tensors.push_back(result.tensor());
    return tensors;
  }

  /// The first output.
  Tensor result(const FloatTolerance& tolerance = {}) const { return run(tolerance).front(); }

  /// The file.
  std::string bytes(bool symbolic = false) const {
    std::vector<std::string> names, result_names;
    std::string more;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      names.push_back(operand.tensor.is_present() ? "x" + std::to_string(i) : "");
      if (!operand.tensor.is_present()) continue;
      more += operand.is_constant ? field(5, initializer(names.back(), operand.tensor))
                                  : field(11, value_info_of(names.back(), operand.tensor, symbolic));
    }
    for (size_t i = 0; i < wanted_.size(); ++i) {
      result_names.push_back(wanted_[i] ? "y" + std::to_string(i) : "");
      if (wanted_[i]) more += field(12, field(1, result_names.back()));
    }
    const std::string content = field(1, node(op_, names, result_names, field(7, domain_) + attributes_));
    const auto opset = [](const std::string& domain, int64_t version) {
      return field(8, field(1, domain) + field(2, version));
    };
    return field(1, 8) + opset("", 17) + opset(domain_.empty() ? "com.microsoft" : domain_, 1) +
           field(7, field(2, std::string("g")) + content + more);
  }

 private:
  // Is it spelled in the ops that the list of other domains names?
  void expect_listed(const Graph& graph) const {
    static const std::set<std::string_view> kMovers = {
        "cast",  "concat", "constant_of_shape", "expand",  "flatten",  "identity", "pad", "range", "reshape", "shape",
        "slice", "split",  "transpose",         "squeeze", "unsqueeze"};
    std::set<std::string_view> listed, found;
    for (const OtherDomainOp& row : other_domain_ops()) {
      const bool is_this = row.name == op_ && row.domain == (domain_.empty() ? "ai.onnx" : domain_);
      if (is_this) listed.insert(row.becomes.begin(), row.becomes.end());
    }
    if (domain_.empty() && listed.empty()) return;  // an ordinary op
    for (const NodeId id : graph.nodes()) {
      const OpDef& op = graph.node(id).op();
      if (listed.contains(op.name)) found.insert(op.name);
      EXPECT_TRUE(listed.contains(op.name) || op.traits.elementwise || kMovers.contains(op.name))
          << op_ << " is not listed with " << op.name;
    }
    EXPECT_TRUE(!found.empty() || graph.num_nodes() == 0) << op_ << " has none of the ops that it is listed with";
  }

  struct Operand {
    Tensor tensor;
    bool is_constant = false;
  };

  ContribNode& operand(Tensor tensor, bool is_constant) {
    operands_.push_back({std::move(tensor), is_constant});
    return *this;
  }

  ContribNode& attribute(const std::string& name, const std::string& content, int64_t kind) {
    attributes_ += field(5, field(1, name) + content + field(20, kind));
    return *this;
  }

  static std::string raw_float(int number, float value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return varint(static_cast<uint64_t>(number) << 3 | 5) + bytes;
  }

  static int64_t code_of(DType dtype) {
    switch (dtype) {
      case DType::f32: return 1;
      case DType::u8: return 2;
      case DType::i8: return 3;
      case DType::i32: return 6;
      case DType::i64: return 7;
      case DType::string: return 8;
      case DType::boolean: return 9;
      case DType::f16: return 10;
      case DType::f64: return 11;
      default: return 0;
    }
  }

  static std::string initializer(const std::string& name, const Tensor& tensor) {
    std::string bytes;
    for (const int64_t d : tensor.dims()) bytes += field(1, d);
    const std::string raw(static_cast<const char*>(tensor.raw()), tensor.size_bytes());
    return bytes + field(2, code_of(tensor.dtype())) + field(8, name) + field(9, raw);
  }

  static std::string value_info_of(const std::string& name, const Tensor& tensor, bool symbolic) {
    std::string shape;
    for (size_t a = 0; a < tensor.dims().size(); ++a) {
      shape += field(1, symbolic ? field(2, name + "_" + std::to_string(a)) : field(1, tensor.dims()[a]));
    }
    return field(1, name) + field(2, field(1, field(1, code_of(tensor.dtype())) + field(2, shape)));
  }

  std::string op_, domain_, attributes_;
  std::vector<Operand> operands_;
  std::vector<bool> wanted_{true};
};

/// Elements are within `limit` of what is expected.
inline void expect_near(const Tensor& actual, const std::vector<double>& expected, double limit = 1e-5) {
  const std::vector<double> values = actual.to_f64();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], limit) << "at " << i;
}

/// Shorthands for tensors.
inline Tensor f32(Dims dims, const std::vector<float>& values) { return Tensor::of<float>(std::move(dims), values); }
inline Tensor f32(float value) { return Tensor::scalar<float>(value); }
inline Tensor u8(Dims dims, const std::vector<uint8_t>& values) { return Tensor::of<uint8_t>(std::move(dims), values); }
inline Tensor u8(uint8_t value) { return Tensor::scalar<uint8_t>(value); }
inline Tensor i8(Dims dims, const std::vector<int8_t>& values) { return Tensor::of<int8_t>(std::move(dims), values); }
inline Tensor i8(int8_t value) { return Tensor::scalar<int8_t>(value); }
inline Tensor i32(Dims dims, const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(std::move(dims), values);
}
inline Tensor i64(Dims dims, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(std::move(dims), values);
}

}  // namespace autograph::tests
