// Reading and writing models: ONNX.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Limits and permissions for loading a file that may be hostile, and how to load one that is not.
struct LoadOptions {
  int64_t max_nodes = 5'000'000;                 ///< After inlining functions.
  int64_t max_tensor_bytes = int64_t{16} << 30;  ///< Any one initializer.
  int64_t max_total_bytes = int64_t{64} << 30;   ///< All initializers together.
  bool allow_hard_links = false;                 ///< External data files with more than one link.
  /// Large weights that lie in a file as they do in memory are mapped instead of read: processes share them, and what
  /// nobody touches takes no memory. For files that nobody changes meanwhile: to truncate one kills the process.
  bool map_weights = false;
  /// Inputs that every run is going to give. Only those that also have an initializer need to stand here: they become
  /// inputs of the graph, where they otherwise are constants. Names of other inputs change nothing; ValueError for
  /// names that no input has.
  std::vector<std::string> given_inputs = {};
  /// Channels of a block, 8 or 16, in files that ONNX Runtime optimised for its own kernels (com.microsoft.nchwc),
  /// which do not say it; 0: UnsupportedError unless a number of channels tells.
  int64_t channel_block = 0;
};

/// An op that a model uses and AutoGraph does not have.
struct MissingOp {
  std::string op;      ///< "domain::Name" or "Name".
  int opset = 0;       ///< Imported version of its domain.
  int64_t count = 0;   ///< Nodes that use it.
  std::string reason;  ///< Why not.
};

/// A loaded model.
struct Model {
  Graph graph;
  std::map<std::string, int> opsets;  ///< Domain ("" = ai.onnx) to version.
  int64_t ir_version = 0;
  std::string producer;                         ///< Name and version of the exporter.
  std::string doc;                              ///< The model's doc string.
  std::map<std::string, std::string> metadata;  ///< metadata_props.
  std::vector<std::string> warnings;            ///< For example an opset newer than this build knows.
  /// Inputs with an initializer, which are constants of the graph: LoadOptions::given_inputs makes inputs of them.
  std::vector<std::pair<std::string, Type>> optional_inputs;
  /// What the file has for inputs with an initializer that LoadOptions::given_inputs made inputs of.
  std::map<std::string, Tensor> input_defaults;
};

/// Loads an ONNX file with its external data. Throws FormatError (malformed), UnsupportedError (all missing ops at
/// once), BudgetError (too large) or IoError.
Model load_onnx(const std::string& path, const LoadOptions& options = {});

/// As above from memory; `directory` is where external data may lie ("" = nowhere).
Model parse_onnx(std::string_view bytes, const std::string& directory = "", const LoadOptions& options = {});

/// The ops of a model that AutoGraph does not have, without importing it. Throws FormatError or IoError.
std::vector<MissingOp> find_missing_ops(const std::string& path);

/// An op of another domain than ai.onnx that load_onnx() reads, or one that ONNX Runtime writes into that domain.
struct OtherDomainOp {
  std::string_view name;                  ///< In the file.
  std::string_view domain;                ///< For example "com.microsoft".
  int since = 1;                          ///< First version of the domain whose form is read.
  const OpDef* schema = nullptr;          ///< Inputs, outputs and attributes.
  std::vector<std::string_view> becomes;  ///< Our ops that do its work, without moves and conversions of elements.
};

/// All of them, by domain and name; an op that has several forms is there with each. Of the table that load_onnx()
/// reads by.
std::vector<OtherDomainOp> other_domain_ops();

/// How to write.
struct SaveOptions {
  int opset = 21;                                     ///< Target opset of ai.onnx; raised when an op needs a newer one.
  int64_t external_data_above = int64_t{1536} << 20;  ///< Weights go to FILE.data when they sum to more than this.
  std::string doc = {};                               ///< As Model::doc.
  std::map<std::string, std::string> metadata = {};   ///< As Model::metadata.
  std::map<std::string, Tensor> input_defaults = {};  ///< As Model::input_defaults: initializers of these inputs.
};

/// Writes `graph` as ONNX, by way of a temporary file. States, the parameters of modules among them, become inputs with
/// a value of their own, which load_onnx() reads as states again; Graph::freeze() makes constants of them first, which
/// other runtimes may fold. Throws UnsupportedError when an op has no ONNX form.
void save_onnx(const Graph& graph, const std::string& path, const SaveOptions& options = {});

/// The serialized ONNX model.
std::string serialize_onnx(const Graph& graph, const SaveOptions& options = {});

}  // namespace autograph
