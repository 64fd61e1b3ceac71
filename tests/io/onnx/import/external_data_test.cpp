// External data must never lead out of the model's directory.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "io/proto_bytes.h"
#include "ops/sample.h"
#include "support/test_folder.h"

namespace autograph::tests {
namespace {

namespace fs = std::filesystem;

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_ / "model" / "sub");
    write(directory_ / "secret.bin", std::string(8, 's'));
    write(directory_ / "model" / "w.bin", std::string(4096, '\0') + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  }

  static void write(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  static std::string entry(const std::string& key, const std::string& value) {
    return field(13, field(1, key) + field(2, value));
  }

  // Loads x + w where w lies outside, as `entries` say; the message of the error, or "no error".
  std::string load(const std::string& entries, const LoadOptions& options = {}) {
    const std::string w = tensor("w", {2}, entries + field(14, 1));
    write(directory_ / "model" / "m.onnx", model(graph({node("Add", {"x", "w"}, {"y"})}, field(5, w))));
    try {
      loaded_ = load_onnx((directory_ / "model" / "m.onnx").string(), options);
    } catch (const UserError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::malformed) << error.what();
      return error.what();
    }
    return "no error";
  }

  TestFolder folder_;
  fs::path directory_ = folder_.path();
  Model loaded_;
};

TEST_F(ExternalData, IsReadFromItsOffset) {
  ASSERT_EQ(load(entry("location", "w.bin") + entry("offset", "4096") + entry("length", "8")), "no error");
  const Tensor& w = loaded_.graph.value(loaded_.graph.constants().at(0)).constant();
  EXPECT_EQ(w.elements<float>()[0], 1.0f);
  EXPECT_EQ(w.elements<float>()[1], 2.0f);
}

// Is the file mapped at that address?
bool is_mapped_from(const std::string& file, const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= at && at < end) return line.find(file) != std::string::npos;
  }
  return false;
}

// 260,000 bytes do not fill their last page, so that kernels may load a vector behind them; 32 bytes are too few to
// map.
TEST_F(ExternalData, LargeWeightsAreMappedWhenAsked) {
  Random random(1);
  const Tensor first = draw_tensor(random, DType::f32, {65, 1000});
  const Tensor second = draw_tensor(random, DType::f32, {65, 1000});
  const Tensor bias = draw_tensor(random, DType::f32, {1000});
  Graph out("g");
  ValueId sum = out.add_input(Type(DType::f32, {65, 1000}), "x");
  for (const Tensor& weight : {first, second, bias}) {
    sum = out.node(out.add_node(get_op("add"), {sum, out.add_constant(weight)})).output(0);
  }
  out.add_output(sum, "y");
  const std::string path = (directory_ / "model" / "mapped.onnx").string();
  save_onnx(out, path, {.external_data_above = 0});

  for (const bool map_weights : {false, true}) {
    Model model = load_onnx(path, {.map_weights = map_weights});
    EXPECT_EQ(structural_hash(model.graph), structural_hash(out));
    int mapped = 0;
    for (const ValueId id : model.graph.constants()) {
      Tensor weight = model.graph.value(id).constant();
      mapped += is_mapped_from("mapped.onnx.data", weight.raw()) ? 1 : 0;
      std::memset(weight.mutable_raw(), 0xFF, weight.size_bytes());  // a copy, not the file
    }
    EXPECT_EQ(mapped, map_weights ? 2 : 0);
  }
  EXPECT_EQ(structural_hash(load_onnx(path).graph), structural_hash(out));
}

TEST_F(ExternalData, WeightsThatFillTheFileAreReadNotMapped) {
  const Tensor weight = Tensor::of<float>({65536}, std::vector<float>(65536, 3.0F));
  Graph out("g");
  const ValueId x = out.add_input(Type(DType::f32, {65536}), "x");
  out.add_output(out.node(out.add_node(get_op("add"), {x, out.add_constant(weight)})).output(0), "y");
  const std::string path = (directory_ / "model" / "full.onnx").string();
  save_onnx(out, path, {.external_data_above = 0});
  const Model model = load_onnx(path, {.map_weights = true});
  const Tensor& read = model.graph.value(model.graph.constants().at(0)).constant();
  EXPECT_FALSE(is_mapped_from("full.onnx.data", read.raw())) << "no room for a vector behind the last element";
  EXPECT_TRUE(read.bitwise_equal(weight));
}

TEST_F(ExternalData, RefusesPathsThatLeaveTheDirectory) {
  EXPECT_EQ(load(entry("location", "../secret.bin")),
            "[onnx] external_data of 'w': location '../secret.bin' leads out of the model's directory");
  EXPECT_EQ(load(entry("location", "sub/../../secret.bin")),
            "[onnx] external_data of 'w': location 'sub/../../secret.bin' leads out of the model's directory");
  EXPECT_EQ(load(entry("location", "/etc/hostname")),
            "[onnx] external_data of 'w': location: expected a relative path, got '/etc/hostname'");
}

TEST_F(ExternalData, RefusesSymbolicLinksThatLeaveTheDirectory) {
  fs::create_symlink(directory_ / "secret.bin", directory_ / "model" / "link.bin");
  fs::create_directory_symlink(directory_, directory_ / "model" / "up");
  fs::create_symlink(directory_ / "model" / "nothing", directory_ / "model" / "broken.bin");
  for (const std::string link : {"link.bin", "up/secret.bin", "broken.bin"}) {
    EXPECT_EQ(load(entry("location", link)),
              "[onnx] external_data of 'w': '" + link +
                  "' goes through a symbolic link that leads nowhere or out of the model's directory");
  }
}

TEST_F(ExternalData, FollowsSymbolicLinksInsideTheDirectory) {
  fs::create_symlink("w.bin", directory_ / "model" / "link.bin");
  fs::create_directory_symlink(".", directory_ / "model" / "here");
  for (const char* link : {"link.bin", "here/w.bin", "here/link.bin"}) {
    EXPECT_EQ(load(entry("location", link) + entry("offset", "4096")), "no error");
  }
}

// What a cache of downloads looks like: all files under other names in one folder, and links to them by their names.
TEST_F(ExternalData, FollowsSymbolicLinksToWhereTheModelIs) {
  fs::create_directories(directory_ / "blobs");
  fs::create_directories(directory_ / "snapshot" / "onnx");
  ASSERT_EQ(load(entry("location", "w.bin") + entry("offset", "4096")), "no error");
  fs::rename(directory_ / "model" / "m.onnx", directory_ / "blobs" / "1");
  fs::rename(directory_ / "model" / "w.bin", directory_ / "blobs" / "2");
  const fs::path model = directory_ / "snapshot" / "onnx" / "m.onnx", weights = model.parent_path() / "w.bin";
  fs::create_symlink("../../blobs/1", model);
  fs::create_symlink("../../blobs/2", weights);
  EXPECT_NO_THROW(load_onnx(model.string()));
  // Out of that folder they may not lead.
  fs::remove(weights);
  fs::rename(directory_ / "blobs" / "2", directory_ / "2");
  fs::create_symlink("../../2", weights);
  EXPECT_THROW(load_onnx(model.string()), FormatError);
}

TEST_F(ExternalData, RefusesHardLinksUnlessAllowed) {
  fs::create_hard_link(directory_ / "secret.bin", directory_ / "model" / "hard.bin");
  EXPECT_EQ(load(entry("location", "hard.bin")),
            "[onnx] external_data of 'w': 'hard.bin' has 2 hard links, expected 1; it may be a file from elsewhere "
            "(--allow-hard-links, or allow_hard_links, accepts it)");
  EXPECT_EQ(load(entry("location", "hard.bin"), {.allow_hard_links = true}), "no error");
}

TEST_F(ExternalData, RefusesWhatIsNotAFile) {
  EXPECT_EQ(load(entry("location", "sub")), "[onnx] external_data of 'w': 'sub' is not a regular file");
}

TEST_F(ExternalData, RefusesRangesBeyondTheFile) {
  EXPECT_EQ(load(entry("location", "w.bin") + entry("offset", "5000")),
            "[onnx] external_data of 'w': offset 5000 is beyond the 4104 bytes of 'w.bin'");
  EXPECT_EQ(load(entry("location", "w.bin") + entry("offset", "4100")),
            "[onnx] external_data of 'w': 8 bytes from offset 4100 reach beyond the 4104 bytes of 'w.bin'");
  EXPECT_EQ(load(entry("location", "w.bin") + entry("length", "99999999999999")),
            "[onnx] external_data of 'w': length: expected 8 bytes, got 99999999999999");
}

TEST_F(ExternalData, RefusesNegativeNumbersAndUnknownKeys) {
  EXPECT_EQ(load(entry("location", "w.bin") + entry("offset", "-1")),
            "[onnx] external_data of 'w': offset: expected an integer of 0 or more, got '-1'");
  EXPECT_EQ(load(entry("location", "w.bin") + entry("__class__", "x")),
            "[onnx] external_data of 'w': unknown key '__class__'");
  EXPECT_EQ(load(entry("offset", "0")), "[onnx] external_data of 'w': 'location' is missing");
}

TEST_F(ExternalData, IsWrittenAlignedAndReadBack) {
  Graph out("g");
  const ValueId x = out.add_input(Type(DType::f32, {1024}), "x");
  const ValueId w = out.add_constant(Tensor::of<float>({1024}, std::vector<float>(1024, 3.0f)), "w");
  const NodeId sum = out.add_node(get_op("add"), {x, w});
  out.add_output(out.node(sum).output(0), "y");
  const std::string path = (directory_ / "model" / "out.onnx").string();
  save_onnx(out, path, {.external_data_above = 0});
  EXPECT_TRUE(fs::exists(path + ".data"));
  EXPECT_EQ(structural_hash(load_onnx(path).graph), structural_hash(out));
}

}  // namespace
}  // namespace autograph::tests
