// Files that are damaged at random: each is read, or refused by an error of ours, and never more memory is taken than
// allowed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "autograph/data.h"
#include "autograph/error.h"
#include "autograph/random.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr DataLimits kLimits{.max_bytes = 1 << 20};

// Changes a few bytes, cuts a piece out, repeats one or ends early.
std::string damaged(std::string bytes, Random& random) {
  const auto place = [&] { return static_cast<size_t>(random() % (bytes.size() + 1)); };
  for (uint64_t i = random() % 4; i > 0 && !bytes.empty(); --i) {
    bytes[place() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? "\"{[,\n9-\xFF"[random() % 8] : random());
  }
  const size_t a = place(), b = place();
  switch (random() % 4) {
    case 0: bytes.resize(a); break;
    case 1: bytes.erase(std::min(a, b), std::max(a, b) - std::min(a, b)); break;
    case 2: bytes.insert(a, bytes.substr(std::min(a, b), std::max(a, b) - std::min(a, b))); break;
    default: break;
  }
  return bytes;
}

// Reads what is left of `good` 500 times; at least some of it must be refused, and some not.
void try_damage(const std::string& name, const std::string& good, const std::function<void(const std::string&)>& read) {
  const TestFolder folder;
  ASSERT_NO_THROW(read(folder.write(name, good)));
  Random random;
  int refused = 0, accepted = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const std::string bytes = damaged(good, random);
    try {
      read(folder.write(name, bytes));
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(error.exit_code(), ExitCode::internal) << error.what();
      EXPECT_EQ(std::string(error.what()).front(), '[') << error.what();
    }
  }
  EXPECT_GT(refused, 50) << name;
  EXPECT_GT(accepted, 5) << name;
}

// All samples, too: they must lie in the memory that was taken.
void read_all(const DatasetPtr& dataset) {
  for (int64_t i = 0; i < dataset->size(); ++i) dataset->sample(i);
}

TEST(HostileFiles, Idx) {
  const std::string head{0, 0, 11, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
  try_damage("t.idx", head + std::string(48, 'x'), [](const std::string& path) { read_idx(path, kLimits); });
}

TEST(HostileFiles, Cifar) {
  std::string record(3073, '\1');
  try_damage("t.bin", record + record,
             [](const std::string& path) { read_all(cifar_dataset({path}, CifarKind::cifar10, kLimits)); });
}

TEST(HostileFiles, Csv) {
  try_damage("t.csv", "a,\"b, c\",kind\r\n1,2.5,red\r\n-3e4,,\"bl\"\"ue\"\n7,8,red\n",
             [](const std::string& path) { read_all(csv_dataset(path, {.limits = kLimits})); });
}

TEST(HostileFiles, JsonLines) {
  try_damage("t.jsonl",
             "{\"x\": [[1, 2], [3.5, null]], \"b\": true, \"label\": \"a\"}\n"
             "{\"x\": [[4, 5], [6, 7]], \"b\": false, \"label\": \"b\"}\n",
             [](const std::string& path) { read_all(json_lines_dataset(path, {.limits = kLimits})); });
}

TEST(HostileFiles, Npz) {
  const TestFolder folder;
  write_npz(folder / "t.npz", {{"x", Tensor::zeros(DType::f32, {3, 2})}, {"label", Tensor::vector({1, 2, 3})}});
  try_damage("t.npz", folder.read("t.npz"), [](const std::string& path) { read_all(npz_dataset(path, kLimits)); });
}

TEST(HostileFiles, Tokenizers) {
  const TestFolder folder;
  for (const Tokenizer& tokenizer : {Tokenizer::train_byte_pairs("to be or not to be, to be or not", 280),
                                     Tokenizer::characters("to be or not to be")}) {
    tokenizer.save(folder / "t.json");
    try_damage("t.json", folder.read("t.json"), [](const std::string& path) {
      const Tokenizer read = Tokenizer::load(path);
      std::vector<int32_t> all;
      for (int32_t i = 0; i < read.size(); ++i) all.push_back(i);
      read.decode(all);
    });
  }
}

TEST(HostileFiles, Images) {
  // 2 x 1 pixels, red and green, as a PNG without compression.
  constexpr uint8_t kPng[] = {0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44,
                              0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x7B,
                              0x40, 0xE8, 0xDD, 0x00, 0x00, 0x00, 0x12, 0x49, 0x44, 0x41, 0x54, 0x78, 0x01, 0x01, 0x07,
                              0x00, 0xF8, 0xFF, 0x00, 0xFF, 0x00, 0x00, 0x00, 0xFF, 0x00, 0x07, 0xFF, 0x01, 0xFF, 0xC5,
                              0x0E, 0xE2, 0x6A, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  const std::string png(std::begin(kPng), std::end(kPng));
  try_damage("set/a/1.png", png, [](const std::string& path) {
    const std::string folder = path.substr(0, path.rfind("/a/"));
    read_all(image_folder_dataset(folder, {.height = 2, .width = 2, .limits = kLimits}));
  });
}

}  // namespace
}  // namespace autograph
