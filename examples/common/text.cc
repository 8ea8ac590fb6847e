#include "examples/common/text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
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

void measureLoss(const Tensor& logits, const Tensor& labels) {
  metric("loss", softmaxCrossEntropy(logits, labels, kIgnored), compare(labels, kIgnored, "ne"));
}

absl::StatusOr<double> validationLoss(Trainer& trainer, const Program& program, const TextDataset& data,
                                      const TextShape& shape) {
  const int64_t windows = data.validationWindows();
  absl::Status read;
  WEFT_ASSIGN_OR_RETURN(
      const Metrics metrics,
      trainer.evaluate(program, (windows + shape.batch - 1) / shape.batch, [&](int64_t batch, Feed& feed) {
        const int64_t first = batch * shape.batch;
        const int64_t rows = feed.rows(std::min(shape.batch, windows - first));
        std::vector<int32_t> x(rows * shape.context);
        std::vector<int32_t> y(x.size());
        read.Update(data.validationBatch(first, rows, x.data(), y.data()));
        feed.write("x", x);
        feed.write("y", y);
      }));
  WEFT_RETURN_IF_ERROR(read);
  return metrics.at("loss");
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

// Logits of what comes behind some tokens.
class NextLogits {
 public:
  NextLogits(Executor& executor, const TextShape& shape, bool cached)
      : executor_(executor), shape_(shape), cached_(cached) {}

  absl::StatusOr<std::vector<float>> behind(const std::vector<int32_t>& tokens) {
    const auto size = static_cast<int64_t>(tokens.size());
    const int64_t half = std::max<int64_t>(shape_.context / 2, 1);
    const int64_t excess = std::max<int64_t>(size - shape_.context, 0);
    const int64_t first = (excess + half - 1) / half * half;
    return cached_ ? oneByOne(tokens, first) : allAtOnce(tokens, first);
  }

 private:
  absl::StatusOr<std::vector<float>> allAtOnce(const std::vector<int32_t>& tokens, int64_t first) {
    const int64_t positions = shape_.batch * shape_.context;
    std::vector<int32_t> x(positions, 0);
    std::copy(tokens.begin() + first, tokens.end(), x.begin());
    Feed feed(executor_);
    feed.write("x", x);
    feed.write("y", std::vector<int32_t>(positions, kIgnored));
    return run(feed, positions, static_cast<int64_t>(tokens.size()) - first - 1);
  }

  // The rows that are in the caches already are not computed again.
  absl::StatusOr<std::vector<float>> oneByOne(const std::vector<int32_t>& tokens, int64_t first) {
    if (first != first_) {
      first_ = first;
      cachedRows_ = 0;
    }
    absl::StatusOr<std::vector<float>> logits = std::vector<float>();
    for (; logits.ok() && first_ + cachedRows_ < static_cast<int64_t>(tokens.size()); ++cachedRows_) {
      Feed feed(executor_);
      feed.write("x", std::vector<int32_t>(shape_.batch, tokens[first_ + cachedRows_]));
      feed.write("position", std::vector<int32_t>{static_cast<int32_t>(cachedRows_)});
      logits = run(feed, shape_.batch, 0);
    }
    return logits;
  }

  // The logits of one of so many positions.
  absl::StatusOr<std::vector<float>> run(const Feed& feed, int64_t positions, int64_t position) {
    WEFT_RETURN_IF_ERROR(feed.status());
    WEFT_RETURN_IF_ERROR(executor_.runStep());
    WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor_.readTensor("logits"));
    const int64_t width = static_cast<int64_t>(bytes.size() / sizeof(float)) / positions;
    std::vector<float> logits(width);
    std::memcpy(logits.data(), bytes.data() + position * width * sizeof(float), width * sizeof(float));
    return logits;
  }

  Executor& executor_;
  TextShape shape_;
  bool cached_;
  int64_t first_ = 0;
  int64_t cachedRows_ = 0;  // from the token `first_` on
};

}  // namespace

absl::StatusOr<std::string> sampleText(Trainer& trainer, const Sampling& sampling, const TextDataset& data,
                                       const TextShape& shape) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, trainer.forward(sampling.program, {.allowNew = sampling.cached}));
  NextLogits next(*executor, shape, sampling.cached);
  std::vector<int32_t> tokens = {data.trainTokens().front()};
  uint64_t random = 88172645463325252u + static_cast<uint64_t>(sampling.seed);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < sampling.count; ++i) {
    WEFT_RETURN_IF_ERROR(trainer.stopped());
    WEFT_ASSIGN_OR_RETURN(const std::vector<float> logits, next.behind(tokens));
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    // Of a model with more tokens than the text has, only those of the text are drawn.
    tokens.push_back(drawToken(logits.data(), data.vocabularySize(), static_cast<double>(random >> 11) * 0x1.0p-53));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("sample of %lld tokens%s: %.0f in a second\n", static_cast<long long>(sampling.count),
              sampling.cached ? " over a cache" : "", static_cast<double>(sampling.count) / seconds.count());
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
