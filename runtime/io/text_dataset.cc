#include "runtime/io/text_dataset.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Bytes of the UTF-8 character that begins with this byte; 0 for a byte that begins none.
size_t characterBytes(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  return first >= 0xF0 && first < 0xF8 ? 4 : first >= 0xE0 ? (first < 0xF0 ? 3 : 0) : first >= 0xC2 ? 2 : 0;
}

absl::StatusOr<std::vector<std::string>> splitText(const std::string& text, bool bytes) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < text.size();) {
    const size_t length = bytes ? 1 : characterBytes(static_cast<unsigned char>(text[i]));
    bool whole = length > 0 && i + length <= text.size();
    for (size_t k = 1; whole && k < length; ++k) {
      whole = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    }
    if (!whole) {
      return absl::InvalidArgumentError(
          absl::StrCat("byte ", i, " begins no UTF-8 character; use byte tokens for text in another encoding"));
    }
    pieces.push_back(text.substr(i, length));
    i += length;
  }
  return pieces;
}

}  // namespace

absl::StatusOr<TextDataset> TextDataset::fromText(const std::string& text, const TextOptions& options) {
  if (text.empty()) {
    return absl::InvalidArgumentError("the text is empty; there is nothing to train on");
  }
  if (options.window < 1 || options.validationPart < 0 || options.validationPart >= 1) {
    return absl::InvalidArgumentError(absl::StrCat("window ", options.window, " and validation part ",
                                                   options.validationPart, " should be at least 1 and in [0, 1)"));
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> pieces, splitText(text, options.bytes));
  TextDataset data;
  data.options_ = options;
  std::map<std::string, int32_t> ids;  // UTF-8 sorts by code point
  for (const std::string& piece : pieces) {
    ids.emplace(piece, 0);
  }
  for (auto& [piece, id] : ids) {
    id = static_cast<int32_t>(data.vocabulary_.size());
    data.vocabulary_.push_back(piece);
  }
  for (const std::string& piece : pieces) {
    data.tokens_.push_back(ids[piece]);
  }
  const auto total = static_cast<int64_t>(data.tokens_.size());
  data.trainTokens_ = static_cast<int64_t>(static_cast<double>(total) * (1.0 - options.validationPart));
  if (data.trainTokens_ < options.window + 1) {
    return absl::InvalidArgumentError(absl::StrCat("the training text has ", data.trainTokens_, " tokens, a window of ",
                                                   options.window, " needs ", options.window + 1,
                                                   "; use a longer text or a shorter context"));
  }
  return data;
}

absl::StatusOr<TextDataset> TextDataset::fromFile(const std::string& path, const TextOptions& options) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  std::ostringstream text;
  text << stream.rdbuf();
  absl::StatusOr<TextDataset> data = fromText(text.str(), options);
  if (!data.ok()) {
    return absl::Status(data.status().code(), absl::StrCat(path, ": ", std::string(data.status().message())));
  }
  return data;
}

void TextDataset::trainRows(int64_t step, int64_t first, int64_t count, int32_t* x, int32_t* y) const {
  const int64_t window = options_.window;
  const uint64_t starts = static_cast<uint64_t>(trainTokens_ - window);
  // A stream of its own: no parameter or dropout uses this key.
  const RandomStream stream{options_.seed, 0x64617461, static_cast<uint32_t>(step)};
  for (int64_t row = 0; row < count; ++row) {
    const uint64_t bits = (static_cast<uint64_t>(randomBits(stream, 2 * (first + row))) << 32) |
                          randomBits(stream, 2 * (first + row) + 1);
    const int32_t* from = tokens_.data() + bits % starts;
    std::copy_n(from, window, x + row * window);
    std::copy_n(from + 1, window, y + row * window);
  }
}

int64_t TextDataset::validationWindows() const {
  const int64_t tokens = static_cast<int64_t>(tokens_.size()) - trainTokens_;
  return tokens > 0 ? (tokens - 1) / options_.window : 0;
}

void TextDataset::validationRow(int64_t index, int32_t ignore, int32_t* x, int32_t* y) const {
  if (index >= validationWindows()) {
    std::fill_n(x, options_.window, 0);
    std::fill_n(y, options_.window, ignore);
    return;
  }
  const int32_t* from = tokens_.data() + trainTokens_ + index * options_.window;
  std::copy_n(from, options_.window, x);
  std::copy_n(from + 1, options_.window, y);
}

std::string TextDataset::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    text += token >= 0 && token < vocabulary() ? vocabulary_[token] : "?";
  }
  return text;
}

std::vector<int32_t> TextDataset::encode(const std::string& text) const {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < text.size();) {
    const size_t length =
        options_.bytes ? 1 : std::max<size_t>(1, characterBytes(static_cast<unsigned char>(text[i])));
    const std::string piece = text.substr(i, length);
    const auto it = std::lower_bound(vocabulary_.begin(), vocabulary_.end(), piece);
    tokens.push_back(it != vocabulary_.end() && *it == piece ? static_cast<int32_t>(it - vocabulary_.begin()) : 0);
    i += length;
  }
  return tokens;
}

}  // namespace weft
