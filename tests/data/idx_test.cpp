// IDX files, plain and gzipped: what they hold, and how each way to be wrong is said.
#include <gtest/gtest.h>
#include <zlib.h>

#include "autograph/data.h"
#include "autograph/error.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string idx(uint8_t dtype, const std::vector<uint32_t>& dims, const std::string& elements) {
  std::string bytes{0, 0, static_cast<char>(dtype), static_cast<char>(dims.size())};
  for (const uint32_t d : dims) bytes += big_endian(d);
  return bytes + elements;
}

std::string gzip(std::string_view content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class Idx : public ::testing::Test {
 protected:
  std::string error_of(const std::string& bytes, const DataLimits& limits = {}) const {
    const std::string path = folder_.write("t.idx", bytes);
    std::string message = message_of<Error>([&] { read_idx(path, limits); });
    const size_t at = message.find(path);
    return at == std::string::npos ? message : message.replace(at, path.size(), "FILE");
  }
  TestFolder folder_;
};

TEST_F(Idx, ReadsEveryDTypeBigEndian) {
  const auto read = [&](uint8_t dtype, const std::string& elements) {
    return read_idx(folder_.write("t.idx", idx(dtype, {2}, elements)));
  };
  EXPECT_TRUE(read(0x08, "\x01\xFF").bitwise_equal(Tensor::of<uint8_t>({2}, {1, 255})));
  EXPECT_TRUE(read(0x09, "\x01\xFF").bitwise_equal(Tensor::of<int8_t>({2}, {1, -1})));
  EXPECT_TRUE(read(0x0B, std::string("\x01\x02\xFF\xFE", 4)).bitwise_equal(Tensor::of<int16_t>({2}, {258, -2})));
  EXPECT_TRUE(
      read(0x0C, big_endian(70000) + big_endian(0xFFFFFFFF)).bitwise_equal(Tensor::of<int32_t>({2}, {70000, -1})));
  EXPECT_TRUE(read(0x0D, big_endian(0x3FC00000) + big_endian(0)).bitwise_equal(Tensor::of<float>({2}, {1.5F, 0})));
  EXPECT_TRUE(read(0x0E, big_endian(0x3FF80000) + big_endian(0) + big_endian(0) + big_endian(0))
                  .bitwise_equal(Tensor::of<double>({2}, {1.5, 0})));
}

TEST_F(Idx, ReadsGzippedFilesOfSeveralMembers) {
  const std::string bytes = idx(0x08, {2, 3}, "abcdef");
  const Tensor expected = read_idx(folder_.write("plain", bytes));
  EXPECT_EQ(expected.dims(), (Dims{2, 3}));
  EXPECT_TRUE(read_idx(folder_.write("one.gz", gzip(bytes))).bitwise_equal(expected));
  const std::string two = gzip(bytes.substr(0, 9)) + gzip(bytes.substr(9));
  EXPECT_TRUE(read_idx(folder_.write("two.gz", two)).bitwise_equal(expected));
}

TEST_F(Idx, EveryTruncationIsAnErrorThatSaysWhere) {
  const std::string bytes = idx(0x0B, {2, 2}, "abcdefgh");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string message = error_of(bytes.substr(0, size));
    EXPECT_NE(message.find("[idx] 'FILE': "), std::string::npos) << size << ": " << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << message;
  }
  EXPECT_EQ(error_of(bytes.substr(0, 3)), "[idx] 'FILE': magic number: expected 4 bytes at offset 0, got 3");
  EXPECT_EQ(error_of(bytes + "x"), "[idx] 'FILE': expected its end at offset 20, got more bytes");
  const std::string packed = gzip(bytes);
  for (size_t size = 2; size < packed.size(); ++size) EXPECT_NE(error_of(packed.substr(0, size)), "") << size;
}

TEST_F(Idx, DamageOfCompressedFilesIsFound) {
  std::string packed = gzip(idx(0x08, {64}, std::string(64, 'x')));
  packed[packed.size() - 6] ^= 1;  // the checksum
  EXPECT_NE(error_of(packed).find("gzip: expected compressed data, got incorrect data check"), std::string::npos)
      << error_of(packed);
}

TEST_F(Idx, SizesAreCheckedBeforeMemoryIsTaken) {
  EXPECT_EQ(error_of(idx(0x08, {0x7FFFFFFF, 0x7FFFFFFF}, "x")),
            "[idx] 'FILE': expected at most 8589934592 bytes, got 4611686014132420609 for u8[2147483647,2147483647]");
  EXPECT_EQ(error_of(idx(0x0E, {0xFFFFFFFF, 0xFFFFFFFF}, "x")),
            "[idx] 'FILE': dims: [4294967295,4294967295] elements overflow 64 bits");
  EXPECT_EQ(error_of(idx(0x08, {1 << 30}, "x")),
            "[idx] 'FILE': elements: expected 1073741824 bytes for u8[1073741824], got a file that ends early");
  EXPECT_EQ(error_of(gzip(idx(0x08, {1 << 30}, "x"))),
            "[idx] 'FILE': elements: expected 1073741824 bytes for u8[1073741824], got a file that ends early");
  EXPECT_EQ(error_of(idx(0x08, {100}, std::string(100, 'x')), {.max_bytes = 99}),
            "[idx] 'FILE': expected at most 99 bytes, got 100 for u8[100]");
  const std::string path = folder_.write("t.idx", idx(0x08, {100}, std::string(100, 'x')));
  EXPECT_THROW(read_idx(path, {.max_bytes = 99}), BudgetError);
}

TEST_F(Idx, RefusesOtherMagicNumbers) {
  EXPECT_EQ(
      error_of(idx(0x0A, {1}, "x")),
      "[idx] 'FILE': magic number: expected 0 0, a dtype (8, 9 or 11 to 14) and the number of dims, got 0 0 10 1");
  EXPECT_EQ(error_of(idx(0x08, {}, "x")), "[idx] 'FILE': number of dims: expected 1 to 8, got 0");
  EXPECT_EQ(error_of(idx(0x08, std::vector<uint32_t>(9, 1), "x")),
            "[idx] 'FILE': number of dims: expected 1 to 8, got 9");
}

TEST_F(Idx, ImagesAndLabelsBecomeSamples) {
  const std::string images = folder_.write("images", idx(0x08, {2, 1, 2}, std::string("\x00\xFF\x33\x66", 4)));
  const std::string labels = folder_.write("labels", idx(0x08, {2}, std::string("\x03\x01", 2)));
  const DatasetPtr dataset = idx_dataset(images, labels);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"image", DType::f32, {1, 1, 2}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"0", "1", "2", "3"}));
  const NamedTensors sample = dataset->sample(1);
  EXPECT_TRUE(sample[0].second.bitwise_equal(Tensor::of<float>({1, 1, 2}, {51 / 255.0F, 102 / 255.0F})));
  EXPECT_TRUE(sample[1].second.bitwise_equal(Tensor::scalar<int64_t>(1)));
  EXPECT_EQ(message_of<ValueError>([&] { dataset->sample(2); }), "[data] sample: expected 0 to 1, got 2");
}

TEST_F(Idx, ImagesAndLabelsMustFit) {
  const std::string images = folder_.write("images", idx(0x08, {2, 1, 1}, "ab"));
  const std::string three = folder_.write("three", idx(0x08, {3}, "abc"));
  const std::string floats = folder_.write("floats", idx(0x0D, {2}, "abcdefgh"));
  const std::string below = folder_.write("below", idx(0x09, {2}, "\x01\xFF"));
  EXPECT_NE(message_of<FormatError>([&] { idx_dataset(images, three); }).find("expected 2 labels"), std::string::npos);
  EXPECT_NE(message_of<FormatError>([&] { idx_dataset(images, floats); }).find("expected labels, integers"),
            std::string::npos);
  EXPECT_NE(message_of<FormatError>([&] { idx_dataset(images, below); }).find("label of sample 1: expected 0 to"),
            std::string::npos);
  EXPECT_NE(message_of<FormatError>([&] { idx_dataset(three, three); }).find("expected images u8"), std::string::npos);
  EXPECT_THROW(read_idx(folder_ / "missing"), IoError);
  EXPECT_THROW(read_idx(folder_.path()), IoError);
}

// The package's own files: 60,000 and 10,000 images of ten classes of equal size.
TEST(FashionMnist, IsReadFromItsPackage) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  for (const Split split : {Split::train, Split::test}) {
    const DatasetPtr dataset = open_dataset(folder, split);
    EXPECT_EQ(dataset->size(), split == Split::train ? 60000 : 10000);
    ASSERT_EQ(dataset->class_names().size(), 10U);
    std::vector<int64_t> counts(10);
    double sum = 0;
    const int64_t seen = 2000;
    DataLoader loader(dataset, {.batch_size = 500, .threads = 2});
    for (int64_t i = 0; i < dataset->size() / 500; ++i) {
      const auto batch = loader.next();
      for (const int64_t label : batch->operator[]("label").elements<int64_t>()) ++counts[static_cast<size_t>(label)];
      if (i * 500 >= seen) continue;
      for (const float pixel : batch->operator[]("image").elements<float>()) sum += pixel;
    }
    EXPECT_EQ(counts, std::vector<int64_t>(10, dataset->size() / 10));
    EXPECT_NEAR(sum / static_cast<double>(seen * 784), 0.286, 0.01);  // the mean that everybody normalises by
  }
}

}  // namespace
}  // namespace autograph
