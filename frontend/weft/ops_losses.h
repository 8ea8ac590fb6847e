// Losses, of operators that exist. See weft/ops.h.
#pragma once

#include "weft/ops_base.h"

namespace weft {

// What becomes of the losses of the elements (or rows): their mean, their sum, or themselves.
enum class LossReduction : uint8_t { kMean, kSum, kNone };

// d = prediction - target, of one shape:
// d^2.
Tensor mseLoss(const Tensor& prediction, const Tensor& target, LossReduction reduction = LossReduction::kMean,
               SourceLine at = SourceLine::current());
// |d|.
Tensor l1Loss(const Tensor& prediction, const Tensor& target, LossReduction reduction = LossReduction::kMean,
              SourceLine at = SourceLine::current());
// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2) (Huber 1964).
Tensor huberLoss(const Tensor& prediction, const Tensor& target, double delta = 1.0,
                 LossReduction reduction = LossReduction::kMean, SourceLine at = SourceLine::current());
// d^2 / (2 beta) where |d| <= beta, else |d| - beta / 2: huberLoss / beta (Girshick 2015).
Tensor smoothL1Loss(const Tensor& prediction, const Tensor& target, double beta = 1.0,
                    LossReduction reduction = LossReduction::kMean, SourceLine at = SourceLine::current());

struct BceOptions {
  double positiveWeight = 1.0;  // of the term of the targets
  LossReduction reduction = LossReduction::kMean;
};
// -(w t log s + (1 - t) log(1 - s)), s = sigmoid(logits), t = target from 0 to 1; it overflows nowhere.
Tensor bceWithLogits(const Tensor& logits, const Tensor& target, const BceOptions& options = {},
                     SourceLine at = SourceLine::current());

// sum over the last dimension of p (log p - log q), 0 where p = 0: p = target, log q = logInput, both [..., classes].
// The mean is over the rows.
Tensor klDivergence(const Tensor& logInput, const Tensor& target, LossReduction reduction = LossReduction::kMean,
                    SourceLine at = SourceLine::current());

// a b / max(|a| |b|, epsilon) along a dimension, which goes.
Tensor cosineSimilarity(const Tensor& a, const Tensor& b, int64_t dim = -1, double epsilon = 1e-8,
                        SourceLine at = SourceLine::current());

struct CrossEntropyOptions {
  double labelSmoothing = 0.0;  // from 0 to 1
  int64_t ignoreIndex = -100;   // of labels
  LossReduction reduction = LossReduction::kMean;
};
// -sum over classes of p log softmax(logits), logits [..., classes]. `target` is labels [...], of which p is 1 at the
// label (the mean is over labels that are not ignored), or p itself [..., classes], floats (the mean is over all rows).
// With smoothing s, p becomes (1 - s) p + s / classes (Szegedy et al. 2016).
Tensor crossEntropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {},
                    SourceLine at = SourceLine::current());

}  // namespace weft
