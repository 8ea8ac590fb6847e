// Byte-pair encoding: GPT-2's vocabulary against known answers, and small ones made here.
#include "runtime/io/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/base/read_text.h"
#include "runtime/base/utf8.h"
#include "runtime/io/text_dataset.h"
#include "tests/support/byte_pairs.h"
#include "tests/support/data.h"
#include "tests/support/files.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Vocabulary : testing::BytePairs {
  using BytePairs::BytePairs;
  absl::StatusOr<BpeTokenizer> read() const {
    return BpeTokenizer::fromTexts({"d/encoder.json", encoder.dump()}, {"d/vocab.bpe", merges});
  }
  std::string error() const { return std::string(read().status().message()); }
};

// Ids of the 256 bytes: 33..126 first, a space is the 33rd of those that come last.
constexpr int32_t kSpace = 188 + 32;
constexpr int32_t idOf(char c) {
  return c - 33;
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = endOfWord(text, at);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(EndOfWord, FollowsThePattern) {
  EXPECT_THAT(wordsOf("I'll say: they'Ve 12kg"), ElementsAre("I", "'ll", " say", ":", " they", "'", "Ve", " 12", "kg"));
  EXPECT_THAT(wordsOf("''s '''t x''"), ElementsAre("''", "s", " '''", "t", " x", "''"));
  // The last white space before a word is left to it; only a space joins it.
  EXPECT_THAT(wordsOf("a   b\n\n c\t\td \n"), ElementsAre("a", "  ", " b", "\n\n", " c", "\t", "\t", "d", " \n"));
  EXPECT_THAT(wordsOf("  "), ElementsAre("  "));
  EXPECT_THAT(wordsOf(" \n?!"), ElementsAre(" ", "\n", "?!"));
}

TEST(EndOfWord, KnowsUnicode) {
  EXPECT_THAT(wordsOf("\u00fcber \u4e2d\u6587\u0663\u00bd\u216b."),
              ElementsAre("\u00fcber", " \u4e2d\u6587", "\u0663\u00bd\u216b", "."));
  // A combining mark is no letter.
  EXPECT_THAT(wordsOf("e\u0301a"), ElementsAre("e", "\u0301", "a"));
  for (const char* space : {"\t", "\v", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u3000"}) {
    EXPECT_THAT(wordsOf(absl::StrCat("!", space, "!")), ElementsAre("!", space, "!"));
  }
  for (const char* other : {"\x1c", "\u180e", "\u200b", "\u2060", "\ufeff"}) {
    EXPECT_EQ(wordsOf(absl::StrCat("!", other, "!")).size(), 1u) << other;
  }
}

TEST(EndOfWord, BytesThatAreNoUtf8AreNoLetters) {
  EXPECT_THAT(wordsOf("a\xFF\xC3 \x80z"), ElementsAre("a", "\xFF\xC3", " \x80", "z"));
  EXPECT_THAT(wordsOf("\xED\xA0\x80!\xE4\xB8"), ElementsAre("\xED\xA0\x80!\xE4\xB8"));
}

TEST(BpeTokenizer, JoinsTheLowestRankFirst) {
  const auto tokenizer = Vocabulary("#version: 0.2\nb c\na b\nbc d\nab bc\n\u0120 a\n").read();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->vocabularySize(), 261);
  const int32_t bc = 256, ab = 257, bcd = 258, abbc = 259, spaceA = 260;
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(idOf('a'), bc));
  EXPECT_THAT(tokenizer->encode("abbc"), ElementsAre(abbc));
  EXPECT_THAT(tokenizer->encode("abcd bcabd"), ElementsAre(idOf('a'), bcd, kSpace, bc, ab, idOf('d')));
  EXPECT_THAT(tokenizer->encode(" a"), ElementsAre(spaceA));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
  EXPECT_EQ(tokenizer->decode({spaceA, abbc, kSpace}).value(), " aabbc ");
}

TEST(BpeTokenizer, JoinsTheLeftmostOfEqualRanks) {
  const auto tokenizer = Vocabulary("a a\naa aa\n").read();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const int32_t aa = 256, aaaa = 257;
  EXPECT_THAT(tokenizer->encode("aaa"), ElementsAre(aa, idOf('a')));
  EXPECT_THAT(tokenizer->encode("aaaaaaa"), ElementsAre(aaaa, aa, idOf('a')));
}

// The same by looking through all pairs again for each merge.
std::vector<std::string> mergedPlainly(std::vector<std::string> pieces,
                                       const std::vector<std::pair<std::string, std::string>>& merges) {
  for (;;) {
    size_t best = merges.size();
    size_t place = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      const size_t rank = std::find(merges.begin(), merges.end(), std::pair(pieces[i], pieces[i + 1])) - merges.begin();
      if (rank < best) {
        best = rank;
        place = i;
      }
    }
    if (best == merges.size()) {
      return pieces;
    }
    pieces[place] += pieces[place + 1];
    pieces.erase(pieces.begin() + static_cast<int64_t>(place) + 1);
  }
}

// Vocabularies whose ranks are in no order: what was joined may be joined on at a lower rank.
TEST(BpeTokenizer, MergesAsAPlainSearchDoes) {
  std::mt19937 random(7);
  const auto letters = [&](size_t most) {
    std::string text;
    for (size_t length = 1 + random() % most; text.size() < length;) {
      text += static_cast<char>('a' + random() % 3);
    }
    return text;
  };
  for (int round = 0; round < 40; ++round) {
    Vocabulary vocabulary;
    std::vector<std::string> names = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    while (merges.size() < 12) {
      const std::pair<std::string, std::string> pair = {names[random() % names.size()], names[random() % names.size()]};
      if (std::find(merges.begin(), merges.end(), pair) == merges.end()) {
        merges.push_back(pair);
        names.push_back(pair.first + pair.second);
      }
    }
    std::shuffle(merges.begin(), merges.end(), random);
    for (const auto& [left, right] : merges) {
      vocabulary.merges += absl::StrCat(left, " ", right, "\n");
      if (!vocabulary.encoder.contains(left + right)) {
        vocabulary.add(left + right);
      }
    }
    const auto tokenizer = vocabulary.read();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (int i = 0; i < 20; ++i) {
      const std::string text = letters(40);
      std::vector<std::string> bytes;
      for (const char c : text) {
        bytes.emplace_back(1, c);
      }
      std::vector<int32_t> expected;
      for (const std::string& piece : mergedPlainly(bytes, merges)) {
        expected.push_back(vocabulary.encoder[piece].get<int32_t>());
      }
      EXPECT_EQ(tokenizer->encode(text), expected) << text << "\n" << vocabulary.merges;
    }
  }
}

// A word of the length of the text; by looking through all pairs it would take hours.
TEST(BpeTokenizer, TakesLongWords) {
  const auto tokenizer = Vocabulary("a a\naa aa\naaaa aaaa\n").read();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->encode(std::string(1 << 20, 'a')), std::vector<int32_t>(1 << 17, 258));
}

std::string randomText(std::mt19937& random, bool codePoints) {
  std::string text;
  for (size_t length = random() % 60; length > 0; --length) {
    const uint32_t any = codePoints ? random() % 0x110000 : random() % 256;
    const uint32_t few = random() % 2 == 0 ? any : std::string("ab \n'lts1\xC3\xA4")[random() % 11] & 0xFF;
    if (!codePoints) {
      text += static_cast<char>(few);
    } else if (few < 0xD800 || few > 0xDFFF) {
      appendUtf8(few, &text);
    }
  }
  return text;
}

void checkRoundTrips(const BpeTokenizer& tokenizer) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = randomText(random, i % 2 == 0);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(ids).value(), text);
    EXPECT_LE(ids.size(), text.size());
  }
}

TEST(BpeTokenizer, GivesBackAnyBytes) {
  const auto tokenizer = Vocabulary("l l\na b\n\u00c3 \u00a4\n\u0120 a\n\u0120a b\n").read();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  checkRoundTrips(*tokenizer);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(all)).value(), all);
}

TEST(BpeTokenizer, RefusesIdsOutside) {
  const auto tokenizer = Vocabulary("a b\n").read();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(std::string(tokenizer->decode({5, 257}).status().message()),
            "id 257 at place 1; the vocabulary has ids 0 to 256");
  EXPECT_FALSE(tokenizer->decode({-1}).ok());
}

TEST(BpeTokenizer, RefusesVocabulariesThatAreWrong) {
  const auto with = [](const char* name, const Json& id) {
    Vocabulary vocabulary;
    vocabulary.encoder[name] = id;
    return vocabulary.error();
  };
  EXPECT_EQ(with("ab", 7), R"(d/encoder.json: "(" and "ab" both have id 7)");
  EXPECT_EQ(with("ab", 300), R"(d/encoder.json: "ab" has id 300; the ids of 257 tokens are 0 to 256)");
  EXPECT_EQ(with("ab", -1), R"(d/encoder.json: "ab": found -1, expected an integer of at least 0)");
  EXPECT_EQ(with("a b", 256), R"(d/encoder.json: "a b": U+0020 stands for no byte; those that do are below U+0144)");
  Vocabulary less;
  less.encoder.erase("\u0120");
  less.encoder["ab"] = kSpace;
  EXPECT_EQ(less.error(), R"(d/encoder.json: byte 32 has no token; "\u0120" should be there)");
  EXPECT_THAT(std::string(BpeTokenizer::fromTexts({"e", "{\"a\":"}, {"v", ""}).status().message()),
              HasSubstr("e: no JSON: "));
}

TEST(BpeTokenizer, RefusesMergesThatAreWrong) {
  const auto with = [](const std::string& lines, const std::string& more = "ab") {
    Vocabulary vocabulary;
    vocabulary.merges = lines;
    vocabulary.add(more);
    return vocabulary.error();
  };
  EXPECT_EQ(with("a b\n"), "");
  EXPECT_EQ(with("a b"), "") << "the last line may lack its end";
  for (const char* line : {"", "ab", "a b c", " b", "a ", "a  b"}) {
    EXPECT_EQ(
        with(absl::StrCat("#version: 0.2\n", line, "\na b\n")),
        absl::StrCat("d/vocab.bpe:2: \"", line, "\" is no pair of tokens: expected two, with one space between them"));
  }
  EXPECT_EQ(with("a b\nb \u20ac\n"), R"(d/vocab.bpe:2: "\u20ac" has no id in d/encoder.json)");
  EXPECT_EQ(with("a b\r\n"), R"(d/vocab.bpe:1: "b\r" has no id in d/encoder.json)");
  EXPECT_EQ(with("b a\n"), R"(d/vocab.bpe:1: "ba", the whole of "b a", has no id in d/encoder.json)");
  EXPECT_EQ(with("#version: 0.2\na b\na b\n"), R"(d/vocab.bpe:3: "a b" stands in line 2, too)");
  // An error is text that can be printed.
  EXPECT_EQ(with("\xFF\n").find('\xFF'), std::string::npos);
}

TEST(BpeTokenizer, ReadsAFolder) {
  const testing::TemporaryDirectory folder;
  const Vocabulary vocabulary("a b\n");
  const auto missing = [&] { return std::string(BpeTokenizer::open(folder.path()).status().message()); };
  EXPECT_THAT(missing(), HasSubstr(folder / "encoder.json"));
  std::ofstream(folder / "encoder.json") << vocabulary.encoder;
  EXPECT_THAT(missing(), HasSubstr(folder / "vocab.bpe"));
  std::ofstream(folder / "vocab.bpe") << vocabulary.merges;
  const auto tokenizer = BpeTokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(256));
}

TEST(BpeTokenizer, MakesTokensOfADataset) {
  const auto tokenizer = std::make_shared<const BpeTokenizer>(Vocabulary("a b\n").read().value());
  TextDatasetOptions options = {
      .tokens = TokenKind::kBytePair, .tokenizer = tokenizer, .window = 2, .trainFraction = 0.6};
  const auto data = TextDataset::fromText(
      "ab\xFF"
      "ababa",
      "text", options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->vocabularySize(), 257);
  EXPECT_TRUE(data->vocabulary().empty());
  EXPECT_THAT(data->trainTokens(), ElementsAre(256, tokenizer->encode("\xFF")[0], 256));
  EXPECT_THAT(data->validationTokens(), ElementsAre(256, idOf('a')));
  EXPECT_EQ(data->encode("new text").value(), tokenizer->encode("new text"));
  EXPECT_EQ(data->decode({256, 257, -1, idOf('z')}), "ab??z");

  options.tokenizer = nullptr;
  EXPECT_THAT(std::string(TextDataset::fromText("abc", "text", options).status().message()),
              HasSubstr("there is no tokenizer"));
  options = {.tokens = TokenKind::kByte, .tokenizer = tokenizer, .window = 1};
  EXPECT_THAT(std::string(TextDataset::fromText("abc", "text", options).status().message()),
              HasSubstr("tokens are no byte pairs"));
}

// GPT-2's own vocabulary; a test without it skips.
class Gpt2Bpe : public ::testing::Test {
 protected:
  void SetUp() override {
    WEFT_REQUIRE_DATA("gpt2-bpe/known_encodings.json");
    absl::StatusOr<BpeTokenizer> tokenizer = BpeTokenizer::open(tests::dataDirectory() + "/gpt2-bpe");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    const auto text = readText(tests::dataDirectory() + "/gpt2-bpe/known_encodings.json");
    ASSERT_TRUE(text.ok()) << text.status();
    known_ = parseJson(*text).value();
  }

  std::optional<BpeTokenizer> tokenizer_;
  Json known_;
};

TEST_F(Gpt2Bpe, HasItsStructure) {
  EXPECT_EQ(tokenizer_->vocabularySize(), 50257);
  EXPECT_EQ(tokenizer_->bytesOf(0), "!");
  EXPECT_EQ(tokenizer_->bytesOf(220), " ");
  EXPECT_EQ(tokenizer_->bytesOf(50255), " gazed");
  EXPECT_EQ(tokenizer_->bytesOf(50256), "<|endoftext|>");
}

TEST_F(Gpt2Bpe, GivesTheKnownAnswers) {
  ASSERT_EQ(known_["cases"].size(), 28u);
  for (const Json& known : known_["cases"]) {
    const std::string text = known["text"].get<std::string>();
    const std::vector<int32_t> ids = known["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer_->encode(text), ids) << text;
    const std::string decoded = tokenizer_->decode(ids).value();
    std::string hex;
    for (const char c : decoded) {
      absl::StrAppend(&hex, absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
    EXPECT_EQ(hex, known["utf8_hex"].get<std::string>());
  }
}

TEST_F(Gpt2Bpe, GivesBackAnyBytes) {
  checkRoundTrips(*tokenizer_);
}

// Of the ids as little-endian numbers of 16 bits, by the program of that name.
std::string sha256(const std::vector<int32_t>& ids) {
  const testing::TemporaryDirectory folder;
  std::ofstream file(folder / "ids", std::ios::binary);
  for (const int32_t id : ids) {
    file << static_cast<char>(id & 0xFF) << static_cast<char>(id >> 8);
  }
  file.close();
  FILE* pipe = popen(("sha256sum " + folder / "ids").c_str(), "r");
  char sum[65] = {};
  const size_t read = fread(sum, 1, 64, pipe);
  pclose(pipe);
  return std::string(sum, read);
}

TEST_F(Gpt2Bpe, EncodesTinyShakespeare) {
  WEFT_REQUIRE_DATA("tinyshakespeare/input.txt");
  const std::string text = readText(tests::dataDirectory() + "/tinyshakespeare/input.txt").value();
  const Json& known = known_["tinyshakespeare"];
  const size_t split = known["train_split_chars"].get<size_t>();  // all characters are ASCII
  const std::vector<int32_t> train = tokenizer_->encode(text.substr(0, split));
  const std::vector<int32_t> validation = tokenizer_->encode(text.substr(split));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> whole = tokenizer_->encode(text);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("encoded %zu bytes in %.3f s\n", text.size(), seconds.count());
  EXPECT_EQ(train.size(), 301966u);
  EXPECT_EQ(validation.size(), 36059u);
  EXPECT_EQ(whole.size(), 338025u);
  EXPECT_EQ(sha256(train), known["sha256_u16le_train"].get<std::string>());
  EXPECT_EQ(sha256(validation), known["sha256_u16le_val"].get<std::string>());
  EXPECT_EQ(sha256(whole), known["sha256_u16le_whole"].get<std::string>());
  EXPECT_EQ(tokenizer_->decode(whole).value(), text);
}

}  // namespace
}  // namespace weft
