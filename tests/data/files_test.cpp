// Sets in files: CIFAR, NumPy's arrays, tables, JSON lines and folders of images; good ones, cut off ones, hostile
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograph/data.h"
#include "autograph/error.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

class DataFiles : public ::testing::Test {
 protected:
  // The message, with FOLDER for the folder's path.
  template <class Act>
  std::string error_of(const Act& act) const {
    std::string message = message_of<Error>(act);
    for (size_t at = 0; (at = message.find(folder_.path())) != std::string::npos;) {
      message.replace(at, folder_.path().size(), "FOLDER");
    }
    return message;
  }
  std::string csv_error(const std::string& text, const CsvOptions& options = {}) const {
    return error_of([&] { csv_dataset(folder_.write("t.csv", text), options); });
  }
  std::string lines_error(const std::string& text) const {
    return error_of([&] { json_lines_dataset(folder_.write("t.jsonl", text)); });
  }
  TestFolder folder_;
};

std::string cifar_record(const std::string& labels, int seed) {
  std::string record = labels;
  for (int i = 0; i < 3072; ++i) record += static_cast<char>((i + seed) % 251);
  return record;
}

TEST_F(DataFiles, CifarReadsSeveralFiles) {
  const std::string a = folder_.write("a.bin", cifar_record("\x03", 1) + cifar_record("\x09", 2));
  const std::string b = folder_.write("b.bin", cifar_record(std::string(1, '\0'), 7));
  const DatasetPtr dataset = cifar_dataset({a, b});
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"image", DType::f32, {3, 32, 32}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(dataset->class_names()[9], "truck");
  const std::vector<int64_t> all{0, 1, 2};
  const NamedTensors batch = dataset->batch(all);
  EXPECT_EQ(batch[1].second.to_i64(), (std::vector<int64_t>{3, 9, 0}));
  EXPECT_EQ(batch[0].second.data<float>()[2 * 3072 + 5], 12 / 255.0F);
}

TEST_F(DataFiles, Cifar100TakesTheFineLabel) {
  const std::string path = folder_.write("train.bin", cifar_record("\x05\x63", 0));
  EXPECT_EQ(cifar_dataset({path}, CifarKind::cifar100)->sample(0)[1].second.to_i64(), std::vector<int64_t>{99});
}

TEST_F(DataFiles, CifarRefusesOtherSizesAndLabels) {
  const std::string cut = folder_.write("cut.bin", cifar_record("\x01", 0).substr(1));
  EXPECT_EQ(error_of([&] { cifar_dataset({cut}); }),
            "[cifar] 'FOLDER/cut.bin': expected records of 3073 bytes, got 3072 bytes");
  const std::string label = folder_.write("label.bin", cifar_record("\x01", 0) + cifar_record("\x0A", 0));
  EXPECT_EQ(error_of([&] { cifar_dataset({label}); }),
            "[cifar] 'FOLDER/label.bin': label at offset 3073: expected 0 to 9, got 10");
  EXPECT_EQ(error_of([&] { cifar_dataset({label}, CifarKind::cifar10, {.max_bytes = 5000}); }),
            "[cifar] 'FOLDER/label.bin': expected at most 5000 bytes, got 2 samples of 3073");
  EXPECT_THROW(cifar_dataset({folder_.write("empty.bin", "")}), FormatError);
  EXPECT_THROW(cifar_dataset({}), ValueError);
}

TEST_F(DataFiles, ArraysOfNumPyAreFields) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), y = Tensor::vector({4, 7});
  write_npz(folder_ / "t.npz", {{"x", x}, {"label", y}});
  const DatasetPtr dataset = npz_dataset(folder_ / "t.npz");
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_TRUE(dataset->sample(1)[0].second.bitwise_equal(Tensor::of<float>({3}, {4, 5, 6})));
  EXPECT_EQ(dataset->sample(1)[1].second.to_i64(), std::vector<int64_t>{7});
  write_npy(folder_ / "x.npy", x);
  write_npy(folder_ / "y.npy", Tensor::vector({1, 2, 3}));
  EXPECT_EQ(npy_dataset({{"x", folder_ / "x.npy"}})->size(), 2);
  EXPECT_EQ(error_of([&] {
              npy_dataset({{"x", folder_ / "x.npy"}, {"y", folder_ / "y.npy"}});
            }),
            "[data] 'y': expected 2 samples as 'x' has, got 3");
  EXPECT_EQ(error_of([&] { npz_dataset(folder_ / "t.npz", {.max_bytes = 400}); }).substr(0, 6), "[data]");
  EXPECT_THROW(npz_dataset(folder_ / "t.npz", {.max_bytes = 400}), BudgetError);
  const std::string whole = folder_.read("t.npz");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(npz_dataset(folder_.write("cut.npz", whole.substr(0, size))), FormatError) << size;
  }
}

TEST_F(DataFiles, NpzThatUnpacksToMoreThanTheLimitIsRefused) {
  write_npz(folder_ / "t.npz", {{"x", Tensor::zeros(DType::f32, {100})}});
  EXPECT_NE(message_of<BudgetError>([&] { read_npz(folder_ / "t.npz", 500); }).find("exceeds the budget of 500 bytes"),
            std::string::npos);
  EXPECT_EQ(read_npz(folder_ / "t.npz", 600).size(), 1U);
}

TEST_F(DataFiles, TensorsThatAreNoSetAreRefused) {
  EXPECT_EQ(error_of([] { tensor_dataset({}); }), "[data] tensors: expected at least one");
  EXPECT_EQ(error_of([] {
              tensor_dataset({{"x", Tensor::scalar(1.0F)}});
            }),
            "[data] 'x': expected an axis that counts samples, got f32[]");
  EXPECT_THROW(tensor_dataset({{"x", Tensor::zeros(DType::string, {2})}}), TypeError);
  EXPECT_THROW(tensor_dataset({{"x", Tensor()}}), TypeError);
  EXPECT_THROW(tensor_dataset({{"x", Tensor::vector({1})}, {"x", Tensor::vector({1})}}), ValueError);
}

TEST_F(DataFiles, PartsOfASetAreItsSamples) {
  std::vector<int64_t> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  const DatasetPtr whole = tensor_dataset({{"x", Tensor::vector(values)}});
  EXPECT_EQ(slice_dataset(whole, 10, 12)->sample(1)[0].second.to_i64(), std::vector<int64_t>{11});
  EXPECT_EQ(slice_dataset(whole, 5, 5)->size(), 0);
  EXPECT_THROW(slice_dataset(whole, 5, 1001), ValueError);
  EXPECT_THROW(slice_dataset(whole, 6, 5), ValueError);
  const auto part = [&](Split split, uint64_t seed) {
    const DatasetPtr dataset = split_dataset(whole, split, 0.25, seed);
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < dataset->size(); ++i) seen.push_back(dataset->sample(i)[0].second.to_i64()[0]);
    return seen;
  };
  const std::vector<int64_t> train = part(Split::train, 3), test = part(Split::test, 3);
  EXPECT_EQ(test.size(), 250U);
  std::vector<int64_t> both = train;
  both.insert(both.end(), test.begin(), test.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, values);
  EXPECT_EQ(part(Split::test, 3), test);
  EXPECT_NE(part(Split::test, 4), test);
  EXPECT_THROW(split_dataset(whole, Split::test, 1.5), ValueError);
}

TEST_F(DataFiles, CsvReadsQuotesEmptyCellsAndWindowsLines) {
  const std::string text = "\xEF\xBB\xBF\"a, \"\"b\"\"\",c,kind\r\n1.5, -2 ,red\r\n\r\n,3e2,\"blue\"\r\n+4,5,red";
  const DatasetPtr dataset = csv_dataset(folder_.write("t.csv", text));
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"x", DType::f32, {2}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"blue", "red"}));
  EXPECT_TRUE(dataset->sample(0)[0].second.bitwise_equal(Tensor::of<float>({2}, {1.5F, -2})));
  EXPECT_TRUE(std::isnan(dataset->sample(1)[0].second.data<float>()[0]));
  EXPECT_EQ(dataset->sample(1)[1].second.to_i64(), std::vector<int64_t>{0});
  EXPECT_EQ(dataset->sample(2)[1].second.to_i64(), std::vector<int64_t>{1});
}

TEST_F(DataFiles, CsvTakesLabelsAsTheOptionsSay) {
  const std::string path = folder_.write("t.csv", "y;a\n2;0.5\n0;1\n");
  const DatasetPtr first = csv_dataset(path, {.separator = ';', .label = "y"});
  EXPECT_EQ(first->class_names().size(), 3U);  // numbers stand as they are: 0, 1, 2
  EXPECT_EQ(first->sample(0)[1].second.to_i64(), std::vector<int64_t>{2});
  const DatasetPtr none = csv_dataset(path, {.separator = ';', .label = "-"});
  EXPECT_EQ(none->fields(), (std::vector<Field>{{"x", DType::f32, {2}}}));
  const DatasetPtr regression = csv_dataset(path, {.separator = ';', .regression = true});
  EXPECT_TRUE(regression->sample(0)[1].second.bitwise_equal(Tensor::scalar(0.5F)));
  const DatasetPtr bare = csv_dataset(folder_.write("bare.csv", "1,0\n2,1\n"), {.has_header = false, .label = "1"});
  EXPECT_EQ(bare->size(), 2);
  EXPECT_EQ(bare->sample(1)[1].second.to_i64(), std::vector<int64_t>{1});
}

TEST_F(DataFiles, CsvLooksForAHeader) {
  const auto rows = [&](const std::string& text, CsvOptions options = {}) {
    return csv_dataset(folder_.write("t.csv", text), options)->size();
  };
  EXPECT_EQ(rows("1,2,0\n3,4,1\n"), 2);
  EXPECT_EQ(rows("a,b,label\n1,2,0\n3,4,1\n"), 2);
  EXPECT_EQ(rows("0,1,label\n1,2,0\n3,4,1\n"), 2);  // one word is enough
  EXPECT_EQ(rows(",b,label\n0,2,0\n1,4,1\n"), 2);   // an index, as pandas writes it
  // Labels may be words with a header and without one.
  EXPECT_EQ(rows("1,2,cat\n3,4,dog\n"), 2);
  EXPECT_EQ(rows("a,b,kind\n1,2,cat\n3,4,dog\n"), 2);
  EXPECT_EQ(rows("cat,1\ndog,2\n", {.label = "0"}), 2);
  EXPECT_EQ(rows("kind,1\n0,2\n", {.label = "kind"}), 1);
  EXPECT_EQ(rows("1,2,cat\n3,4,5\n", {.regression = true}), 1);
  EXPECT_EQ(rows("1,2\n3,4\n", {.label = "-"}), 2);
  EXPECT_EQ(rows("a,b\n3,4\n", {.label = "-"}), 1);
  // What is said counts more.
  EXPECT_EQ(rows("1,2,0\n3,4,1\n", {.has_header = true}), 1);
  EXPECT_EQ(csv_error("a,b\n1,0\n", {.has_header = false}),
            "[csv] 'FOLDER/t.csv', line 1: column '0': expected a number, got 'a'");
}

TEST_F(DataFiles, CsvErrorsSayTheLine) {
  EXPECT_TRUE(csv_error("a;b;label\n1,5;2;0\n").starts_with("[csv] 'FOLDER/t.csv': expected cells between commas"));
  EXPECT_EQ(csv_error("a,b\n1,0\n1,2,3\n"), "[csv] 'FOLDER/t.csv', line 3: expected 2 cells, got 3");
  EXPECT_EQ(csv_error("a,b\n1,0\nx1,0\n"), "[csv] 'FOLDER/t.csv', line 3: column 'a': expected a number, got 'x1'");
  EXPECT_EQ(csv_error("a,b\n1e999,0\n"), "[csv] 'FOLDER/t.csv', line 2: column 'a': expected a number, got '1e999'");
  EXPECT_EQ(csv_error("a,b\n\"1\n,0\n"), "[csv] 'FOLDER/t.csv', line 2: a quote is not closed");
  EXPECT_EQ(csv_error("a,b\n\"1\"x,0\n"),
            "[csv] 'FOLDER/t.csv', line 2: expected a separator or the end of the line behind a closing quote");
  EXPECT_EQ(csv_error("\n\n"), "[csv] 'FOLDER/t.csv': expected lines, got an empty file");
  EXPECT_EQ(csv_error("a,b\n"), "[csv] 'FOLDER/t.csv': expected a line of numbers below the header, got none");
  EXPECT_EQ(csv_error("ab,cd\n1,2\n", {.label = "abc"}), "[csv] 'FOLDER/t.csv': no column 'abc' (did you mean 'ab'?)");
  EXPECT_EQ(csv_error("a,b\n1,2\n", {.limits = {.max_bytes = 7}}),
            "[data] 'FOLDER/t.csv': expected at most 7 bytes, got 8");
  EXPECT_EQ(csv_error("a,b\n1,2\n", {.limits = {.max_bytes = 20}}),
            "[csv] line 2: expected at most 20 bytes of memory, got more");
}

TEST_F(DataFiles, JsonLinesReadNestedNumbersAndLabels) {
  const std::string text =
      "{\"x\": [[1, 2], [3, null]], \"flag\": true, \"label\": \"dog\"}\n\n{\"label\": \"cat\", \"flag\": false, "
      "\"x\": [[5, 6], [7, 8]]}";
  const DatasetPtr dataset = json_lines_dataset(folder_.write("t.jsonl", text));
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{{"x", DType::f32, {2, 2}}, {"flag", DType::f32, {}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"cat", "dog"}));
  const NamedTensors second = dataset->sample(1);
  EXPECT_TRUE(second[0].second.bitwise_equal(Tensor::of<float>({2, 2}, {5, 6, 7, 8})));
  EXPECT_EQ(second[2].second.to_i64(), std::vector<int64_t>{0});
}

TEST_F(DataFiles, JsonLinesErrorsSayTheLine) {
  const std::string good = "{\"x\": [1, 2]}\n";
  EXPECT_EQ(lines_error(good + "{\"x\": [1, 2, 3]}"),
            "[json lines] 'FOLDER/t.jsonl', line 2: member 'x': expected a list of 2 at depth 0, got 3");
  EXPECT_EQ(lines_error(good + "{\"x\": 1}"),
            "[json lines] 'FOLDER/t.jsonl', line 2: member 'x': expected a list of 2 at depth 0, got number");
  EXPECT_EQ(lines_error(good + "{\"y\": [1, 2]}"), "[json lines] 'FOLDER/t.jsonl', line 2: member 'x' is missing");
  EXPECT_EQ(lines_error(good + "{\"x\": [1, 2], \"y\": 1}"),
            "[json lines] 'FOLDER/t.jsonl', line 2: expected 1 members as in the first line, got 2");
  EXPECT_EQ(lines_error(good + "{\"x\": [1, \"2\"]}"),
            "[json lines] 'FOLDER/t.jsonl', line 2: member 'x': expected a number, got string");
  EXPECT_EQ(lines_error("[1]"), "[json lines] 'FOLDER/t.jsonl', line 1: expected an object");
  EXPECT_EQ(lines_error("{\"x\": []}"),
            "[json lines] 'FOLDER/t.jsonl', line 1: member 'x': expected lists of numbers, got an empty one");
  EXPECT_NE(lines_error(good + "{\"x\": [1, 2").find("line 2: "), std::string::npos);
  EXPECT_EQ(lines_error("{\"x\": " + std::string(100000, '[')),
            "[json lines] 'FOLDER/t.jsonl', line 1: nested deeper than 16");
  EXPECT_EQ(lines_error(""), "[json lines] 'FOLDER/t.jsonl': expected lines, got an empty file");
}

// Binary pixmaps: what each pixel is can be read in the test.
std::string pixmap(int height, int width, const std::string& pixels) {
  return "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n" + pixels;
}

TEST_F(DataFiles, ImageFoldersHaveAClassForEachFolder) {
  folder_.write("set/cat/1.ppm", pixmap(1, 2, std::string("\xFF\x00\x00\x00\xFF\x00", 6)));
  folder_.write("set/cat/notes.txt", "no image");
  folder_.write("set/ant/2.PPM", pixmap(1, 2, std::string("\x00\x00\xFF\x00\x00\xFF", 6)));
  const DatasetPtr dataset = image_folder_dataset(folder_ / "set", {.height = 1, .width = 2});
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->class_names(), (std::vector<std::string>{"ant", "cat"}));
  EXPECT_TRUE(dataset->sample(0)[0].second.bitwise_equal(Tensor::of<float>({3, 1, 2}, {0, 0, 0, 0, 1, 1})));
  EXPECT_TRUE(dataset->sample(1)[0].second.bitwise_equal(Tensor::of<float>({3, 1, 2}, {1, 0, 0, 1, 0, 0})));
  EXPECT_EQ(dataset->sample(1)[1].second.to_i64(), std::vector<int64_t>{1});
}

TEST_F(DataFiles, ImagesAreScaledToCoverAndCutInTheMiddle) {
  std::string pixels;
  for (int x = 0; x < 8; ++x) pixels.append(3, static_cast<char>(x < 4 ? 0 : 200));
  folder_.write("set/a/wide.ppm", pixmap(1, 8, pixels));
  // Of 8 x 1 the middle 2 x 1, then doubled: the edge between both halves is in the middle.
  const Tensor image = image_folder_dataset(folder_ / "set", {.height = 2, .width = 4})->sample(0)[0].second;
  const float* row = image.data<float>();
  const float high = 200 / 255.0F;
  EXPECT_FLOAT_EQ(row[0], 0);
  EXPECT_FLOAT_EQ(row[1], 0.25F * high);
  EXPECT_FLOAT_EQ(row[2], 0.75F * high);
  EXPECT_FLOAT_EQ(row[3], high);
  EXPECT_FLOAT_EQ(row[7], high);
  // Shrunk, each pixel is an average: no line of a fine pattern is lost, none doubled.
  std::string stripes;
  for (int i = 0; i < 64 * 64; ++i) stripes.append(3, static_cast<char>(i % 2 == 0 ? 0 : 255));
  folder_.write("set/a/fine.ppm", pixmap(64, 64, stripes));
  const Tensor small = image_folder_dataset(folder_ / "set", {.height = 8, .width = 8})->sample(0)[0].second;
  for (const float value : small.elements<float>()) EXPECT_NEAR(value, 0.5F, 0.02F);
}

TEST_F(DataFiles, DamagedImagesAreNamed) {
  folder_.write("set/a/cut.ppm", pixmap(2, 2, "too few"));
  folder_.write("set/a/hostile.ppm", "P6\n1000000000 1000000000\n255\n");
  folder_.write("set/a/text.png", "this is no image");
  const DatasetPtr dataset = image_folder_dataset(folder_ / "set");
  EXPECT_EQ(error_of([&] { dataset->sample(0); }),
            "[images] 'FOLDER/set/a/cut.ppm': expected an image, got one that is damaged or cut off");
  EXPECT_EQ(error_of([&] { dataset->sample(1); }),
            "[images] 'FOLDER/set/a/hostile.ppm': expected an image, got one that is damaged or cut off");
  EXPECT_EQ(error_of([&] { dataset->sample(2); }),
            "[images] 'FOLDER/set/a/text.png': expected JPEG, PNG, BMP, WebP, TIFF, JPEG 2000 or PNM, got others");
  folder_.write("big/a/1.ppm", pixmap(10, 10, std::string(300, 'x')));
  const DatasetPtr limited =
      image_folder_dataset(folder_ / "big", {.height = 2, .width = 2, .limits = {.max_bytes = 314}});
  EXPECT_EQ(limited->sample(0)[0].second.dims(), (Dims{3, 2, 2}));
  const DatasetPtr tight =
      image_folder_dataset(folder_ / "big", {.height = 2, .width = 2, .limits = {.max_bytes = 299}});
  EXPECT_THROW(tight->sample(0), FormatError);
  EXPECT_THROW(image_folder_dataset(folder_ / "missing"), IoError);
  EXPECT_THROW(image_folder_dataset(folder_ / "set/a"), ValueError);
  EXPECT_THROW(image_folder_dataset(folder_ / "set", {.height = 0}), ValueError);
}

// x.npy and y.npy, and both as scripts put them into one file.
TEST_F(DataFiles, PairsOfArrays) {
  Tensor pixels = Tensor::zeros(DType::u8, {10, 2, 3});
  pixels.mutable_data<uint8_t>()[0] = 51;
  Tensor labels = Tensor::zeros(DType::u8, {10}), numbers = Tensor::zeros(DType::f64, {10});
  labels.mutable_data<uint8_t>()[0] = 7;
  numbers.mutable_data<double>()[0] = 0.25;
  const Tensor wide = Tensor::zeros(DType::f64, {10, 4});
  std::filesystem::create_directories(folder_ / "pair");
  write_npy(folder_ / "pair/X.npy", pixels);
  EXPECT_EQ(open_samples(folder_ / "pair", 6)->fields(), (std::vector<Field>{{"x", DType::f32, {2, 3}}}));
  write_npy(folder_ / "pair/y.npy", labels);
  const HeldOutSplit split = open_split(folder_ / "pair", 0);
  EXPECT_EQ(split.training->fields(), (std::vector<Field>{{"x", DType::f32, {2, 3}}, {"label", DType::i64, {}}}));
  EXPECT_EQ(split.training->size(), 8);
  EXPECT_EQ(split.held_out->size(), 2);
  const NamedTensors first = open_samples(folder_ / "pair", 6)->sample(0);
  EXPECT_EQ(first[0].second.data<float>()[0], 0.2F);
  EXPECT_EQ(first[1].second.to_i64(), std::vector<int64_t>{7});
  EXPECT_EQ(open_samples(folder_ / "pair/X.npy", 6)->size(), 10);

  write_npz(folder_ / "p.npz", {{"x", wide}, {"y", numbers}, {"note", Tensor::scalar(1.0F)}});
  EXPECT_EQ(open_dataset(folder_ / "p.npz", Split::train)->fields(),
            (std::vector<Field>{{"x", DType::f32, {4}}, {"label", DType::f32, {}}}));
  const Tensor three = Tensor::zeros(DType::f32, {3, 4}), of_three = Tensor::zeros(DType::i32, {3});
  write_npz(folder_ / "parts.npz", {{"y_test", of_three}, {"x_train", wide}, {"y_train", labels}, {"x_test", three}});
  EXPECT_EQ(open_dataset(folder_ / "parts.npz", Split::train)->size(), 10);
  EXPECT_EQ(open_dataset(folder_ / "parts.npz", Split::test)->size(), 3);
  EXPECT_EQ(open_split(folder_ / "parts.npz", 0).held_out->size(), 3);
}

TEST_F(DataFiles, PairsOfArraysThatDoNotFit) {
  const Tensor x = Tensor::zeros(DType::f32, {10, 4}), y = Tensor::zeros(DType::i64, {9});
  write_npz(folder_ / "p.npz", {{"x", x}, {"y", y}});
  EXPECT_EQ(error_of([&] { open_split(folder_ / "p.npz", 0); }),
            "[data] 'label': expected 10 samples as 'x' has, got 9");
  write_npz(folder_ / "y.npz", {{"y_train", y}});
  EXPECT_EQ(error_of([&] { open_split(folder_ / "y.npz", 0); }),
            "[data] 'FOLDER/y.npz': expected an array 'x_train' beside 'y_train', got none");
  folder_.write("half/data_batch_1.bin", cifar_record("\x03", 1));
  EXPECT_EQ(error_of([&] { open_split(folder_ / "half", 0); }),
            "[data] 'FOLDER/half': expected samples to learn from and samples to hold out, got the former alone");
}

TEST_F(DataFiles, OpenTellsWhatIsThere) {
  const std::string record = cifar_record("\x01", 0);
  folder_.write("cifar/data_batch_1.bin", record + record);
  folder_.write("cifar/data_batch_2.bin", record);
  folder_.write("cifar/test_batch.bin", record);
  EXPECT_EQ(open_dataset(folder_ / "cifar", Split::train)->size(), 3);
  EXPECT_EQ(open_dataset(folder_ / "cifar", Split::test)->size(), 1);
  folder_.write("cifar100/train.bin", "\x01" + record);
  EXPECT_EQ(open_dataset(folder_ / "cifar100", Split::train)->class_names().size(), 100U);
  folder_.write("images/train/a/1.ppm", pixmap(1, 1, "abc"));
  folder_.write("images/val/a/1.ppm", pixmap(1, 1, "abc"));
  EXPECT_EQ(open_dataset(folder_ / "images", Split::test)->fields()[0].dims, (Dims{3, 224, 224}));
  EXPECT_EQ(open_dataset(folder_ / "images", Split::train, {}, kHeldOutShare, 0, {2, 3})->fields()[0].dims,
            (Dims{3, 2, 3}));
  EXPECT_EQ(open_samples(folder_ / "images", 0, {}, {2, 3})->sample(0)[0].second.dims(), (Dims{3, 2, 3}));
  std::string table = "x\ty\n";
  for (int i = 0; i < 20; ++i) table += "1\t0\n";
  EXPECT_EQ(open_dataset(folder_.write("t.tsv", table), Split::test)->size(), 4);
  EXPECT_EQ(open_dataset(folder_.write("t.tsv", table), Split::train)->size(), 16);
  EXPECT_EQ(open_samples(folder_ / "t.tsv", 1)->size(), 20);
  EXPECT_EQ(open_samples(folder_ / "t.tsv", 1)->fields().size(), 2U);
  EXPECT_EQ(open_samples(folder_ / "t.tsv", 2)->fields(), (std::vector<Field>{{"x", DType::f32, {2}}}));
  EXPECT_EQ(open_samples(folder_ / "cifar", 3072)->size(), 1);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_NE(error_of([&] {
              open_dataset(folder_ / "empty", Split::train);
            }).find("looked for x.npy, train-images-idx3-ubyte"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { open_dataset(folder_ / "nothing.npz", Split::train); }),
            "[data] 'FOLDER/nothing.npz': no such file or folder");
  EXPECT_EQ(error_of([&] { open_dataset(folder_.write("t.xyz", ""), Split::train); }),
            "[data] 'FOLDER/t.xyz': expected a file .npz, .npy, .csv, .tsv or .jsonl, got '.xyz'");
}

TEST_F(DataFiles, WithoutClassesAndInGrey) {
  folder_.write("flat/b.ppm", pixmap(1, 1, "\xff\x80\x40"));
  folder_.write("flat/a.ppm", pixmap(1, 1, std::string(3, '\xff')));
  folder_.write("flat/notes.txt", "no image");
  const DatasetPtr flat = image_files_dataset(folder_ / "flat", {.height = 1, .width = 1, .channels = 1});
  EXPECT_EQ(flat->fields(), (std::vector<Field>{{"image", DType::f32, {1, 1, 1}}}));
  ASSERT_EQ(flat->size(), 2);
  EXPECT_FLOAT_EQ(flat->sample(0)[0].second.data<float>()[0], 1);  // sorted by name
  EXPECT_FLOAT_EQ(flat->sample(1)[0].second.data<float>()[0], (0.299F * 255 + 0.587F * 128 + 0.114F * 64) / 255);
  EXPECT_EQ(open_samples(folder_ / "flat", 0, {}, {2, 3})->sample(1).size(), 1U);
  EXPECT_EQ(open_samples(folder_ / "flat/b.ppm", 0, {}, {2, 3, 1})->sample(0)[0].second.dims(), (Dims{1, 2, 3}));
  EXPECT_THROW(image_files_dataset(folder_ / "flat", {.channels = 2}), ValueError);
  folder_.write("empty/notes.txt", "no image");
  EXPECT_THROW(image_files_dataset(folder_ / "empty"), ValueError);
}

TEST_F(DataFiles, AnIdxFileWithoutItsOtherHalfIsNamed) {
  folder_.write("mnist/train-images-idx3-ubyte", "");
  const std::string said = message_of<ValueError>([&] { open_dataset(folder_ / "mnist", Split::train); });
  EXPECT_NE(said.find("expected train-labels-idx1-ubyte beside"), std::string::npos) << said;
}

}  // namespace
}  // namespace autograph
