// Text for the examples that train on one: where it comes from, losses on the part kept back, samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/io/text_dataset.h"
#include "weft/weft.h"

namespace weft::examples {

// The label of a position that counts in no loss.
inline constexpr int32_t kIgnored = -100;

// The project's README and docs as one text.
std::string ownDocumentation();

// The text of a file, or ownDocumentation() where `path` is empty; prints how long it is.
absl::StatusOr<TextDataset> readText(const std::string& path, const TextDatasetOptions& options);

// Tokens are byte pairs of the vocabulary in this folder; runtime/io/bpe_tokenizer.h says which files it holds.
absl::Status useBytePairs(const std::string& folder, TextDatasetOptions& options);

// What a model loses per token (in nats) that knows how frequent each token is and nothing of those around it: the sum
// of -p log p. One with a smaller loss makes use of the context.
double unigramEntropy(const std::vector<int32_t>& tokens);

// Rows and tokens of a row of a program with inputs "x" and "y".
struct TextShape {
  int64_t batch = 0;
  int64_t context = 0;
};

// The metric "loss" of a graph: cross entropy of float logits [..., vocabulary], mean over the labels [...] that are
// not kIgnored.
void measureLoss(const Tensor& logits, const Tensor& labels);

// That metric over all whole windows of the validation text, at least one. `program`: forward, with inputs "x" and "y".
absl::StatusOr<double> validationLoss(Trainer& trainer, const Program& program, const TextDataset& data,
                                      const TextShape& shape);

// How a sample is made: forward, with output "logits" of the inputs "x" and "y" [batch, context], or, one row at a time
// over caches, of "x" [batch, 1] and "position".
struct Sampling {
  const Program& program;
  bool cached = false;
  int64_t count = 200;
  int64_t seed = 0;
};

// Continues the text's first token by `count` more, drawing each from the softmax of the last position, and prints how
// many there were in a second. Where the context is full, it goes on from its second half.
absl::StatusOr<std::string> sampleText(Trainer& trainer, const Sampling& sampling, const TextDataset& data,
                                       const TextShape& shape);

// The token with the greatest of float logits [positions, vocabulary], for each position.
std::vector<int32_t> likeliestTokens(const std::vector<char>& logits, int64_t positions);

// One line each, all digits.
absl::Status writeLosses(const std::string& path, const std::vector<double>& losses);

}  // namespace weft::examples
