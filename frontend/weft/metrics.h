// Metrics: what an evaluation measures, summed over all rows of all batches and divided by what they weigh.
//
// The mean of the batches' means is not the mean over the data where batches hold different numbers of tokens, or where
// the last one has fewer rows than the program. So a program puts out sums and weights, and Trainer::evaluate divides
// once, at the end: its answer does not depend on the size of the batch, nor on the mesh.
//
//   metric("loss", softmaxCrossEntropy(logits, y), compare(y, -100, "ne"));  // the tokens that are not ignored
//   metric("accuracy", compare(argmax(logits, -1), y, "eq"), compare(y, -100, "ne"));
//   auto program = compileForward(g, Tensor(), forwardOptions(training, options));
//   ...
//   trainer.evaluate(*program, batches, [&](int64_t batch, Feed& feed) {
//     const int64_t rows = feed.rows(std::min(kBatch, images - batch * kBatch));  // the last batch has fewer
//     feed.write("x", ...); feed.write("y", ...);                                 // so many rows
//   });                                                                           // {"accuracy": 0.84, "loss": 0.47}
//
// A training program may have metrics, too: its outputs NAME.sum and NAME.weight are those of a step.
#pragma once

#include "weft/graph.h"

namespace weft {

// The mean of `values` over the rows that Feed::rows calls real, all elements of a row alike. Dimension 0 of values is
// the batch, the same in all metrics of a graph; integers and bools count as numbers. Sums are taken in f64.
// The program gets the outputs NAME.sum and NAME.weight, scalars of type f64, and the input kMetricRows, which a Feed
// writes. Errors: a scalar; other rows than an earlier metric; a name that is taken.
void metric(const std::string& name, const Tensor& values, SourceLine at = SourceLine::current());
// The mean weighted by `weights` of the same shape: sum(values weights) / sum(weights). Bools choose the elements that
// count: what the others hold does not matter, be it NaN.
void metric(const std::string& name, const Tensor& values, const Tensor& weights,
            SourceLine at = SourceLine::current());

// The input of a program with metrics that says which of its rows are real: bool [rows].
inline constexpr char kMetricRows[] = "metric.rows";

}  // namespace weft
