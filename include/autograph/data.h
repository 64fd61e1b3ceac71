// Data to train on: sets of samples read from files, and a loader that makes batches of them on threads.
//
//     const auto train = open_dataset("/usr/share/datasets/fashion-mnist", Split::train);
//     DataLoader loader(train, {.batch_size = 128, .shuffle = true, .seed = 7, .transforms = {RandomCrop{.padding = 2},
//                               HorizontalFlip{}}, .threads = 2});
//     while (const auto batch = loader.next()) program.run({{"x", (*batch)["image"]}, {"target", (*batch)["label"]}});
//
// What a loader gives is a function of the data, the options, the epoch and the position in it: the number of threads,
// the machine and what was read before change nothing. Every file is checked before memory is taken for what it claims
// to hold: FormatError says where it is wrong (file, line or offset, expected and got), BudgetError that it is larger
// than the caller allows, IoError that it cannot be read.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "autograph/tensor.h"
#include "autograph/tensor_io.h"

namespace autograph {

// ---- Sets of samples -------------------------------------------------------------------------------------------

/// One part of every sample: an image, a label.
struct Field {
  std::string name;                ///< "image", "label", the name of a column, ...
  DType dtype = DType::undefined;  ///< Numbers or booleans.
  Dims dims;                       ///< Of one sample: batches have the number of samples in front.
  bool operator==(const Field&) const = default;
};

/// Samples by number, all with the same fields. Any thread may read.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset();

  /// Number of samples.
  virtual int64_t size() const = 0;
  /// What every sample has.
  virtual const std::vector<Field>& fields() const = 0;
  /// Writes sample `index`, 0 <= index < size(), into views of the fields' types, in their order. Whatever it throws,
  /// DataLoader::next() throws again with the number of the sample.
  virtual void read(int64_t index, std::span<const TensorView> to) const = 0;
  /// Names of the values of the field "label", where they have any: "0" to "9", folders, words of a column.
  virtual const std::vector<std::string>& class_names() const;

  /// One sample; ValueError unless 0 <= index < size().
  NamedTensors sample(int64_t index) const;
  /// Several samples, stacked in front; ValueError where one is not there.
  NamedTensors batch(std::span<const int64_t> indices) const;
};

/// Sets are shared by the loaders that read them.
using DatasetPtr = std::shared_ptr<const Dataset>;

/// Which half of a set that comes in two.
enum class Split {
  train,  ///< To learn from.
  test,   ///< Held out.
};

/// What reading may take.
struct DataLimits {
  int64_t max_bytes = int64_t{8} << 30;  ///< Of memory for what a file holds; asked before it is taken.
};

/// Tensors whose first axis counts samples. `class_names` belong to a field "label". ShapeError where the numbers of
/// samples differ or one is of rank 0, TypeError for strings, ValueError when there is none.
DatasetPtr tensor_dataset(NamedTensors tensors, std::vector<std::string> class_names = {});
/// Samples begin to end - 1 of `dataset`. ValueError unless 0 <= begin <= end <= size().
DatasetPtr slice_dataset(DatasetPtr dataset, int64_t begin, int64_t end);
/// How much of a set in one piece is held out, by tasks and by the command line, too.
inline constexpr double kHeldOutShare = 0.2;
/// One of the two parts that a draw by `seed` makes of a set: `held_out` of all samples, rounded down, are Split::test,
/// the others Split::train, in their order. ValueError unless 0 <= held_out <= 1.
DatasetPtr split_dataset(DatasetPtr dataset, Split split, double held_out = kHeldOutShare, uint64_t seed = 0);

/// The whole of an IDX file, gzipped or not: u8, i8, i16, i32, f32 or f64.
Tensor read_idx(const std::string& path, const DataLimits& limits = {});
/// MNIST and what has its format: "image" f32 [1, rows, columns] in 0 to 1 and "label" i64 [], from two IDX files.
DatasetPtr idx_dataset(const std::string& images, const std::string& labels, const DataLimits& limits = {});

/// What labels a CIFAR file has.
enum class CifarKind {
  cifar10,   ///< One byte: 10 classes.
  cifar100,  ///< Two bytes, of which the second, fine one is the label: 100 classes.
};
/// Binary CIFAR files, one after the other: "image" f32 [3, 32, 32] in 0 to 1 and "label" i64 [].
DatasetPtr cifar_dataset(const std::vector<std::string>& files, CifarKind kind = CifarKind::cifar10,
                         const DataLimits& limits = {});

/// A .npz file: its arrays are the fields, their first axis counts samples.
DatasetPtr npz_dataset(const std::string& path, const DataLimits& limits = {});
/// .npy files by the name of the field: {{"image", "x.npy"}, {"label", "y.npy"}}.
DatasetPtr npy_dataset(const std::vector<std::pair<std::string, std::string>>& files, const DataLimits& limits = {});

/// How a table of text is read.
struct CsvOptions {
  char separator = ',';
  /// Has the first line the names of the columns? Otherwise they are "0", "1", ... Not given: it has when some cell of
  /// it is no number, but for a label that is a class by name, as the label of the next line is.
  std::optional<bool> has_header = {};
  /// The column that is the field "label": numbers 0, 1, ... as they stand, other words by their place among the sorted
  /// words of the column. "": the last one; "-": none.
  std::string label = {};
  /// The label is a number to predict, f32 [], and not a class.
  bool regression = false;
  DataLimits limits = {};
};
/// Comma-separated values (RFC 4180, quotes included): all columns but the label, which must be numbers, are the field
/// "x", f32 [columns]; "label" is i64 []. An empty cell is NaN.
DatasetPtr csv_dataset(const std::string& path, const CsvOptions& options = {});

/// How JSON lines are read.
struct JsonLinesOptions {
  /// The member that is the field "label", if a line has it: classes as those of CsvOptions::label.
  std::string label = "label";
  DataLimits limits = {};
};
/// An object a line, each with the same members: numbers, booleans and nested lists of numbers of equal extents become
/// f32 fields of the members' names, in the order of the first line.
DatasetPtr json_lines_dataset(const std::string& path, const JsonLinesOptions& options = {});

/// Extents of images in pixels, and what a pixel has: red, green and blue, or with 1 channel its grey.
struct ImageSize {
  int64_t height = 224;
  int64_t width = 224;
  int64_t channels = 3;
  bool operator==(const ImageSize&) const = default;
};

/// How a folder of images is read.
struct ImageFolderOptions {
  int64_t height = 224;  ///< Of the samples: images are scaled so that they cover it, and their middle is taken.
  int64_t width = 224;
  DataLimits limits = {};  ///< Of one image, when it is decoded.
  int64_t channels = 3;    ///< 3, or 1: 0.299 red + 0.587 green + 0.114 blue.
};
/// FOLDER/CLASS/NAME.jpg (.jpeg, .png, .bmp, .webp, .tif, .ppm): "image" f32 [channels, height, width] in 0 to 1 and
/// "label" i64 [], the place of its folder among the sorted ones. Files are read and decoded when a sample is; scaled
/// bilinearly, with the average of what a pixel covers where it shrinks.
DatasetPtr image_folder_dataset(const std::string& folder, const ImageFolderOptions& options = {});
/// The image at `path`, or those of a folder sorted by name, without labels: "image" as above.
DatasetPtr image_files_dataset(const std::string& path, const ImageFolderOptions& options = {});

// ---- Text ------------------------------------------------------------------------------------------------------

/// Numbers for pieces of text, and back.
class Tokenizer {
 public:
  /// A number for each character (UTF-8) that `text` has, in the order of their code points. FormatError with the
  /// offset where it is not UTF-8, ValueError when it is empty.
  static Tokenizer characters(std::string_view text);
  /// Byte-pair tokens: 256 for the bytes, then the pair that is most frequent becomes one, again and again, until there
  /// are `size` or no pair comes twice. Pairs stay inside words: runs of letters (and of bytes from 128), of digits or
  /// of other signs, each with one space in front, and runs of white space; longer ones than 256 bytes are cut. Among
  /// equally frequent pairs the one of the smaller numbers is first. ValueError unless 256 <= size <= 2^20.
  static Tokenizer train_byte_pairs(std::string_view text, int64_t size);
  /// What save() wrote.
  static Tokenizer load(const std::string& path);
  /// What to_json() gave.
  static Tokenizer from_json(std::string_view text);

  /// Writes a JSON file.
  void save(const std::string& path) const;
  /// What is in that file.
  std::string to_json() const;
  /// "characters" or "byte_pairs".
  std::string kind() const;
  /// Number of tokens: they are 0 to size() - 1.
  int64_t size() const;
  /// Never fails with byte pairs. Characters: ValueError with the offset of one that is unknown.
  std::vector<int32_t> encode(std::string_view text) const;
  /// ValueError where a token is unknown.
  std::string decode(std::span<const int32_t> tokens) const;

  /// Implementation, for the library itself.
  class Impl;

 private:
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  static Tokenizer parse(std::string_view text, const std::string& where);
  std::shared_ptr<const Impl> impl_;
};

/// The whole of a text file.
std::string read_text(const std::string& path, const DataLimits& limits = {});
/// Pieces of a long text: "input" i64 [length] are tokens i * stride to i * stride + length - 1 and "target" i64
/// [length] the ones behind each. stride 0: length, so that each token is learned once. ValueError where length < 1 or
/// there are too few tokens.
DatasetPtr token_dataset(std::vector<int32_t> tokens, int64_t length, int64_t stride = 0);

// ---- By path ---------------------------------------------------------------------------------------------------

/// The set at `path`, told by what is there: a folder with IDX files under MNIST's names, with binary CIFAR files, or
/// with a folder for each class (`train` and `test`, or `val`, above them where there are such), or with x.npy and
/// y.npy; a file .npz, .npy, .csv, .tsv or .jsonl. Arrays x and y of NumPy, or x_train, y_train, x_test and y_test, are
/// the fields "x" and "label": bytes of x with three axes or more are pixels and become f32 from 0 to 1, f64 becomes
/// f32, integers of y i64. Sets that come in one piece are split, split_dataset(set, split, held_out, seed).
/// ValueError, with what was looked for, where nothing fits. `size`: of folders of images.
DatasetPtr open_dataset(const std::string& path, Split split, const DataLimits& limits = {},
                        double held_out = kHeldOutShare, uint64_t seed = 0, const ImageSize& size = {});
/// What is learned from, and what is held out.
struct HeldOutSplit {
  DatasetPtr training;
  DatasetPtr held_out;
};
/// kHeldOutShare of the samples, drawn from `seed`, are held out. ValueError where the set is too small for that.
HeldOutSplit hold_out(const DatasetPtr& dataset, uint64_t seed);
/// Both parts of what open_dataset() finds: the set's own two, or those of hold_out(). Files are read once.
HeldOutSplit open_split(const std::string& path, uint64_t seed, const ImageSize& size = {});
/// All samples at `path`, to predict what they are: as open_dataset() finds them, of sets in two parts Split::test.
/// Labels may be missing: a table of as many columns as a sample has `elements` has none, nor has an image, or a folder
/// of images without folders in it.
DatasetPtr open_samples(const std::string& path, int64_t elements, const DataLimits& limits = {},
                        const ImageSize& size = {});

// ---- Changing samples while they are loaded --------------------------------------------------------------------

/// Cuts a window at random from an image with a margin of zeros.
struct RandomCrop {
  int64_t padding = 4;  ///< The margin.
  int64_t height = 0;   ///< Of the window; 0: of the image.
  int64_t width = 0;
};

/// Mirrors images left to right.
struct HorizontalFlip {
  double probability = 0.5;
};

/// (image - mean) / deviation, with one number for each channel, or one for all.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// Mixes each sample with another one (Zhang et al. 2018): image = r a + (1 - r) b, r drawn from Beta(alpha, alpha).
/// The label becomes the same mixture of classes, f32 [classes]. The other sample is any of the set, with the other
/// transforms applied as they would be to it alone. Stands last.
struct Mixup {
  double alpha = 0.2;
  int64_t classes = 0;  ///< 0: as many as the set has names of.
};

using Transform = std::variant<RandomCrop, HorizontalFlip, Normalize, Mixup>;

// ---- Batches ---------------------------------------------------------------------------------------------------

/// Where a loader is: all it takes to go on.
struct DataPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  ///< Samples of the epoch that were given already.
  auto operator<=>(const DataPosition&) const = default;
};

/// How batches are made.
struct LoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = false;                    ///< Each epoch in an order of its own, drawn from the seed and its number.
  bool drop_last = false;                  ///< Leave out the samples at the end of an epoch that fill no batch.
  uint64_t seed = 0;                       ///< Of the order and of the transforms.
  std::vector<Transform> transforms = {};  ///< One after the other.
  std::string image = "image";             ///< The field that transforms change, f32 [channels, height, width].
  std::string label = "label";             ///< The field that Mixup changes, i64 [].
  int threads = 1;                         ///< That make batches ahead; 0: none, the caller makes its batch.
  int64_t prefetch = 4;  ///< Batches that are made, or being made, before they are asked for; at most.
};

/// Some samples, stacked.
struct Batch {
  NamedTensors tensors = {};   ///< [samples, dims of the field...]
  DataPosition position = {};  ///< Of the first sample.
  int64_t size = 0;            ///< Number of samples.
  /// The field of that name; ValueError with the nearest name when there is none.
  const Tensor& operator[](std::string_view name) const;
};

/// Makes batches of a set. All calls from one thread at a time. Memory: the set's own, 16 bytes a sample with
/// `shuffle`, and `prefetch` batches.
class DataLoader {
 public:
  /// Throws ValueError, TypeError or ShapeError where options do not fit each other or the set.
  explicit DataLoader(DatasetPtr dataset, LoaderOptions options = {});
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  /// The next batch; nothing, once, at the end of each epoch, after which the next one begins. Throws what reading a
  /// sample threw, with its number; the position is then still in front of that batch.
  std::optional<Batch> next();
  /// In front of the next batch.
  DataPosition position() const;
  /// The next batch begins there: what position() of a loader with the same options gave makes this one go on like
  /// that. ValueError where the epoch has no such sample.
  void seek(DataPosition position);
  /// What batches have, after transforms.
  const std::vector<Field>& fields() const;
  /// Batches of a whole epoch.
  int64_t batches_per_epoch() const;
  /// Samples of a whole epoch: those that drop_last leaves out are not counted.
  int64_t samples_per_epoch() const;
  const LoaderOptions& options() const;
  const DatasetPtr& dataset() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autograph
