// What a stage's backward pass needs of its forward pass, as plain data: the ground on which recomputation is chosen.
//
// A value is kept from forward to backward, or its operator runs again in the backward pass. An operator that runs
// again needs its operands: those are kept, or run again too. So a choice is the set of operators whose results are
// kept; the rest follows from what the backward pass reads. Nothing here knows MLIR.
//
//   x ──► norm ──► matmul ──► gelu ──► matmul ──► ...      the backward pass reads x, norm, matmul, gelu
//   keep {matmul}: norm runs again from x, gelu again from matmul; x, of another interval, is kept anyway.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/machine/picoseconds.h"

namespace weft::recompute {

// One result of an operator, or a value from outside of the graph (a stage's received input).
struct Value {
  int op = -1;        // index of the operator, -1: from outside, kept when anything needs it
  int64_t bytes = 0;  // of one micro-batch, on one rank
  int storage = -1;   // the value whose memory this one is a view of; -1: its own
  bool read = false;  // by the backward pass

  friend bool operator==(const Value&, const Value&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Value& v) {
    return H::combine(std::move(state), v.op, v.bytes, v.storage, v.read);
  }
};

struct Operator {
  // Values it reads. Those that are there anyway (parameters, inputs of the step) do not appear.
  std::vector<int> inputs;
  Picoseconds time = 0;  // of running it once; collectives by their price
  bool mayRepeat = true;
  bool mayKeep = true;  // false: the user wants it recomputed

  friend bool operator==(const Operator&, const Operator&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Operator& o) {
    return H::combine(std::move(state), o.inputs, o.time, o.mayRepeat, o.mayKeep);
  }
};

// Operators in an order in which they can run; a value's operator stands before its readers.
struct Graph {
  std::vector<Operator> operators;
  std::vector<Value> values;

  friend bool operator==(const Graph&, const Graph&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Graph& g) {
    return H::combine(std::move(state), g.operators, g.values);
  }

  int storageOf(int value) const { return values[value].storage < 0 ? value : storageOf(values[value].storage); }
  std::vector<std::vector<int>> results() const;  // values of each operator
};

// What a choice comes to.
struct Outcome {
  std::vector<bool> repeated;  // operators that run again in the backward pass
  std::vector<bool> kept;      // values kept for it
  int64_t bytes = 0;           // of the kept values, each storage once, the greatest of its values
  Picoseconds time = 0;        // of the repeated operators

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// `keep`: operators whose results are kept if the backward pass needs them. One that may not be repeated is kept
// anyway, one that may not be kept never.
Outcome outcomeOf(const Graph& graph, const std::vector<bool>& keep);

// Bytes and time of the outcomes of many choices of one graph, which outlives it.
class OutcomeFinder {
 public:
  explicit OutcomeFinder(const Graph& graph);

  // Finds the outcome of a choice: 1 for each operator that is kept. The figures are good until the next call.
  void find(const std::vector<uint8_t>& keep);
  int64_t bytes() const { return bytes_; }
  Picoseconds time() const { return time_; }
  bool isRepeated(size_t op) const { return repeatedIn_[op] == round_; }
  bool isKept(size_t value) const { return keptIn_[value] == round_; }

 private:
  const Graph& graph_;
  std::vector<int> storages_;  // of each value
  std::vector<int> read_;      // values that the backward pass reads
  std::vector<int> needed_;
  // The last round in which an operator was repeated, a value kept, and something lay in a storage: so nothing has to
  // be cleared between rounds.
  uint32_t round_ = 0;
  std::vector<uint32_t> repeatedIn_, keptIn_, liesIn_;
  std::vector<int64_t> lies_;  // bytes in each storage
  int64_t bytes_ = 0;
  Picoseconds time_ = 0;
};

}  // namespace weft::recompute
