// Text as training data for a language model.
//
// A text becomes a list of tokens. A *window* at place i is T tokens x = [i, i + T) and the tokens one further,
// y = [i + 1, i + T + 1): the model learns to say what comes next. Training batches are windows drawn from one shuffled
// round of all places after another; what step s sees depends on (seed, s) alone, so a run that goes on from a
// checkpoint sees what it would have seen. Validation goes once over whole windows, one behind the other.
//
//   WEFT_ASSIGN_OR_RETURN(TextDataset data, TextDataset::open("input.txt", {.window = 64, .seed = 1}));
//   data.trainBatch(step, batch, x, y);  // int32 [batch, 64] each
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/io/bpe_tokenizer.h"

namespace weft {

enum class TokenKind {
  kCharacter,  // one token per code point (UTF-8), numbered in order of code points among those in the text
  kByte,       // one token per byte, 0..255
  kBytePair    // those of a vocabulary that was made before, runtime/io/bpe_tokenizer.h
};

struct TextDatasetOptions {
  TokenKind tokens = TokenKind::kCharacter;
  std::shared_ptr<const BpeTokenizer> tokenizer;  // of byte pairs, and of those alone
  int64_t window = 64;                            // T
  uint64_t seed = 0;                              // of the shuffle
  double trainFraction = 0.9;                     // the first part of the text trains, the rest validates
};

class TextDataset {
 public:
  // Errors: unreadable file; text that is no UTF-8 where tokens are characters (byte and value named); a training part
  // of at most T tokens; byte pairs without a tokenizer.
  static absl::StatusOr<TextDataset> open(const std::string& path, const TextDatasetOptions& options);
  static absl::StatusOr<TextDataset> fromText(const std::string& text, const std::string& source,
                                              const TextDatasetOptions& options);

  int64_t vocabularySize() const;
  // Code point (or byte) of each token; empty where tokens are byte pairs.
  const std::vector<uint32_t>& vocabulary() const { return vocabulary_; }
  const std::vector<int32_t>& trainTokens() const { return train_; }
  const std::vector<int32_t>& validationTokens() const { return validation_; }

  // Errors: a character that the vocabulary lacks (named with its place).
  absl::StatusOr<std::vector<int32_t>> encode(const std::string& text) const;
  // Tokens outside the vocabulary become '?'.
  std::string decode(const std::vector<int32_t>& tokens) const;

  // Places at which a training window may begin.
  int64_t trainPlaces() const { return static_cast<int64_t>(train_.size()) - options_.window; }
  // Where window `index` of the training order begins: a different place for each index of one round of trainPlaces().
  int64_t trainPlace(int64_t index) const;
  // Fills x and y, [count, window] each, with windows first .. first + count - 1 of the training order; either may be
  // null.
  void trainWindows(int64_t first, int64_t count, int32_t* x, int32_t* y) const;
  // Those of training step `step`: windows step * batch and on.
  void trainBatch(int64_t step, int64_t batch, int32_t* x, int32_t* y) const;

  // Whole windows of the validation part, without overlap.
  int64_t validationWindows() const;
  // Windows first .. first + batch - 1. Error: there are not so many.
  absl::Status validationBatch(int64_t first, int64_t batch, int32_t* x, int32_t* y) const;

 private:
  void copyWindow(const std::vector<int32_t>& tokens, int64_t place, int32_t* x, int32_t* y) const;

  TextDatasetOptions options_;
  std::vector<uint32_t> vocabulary_;  // ascending
  std::vector<int32_t> train_;
  std::vector<int32_t> validation_;
};

// Code points of a UTF-8 text. Error: the byte offset and value where it is not UTF-8.
absl::StatusOr<std::vector<uint32_t>> decodeUtf8(const std::string& text, const std::string& source);

}  // namespace weft
