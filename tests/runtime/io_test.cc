// Readers and writers: safetensors (a corpus of malformed files, real ones), parameters, texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/base/names.h"
#include "runtime/io/parameters.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/text_dataset.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"
#include "tests/support/data.h"

namespace weft {
namespace {

std::string temporary(const std::string& name) {
  return testing::TempDir() + "/weft_io_" + name;
}

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Writes `bytes` to a file and opens it as safetensors.
absl::Status opened(const std::string& bytes) {
  const std::string path = temporary("case.safetensors");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return SafetensorsFile::open(path).status();
}

std::string withHeader(const std::string& json, size_t dataBytes) {
  const uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + json + std::string(dataBytes, '\0');
}

TEST(Safetensors, RoundTrips) {
  const std::string path = temporary("round.safetensors");
  const std::vector<SafetensorsTensor> tensors = {{"b.weight", DType::kF32, {2, 3}, std::vector<char>(24, 'x')},
                                                  {"a", DType::kI64, {}, std::vector<char>(8, 'y')},
                                                  {"none", DType::kBF16, {0, 7}, {}},
                                                  {"flags", DType::kBool, {3}, {1, 0, 1}}};
  ASSERT_TRUE(writeSafetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->entries().size(), 4u);
  for (const SafetensorsTensor& tensor : tensors) {
    EXPECT_EQ(file->read(tensor.name).value(), tensor.data);
    EXPECT_EQ(file->entries().at(tensor.name).shape, tensor.shape);
    EXPECT_EQ(file->entries().at(tensor.name).type, tensor.type);
  }
  const std::string bytes = contents(path);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_NE(bytes.find("\"format\":\"pt\""), std::string::npos);
  const std::string message(file->read("b.wieght").status().message());
  EXPECT_NE(message.find("nearest is 'b.weight'"), std::string::npos) << message;
}

TEST(Safetensors, RefusesWrongWrites) {
  EXPECT_FALSE(writeSafetensors("/no/such/folder/a.safetensors", {}).ok());
  const std::string path = temporary("wrong.safetensors");
  EXPECT_FALSE(writeSafetensors(path, {{"a", DType::kF32, {2}, std::vector<char>(4)}}).ok());
  EXPECT_FALSE(writeSafetensors(path, {{"a", DType::kBool, {}, {1}}, {"a", DType::kBool, {}, {1}}}).ok());
}

TEST(Safetensors, RefusesMalformedFiles) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_TRUE(opened(withHeader(good, 8)).ok()) << opened(withHeader(good, 8));
  const auto entry = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string f32 = "\"F32\"";
  const std::vector<std::string> malformed = {
      "",
      "short",
      std::string(8, '\xFF'),
      withHeader(good, 8).substr(0, 20),
      withHeader(good, 7),
      withHeader(good, 9),
      withHeader("", 0),
      withHeader("[]", 0),
      withHeader("{", 0),
      withHeader(good + "x", 8),
      withHeader(R"({"a":3})", 8),
      withHeader(R"({"a":{}})", 8),
      withHeader(entry("\"F33\"", "[2]", "[0,8]"), 8),
      withHeader(entry("4", "[2]", "[0,8]"), 8),
      withHeader(entry(f32, "[3]", "[0,8]"), 8),
      withHeader(entry(f32, "[-2]", "[0,8]"), 8),
      withHeader(entry(f32, "[2.0]", "[0,8]"), 8),
      withHeader(entry(f32, "2", "[0,8]"), 8),
      withHeader(entry(f32, "[4611686018427387904,4]", "[0,8]"), 8),
      withHeader(entry(f32, "[18446744073709551616]", "[0,8]"), 8),
      withHeader(entry(f32, "[2]", "[8,0]"), 8),
      withHeader(entry(f32, "[2]", "[0,8,8]"), 8),
      withHeader(entry(f32, "[2]", "[8,16]"), 16),
      withHeader(entry(f32, "[2]", "[-8,0]"), 8),
      withHeader(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
          12),
      withHeader(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
          16),
      withHeader(std::string(100000, '['), 0),
  };
  for (size_t i = 0; i < malformed.size(); ++i) {
    const absl::Status status = opened(malformed[i]);
    EXPECT_FALSE(status.ok()) << "case " << i;
    EXPECT_NE(std::string(status.message()).find("case.safetensors"), std::string::npos) << status;
  }
  EXPECT_EQ(SafetensorsFile::open("/no/such/file").status().code(), absl::StatusCode::kNotFound);
}

std::string errorOf(const std::string& bytes) {
  return std::string(opened(bytes).message());
}

TEST(Safetensors, ErrorsSayWhatStandsWhere) {
  const auto a = [](const std::string& entry) { return withHeader("{\"a\":{" + entry + "}}", 8); };
  const std::string rest = R"("dtype":"F32","data_offsets":[0,8])";
  using ::testing::HasSubstr;
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[[2]])")), HasSubstr("tensor 'a': shape has a list"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[{}])")), HasSubstr("tensor 'a': shape has an object"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[null])")), HasSubstr("tensor 'a': shape has null"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[2,"3"])")), HasSubstr("tensor 'a': shape has '3'"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[-2])")), HasSubstr("tensor 'a': shape has -2"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[2],"stride":[1])")), HasSubstr("tensor 'a' has an unknown entry 'stride'"));
  EXPECT_THAT(errorOf(a(rest + R"(,"shape":[2],"shape":[2])")), HasSubstr("tensor 'a' names 'shape' twice"));
  EXPECT_THAT(errorOf(a(rest)), HasSubstr("tensor 'a' lacks dtype, shape or data_offsets"));
  EXPECT_THAT(errorOf(a(R"("dtype":["F32"])")), HasSubstr("tensor 'a': dtype has a list"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":[1]})", 0)), HasSubstr("tensor 'a' is a list; it must be an object"));
  EXPECT_THAT(errorOf(withHeader(R"({"a":1,)", 0)), HasSubstr("tensor 'a' is 1; it must be an object"));
  EXPECT_THAT(errorOf(withHeader(R"({"\u000a":1})", 0)), HasSubstr(R"(tensor '\n' is 1)"));
  EXPECT_THAT(errorOf(withHeader("{\"a\xff\":1}", 0)), HasSubstr("the header is no JSON at byte 11"));
  const std::string noText = errorOf(withHeader("{\"a\xff\":1}", 0));
  EXPECT_EQ(noText.find('\xff'), std::string::npos) << "an error is text that can be printed";
  std::string wide;
  for (int i = 0; i < 60; ++i) {
    wide += "\u00e4";
  }
  EXPECT_THAT(errorOf(withHeader("{\"x" + wide + "\":1}", 0)), HasSubstr("\u00e4...' is 1")) << "cut between letters";
  EXPECT_THAT(errorOf(withHeader("\xEF\xBB\xBF{}", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(errorOf(withHeader("{}x", 0)), HasSubstr("the header is no JSON at byte 10"));
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) {
    ones += ",1";
  }
  EXPECT_THAT(errorOf(a(R"("dtype":"F32","shape":[)" + ones + "]")), HasSubstr("shape has more than 64 entries"));
  const uint64_t huge = uint64_t{1} << 62;
  EXPECT_THAT(errorOf(std::string(reinterpret_cast<const char*>(&huge), 8) + "{}"),
              HasSubstr("byte 0 says the header has 4611686018427387904 bytes, the file has 2 after it"));
}

TEST(Safetensors, MetadataAreTexts) {
  using ::testing::HasSubstr;
  EXPECT_TRUE(opened(withHeader(R"({"__metadata__":{"format":"pt","__metadata__":""}})", 0)).ok());
  EXPECT_TRUE(opened(withHeader(R"({"__metadata__":{}})", 0)).ok());
  EXPECT_THAT(errorOf(withHeader(R"({"__metadata__":["pt"]})", 0)), HasSubstr("'__metadata__' is a list"));
  EXPECT_THAT(errorOf(withHeader(R"({"__metadata__":"pt"})", 0)), HasSubstr("'__metadata__' is 'pt'"));
  EXPECT_THAT(errorOf(withHeader(R"({"__metadata__":{"step":7}})", 0)),
              HasSubstr("'__metadata__': 'step' is 7; metadata are texts"));
  EXPECT_THAT(errorOf(withHeader(R"({"__metadata__":{"a":{"b":"c"}}})", 0)), HasSubstr("'a' is an object"));
  EXPECT_THAT(errorOf(withHeader(R"({"__metadata__":{"a":"b","a":"c"}})", 0)), HasSubstr("names 'a' twice"));
}

// Two million brackets: whoever reads, prints or destroys such a value by recursion runs out of stack.
TEST(Safetensors, NestingCostsNoStack) {
  const std::string open(2'000'000, '[');
  const std::string close(2'000'000, ']');
  const std::string before = R"({"a":{"dtype":"F32","data_offsets":[0,8],"shape":)";
  const std::string message = errorOf(withHeader(before + open + close + "}}", 8));
  EXPECT_THAT(message, ::testing::HasSubstr("tensor 'a': shape has a list"));
  EXPECT_LT(message.size(), 300u);
}

// A header of very many names, a program that knows none of them: work that grows with the square of their number would
// take hours.
TEST(Safetensors, ManyNames) {
  constexpr int kNames = 200'000;
  std::string json = "{";
  for (int i = 0; i < kNames; ++i) {
    json += (i > 0 ? ",\"layer." : "\"layer.") + std::to_string(i) +
            R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  const std::string path = temporary("case.safetensors");
  ASSERT_TRUE(opened(withHeader(json + "}", 0)).ok());
  const auto file = SafetensorsFile::open(path);
  EXPECT_EQ(file->entries().size(), size_t{kNames});
  EXPECT_THAT(std::string(file->read("layer.l99999").status().message()),
              ::testing::HasSubstr("no tensor 'layer.l99999' among 200000; the nearest is 'layer.199999'"));
  EXPECT_THAT(errorOf(withHeader(json + R"(,"layer.7":{}})", 0)), ::testing::HasSubstr("names 'layer.7' twice"));
}

TEST(Safetensors, ReadsWhatWasOpened) {
  const std::string path = temporary("replaced.safetensors");
  const auto write = [&](char value) {
    return writeSafetensors(path, {{"a", DType::kF32, {2}, std::vector<char>(8, value)}});
  };
  ASSERT_TRUE(write('x').ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok());
  // Another file takes the path: the one that was opened is still there.
  ASSERT_TRUE(write('y').ok());
  EXPECT_EQ(file->read("a").value(), std::vector<char>(8, 'x'));
  // The file itself is cut, or written to.
  const auto again = SafetensorsFile::open(path);
  ASSERT_TRUE(again.ok());
  const std::string bytes = contents(path);
  std::filesystem::resize_file(path, bytes.size() - 1);
  EXPECT_THAT(std::string(again->read("a").status().message()), ::testing::HasSubstr("truncated since it was opened"));
  std::filesystem::resize_file(path, bytes.size());
  EXPECT_THAT(std::string(again->read("a").status().message()), ::testing::HasSubstr("written to since it was opened"));
  EXPECT_THAT(std::string(SafetensorsFile::open(testing::TempDir()).status().message()),
              ::testing::HasSubstr("a folder or a device"));
}

TEST(Safetensors, DamageNeverCrashes) {
  const std::string good =
      withHeader(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(opened(good.substr(0, length)).ok()) << length;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    opened(damaged).IgnoreError();  // some flips only rename a tensor
  }
}

TEST(Safetensors, ReadsAndCopiesRealFiles) {
  WEFT_REQUIRE_DATA("reference/gpt.init.safetensors");
  int files = 0;
  size_t named = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEFT_DATA_DIR)) {
    if (entry.path().extension() != ".safetensors") {
      continue;
    }
    ++files;
    const auto file = SafetensorsFile::open(entry.path().string());
    ASSERT_TRUE(file.ok()) << file.status();
    named += file->entries().size() + file->unsupported().size();  // one of the files is legally empty
    std::vector<SafetensorsTensor> tensors;
    for (const auto& [name, found] : file->entries()) {
      tensors.push_back({name, found.type, found.shape, file->read(name).value()});
    }
    const std::string copy = temporary("copy.safetensors");
    ASSERT_TRUE(writeSafetensors(copy, tensors).ok());
    const auto again = SafetensorsFile::open(copy);
    ASSERT_TRUE(again.ok()) << again.status();
    for (const SafetensorsTensor& tensor : tensors) {
      EXPECT_EQ(again->read(tensor.name).value(), tensor.data) << entry.path() << " " << tensor.name;
    }
  }
  EXPECT_GT(files, 8);
  EXPECT_GT(named, 100u);
}

// A program on three ranks with a padded parameter, a parameter of another shape in files, and some state.
absl::StatusOr<std::unique_ptr<Executor>> program(const std::string& first = "fc.weight") {
  PlanBuilder b(3, 1);
  b.named(first, plan::TENSOR_PARAMETER, b.buffer(plan::PARAMETER, DType::kF32, {2, 2}), {5, 2}, 0);
  plan::NamedTensor* bias =
      b.named("fc.bias", plan::TENSOR_PARAMETER, b.buffer(plan::PARAMETER, DType::kF32, {6}), {6}, -1);
  bias->clear_file_shape();
  bias->add_file_shape(2);
  bias->add_file_shape(3);
  b.named("step", plan::TENSOR_STATE, b.buffer(plan::STATE, DType::kI64, {}), {}, -1);
  return Executor::create(b.build(), testKernels());
}

TEST(Parameters, SavedFilesLoadAgain) {
  for (const Saved what : {Saved::kParameters, Saved::kAll}) {
    auto from = program();
    ASSERT_TRUE(from.ok()) << from.status();
    const std::vector<float> weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const std::vector<float> bias = {-1, -2, -3, -4, -5, -6};
    const int64_t step = 77;
    ASSERT_TRUE((*from)->writeTensor("fc.weight", weight.data(), 40).ok());
    ASSERT_TRUE((*from)->writeTensor("fc.bias", bias.data(), 24).ok());
    ASSERT_TRUE((*from)->writeTensor("step", &step, 8).ok());
    const std::string path = temporary("parameters.safetensors");
    ASSERT_TRUE(saveParameters(**from, path, what).ok());
    EXPECT_EQ(SafetensorsFile::open(path)->entries().at("fc.bias").shape, (std::vector<int64_t>{2, 3}));
    auto to = program();
    const absl::Status loaded = loadParameters(**to, path, what);
    ASSERT_TRUE(loaded.ok()) << loaded;
    for (const char* name : {"fc.weight", "fc.bias"}) {
      EXPECT_EQ((*to)->readTensor(name).value(), (*from)->readTensor(name).value());
    }
    EXPECT_EQ((*to)->readScalar("step").value(), what == Saved::kAll ? 77 : 0);
  }
}

TEST(Parameters, ErrorsNameWhatDoesNotFit) {
  auto from = program("fc.weigth");
  const std::string path = temporary("misfit.safetensors");
  ASSERT_TRUE(saveParameters(**from, path).ok());
  auto to = program();
  const std::string names(loadParameters(**to, path).message());
  EXPECT_NE(names.find("lacks 'fc.weight' (nearest: 'fc.weigth')"), std::string::npos) << names;
  EXPECT_NE(names.find("does not have 'fc.weigth' (nearest: 'fc.weight')"), std::string::npos) << names;

  ASSERT_TRUE(writeSafetensors(path, {{"fc.weight", DType::kF32, {2, 5}, std::vector<char>(40)},
                                      {"fc.bias", DType::kF32, {2, 3}, std::vector<char>(24)}})
                  .ok());
  const std::string shapes(loadParameters(**to, path).message());
  EXPECT_NE(shapes.find("'fc.weight' is f32 [2, 5] in the file, f32 [5, 2] in the program"), std::string::npos)
      << shapes;
  EXPECT_FALSE(saveParameters(**to, "/no/such/folder/a").ok());
}

// Many names on both sides, none of which the other side has.
TEST(Parameters, ManyStrangeNames) {
  constexpr int kNames = 50'000;
  PlanBuilder b(1, 1);
  const uint32_t buffer = b.buffer(plan::PARAMETER, DType::kF32, {1});
  std::string json = "{";
  for (int i = 0; i < kNames; ++i) {
    b.named("own." + std::to_string(i), plan::TENSOR_PARAMETER, buffer, {1}, -1);
    json += (i > 0 ? ",\"strange." : "\"strange.") + std::to_string(i) +
            R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  const auto executor = Executor::create(b.build(), testKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE(opened(withHeader(json + "}", 0)).ok());
  const std::string message(loadParameters(**executor, temporary("case.safetensors")).message());
  EXPECT_THAT(message, ::testing::HasSubstr("the file lacks 'own.0' (nearest: 'strange.0')"));
  EXPECT_THAT(message, ::testing::HasSubstr("and 49995 more; the program does not have"));
}

TEST(Names, NearestByEdits) {
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(nearestName("wieght", {"bias", "weight"}), "weight");
  EXPECT_EQ(nearestName("x", {}), "");
  EXPECT_EQ(nearestName("x", {""}), "");
  // Of equally near ones the first.
  EXPECT_EQ(nearestName("cat", {"dog", "car", "bat", "cut"}), "car");
  EXPECT_EQ(nearestName("abcd", {"dcba", "abxy"}), "abxy");
  // Only the beginning of very long names is compared.
  EXPECT_EQ(nearestName(std::string(1 << 20, 'a'), {std::string(1 << 20, 'b'), "a"}), "a");
}

TEST(TextDataset, NumbersCharactersByCodePoint) {
  const std::string text = "hällo €\n𝄞 wörld";
  const auto data = TextDataset::fromText(text, "text", {.window = 2, .trainFraction = 0.5});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(std::is_sorted(data->vocabulary().begin(), data->vocabulary().end()));
  EXPECT_EQ(data->vocabulary().front(), uint32_t{'\n'});
  EXPECT_EQ(data->vocabulary().back(), 0x1D11Eu);
  EXPECT_EQ(data->decode(data->encode(text).value()), text);
  const std::string message(data->encode("hallo").status().message());
  EXPECT_NE(message.find("U+0061 at place 1"), std::string::npos) << message;
}

TEST(TextDataset, ReadsBytes) {
  std::string text = "a\xFF\x80z";
  EXPECT_FALSE(TextDataset::fromText(text, "text", {.window = 1}).ok());
  const auto data = TextDataset::fromText(text, "text", {.tokens = TokenKind::kByte, .window = 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->vocabularySize(), 256);
  EXPECT_EQ(data->encode(text).value(), (std::vector<int32_t>{'a', 255, 128, 'z'}));
  EXPECT_EQ(data->decode({'a', 255, 128, 'z'}), text);
}

TEST(TextDataset, RefusesWhatIsNoUtf8) {
  for (const char* text : {"\x80", "a\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80",
                           "\xE0\x80\xAF", "\xC3("}) {
    EXPECT_FALSE(decodeUtf8(text, "text").ok()) << text;
  }
  const std::string message(decodeUtf8("ab\xFF", "a.txt").status().message());
  EXPECT_NE(message.find("a.txt: byte 0xFF at offset 2"), std::string::npos) << message;
}

TEST(TextDataset, WindowsAreShiftedByOneAndCoverARound) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(static_cast<char>(' ' + i % 90));
  }
  const auto data = TextDataset::fromText(text, "text", {.window = 7, .seed = 5, .trainFraction = 0.8});
  ASSERT_TRUE(data.ok());
  ASSERT_EQ(data->trainPlaces(), 73);
  std::vector<int64_t> rounds[2];
  for (int64_t index = 0; index < 2 * 73; ++index) {
    rounds[index / 73].push_back(data->trainPlace(index));
  }
  EXPECT_NE(rounds[0], rounds[1]);
  for (const auto& round : rounds) {
    const std::set<int64_t> places(round.begin(), round.end());
    EXPECT_EQ(places.size(), 73u);
    EXPECT_EQ(*places.rbegin(), 72);
    EXPECT_FALSE(std::is_sorted(round.begin(), round.end()));
  }
  std::vector<int32_t> x(3 * 7);
  std::vector<int32_t> y(3 * 7);
  data->trainBatch(4, 3, x.data(), y.data());
  for (int64_t row = 0; row < 3; ++row) {
    const int64_t place = data->trainPlace(4 * 3 + row);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(x[row * 7 + i], data->trainTokens()[place + i]);
      EXPECT_EQ(y[row * 7 + i], data->trainTokens()[place + i + 1]);
    }
  }
  const auto other = TextDataset::fromText(text, "text", {.window = 7, .seed = 6, .trainFraction = 0.8});
  EXPECT_NE(other->trainPlace(0) * 1000 + other->trainPlace(1), data->trainPlace(0) * 1000 + data->trainPlace(1));

  ASSERT_EQ(data->validationWindows(), 2);  // 20 tokens: 19 have a next one
  ASSERT_TRUE(data->validationBatch(0, 2, x.data(), y.data()).ok());
  EXPECT_EQ(x[0], data->validationTokens()[0]);
  EXPECT_EQ(y[13], data->validationTokens()[14]);
  EXPECT_FALSE(data->validationBatch(1, 2, x.data(), y.data()).ok());
}

TEST(TextDataset, ExplainsTooLittleText) {
  EXPECT_FALSE(TextDataset::fromText("", "a.txt", {}).ok());
  const std::string message(TextDataset::fromText("0123456789", "a.txt", {.window = 9}).status().message());
  EXPECT_NE(message.find("a.txt: the training part has 9 of 10 tokens, a window of 9 needs at least 10"),
            std::string::npos)
      << message;
  EXPECT_FALSE(TextDataset::fromText("0123456789", "a.txt", {.window = 0}).ok());
  EXPECT_FALSE(TextDataset::fromText("0123456789", "a.txt", {.window = 1, .trainFraction = 1.5}).ok());
  EXPECT_EQ(TextDataset::open("/no/such/file", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(TextDataset::open(testing::TempDir(), {}).ok());
}

TEST(TextDataset, ReadsARealText) {
  WEFT_REQUIRE_DATA("tinyshakespeare/input.txt");
  const auto data = TextDataset::open(weft::tests::dataDirectory() + "/tinyshakespeare/input.txt", {.window = 64});
  ASSERT_TRUE(data.ok()) << data.status();
  // As published with the text: 65 distinct characters, 1,003,854 and 111,540 tokens.
  EXPECT_EQ(data->vocabularySize(), 65);
  EXPECT_EQ(data->trainTokens().size(), 1003854u);
  EXPECT_EQ(data->validationTokens().size(), 111540u);
  EXPECT_EQ(data->validationWindows(), (111540 - 1) / 64);
}

}  // namespace
}  // namespace weft
