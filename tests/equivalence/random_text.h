// The text of a random program while it is written: its values, and the operators that are appended one after another.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/equivalence/random_graph.h"

namespace weft::testing {

using Dims = std::vector<int64_t>;

struct RandomValue {
  std::string name;
  Dims shape;
  bool batch = false;  // dimension 0 is the batch
  int readers = 0;
  std::string type = "f64";
  bool isKnown = true;  // may any later operator read it?
};

// "array<i64: 1, 2>".
std::string listText(const Dims& dims);
int64_t elementsOf(const Dims& shape);

// What an operator makes.
struct MadeValue {
  Dims shape;
  bool batch = false;
  std::string type = "f64";
  bool isListed = true;  // among the values; else only the operator's own gradient reads it
};

// Each operator reads values made before. In row-wise programs dimension 0 of a batch value stays the batch, and other
// values never have a dimension that would meet it.
class RandomText {
 public:
  RandomText(std::mt19937_64& generator, int64_t ranks);

  int64_t pick(int64_t count) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(count)); }
  int64_t size() { return Dims{2, 3, 4, 6, 8}[pick(5)]; }

  void addInput();
  size_t parameter(const Dims& shape);
  // Appends "%v<n> = nn.<op> operands {attributes}", of one or more results; gives the number of the first.
  size_t emit(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes,
              const std::vector<MadeValue>& results);
  size_t emit(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes, Dims shape,
              bool batch) {
    return emit(op, operands, attributes, {{std::move(shape), batch}});
  }
  // Of the shape of the last operand.
  size_t emitLike(const std::string& op, const std::vector<size_t>& operands, const std::string& attributes = "");
  // A number; it counts as no operator.
  size_t scalar(double value, const std::string& type = "f64");
  size_t binary(const std::string& op, size_t a, size_t b);

  // The first dimension an operator may change or reduce.
  int64_t firstFree(size_t v) const { return result.rowWise && values[v].batch ? 1 : 0; }
  int64_t rank(size_t v) const { return static_cast<int64_t>(values[v].shape.size()); }
  // Its sizes, 1 for the batch of a row-wise program: a parameter of this shape broadcasts with the value.
  Dims freeShape(size_t v) const;

  std::mt19937_64& generator;
  RandomProgram result;
  std::vector<RandomValue> values;
  int64_t written = 0;

 private:
  int64_t next_ = 0;
};

// Appends one of the operators that DrawnOperators::kFew leaves out, with what it needs around it, on value a; nothing
// where a does not fit it.
void addFurtherOperator(RandomText& text, size_t a);

}  // namespace weft::testing
