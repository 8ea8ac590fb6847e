// Byte-level byte-pair encoding, as of GPT-2 (Radford et al., "Language models are unsupervised multitask learners",
// 2019, section 2.2; merges: Sennrich et al., "Neural machine translation of rare words with subword units", 2016).
//
// A text is cut into words (below), a word into bytes, each byte a token; then the pair of neighbours of the lowest
// rank is joined, the leftmost of equal ones first, until no pair has a rank. A vocabulary is two files:
//
//   encoder.json  {"!": 0, ..., "\u0120the": 262, ...}: the id of each token, 0 and on without a gap
//   vocab.bpe     "#version: 0.2", which may be missing, then a pair a line, "\u0120t he"; rank 0 is the first
//
// In both a byte is written as a character: those of 33..126, 161..172 and 174..255 as the code point of the same
// number, the others, ascending, as U+0100 and on (a space is U+0120).
//
// Any bytes are encoded, and decoding gives them back. A byte that is no part of UTF-8 counts as a character that is no
// letter, number or white space. Names as <|endoftext|> in a text are ordinary characters.
//
//   WEFT_ASSIGN_OR_RETURN(const BpeTokenizer tokenizer, BpeTokenizer::open("gpt2-bpe"));
//   tokenizer.encode("Hello world");  // 15496, 995
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

class BpeTokenizer {
 public:
  struct File {
    std::string path;  // for errors
    std::string text;
  };

  // Reads encoder.json and vocab.bpe of a folder. Errors name the file, the line or token, and what is wrong: a file
  // that cannot be read, ids that stand twice or leave a gap, a byte without a token, a line that is no pair, a pair
  // that stands twice or whose parts or whole have no id.
  static absl::StatusOr<BpeTokenizer> open(const std::string& folder);
  static absl::StatusOr<BpeTokenizer> fromTexts(const File& encoder, const File& merges);

  int64_t vocabularySize() const { return static_cast<int64_t>(tokens_.size()); }
  // What a token stands for; 0 <= id < vocabularySize().
  const std::string& bytesOf(int32_t id) const { return tokens_[id]; }

  std::vector<int32_t> encode(std::string_view text) const;
  // Error: an id outside of the vocabulary.
  absl::StatusOr<std::string> decode(const std::vector<int32_t>& ids) const;

 private:
  BpeTokenizer() = default;

  using IdsOfNames = std::unordered_map<std::string, int32_t>;  // as the files spell tokens

  absl::StatusOr<IdsOfNames> readTokens(const File& encoder);
  absl::Status readMerges(const File& merges, const File& encoder, const IdsOfNames& ids);
  int32_t rankOf(int32_t left, int32_t right) const;
  std::vector<int32_t> mergeWord(std::string_view word) const;

  std::vector<std::string> tokens_;
  std::array<int32_t, 256> byteTokens_ = {};
  std::unordered_map<uint64_t, int32_t> ranks_;  // of pairs
  std::vector<int32_t> joined_;                  // what the pair of a rank becomes
};

// Where the word that begins at `at` ends: the match of GPT-2's pattern there, over Unicode's classes,
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t endOfWord(std::string_view text, size_t at);

}  // namespace weft
