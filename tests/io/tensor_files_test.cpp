// npy, npz and safetensors: what is written reads back; what is malformed is refused before memory is taken.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

class TensorFiles : public ::testing::Test {
 protected:
  std::string path(const char* name) const { return folder_ / name; }
  TestFolder folder_;
};

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string npy(const std::string& header, const std::string& data) {
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += {static_cast<char>(header.size()), '\0'};
  return bytes + header + data;
}

TEST_F(TensorFiles, NpyReadsBackWhatItWrote) {
  const Tensor tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  write_npy(path("a.npy"), tensor);
  EXPECT_TRUE(read_npy(path("a.npy")).bitwise_equal(tensor));
  const Tensor scalar = Tensor::scalar<int64_t>(-7);
  write_npy(path("s.npy"), scalar);
  EXPECT_TRUE(read_npy(path("s.npy")).bitwise_equal(scalar));
}

TEST_F(TensorFiles, MessagesAreLinesWhateverAFileHolds) {
  const std::string header = "{'descr': '<z\n\033[31m', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_EQ(error_of([&] { parse_npy(npy(header, "ab")); }),
            "[npy] descr: '<z\\n\\x1b[31m' is not supported (little-endian numbers, bool and texts are)");
  const std::string json = R"({"a\n\u001b": 1})";
  const std::string front{static_cast<char>(json.size()), '\0', '\0', '\0', '\0', '\0', '\0', '\0'};
  const std::string message = error_of([&] { parse_safetensors(front + json); });
  EXPECT_NE(message.find("tensor 'a\\n\\x1b'"), std::string::npos) << message;
}

TEST_F(TensorFiles, NpyTransposesFortranOrder) {
  const std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
  const Tensor tensor = parse_npy(npy(header, std::string("\1\4\2\5\3\6", 6)));
  EXPECT_EQ(tensor.to_i64(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(TensorFiles, NpyReadsTextsAsNumPyWritesThem) {
  // np.array(["a", "h\u00e9", "\U0001f600"]): two UTF-32 characters each, filled up with zeros.
  const std::string data(
      "a\0\0\0\0\0\0\0"
      "h\0\0\0\xe9\0\0\0"
      "\x00\xf6\x01\0\0\0\0\0",
      24);
  const Tensor texts = parse_npy(npy("{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }\n", data));
  EXPECT_TRUE(texts.bitwise_equal(Tensor::of<std::string>({3}, {"a", "h\xc3\xa9", "\xf0\x9f\x98\x80"})));
  const Tensor bytes = parse_npy(npy("{'descr': '|S2', 'fortran_order': True, 'shape': (1, 2), }\n", std::string("ab"
                                                                                                                 "c\0",
                                                                                                                 4)));
  EXPECT_TRUE(bytes.bitwise_equal(Tensor::of<std::string>({1, 2}, {"ab", "c"})));
}

TEST_F(TensorFiles, NpyReadsBackTheTextsThatItWrote) {
  const Tensor texts = Tensor::of<std::string>({2, 2}, {"", "longer than the others", "\xe6\x97\xa5", "x"});
  write_npy(path("t.npy"), texts);
  EXPECT_TRUE(read_npy(path("t.npy")).bitwise_equal(texts));
  const Tensor none = Tensor::zeros(DType::string, {0, 3});
  write_npy(path("n.npy"), none);
  EXPECT_TRUE(read_npy(path("n.npy")).bitwise_equal(none));
  EXPECT_EQ(error_of([&] { write_npy(path("b.npy"), Tensor::of<std::string>({1}, {"a\xff"})); }),
            "[npy] text 'a\xff': expected UTF-8, byte 1 is not");
}

TEST_F(TensorFiles, NpyTransposesTextsInFortranOrder) {
  const std::string header = "{'descr': '<U1', 'fortran_order': True, 'shape': (2, 2), }\n";
  const Tensor texts = parse_npy(npy(header, std::string("a\0\0\0"
                                                         "c\0\0\0"
                                                         "b\0\0\0"
                                                         "d\0\0\0",
                                                         16)));
  EXPECT_TRUE(texts.bitwise_equal(Tensor::of<std::string>({2, 2}, {"a", "b", "c", "d"})));
}

TEST_F(TensorFiles, NpyRefusesTextsThatAreNone) {
  const auto parse = [](const std::string& descr, const std::string& data) {
    return error_of(
        [&] { parse_npy(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }\n", data)); });
  };
  EXPECT_EQ(parse("<U1", std::string("\0\0\x11\0", 4)), "[npy] data: 0x110000 is not a character");
  EXPECT_EQ(parse("<U1", std::string("\0\xd8\0\0", 4)), "[npy] data: 0xd800 is not a character");
  EXPECT_NE(parse("<U0", "").find("expected a width of 1 or more, got '<U0'"), std::string::npos);
  EXPECT_NE(parse("<U-1", "").find("expected a width of 1 or more"), std::string::npos);
  EXPECT_EQ(parse("<U2", "abc"), "[npy] data: expected 8 bytes for string[1], got 3");
}

TEST_F(TensorFiles, NpyRefusesWhatItCannotTrust) {
  const auto parse = [](const std::string& header, const std::string& data) {
    return error_of([&] { parse_npy(npy(header, data)); });
  };
  EXPECT_EQ(parse("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x"),
            "[npy] descr: '|O' is not supported (little-endian numbers, bool and texts are)");
  EXPECT_EQ(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""),
            "[npy] data: expected -1 bytes for f32[4611686018427387904,4], got 0");
  EXPECT_EQ(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"),
            "[npy] data: expected 8 bytes for f32[2], got 4");
  EXPECT_EQ(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", ""),
            "[npy] header: expected extents of 0 or more (at byte 51)");
  EXPECT_EQ(error_of([] { parse_npy("PK\3\4......"); }), "[npy] file: the magic is missing");
}

TEST_F(TensorFiles, NpzReadsBackWhatItWroteInOrder) {
  const NamedTensors tensors{{"b", Tensor::of<int32_t>({3}, {1, 2, 3})}, {"a", Tensor::scalar<double>(0.5)}};
  write_npz(path("t.npz"), tensors);
  const NamedTensors read = read_npz(path("t.npz"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].first, "b");
  EXPECT_TRUE(read[0].second.bitwise_equal(tensors[0].second));
  EXPECT_TRUE(read[1].second.bitwise_equal(tensors[1].second));
}

TEST_F(TensorFiles, NpzChecksSumsAndEnds) {
  write_npz(path("t.npz"), {{"a", Tensor::of<uint8_t>({4}, {1, 2, 3, 4})}});
  std::ifstream in(path("t.npz"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  bytes[bytes.find("\1\2\3\4")] = 9;
  std::ofstream(path("bad.npz"), std::ios::binary) << bytes;
  EXPECT_NE(error_of([&] { read_npz(path("bad.npz")); }).find("[npz] member 'a.npy': checksum"), std::string::npos);
  std::ofstream(path("short.npz"), std::ios::binary) << bytes.substr(0, 60);
  EXPECT_EQ(error_of([&] { read_npz(path("short.npz")); }),
            "[npz] archive: the end of the central directory is missing");
}

TEST_F(TensorFiles, SafetensorsReadBackWhatTheyWrote) {
  const SafeTensors content{{{"w", Tensor::of<float>({2}, {1, 2})}, {"a", Tensor::of<int64_t>({0, 3}, {})}},
                            {{"format", "pt"}}};
  write_safetensors(path("t.safetensors"), content);
  const SafeTensors read = read_safetensors(path("t.safetensors"));
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].first, "w");
  EXPECT_TRUE(read.tensors[0].second.bitwise_equal(content.tensors[0].second));
  EXPECT_EQ(read.metadata.at("format"), "pt");
}

TEST_F(TensorFiles, MetadataIsReadWithoutTheTensors) {
  const SafeTensors content{{{"w", Tensor::of<float>({2}, {1, 2})}}, {{"format", "pt"}}};
  write_safetensors(path("t.safetensors"), content);
  EXPECT_EQ(read_safetensors_metadata(path("t.safetensors")), content.metadata);
  // What stands behind the header is not looked at.
  std::filesystem::resize_file(path("t.safetensors"), std::filesystem::file_size(path("t.safetensors")) - 4);
  EXPECT_EQ(read_safetensors_metadata(path("t.safetensors")), content.metadata);
  EXPECT_NE(error_of([&] { read_safetensors(path("t.safetensors")); }), "");
  std::filesystem::resize_file(path("t.safetensors"), 12);
  EXPECT_EQ(error_of([&] { read_safetensors_metadata(path("t.safetensors")); }),
            error_of([&] { read_safetensors(path("t.safetensors")); }));
  std::ofstream(path("short.safetensors")) << "abc";
  EXPECT_EQ(error_of([&] { read_safetensors_metadata(path("short.safetensors")); }),
            "[safetensors] file: 3 bytes are too few");
}

std::string safetensors(const std::string& header, size_t data) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + std::string(data, '\0');
}

TEST_F(TensorFiles, SafetensorsAreWrittenWithTextsAlone) {
  const Tensor w = Tensor::of<float>({1}, {1});
  const auto message = [&](const SafeTensors& content) {
    return message_of<ValueError>([&] { write_safetensors(path("bytes.safetensors"), content); });
  };
  EXPECT_EQ(message({{{"w\xff", w}}, {}}), "[safetensors] tensor 'w\\xff': expected a name in UTF-8");
  EXPECT_EQ(message({{{"w", w}}, {{"form\xc3", "pt"}}}),
            "[safetensors] metadata 'form\\xc3': expected UTF-8, got 'pt'");
  EXPECT_FALSE(std::filesystem::exists(path("bytes.safetensors")));
}

TEST_F(TensorFiles, SafetensorsRefuseGapsOverlapsAndOverflow) {
  const auto parse = [](const std::string& header, size_t data) {
    return error_of([&] { parse_safetensors(safetensors(header, data)); });
  };
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
            "[safetensors] tensor 'a': begins at 1, expected 0");
  EXPECT_EQ(parse(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3),
            "[safetensors] buffer: the tensors take 2 bytes, the file has 3");
  EXPECT_EQ(
      parse(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          3),
      "[safetensors] tensor 'b': begins at 1, expected 2");
  EXPECT_EQ(parse(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
            "[safetensors] tensor 'a': its size overflows 64 bits");
  EXPECT_EQ(
      parse(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1),
      "[safetensors] tensor 'a': appears twice");
  EXPECT_NE(parse(R"({"a":[[[[[[1]]]]]]})", 0).find("nested deeper than 4"), std::string::npos);
}

}  // namespace
}  // namespace autograph
