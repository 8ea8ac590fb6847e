#include "runtime/io/text_dataset.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/base/utf8.h"
#include "runtime/io/shuffle.h"

namespace weft {
namespace {

absl::StatusOr<std::vector<uint32_t>> symbolsOf(const std::string& text, const std::string& source, TokenKind kind) {
  if (kind == TokenKind::kCharacter) {
    return decodeUtf8(text, source);
  }
  std::vector<uint32_t> symbols;
  for (const char c : text) {
    symbols.push_back(static_cast<uint8_t>(c));
  }
  return symbols;
}

// The distinct symbols of a text, ascending; of bytes all.
absl::StatusOr<std::vector<uint32_t>> vocabularyOf(const std::string& text, const std::string& source, TokenKind kind) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<uint32_t> symbols, symbolsOf(text, source, kind));
  std::set<uint32_t> distinct(symbols.begin(), symbols.end());
  for (uint32_t byte = 0; kind == TokenKind::kByte && byte < 256; ++byte) {
    distinct.insert(byte);
  }
  return std::vector<uint32_t>(distinct.begin(), distinct.end());
}

absl::Status checkOptions(const TextDatasetOptions& options) {
  if (options.window < 1 || !(options.trainFraction > 0 && options.trainFraction <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", options.window, " tokens and a training part of ",
                                                   options.trainFraction,
                                                   " of the text; they must be at least 1 and in (0, 1]"));
  }
  if ((options.tokens == TokenKind::kBytePair) != (options.tokenizer != nullptr)) {
    return absl::InvalidArgumentError(options.tokenizer == nullptr
                                          ? "tokens are byte pairs and there is no tokenizer; set `tokenizer`"
                                          : "there is a tokenizer and tokens are no byte pairs; set `tokens` to "
                                            "TokenKind::kBytePair, or leave out `tokenizer`");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> decodeUtf8(const std::string& text, const std::string& source) {
  std::vector<uint32_t> codePoints;
  for (size_t at = 0; at < text.size();) {
    uint32_t codePoint = 0;
    const size_t length = codePointAt(text, at, &codePoint);
    if (length == 0) {
      return absl::DataLossError(
          absl::StrFormat("%s: byte 0x%02X at offset %d is no UTF-8; read the text as bytes (TokenKind::kByte)", source,
                          static_cast<uint8_t>(text[at]), at));
    }
    codePoints.push_back(codePoint);
    at += length;
  }
  return codePoints;
}

absl::StatusOr<TextDataset> TextDataset::open(const std::string& path, const TextDatasetOptions& options) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("cannot read a text from ", path, ": ",
                                            stream ? "it is empty or a folder" : std::strerror(errno)));
  }
  return fromText(text.str(), path, options);
}

absl::StatusOr<TextDataset> TextDataset::fromText(const std::string& text, const std::string& source,
                                                  const TextDatasetOptions& options) {
  WEFT_RETURN_IF_ERROR(checkOptions(options));
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": the text is empty"));
  }
  TextDataset data;
  data.options_ = options;
  if (options.tokens != TokenKind::kBytePair) {
    WEFT_ASSIGN_OR_RETURN(data.vocabulary_, vocabularyOf(text, source, options.tokens));
  }
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, data.encode(text));
  const int64_t split = static_cast<int64_t>(options.trainFraction * static_cast<double>(tokens.size()));
  if (split <= options.window) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": the training part has ", split, " of ", tokens.size(),
                                                   " tokens, a window of ", options.window, " needs at least ",
                                                   options.window + 1, "; use a longer text or a shorter window"));
  }
  data.train_.assign(tokens.begin(), tokens.begin() + split);
  data.validation_.assign(tokens.begin() + split, tokens.end());
  return data;
}

absl::StatusOr<std::vector<int32_t>> TextDataset::encode(const std::string& text) const {
  if (options_.tokens == TokenKind::kBytePair) {
    return options_.tokenizer->encode(text);
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<uint32_t> symbols, symbolsOf(text, "text", options_.tokens));
  std::vector<int32_t> tokens;
  tokens.reserve(symbols.size());
  for (const uint32_t symbol : symbols) {
    const auto it = std::lower_bound(vocabulary_.begin(), vocabulary_.end(), symbol);
    if (it == vocabulary_.end() || *it != symbol) {
      return absl::InvalidArgumentError(absl::StrFormat("character U+%04X at place %d is not among the %d of the text",
                                                        symbol, tokens.size(), vocabulary_.size()));
    }
    tokens.push_back(static_cast<int32_t>(it - vocabulary_.begin()));
  }
  return tokens;
}

int64_t TextDataset::vocabularySize() const {
  return options_.tokens == TokenKind::kBytePair ? options_.tokenizer->vocabularySize()
                                                 : static_cast<int64_t>(vocabulary_.size());
}

std::string TextDataset::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocabularySize()) {
      text += '?';
    } else if (options_.tokens == TokenKind::kBytePair) {
      text += options_.tokenizer->bytesOf(token);
    } else if (options_.tokens == TokenKind::kByte) {
      text += static_cast<char>(vocabulary_[token]);
    } else {
      appendUtf8(vocabulary_[token], &text);
    }
  }
  return text;
}

int64_t TextDataset::trainPlace(int64_t index) const {
  return shuffledSample(index, trainPlaces(), options_.seed);
}

void TextDataset::trainWindows(int64_t first, int64_t count, int32_t* x, int32_t* y) const {
  for (int64_t row = 0; row < count; ++row) {
    const int64_t at = row * options_.window;
    copyWindow(train_, trainPlace(first + row), x == nullptr ? x : x + at, y == nullptr ? y : y + at);
  }
}

void TextDataset::trainBatch(int64_t step, int64_t batch, int32_t* x, int32_t* y) const {
  trainWindows(step * batch, batch, x, y);
}

int64_t TextDataset::validationWindows() const {
  return std::max<int64_t>(0, static_cast<int64_t>(validation_.size()) - 1) / options_.window;
}

absl::Status TextDataset::validationBatch(int64_t first, int64_t batch, int32_t* x, int32_t* y) const {
  if (first < 0 || batch < 0 || first > validationWindows() - batch) {
    return absl::OutOfRangeError(
        absl::StrCat("validation windows ", first, " to ", first + batch, " of ", validationWindows()));
  }
  for (int64_t row = 0; row < batch; ++row) {
    copyWindow(validation_, (first + row) * options_.window, x + row * options_.window, y + row * options_.window);
  }
  return absl::OkStatus();
}

void TextDataset::copyWindow(const std::vector<int32_t>& tokens, int64_t place, int32_t* x, int32_t* y) const {
  if (x != nullptr) {
    std::copy_n(tokens.begin() + place, options_.window, x);
  }
  if (y != nullptr) {
    std::copy_n(tokens.begin() + place + 1, options_.window, y);
  }
}

}  // namespace weft
