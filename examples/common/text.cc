#include "examples/common/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"

namespace weft::examples {

std::string ownDocumentation() {
  std::vector<std::filesystem::path> files = {std::filesystem::path(WEFT_SOURCE_DIR) / "README.md"};
  std::error_code error;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(WEFT_SOURCE_DIR) / "docs", error)) {
    if (entry.path().extension() == ".md") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin() + 1, files.end());
  std::ostringstream text;
  for (const auto& file : files) {
    text << std::ifstream(file).rdbuf();
  }
  return text.str();
}

absl::StatusOr<TextDataset> readText(const std::string& path, const TextDatasetOptions& options) {
  WEFT_ASSIGN_OR_RETURN(TextDataset data, path.empty()
                                              ? TextDataset::fromText(ownDocumentation(), "the documentation", options)
                                              : TextDataset::open(path, options));
  std::printf("text: %lld training tokens, vocabulary %lld\n", static_cast<long long>(data.trainTokens().size()),
              static_cast<long long>(data.vocabularySize()));
  return data;
}

absl::Status useBytePairs(const std::string& folder, TextDatasetOptions& options) {
  WEFT_ASSIGN_OR_RETURN(BpeTokenizer tokenizer, BpeTokenizer::open(folder));
  options.tokens = TokenKind::kBytePair;
  options.tokenizer = std::make_shared<const BpeTokenizer>(std::move(tokenizer));
  return absl::OkStatus();
}

double unigramEntropy(const std::vector<int32_t>& tokens) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t token : tokens) {
    ++counts[token];
  }
  double entropy = 0;
  for (const auto& [token, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(tokens.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

absl::StatusOr<double> validationLoss(Trainer& trainer, const Program& program, const TextDataset& data,
                                      const TextShape& shape) {
  const int64_t windows = data.validationWindows();
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(program));
  double total = 0;
  for (int64_t first = 0; first < windows; first += shape.batch) {
    // Rows past the last window have only ignored labels.
    std::vector<int32_t> x(shape.batch * shape.context, 0);
    std::vector<int32_t> y(shape.batch * shape.context, kIgnored);
    WEFT_RETURN_IF_ERROR(trainer.stopped());
    const int64_t rows = std::min(shape.batch, windows - first);
    WEFT_RETURN_IF_ERROR(data.validationBatch(first, rows, x.data(), y.data()));
    Feed feed(*executor);
    feed.write("x", x);
    feed.write("y", y);
    WEFT_RETURN_IF_ERROR(feed.status());
    WEFT_RETURN_IF_ERROR(executor->runStep());
    WEFT_ASSIGN_OR_RETURN(const double loss, executor->readScalar("loss"));
    total += loss * static_cast<double>(rows);
  }
  return total / static_cast<double>(std::max<int64_t>(windows, 1));
}

namespace {

// A token of the softmax of logits / 0.8; `at` in [0, 1) says which.
int32_t drawToken(const float* logits, int64_t vocabulary, double at) {
  const float most = *std::max_element(logits, logits + vocabulary);
  double total = 0;
  for (int64_t v = 0; v < vocabulary; ++v) {
    total += std::exp((logits[v] - most) / 0.8);
  }
  double left = total * at;
  int32_t chosen = 0;
  for (int64_t v = 0; v < vocabulary && left >= 0; ++v) {
    left -= std::exp((logits[v] - most) / 0.8);
    chosen = static_cast<int32_t>(v);
  }
  return chosen;
}

}  // namespace

absl::StatusOr<std::string> sampleText(Trainer& trainer, const Program& program, const TextDataset& data,
                                       const TextShape& shape, int64_t count, int64_t seed) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(program));
  std::vector<int32_t> tokens = {data.trainTokens().front()};
  uint64_t random = 88172645463325252u + static_cast<uint64_t>(seed);
  const int64_t positions = shape.batch * shape.context;
  for (int64_t i = 0; i < count; ++i) {
    WEFT_RETURN_IF_ERROR(trainer.stopped());
    const int64_t used = std::min<int64_t>(shape.context, static_cast<int64_t>(tokens.size()));
    std::vector<int32_t> x(positions, 0);
    std::copy(tokens.end() - used, tokens.end(), x.begin());
    Feed feed(*executor);
    feed.write("x", x);
    feed.write("y", std::vector<int32_t>(positions, kIgnored));
    WEFT_RETURN_IF_ERROR(feed.status());
    WEFT_RETURN_IF_ERROR(executor->runStep());
    WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor->readTensor("logits"));
    // Of a model with more tokens than the text has, only those of the text are drawn.
    const int64_t width = static_cast<int64_t>(bytes.size() / sizeof(float)) / positions;
    const float* logits = reinterpret_cast<const float*>(bytes.data()) + (used - 1) * width;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    tokens.push_back(drawToken(logits, data.vocabularySize(), static_cast<double>(random >> 11) * 0x1.0p-53));
  }
  return data.decode(tokens);
}

std::vector<int32_t> likeliestTokens(const std::vector<char>& logits, int64_t positions) {
  const int64_t vocabulary = static_cast<int64_t>(logits.size() / sizeof(float)) / positions;
  const auto* row = reinterpret_cast<const float*>(logits.data());
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < positions; ++i, row += vocabulary) {
    tokens.push_back(static_cast<int32_t>(std::max_element(row, row + vocabulary) - row));
  }
  return tokens;
}

absl::Status writeLosses(const std::string& path, const std::vector<double>& losses) {
  std::ostringstream text;
  text.precision(17);
  for (const double loss : losses) {
    text << loss << "\n";
  }
  return writeFile(path, text.str());
}

}  // namespace weft::examples
