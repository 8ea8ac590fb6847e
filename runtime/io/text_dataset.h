// Text as tokens and windows for language models.
//
// Tokens are the characters (code points) or bytes of a text. The first part of the text trains, the rest validates. Batch b
// of a run is drawn by counter-based random numbers: row r of step s depends on (seed, s, r) only, so a rank can make
// exactly the rows it holds, and all layouts see the same data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct TextOptions {
  int64_t window = 128;           // tokens of one row
  double validationPart = 0.1;    // the last part of the text
  bool bytes = false;             // tokens are bytes instead of characters
  uint64_t seed = 0;
};

class TextDataset {
 public:
  // Errors: empty text; a part shorter than one window plus one token (both numbers); malformed UTF-8 (its byte).
  static absl::StatusOr<TextDataset> fromText(const std::string& text, const TextOptions& options);
  static absl::StatusOr<TextDataset> fromFile(const std::string& path, const TextOptions& options);

  int64_t vocabulary() const { return static_cast<int64_t>(vocabulary_.size()); }
  int64_t trainTokens() const { return trainTokens_; }

  // Rows [first, first + count) of step `step`: x holds tokens i .. i+T-1, y the same shifted by one; both [count, T].
  void trainRows(int64_t step, int64_t first, int64_t count, int32_t* x, int32_t* y) const;
  // The validation text cut into whole windows, one after another.
  int64_t validationWindows() const;
  // Window `index`; an index past the end fills x with token 0 and y with `ignore`.
  void validationRow(int64_t index, int32_t ignore, int32_t* x, int32_t* y) const;

  // Tokens to text and back. Unknown characters become token 0.
  std::string decode(const std::vector<int32_t>& tokens) const;
  std::vector<int32_t> encode(const std::string& text) const;

 private:
  TextOptions options_;
  std::vector<std::string> vocabulary_;  // token to text, by code point
  std::vector<int32_t> tokens_;
  int64_t trainTokens_ = 0;
};

}  // namespace weft
