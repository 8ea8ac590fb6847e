// Texts that a language model learns from, as characters and as bytes.
#include "absl/strings/str_cat.h"
#include "runtime/io/text_dataset.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

void useBatches(const TextDataset& data, int64_t window) {
  std::vector<int32_t> x(2 * window);
  std::vector<int32_t> y(2 * window);
  data.trainBatch(5, 2, x.data(), y.data());
  for (const int32_t token : x) {
    require(token >= 0 && token < data.vocabularySize(), "a token outside of the vocabulary");
  }
  data.validationBatch(0, 2, x.data(), y.data()).IgnoreError();
}

Outcome run(const std::string& bytes) {
  const MemoryFile file(bytes);
  Outcome outcome = Outcome::kRefused;
  for (const TokenKind tokens : {TokenKind::kCharacter, TokenKind::kByte}) {
    for (const int64_t window : {1, 8}) {
      const absl::StatusOr<TextDataset> data =
          TextDataset::open(file.path(), {.tokens = tokens, .window = window, .seed = 3});
      if (!data.ok()) {
        continue;
      }
      const absl::StatusOr<std::vector<int32_t>> encoded = data->encode(bytes);
      requireOk(encoded.status(), "the text itself is not encoded");
      require(data->decode(*encoded) == bytes, "decoding what was encoded gives another text");
      useBatches(*data, window);
      outcome = tokens == TokenKind::kCharacter ? Outcome::kAccepted : outcome;
    }
  }
  return outcome;
}

}  // namespace

Target textTarget() {
  return {"text", run, nullptr, wordsOf("\xC3\xA4|\xE2\x82\xAC|\xF0\x9D\x84\x9E|\xED\xA0\x80|\xF4\x90\x80\x80|\n")};
}

}  // namespace weft::fuzz
