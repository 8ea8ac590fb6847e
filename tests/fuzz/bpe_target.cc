// Vocabularies of byte pairs: encoder.json, a zero byte, vocab.bpe.
#include "runtime/io/bpe_tokenizer.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

Outcome run(const std::string& bytes) {
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const absl::StatusOr<BpeTokenizer> tokenizer = BpeTokenizer::fromTexts(
      {"encoder.json", bytes.substr(0, end)}, {"vocab.bpe", end < bytes.size() ? bytes.substr(end + 1) : ""});
  if (!tokenizer.ok()) {
    return Outcome::kRefused;
  }
  const std::vector<int32_t> ids = tokenizer->encode(bytes);
  for (const int32_t id : ids) {
    require(id >= 0 && id < tokenizer->vocabularySize(), "an id outside of the vocabulary");
  }
  const absl::StatusOr<std::string> decoded = tokenizer->decode(ids);
  requireOk(decoded.status(), "what was encoded is not decoded");
  require(*decoded == bytes, "decoding what was encoded gives another text");
  return Outcome::kAccepted;
}

}  // namespace

Target bpeTarget() {
  return {"bpe", run, nullptr, wordsOf("#version:|\xC4\xA0 t|h e|the \xC4\xA0|\\u0120|256|\n|\xFF")};
}

}  // namespace weft::fuzz
