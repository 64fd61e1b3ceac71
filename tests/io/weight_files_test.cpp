// Weights are read from their file straight into tensors, past the messages.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "io/proto_bytes.h"
#include "support/test_folder.h"

namespace autograph::tests {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCount = 2048;  // 8 KiB of f32

std::string raw_floats(int64_t count, float first) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// y = x + w, where x has one element and w many.
std::string model_with(const std::string& weights, const std::string& more = "") {
  return model(field(2, std::string("g")) + field(1, node("Add", {"x", "w"}, {"y"})) +
               field(5, tensor("w", {kCount}, weights)) + more + field(11, value_info("x", {1})) +
               field(12, value_info("y", {kCount})));
}

class WeightFiles : public ::testing::Test {
 protected:
  static void write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static const Tensor& weight(const Model& loaded) {
    return loaded.graph.value(loaded.graph.constants().at(0)).constant();
  }

  TestFolder folder_;
  std::string path_ = folder_ / "m.onnx";
};

TEST_F(WeightFiles, AreRead) {
  write(path_, model_with(field(9, raw_floats(kCount, 0.5f))));
  const Model loaded = load_onnx(path_);
  EXPECT_EQ(weight(loaded).elements<float>()[kCount - 1], 0.5f + kCount - 1);
}

TEST_F(WeightFiles, MeanTheSameFromFileAndMemory) {
  const std::string bytes = model_with(field(9, raw_floats(kCount, 3)));
  write(path_, bytes);
  EXPECT_EQ(structural_hash(load_onnx(path_).graph), structural_hash(parse_onnx(bytes).graph));
}

// Readers look for the data beside the file that has the name of them.
TEST_F(WeightFiles, LieBesideTheFileThatALinkLeadsTo) {
  fs::create_directory(folder_ / "runs");
  write(folder_ / "runs/7.onnx", "old");
  fs::create_symlink("runs/7.onnx", path_);
  const std::string bytes = model_with(field(9, raw_floats(kCount, 3)));
  save_onnx(parse_onnx(bytes).graph, path_, {.external_data_above = 0});
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::exists(folder_ / "runs/7.onnx.data"));
  EXPECT_EQ(structural_hash(load_onnx(folder_ / "runs/7.onnx").graph), structural_hash(parse_onnx(bytes).graph));
}

TEST_F(WeightFiles, OfAttributesAreReadToo) {
  const std::string value = tensor("", {kCount}, field(9, raw_floats(kCount, 0)));
  const std::string attribute = field(1, std::string("value")) + field(5, value) + field(20, 4);
  const std::string nodes =
      field(1, node("Constant", {}, {"w"}, field(5, attribute))) + field(1, node("Add", {"x", "w"}, {"y"}));
  write(path_, model(field(2, std::string("g")) + nodes + field(11, value_info("x", {1})) +
                     field(12, value_info("y", {kCount}))));
  const Model loaded = load_onnx(path_);
  EXPECT_EQ(weight(loaded).elements<float>()[7], 7.0f);
}

TEST_F(WeightFiles, SurviveThatTheirFileIsReplacedOrDeleted) {
  write(path_, model_with(field(9, raw_floats(kCount, 1))));
  const Model loaded = load_onnx(path_);
  save_onnx(loaded.graph, path_);
  const Model again = load_onnx(path_);
  fs::remove(path_);
  EXPECT_EQ(weight(again).elements<float>()[1], 2.0f);
  EXPECT_TRUE(weight(loaded).bitwise_equal(weight(again)));
}

TEST_F(WeightFiles, MayBeSavedOverTheirOwnFile) {
  write(path_, model_with(field(9, raw_floats(kCount, 1))));
  const Hash128 before = structural_hash(load_onnx(path_).graph);
  save_onnx(load_onnx(path_).graph, path_, {.external_data_above = 0});
  ASSERT_TRUE(fs::exists(path_ + ".data"));
  save_onnx(load_onnx(path_).graph, path_, {.external_data_above = 0});
  const Model loaded = load_onnx(path_);
  EXPECT_EQ(structural_hash(loaded.graph), before);
}

TEST_F(WeightFiles, OfManyExternalFilesDoNotExhaustDescriptors) {
  constexpr int kFiles = 200;
  std::string initializers;
  std::string nodes;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = "w" + std::to_string(i);
    write(folder_ / name, raw_floats(kCount, static_cast<float>(i)));
    const std::string entry = field(13, field(1, std::string("location")) + field(2, name));
    initializers += field(5, tensor(name, {kCount}, entry + field(14, 1)));
    const std::string from = i == 0 ? "x" : "h" + std::to_string(i - 1);
    nodes += field(1, node("Add", {from, name}, {i + 1 == kFiles ? "y" : "h" + std::to_string(i)}));
  }
  write(path_, model(field(2, std::string("g")) + nodes + initializers + field(11, value_info("x", {1})) +
                     field(12, value_info("y", {kCount}))));
  const Model loaded = load_onnx(path_);
  for (int i = 0; i < kFiles; ++i) {
    const ValueId id = loaded.graph.constants().at(static_cast<size_t>(i));
    EXPECT_EQ(loaded.graph.value(id).constant().elements<float>()[0], static_cast<float>(i));
  }
}

// The message of the FormatError that loading `bytes` raises, from a file and from memory alike.
std::string error_of(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  std::string from_file = "no error";
  try {
    load_onnx(path);
  } catch (const FormatError& error) {
    from_file = error.what();
  }
  EXPECT_THROW(parse_onnx(bytes), FormatError);
  return from_file;
}

TEST_F(WeightFiles, MustHaveTheirDeclaredSize) {
  EXPECT_EQ(error_of(path_, model_with(field(9, raw_floats(kCount - 1, 1)))),
            "[onnx] tensor 'w': raw_data: expected 8192 bytes for f32[2048], got 8188");
  EXPECT_EQ(error_of(path_, model_with(field(9, raw_floats(kCount, 1)) + field(9, std::string(4, 'x')))),
            "[onnx] tensor 'w': elements are given in more than one field");
}

TEST_F(WeightFiles, OfAFileThatEndsEarlyAreAnError) {
  const std::string bytes = model_with(field(9, raw_floats(kCount, 1)));
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, size_t{100}}) {
    EXPECT_EQ(error_of(path_, bytes.substr(0, size)), "[onnx] model: not a valid protobuf message of " +
                                                          std::to_string(size) +
                                                          " bytes (truncated, nested too deep or not ONNX)");
  }
}

// The mark that the reader leaves in messages, in a file that brings its own.
TEST_F(WeightFiles, MarksInFilesReachNothingOutsideOfThem) {
  const auto mark = [](int64_t offset, int64_t length) {
    const int64_t range[] = {offset, length};
    return field(0x1AAAAAAA, std::string(reinterpret_cast<const char*>(range), sizeof range));
  };
  const int64_t size = kCount * 4;
  EXPECT_EQ(error_of(path_, model_with(mark(int64_t{1} << 40, size))).substr(0, 46),
            "[onnx] tensor 'w': raw_data: a forged mark nam");
  EXPECT_EQ(error_of(path_, model_with(mark(-8, size))).substr(0, 46),
            "[onnx] tensor 'w': raw_data: a forged mark nam");
  EXPECT_EQ(error_of(path_, model_with(mark(0, size))).substr(0, 46), "[onnx] tensor 'w': raw_data: a forged mark nam");
}

}  // namespace
}  // namespace autograph::tests
