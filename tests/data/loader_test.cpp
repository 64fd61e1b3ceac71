// Batches: the same for every number of threads and from every position, in memory that is bounded, and errors where
// they happened.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "autograph/data.h"
#include "autograph/error.h"
#include "data/draws.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// Images whose elements tell sample and place.
DatasetPtr numbered_images(int64_t count, int64_t channels = 2, int64_t height = 3, int64_t width = 4) {
  Tensor images = Tensor::empty(DType::f32, {count, channels, height, width});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < images.num_elements(); ++i) images.mutable_data<float>()[i] = static_cast<float>(i + 1);
  for (int64_t i = 0; i < count; ++i) labels.push_back(i % 5);
  return tensor_dataset({{"image", images}, {"label", Tensor::vector(labels)}}, {"a", "b", "c", "d", "e"});
}

LoaderOptions everything(int threads) {
  return {.batch_size = 7,
          .shuffle = true,
          .seed = 11,
          .transforms = {RandomCrop{.padding = 1}, HorizontalFlip{}, Normalize{{2, 3}, {0.5F, 4}}, Mixup{.alpha = 0.4}},
          .threads = threads,
          .prefetch = 3};
}

// Batches of some epochs, an empty one at the end of each.
std::vector<Batch> batches_of(DataLoader& loader, int64_t epochs) {
  std::vector<Batch> batches;
  while (epochs > 0) {
    auto batch = loader.next();
    epochs -= batch ? 0 : 1;
    batches.push_back(batch ? std::move(*batch) : Batch());
  }
  return batches;
}

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.position, b.position);
  EXPECT_EQ(a.size, b.size);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].first, b.tensors[i].first);
    EXPECT_TRUE(a.tensors[i].second.bitwise_equal(b.tensors[i].second)) << a.tensors[i].first;
  }
}

TEST(DataLoader, GivesEverySampleOnceAnEpoch) {
  for (const int threads : {0, 1, 3}) {
    DataLoader loader(numbered_images(10), {.batch_size = 4, .threads = threads});
    const std::vector<Batch> batches = batches_of(loader, 1);
    ASSERT_EQ(batches.size(), 4U);
    EXPECT_EQ(batches[2].size, 2);
    EXPECT_EQ(batches[1]["image"].dims(), (Dims{4, 2, 3, 4}));
    EXPECT_EQ(batches[1]["image"].data<float>()[0], 4 * 24 + 1);
    EXPECT_EQ(batches[2]["label"].to_i64(), (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(loader.position(), (DataPosition{1, 0}));
    EXPECT_EQ(loader.batches_per_epoch(), 3);
    EXPECT_EQ(loader.samples_per_epoch(), 10);
    EXPECT_EQ(message_of<ValueError>([&] { (void)batches[0]["imagee"]; }),
              "[data] batch: no field 'imagee' (did you mean 'image'?)");
  }
}

TEST(DataLoader, DropsWhatFillsNoBatch) {
  DataLoader loader(numbered_images(10), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_EQ(loader.samples_per_epoch(), 8);
  EXPECT_EQ(batches_of(loader, 2).size(), 6U);
  loader.seek({0, 7});
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.next()->position, (DataPosition{1, 0}));
}

TEST(DataLoader, ShufflesEachEpochAnew) {
  DataLoader loader(numbered_images(100), {.batch_size = 100, .shuffle = true, .seed = 5});
  std::set<std::vector<float>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const auto batch = loader.next();
    std::vector<float> firsts;
    for (int64_t i = 0; i < 100; ++i) firsts.push_back((*batch)["image"].data<float>()[i * 24]);
    orders.insert(firsts);
    std::sort(firsts.begin(), firsts.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(firsts[static_cast<size_t>(i)], static_cast<float>(i * 24 + 1));
    EXPECT_FALSE(loader.next());
  }
  EXPECT_EQ(orders.size(), 4U);
}

TEST(DataLoader, NumberOfThreadsChangesNothing) {
  const DatasetPtr dataset = numbered_images(40);
  DataLoader alone(dataset, everything(0));
  const std::vector<Batch> expected = batches_of(alone, 3);
  for (const int threads : {1, 2, 5}) {
    DataLoader loader(dataset, everything(threads));
    const std::vector<Batch> batches = batches_of(loader, 3);
    ASSERT_EQ(batches.size(), expected.size());
    for (size_t i = 0; i < batches.size(); ++i) expect_equal(batches[i], expected[i]);
  }
}

TEST(DataLoader, GoesOnFromEveryPosition) {
  const DatasetPtr dataset = numbered_images(23);
  DataLoader whole(dataset, everything(2));
  std::vector<DataPosition> positions;
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) {
    positions.push_back(whole.position());
    auto batch = whole.next();
    batches.push_back(batch ? std::move(*batch) : Batch());
  }
  DataLoader loader(dataset, everything(2));
  for (size_t from = positions.size(); from-- > 0;) {
    loader.seek(positions[from]);
    EXPECT_EQ(loader.position(), positions[from]);
    for (size_t i = from; i < std::min(from + 3, batches.size()); ++i) {
      const auto batch = loader.next();
      expect_equal(batch ? *batch : Batch(), batches[i]);
    }
  }
  EXPECT_THROW(loader.seek({0, 24}), ValueError);
  EXPECT_THROW(loader.seek({-1, 0}), ValueError);
  EXPECT_THROW(loader.seek({int64_t{1} << 32, 0}), ValueError);
}

TEST(DataLoader, OrderOfAnEpochDoesNotDependOnBatches) {
  LoaderOptions small = everything(1), large = everything(2);
  large.batch_size = 20;
  DataLoader a(numbered_images(20), small), b(numbered_images(20), large);
  const Batch first = *a.next(), all = *b.next();
  for (size_t i = 0; i < first.tensors.size(); ++i) {
    const Tensor& part = first.tensors[i].second;
    EXPECT_EQ(std::memcmp(part.raw(), all.tensors[i].second.raw(), part.size_bytes()), 0);
  }
}

// Counts reads, and fails where it is told to.
class WatchedDataset : public Dataset {
 public:
  int64_t size() const override { return 1000; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, std::span<const TensorView> to) const override {
    ++reads;
    if (index == bad) throw FormatError("[test] damaged");
    if (index == worse) throw std::range_error("foreign");
    *to[0].mutable_data<int64_t>() = index;
  }
  mutable std::atomic<int64_t> reads = 0;
  std::atomic<int64_t> bad = -1;
  std::atomic<int64_t> worse = -1;

 private:
  std::vector<Field> fields_{{"x", DType::i64, {}}};
};

TEST(DataLoader, ReadsNoFurtherAheadThanAllowed) {
  const auto dataset = std::make_shared<WatchedDataset>();
  DataLoader loader(dataset, {.batch_size = 10, .threads = 4, .prefetch = 3});
  EXPECT_EQ(dataset->reads, 0);  // nothing before the first batch is wanted
  loader.next();
  for (int i = 0; i < 200 && dataset->reads < 40; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(dataset->reads, 40);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(dataset->reads, 40);
}

TEST(DataLoader, ErrorsOfThreadsComeWithTheirBatch) {
  for (const int threads : {0, 1, 3}) {
    const auto dataset = std::make_shared<WatchedDataset>();
    dataset->bad = 25;
    DataLoader loader(dataset, {.batch_size = 10, .threads = threads});
    EXPECT_EQ(loader.next()->size, 10);
    EXPECT_EQ(loader.next()->size, 10);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(message_of<FormatError>([&] { loader.next(); }), "[test] damaged (sample 25, epoch 0)");
      EXPECT_EQ(loader.position(), (DataPosition{0, 20}));
    }
    dataset->bad = -1;
    EXPECT_EQ((*loader.next())["x"].to_i64()[5], 25);
    dataset->worse = 0;
    loader.seek({4, 0});
    EXPECT_THROW(loader.next(), std::range_error);
    loader.seek({4, 1});  // around it
    EXPECT_EQ((*loader.next())["x"].to_i64()[0], 1);
  }
}

TEST(DataLoader, MayBeMovedAndLeftInTheMiddle) {
  DataLoader loader(numbered_images(100), everything(3));
  const Batch first = *loader.next();
  DataLoader other = std::move(loader);
  EXPECT_EQ(other.next()->position, (DataPosition{0, 7}));
  other = DataLoader(numbered_images(100), everything(3));
  expect_equal(*other.next(), first);
}

TEST(DataLoader, RefusesOptionsThatDoNotFit) {
  const DatasetPtr images = numbered_images(10);
  const auto error = [&](const LoaderOptions& options) {
    return message_of<UserError>([&] { DataLoader(images, options); });
  };
  EXPECT_EQ(error({.batch_size = 0}), "[data] batch_size: expected 1 or more, got 0");
  EXPECT_EQ(error({.batch_size = 11, .drop_last = true}),
            "[data] batch_size: expected at most the 10 samples (drop_last leaves none), got 11");
  EXPECT_EQ(error({.threads = -1}), "[data] threads: expected 0 to 256, got -1");
  EXPECT_EQ(error({.prefetch = 0}), "[data] prefetch: expected 1 to 65536, got 0");
  EXPECT_EQ(error({.transforms = {RandomCrop{.padding = 1, .height = 6}}}),
            "[data] RandomCrop: expected a window of at most 5 x 6 (margin included), got 6 x 4");
  EXPECT_EQ(error({.transforms = {RandomCrop{.padding = int64_t{1} << 62}}}),
            "[data] RandomCrop: padding: expected 0 to 65536, got 4611686018427387904");
  EXPECT_EQ(error({.transforms = {HorizontalFlip{1.5}}}),
            "[data] HorizontalFlip: probability: expected 0 to 1, got 1.5");
  EXPECT_EQ(error({.transforms = {Normalize{{1, 2, 3}, {1}}}}),
            "[data] Normalize: mean: expected 1 or 2 numbers, got 3");
  EXPECT_EQ(error({.transforms = {Normalize{{1}, {0}}}}), "[data] Normalize: deviation: expected more than 0, got 0");
  EXPECT_EQ(error({.transforms = {Mixup{}, HorizontalFlip{}}}),
            "[data] transforms: expected Mixup to stand last and once");
  EXPECT_EQ(error({.transforms = {Mixup{.alpha = 0}}}), "[data] Mixup: alpha: expected more than 0, got 0");
  EXPECT_EQ(error({.transforms = {HorizontalFlip{}}, .image = "imag"}),
            "[data] field 'imag': expected by transforms, got a set without it (did you mean 'image'?)");
  EXPECT_EQ(error({.transforms = {HorizontalFlip{}}, .image = "label"}),
            "[data] field 'label': expected f32 to be transformed, got i64");
  EXPECT_THROW(DataLoader(nullptr), ValueError);
  EXPECT_THROW(DataLoader(slice_dataset(images, 0, 0)), ValueError);
}

// ---- Transforms ------------------------------------------------------------------------------------------------

TEST(Transforms, CropsAreWindowsWithAMarginOfZeros) {
  DataLoader loader(numbered_images(200, 1, 2, 2),
                    {.batch_size = 200, .transforms = {RandomCrop{.padding = 1, .height = 3, .width = 2}}});
  EXPECT_EQ(loader.fields()[0].dims, (Dims{1, 3, 2}));
  const Batch batch = *loader.next();
  std::set<std::pair<int64_t, int64_t>> windows;
  for (int64_t i = 0; i < 200; ++i) {
    const float* image = batch["image"].data<float>() + 6 * i;
    int found = 0;
    for (int64_t top = -1; top <= 0; ++top) {
      for (int64_t left = -1; left <= 1; ++left) {
        bool same = true;
        for (int64_t y = 0; y < 3; ++y) {
          for (int64_t x = 0; x < 2; ++x) {
            const int64_t v = y + top, u = x + left;
            const bool inside = v >= 0 && v < 2 && u >= 0 && u < 2;
            same = same && image[2 * y + x] == (inside ? static_cast<float>(4 * i + 2 * v + u + 1) : 0.0F);
          }
        }
        if (same) windows.emplace(top, left);
        found += same ? 1 : 0;
      }
    }
    EXPECT_EQ(found, 1) << i;
  }
  EXPECT_EQ(windows.size(), 6U);  // all of them come
}

TEST(Transforms, FlipsMirrorRows) {
  const DatasetPtr images = numbered_images(1000, 1, 1, 3);
  const auto count = [&](double probability) {
    DataLoader loader(images, {.batch_size = 1000, .transforms = {HorizontalFlip{probability}}});
    const Batch batch = *loader.next();
    int flipped = 0;
    for (int64_t i = 0; i < 1000; ++i) {
      const float* row = batch["image"].data<float>() + 3 * i;
      const auto first = static_cast<float>(3 * i + 1);
      EXPECT_EQ(row[1], first + 1);
      EXPECT_EQ(row[0] + row[2], 2 * first + 2);
      flipped += row[0] == first + 2 ? 1 : 0;
    }
    return flipped;
  };
  EXPECT_EQ(count(0), 0);
  EXPECT_EQ(count(1), 1000);
  EXPECT_NEAR(count(0.3), 300, 60);
}

TEST(Transforms, NormalizeTakesOneNumberForEachChannel) {
  DataLoader loader(numbered_images(2, 2, 1, 1), {.transforms = {Normalize{{1, 2}, {2, 4}}}});
  EXPECT_TRUE((*loader.next())["image"].bitwise_equal(Tensor::of<float>({2, 2, 1, 1}, {0, 0, 1, 0.5F})));
}

TEST(Transforms, MixupMixesImagesAsItMixesLabels) {
  // The value of each image is that of its class: the mixture shows in both.
  Tensor images = Tensor::empty(DType::f32, {500, 1, 1, 1});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 500; ++i) {
    labels.push_back(i % 5);
    images.mutable_data<float>()[i] = static_cast<float>(i % 5);
  }
  const DatasetPtr dataset = tensor_dataset({{"image", images}, {"label", Tensor::vector(labels)}});
  DataLoader loader(dataset, {.batch_size = 500, .transforms = {Mixup{.alpha = 0.5, .classes = 5}}});
  EXPECT_EQ(loader.fields()[1], (Field{"label", DType::f32, {5}}));
  const Batch batch = *loader.next();
  int mixed = 0;
  double own = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const float* classes = batch["label"].data<float>() + 5 * i;
    double sum = 0, mean = 0;
    for (int64_t c = 0; c < 5; ++c) {
      EXPECT_GE(classes[c], 0);
      sum += classes[c];
      mean += static_cast<double>(c) * classes[c];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_NEAR(mean, batch["image"].data<float>()[i], 1e-5);
    mixed += classes[i % 5] < 0.99F ? 1 : 0;
    own += classes[i % 5] / 500;
  }
  EXPECT_GT(mixed, 250);
  EXPECT_NEAR(own, 0.5 + 0.5 / 5, 0.06);
  DataLoader wrong(dataset, {.transforms = {Mixup{.classes = 3}}});
  EXPECT_EQ(message_of<ValueError>([&] { wrong.next(); }).substr(0, 42), "[data] Mixup: label: expected 0 to 2, got ");
  EXPECT_THROW(DataLoader(dataset, {.transforms = {Mixup{}}}), ValueError);  // no names to count
}

// ---- Draws -----------------------------------------------------------------------------------------------------

TEST(Draws, AreThoseOfTheirDistributions) {
  constexpr int kCount = 20000;
  Draws draws(1, 2, 3, 4);
  std::vector<int> counts(3);
  double normal = 0, square = 0;
  for (int i = 0; i < kCount; ++i) {
    ++counts[static_cast<size_t>(draws.below(3))];
    const double x = draws.normal();
    normal += x / kCount;
    square += x * x / kCount;
  }
  for (const int count : counts) EXPECT_NEAR(count, kCount / 3.0, 300);
  EXPECT_NEAR(normal, 0, 0.03);
  EXPECT_NEAR(square, 1, 0.05);
  for (const double alpha : {0.001, 0.2, 1.0, 5.0}) {
    double mean = 0, variance = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = Draws(9, 0, i, 0).beta(alpha);
      EXPECT_TRUE(x >= 0 && x <= 1) << x;
      mean += x / kCount;
      variance += (x - 0.5) * (x - 0.5) / kCount;
    }
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(variance, 0.25 / (2 * alpha + 1), 0.01) << alpha;
  }
}

TEST(Draws, OrdersAreAllEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  for (int64_t epoch = 0; epoch < 6000; ++epoch) ++counts[draw_order(3, 42, epoch)];
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);
  // Whatever the machine is: these numbers must never change, or runs could not be resumed by a later version.
  EXPECT_EQ(draw_order(8, 42, 7), (std::vector<int64_t>{6, 5, 2, 0, 1, 7, 4, 3}));
  EXPECT_NE(draw_order(8, 42, 7), draw_order(8, 43, 7));
}

}  // namespace
}  // namespace autograph
