// Labelled images: IDX files as they should be, damaged in every way, and the real ones.
#include "runtime/io/image_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/data.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string write(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/weft_idx_" + name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

std::string compressed(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/weft_idx_" + name;
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return path;
}

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string idx(const std::vector<uint32_t>& shape, const std::string& values, char type = 8) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<char>(size >> shift));
    }
  }
  return bytes + values;
}

std::string errorOf(const std::string& bytes) {
  return std::string(readIdx(write("case", bytes)).status().message());
}

TEST(Idx, ReadsPlainAndCompressedFiles) {
  const std::string bytes = idx({2, 1, 3}, std::string("\x00\x01\x7f\x80\xff\x05", 6));
  for (const std::string& path : {write("plain", bytes), compressed("packed.gz", bytes)}) {
    const absl::StatusOr<IdxTensor> tensor = readIdx(path);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(tensor->shape, ElementsAre(2, 1, 3));
    EXPECT_THAT(tensor->values, ElementsAre(0, 1, 127, 128, 255, 5));
  }
  EXPECT_TRUE(readIdx(write("empty", idx({0, 4}, ""))).ok());
}

TEST(Idx, RefusesMalformedFiles) {
  EXPECT_THAT(std::string(readIdx("/nowhere/images").status().message()), HasSubstr("/nowhere/images: No such file"));
  EXPECT_THAT(errorOf(""), HasSubstr("no IDX file"));
  EXPECT_THAT(errorOf("PNG."), HasSubstr("no IDX file"));
  EXPECT_THAT(errorOf(idx({}, "")), HasSubstr("no IDX file"));
  EXPECT_THAT(errorOf(idx({2, 2}, "").substr(0, 9)), HasSubstr("no IDX file"));
  EXPECT_THAT(errorOf(idx({2}, "abcdefgh", 13)), HasSubstr("elements of type 13; only unsigned bytes (8)"));
  EXPECT_THAT(errorOf(idx({2, 2}, "abc")), HasSubstr("3 elements, sizes [2,2] ask for 4"));
  EXPECT_THAT(errorOf(idx({2, 2}, "abcde")), HasSubstr("more than 4 elements, sizes [2,2] ask for 4"));
  EXPECT_THAT(errorOf(idx({0}, "a")), HasSubstr("more than 0 elements"));
  // Neither the product of the sizes nor the memory they claim may hurt.
  EXPECT_THAT(errorOf(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc")), HasSubstr("the header is damaged"));
  EXPECT_THAT(errorOf(idx({0xFFFFFFFF, 16}, "abc")),
              HasSubstr("ask for 68719476720 elements, more than a file of 15 bytes can hold"));
}

// A short file may stand for many elements, but not for more than compression allows.
TEST(Idx, CompressionBoundsWhatAHeaderMayAskFor) {
  const std::string zeros(4 << 20, '\0');
  const std::string honest = compressed("zeros.gz", idx({1024, 4096}, zeros));
  EXPECT_EQ(readIdx(honest)->values.size(), zeros.size());
  // The same bytes under a header that claims the most sizes can say: nothing of them is unpacked.
  const std::string claims = compressed("claims.gz", idx({1 << 20, 1 << 20}, zeros));
  EXPECT_THAT(std::string(readIdx(claims).status().message()), HasSubstr("can hold"));
}

// Every cut and every flipped byte of a compressed file is an error or, where the flip is in what no check covers (the
// gzip header's time), the same tensor.
TEST(Idx, DamageNeverPasses) {
  const std::string values(500, 'v');
  const std::string packed = contents(compressed("whole.gz", idx({20, 25}, values)));
  for (size_t length = 0; length < packed.size(); ++length) {
    EXPECT_FALSE(readIdx(write("cut.gz", packed.substr(0, length))).ok()) << "cut to " << length;
  }
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    const absl::StatusOr<IdxTensor> tensor = readIdx(write("flipped.gz", damaged));
    EXPECT_TRUE(!tensor.ok() || std::string(tensor->values.begin(), tensor->values.end()) == values) << "byte " << at;
  }
}

ImageDatasetOptions scaled() {
  ImageDatasetOptions options;
  options.seed = 3;
  options.mean = 0.5;
  options.deviation = 0.25;
  return options;
}

TEST(ImageDataset, RoundsSeeEveryImageOnceInAnotherOrder) {
  std::string pixels(30, 'p');
  std::iota(pixels.begin(), pixels.end(), 0);
  const std::string images = write("images", idx({5, 2, 3}, pixels));
  const std::string labels = write("labels", idx({5}, std::string("\x04\x03\x02\x01\x00", 5)));
  const absl::StatusOr<ImageDataset> data = ImageDataset::open(images, labels, scaled());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->classes(), 5);
  std::vector<std::vector<int32_t>> orders;
  for (int64_t step = 0; step < 4; ++step) {
    std::vector<float> x(5 * 6);
    std::vector<int32_t> y(5);
    data->trainBatch(step, 5, x.data(), y.data());
    EXPECT_EQ(std::set<int32_t>(y.begin(), y.end()).size(), 5U);
    for (int64_t i = 0; i < 5; ++i) {
      // Image k has label 4 - k and begins with pixel 6 k.
      EXPECT_FLOAT_EQ(x[i * 6], static_cast<float>((6 * (4 - y[i]) / 255.0 - 0.5) / 0.25));
    }
    orders.push_back(y);
  }
  EXPECT_NE(orders[0], orders[1]);
  std::vector<float> x(2 * 6);
  std::vector<int32_t> y(2);
  ASSERT_TRUE(data->batch(3, 2, x.data(), y.data()).ok());
  EXPECT_THAT(y, ElementsAre(1, 0));
  EXPECT_EQ(data->batch(4, 2, x.data(), y.data()).code(), absl::StatusCode::kOutOfRange);
}

TEST(ImageDataset, RefusesFilesThatDoNotBelongTogether) {
  const std::string images = write("images", idx({2, 1, 2}, "abcd"));
  const std::string labels = write("labels", idx({3}, "abc"));
  EXPECT_THAT(std::string(ImageDataset::open(images, labels).status().message()), HasSubstr("[2,1,2]"));
  EXPECT_THAT(std::string(ImageDataset::open(labels, images).status().message()), HasSubstr("[3]"));
  ImageDatasetOptions flat;
  flat.deviation = 0;
  EXPECT_THAT(std::string(ImageDataset::open(images, labels, flat).status().message()), HasSubstr("deviation of 0"));
  const std::string none = write("none", idx({0, 1, 2}, ""));
  EXPECT_THAT(std::string(ImageDataset::open(none, write("labels", idx({0}, ""))).status().message()),
              HasSubstr("has no image"));
}

TEST(ImageDataset, RefusesTensorsThatContradictTheirSizes) {
  const IdxTensor images = {{2, 1, 3}, std::vector<uint8_t>(6)};
  const IdxTensor labels = {{2}, {0, 1}};
  ASSERT_TRUE(ImageDataset::of(images, labels).ok());
  const IdxTensor few = {{2, 1, 3}, std::vector<uint8_t>(5)};
  EXPECT_THAT(std::string(ImageDataset::of(few, labels).status().message()), HasSubstr("5 elements"));
  EXPECT_THAT(std::string(ImageDataset::of(images, {{2}, {0}}).status().message()), HasSubstr("1 elements"));
  ImageDatasetOptions options;
  options.mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(std::string(ImageDataset::of(images, labels, options).status().message()), HasSubstr("finite"));
  options = {};
  options.deviation = std::numeric_limits<double>::infinity();
  EXPECT_THAT(std::string(ImageDataset::of(images, labels, options).status().message()), HasSubstr("finite"));
}

TEST(ImageDataset, ReadsFashionMnist) {
  const std::string images = "fashion-mnist/t10k-images-idx3-ubyte.gz";
  const std::string labels = "fashion-mnist/t10k-labels-idx1-ubyte.gz";
  WEFT_REQUIRE_DATA(images);
  WEFT_REQUIRE_DATA(labels);
  const absl::StatusOr<ImageDataset> data =
      ImageDataset::open(tests::dataDirectory() + "/" + images, tests::dataDirectory() + "/" + labels);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->size(), 10000);
  EXPECT_EQ(data->rows(), 28);
  EXPECT_EQ(data->columns(), 28);
  EXPECT_EQ(data->classes(), 10);
  for (int label = 0; label < 10; ++label) {
    EXPECT_EQ(std::count(data->labels().begin(), data->labels().end(), label), 1000);
  }
  std::vector<float> x(10000 * 784);
  std::vector<int32_t> y(10000);
  ASSERT_TRUE(data->batch(0, 10000, x.data(), y.data()).ok());
  y.resize(10);
  EXPECT_THAT(y, ElementsAre(9, 2, 1, 1, 6, 1, 4, 6, 5, 7));
  // The mean of all pixels as the data's own description has it, to its six digits; sums of single images exactly.
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()), 0.286849, 5e-7);
  EXPECT_NEAR(std::accumulate(x.begin(), x.begin() + 784, 0.0) * 255, 33456, 0.01);
  EXPECT_NEAR(std::accumulate(x.end() - 784, x.end(), 0.0) * 255, 24390, 0.01);
}

}  // namespace
}  // namespace weft
