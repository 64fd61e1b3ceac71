// Writing ONNX models: opset 21 and IR 10 unless an op needs more, weights beside the model when they are large.
#include <deque>

#include "autograph/model_io.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "io/onnx/dtype_code.h"
#include "io/onnx/export_graph.h"
#include "io/onnx/import/read_tensor.h"
#include "io/onnx/names.h"

namespace autograph {
namespace io {
namespace {

constexpr int64_t kAlignment = 4096;        // of external tensors: a page
constexpr size_t kSmallestExternal = 1024;  // smaller constants stay in the model: shapes and axes are read there

/// The IR version that introduced each opset's message features.
int64_t ir_version_for(int opset) {
  if (opset <= 22) return 10;
  if (opset <= 24) return 11;
  if (opset == 25) return 12;
  return opset == 26 ? 13 : 14;
}

class InlineSink : public InitializerSink {
 public:
  void store(const Tensor& tensor, onnx::TensorProto& proto) override { write_tensor(tensor, proto); }
};

/// Collects the parts of the data file.
class ExternalSink : public InitializerSink {
 public:
  explicit ExternalSink(std::string location) : location_(std::move(location)) {}

  void store(const Tensor& tensor, onnx::TensorProto& proto) override {
    if (tensor.dtype() == DType::string || tensor.size_bytes() < kSmallestExternal) {
      write_tensor(tensor, proto);
      return;
    }
    static const std::string kZeros(kAlignment, '\0');
    const int64_t padding = (kAlignment - size_ % kAlignment) % kAlignment;
    parts_.push_back(std::string_view(kZeros).substr(0, static_cast<size_t>(padding)));
    size_ += padding;
    const int64_t length = packed_bytes(tensor.dtype(), tensor.num_elements());
    if (file_bits(tensor.dtype()) < 8)
      parts_.push_back(packed_.emplace_back(pack(tensor)));
    else
      parts_.emplace_back(static_cast<const char*>(tensor.raw()), static_cast<size_t>(length));
    proto.set_data_type(code_of(tensor.dtype()));
    for (const int64_t d : tensor.dims()) proto.add_dims(d);
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    add_entry(proto, "location", location_);
    add_entry(proto, "offset", std::to_string(size_));
    add_entry(proto, "length", std::to_string(length));
    size_ += length;
  }

  const std::vector<std::string_view>& parts() const { return parts_; }

 private:
  static void add_entry(onnx::TensorProto& proto, const char* key, const std::string& value) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  std::string location_;
  std::vector<std::string_view> parts_;
  std::deque<std::string> packed_;
  int64_t size_ = 0;
};

void add_metadata(const std::string& key, const std::string& value, onnx::ModelProto& model) {
  auto& entry = *model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

onnx::ModelProto make_model(const Graph& graph, const SaveOptions& options, InitializerSink& sink) {
  onnx::ModelProto model;
  const Opsets opsets = needed_opsets(graph, options.opset);
  model.set_ir_version(ir_version_for(opsets.at("")));
  model.set_producer_name("autograph");
  model.set_producer_version(AG_VERSION);
  if (!options.doc.empty()) model.set_doc_string(options.doc);
  for (const auto& [key, value] : options.metadata) add_metadata(key, value, model);
  for (const auto& [domain, version] : opsets) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  GraphExporter exporter(opsets, sink);
  exporter.export_graph(graph, {}, *model.mutable_graph());
  exporter.export_defaults(options.input_defaults, *model.mutable_graph());
  for (const auto& [state, output] : exporter.states()) add_metadata(std::string(kStateMark) + state, output, model);
  return model;
}

std::string serialize(const onnx::ModelProto& model) {
  const auto size = static_cast<int64_t>(model.ByteSizeLong());
  AG_CHECK_USER(size <= kMaxProtoBytes, BudgetError,
                "[onnx] model: {} bytes exceed the {} of one file (external_data_above moves weights out)", size,
                kMaxProtoBytes);
  return model.SerializeAsString();
}

int64_t weight_bytes(const Graph& graph) {
  int64_t total = 0;
  for (const ValueId id : graph.constants()) total += static_cast<int64_t>(graph.value(id).constant().size_bytes());
  for (const ValueId id : graph.states()) total += static_cast<int64_t>(graph.value(id).initial().size_bytes());
  return total;
}

void check_options(const SaveOptions& options) {
  constexpr int kOldest = 18;  // the oldest forms that ops write
  constexpr int kNewest = 28;
  AG_CHECK_USER(options.opset >= kOldest && options.opset <= kNewest, ValueError,
                "[onnx] opset: expected {}..{}, got {}", kOldest, kNewest, options.opset);
}

}  // namespace
}  // namespace io

std::string serialize_onnx(const Graph& graph, const SaveOptions& options) {
  io::check_options(options);
  io::InlineSink sink;
  return io::serialize(io::make_model(io::with_onnx_forms(graph), options, sink));
}

void save_onnx(const Graph& graph, const std::string& path, const SaveOptions& options) {
  io::check_options(options);
  const Graph prepared = io::with_onnx_forms(graph);
  int64_t bytes = io::weight_bytes(prepared);
  for (const auto& [name, tensor] : options.input_defaults) bytes += static_cast<int64_t>(tensor.size_bytes());
  if (bytes <= options.external_data_above) {
    io::InlineSink sink;
    write_file(path, io::serialize(io::make_model(prepared, options, sink)));
    return;
  }
  // Beside the model itself, whatever links to it.
  const std::string target = target_of(path);
  io::ExternalSink sink(target.substr(target.find_last_of('/') + 1) + ".data");
  const std::string model = io::serialize(io::make_model(prepared, options, sink));
  write_file(target + ".data", sink.parts());
  write_file(target, model);
}

}  // namespace autograph
